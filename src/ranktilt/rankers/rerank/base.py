"""Re-rankers: a model reads query and document together, and reorders a run's candidates.

The *candidates* are the documents that a first stage retrieved for each query; a run holds an
*entry* for each of them. A *pair* is the text of a query and that of a document. Equal pairs are
scored once. The *spec* of a run says how it was made.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.runs.run import Run
from ranktilt.models.checkpoint import find
from ranktilt.models.device import PRECISIONS
from ranktilt.models.scorer import PairScorer, TextPairs
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.rankers.base import (
    TemplatedQueries,
    installed_versions,
    readable_texts,
    require_choices,
    require_depth,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import Candidates

LIMITS: dict[str, tuple[int | None, int | None]] = {"model": (None, None), "paper": (30, 200)}
"""Most tokens of a query and of a document, by name; ``paper`` is Askari et al., CIKM 2023.

The model's limit for both together applies too.
"""


@dataclass(frozen=True)
class ReRanker(TemplatedQueries):
    """Scores each candidate of a run together with its query.

    By default, texts are cut only if both together are longer than the model's limit. Query and
    document can have limits of their own, without special tokens: those that `limits` names, or
    `max_query_tokens` and `max_document_tokens`.
    """

    argument: ClassVar[str | None] = "model"

    model: str
    """Folder or hub name of the model."""
    k: int | None = field(default=None, kw_only=True)
    """Number of documents to return for each query; None for all candidates."""
    text: str = field(default="title+text", kw_only=True)
    """Part of a document to read, one of `TEXT_CHOICES`."""
    max_query_tokens: int | None = field(default=None, kw_only=True)
    """Most tokens of a query; None for the value of `limits`."""
    max_document_tokens: int | None = field(default=None, kw_only=True)
    """Most tokens of a document; None for the value of `limits`."""
    limits: str = field(default="model", kw_only=True)
    """Name of the limits, one of `LIMITS`."""
    precision: str = field(default="float32", kw_only=True)
    """Arithmetic of the model."""
    device: str | None = field(default=None, kw_only=True)
    """Device of the model; None chooses one."""

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        self.require_template()
        require_choices(self, text=TEXT_CHOICES, limits=LIMITS, precision=PRECISIONS)
        require_range(self, "max_query_tokens", "max_document_tokens", least=1)

    @abstractmethod
    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        """Return the scorer of the model in a folder, which is not loaded yet.

        `query` and `document` are the most tokens that it reads of either; None for no limit.
        `precision` is the arithmetic of the model. Refuses a folder that has no model of this kind.
        """

    def scorer(self) -> PairScorer:
        """Return the model's scorer, without loading it; refuse a model that cannot re-rank."""
        named_query_limit, named_document_limit = LIMITS[self.limits]
        query_limit = self.max_query_tokens or named_query_limit
        document_limit = self.max_document_tokens or named_document_limit
        folder = find(self.model, for_=f"{self.name}:{self.model}")
        scorer = self.scorer_of(folder, query_limit, document_limit, self.precision)
        return replace(scorer, model_name=self.model)

    def check(self) -> None:
        """Refuse a folder that has no model of this kind, without loading it."""
        self.scorer()

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None if it cannot be read without the model."""
        scorer = self.scorer()
        return scorer.tokens if scorer.token_counter(None).readable else None

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Score the candidates anew; equal texts get equal scores, to the last bit."""
        candidates = Candidates.from_run(collection, run, self)
        scorer = self.scorer()
        rows, document = np.unique(candidates.rows, return_inverse=True)
        pairs = TextPairs.from_texts(
            queries=self.read_queries(candidates.texts).to_list(),
            documents=readable_texts(self, collection).gather(rows).to_list(),
            query=candidates.query,
            document=document,
        )
        pair_scores = scorer.relevance(scorer.logits(pairs, f"{self!r}: scoring pairs"))
        spec = {
            **self.provenance(scorer),
            "activation": scorer.activation,
            **self.template_spec(candidates.texts),
            **self._truncated(scorer, pairs, candidates, collection),
        }
        return reranked_run(
            self, collection, candidates, scores=pair_scores[pairs.pair_of_entry], spec=spec
        )

    def provenance(self, scorer: PairScorer) -> dict[str, Any]:
        """Return model, precision and packages for a run's spec."""
        return {
            "model": {"folder": str(scorer.folder), "fingerprint": scorer.fingerprint},
            "precision": scorer.precision,
            "packages": installed_versions("torch", "transformers"),
        }

    def _truncated(
        self, scorer: PairScorer, pairs: TextPairs, candidates: Candidates, collection: Collection
    ) -> dict[str, Any]:
        """Return the share of each source's candidates that are not read to the end, for a spec.

        Empty if the model has no limit, or if its tokens cannot be counted without loading it.
        """
        limit = min(scorer.limits.document or NO_LIMIT, scorer.limits.pair)
        if limit >= NO_LIMIT or not scorer.token_counter(None).readable:
            return {}
        is_truncated = scorer.truncated(pairs, f"{self!r}: counting tokens")
        return candidates.truncated(is_truncated[pairs.pair_of_entry], limit, collection)
