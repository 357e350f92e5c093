"""Re-rankers: a model that reads query and document together puts a run's candidates in another order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.run import Run
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
"""Tokens of a query and of a document, by name; the model's own limit holds for both together in any case. ``paper`` is
Askari et al., CIKM 2023."""


@dataclass(frozen=True)
class ReRanker(TemplatedQueries):
    """Scores each candidate of a run together with its query.

    Query and document are cut after their tokens, special ones not counted, by default so that they
    fit; numbers given beside the `limits` come first.
    """

    argument: ClassVar[str | None] = "model"

    model: str
    k: int | None = field(default=None, kw_only=True)
    text: str = field(default="title+text", kw_only=True)
    max_query_tokens: int | None = field(default=None, kw_only=True)
    max_document_tokens: int | None = field(default=None, kw_only=True)
    limits: str = field(default="model", kw_only=True)
    precision: str = field(default="float32", kw_only=True)
    device: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        self.require_template()
        require_choices(self, text=TEXT_CHOICES, limits=LIMITS, precision=PRECISIONS)
        require_range(self, "max_query_tokens", "max_document_tokens", least=1)

    @abstractmethod
    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        """Make what scores pairs, from a model's folder, tokens of query and document, and a precision.

        Refuses, without loading it, a folder that holds no model of this kind.
        """

    def scorer(self) -> PairScorer:
        """Find the model, and make sure without loading it that it can re-rank."""
        query, document = LIMITS[self.limits]
        folder = find(self.model, for_=f"{self.name}:{self.model}")
        query, document = self.max_query_tokens or query, self.max_document_tokens or document
        return replace(
            self.scorer_of(folder, query, document, self.precision), model_name=self.model
        )

    def check(self) -> None:
        self.scorer()

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None where it has none that can be read without the model."""
        scorer = self.scorer()
        return scorer.tokens if scorer.token_counter(None).readable else None

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Score the candidates again, those of one text with one score, to the last bit."""
        found = Candidates.from_run(collection, run, self)
        scorer = self.scorer()
        texts = readable_texts(self, collection)
        rows, place = np.unique(found.rows, return_inverse=True)
        queries = self.read_queries(found.texts).to_list()
        pairs = TextPairs.from_texts(queries, texts.gather(rows).to_list(), found.query, place)
        scores = scorer.relevance(scorer.logits(pairs, f"{self!r}: scoring pairs"))[pairs.entry]
        spec = {
            **self.provenance(scorer),
            "activation": scorer.activation,
            **self.template_spec(found.texts),
            **self._truncated(scorer, pairs, found, collection),
        }
        return reranked_run(self, collection, found, scores, spec)

    def provenance(self, scorer: PairScorer) -> dict[str, Any]:
        """Return the model's hash, its precision, and the versions of what computes, for a run's spec."""
        return {
            "model": {"folder": str(scorer.folder), "fingerprint": scorer.fingerprint},
            "precision": scorer.precision,
            "packages": installed_versions("torch", "transformers"),
        }

    def _truncated(
        self, scorer: PairScorer, pairs: TextPairs, found: Candidates, collection: Collection
    ) -> dict[str, Any]:
        """The share of each source's candidates that are not read to their end."""
        limit = min(scorer.limits.document or NO_LIMIT, scorer.limits.pair)
        if limit >= NO_LIMIT or not scorer.token_counter(None).readable:
            return {}
        over = scorer.truncated(pairs, f"{self!r}: counting tokens")[pairs.entry]
        return found.truncated(over, limit, collection)
