"""Learned sparse retrieval, such as SPLADE: exact search over the postings of a model's weighted terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from ranktilt.data.cache import Vectors
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.models import checkpoint
from ranktilt.models.batching import RESULTS_VERSION
from ranktilt.models.device import BACKENDS, PRECISIONS
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.models.token_counts import Tokens
from ranktilt.progress import report
from ranktilt.rankers.base import (
    FirstStage,
    Rows,
    Scores,
    TemplatedQueries,
    encoder_provenance,
    require_backend,
    require_choices,
    require_range,
)
from ranktilt.rankers.candidates import truncated_spec
from ranktilt.rankers.dense.retriever import TextCopies
from ranktilt.rankers.dense.search import Blocks, Found, merged

TERMS = 512
"""Terms of a text that are kept by default; SPLADE gives a passage some 200."""
_TEXTS_AT_ONCE = 1 << 15


@dataclass(frozen=True, kw_only=True)
class SparseEncoder(Encoder):
    """A sparse encoder in a local folder; of each text the cache holds terms, then weights, the unused ones zero."""

    library_class: ClassVar[str] = "SparseEncoder"
    ranker: ClassVar[str] = "sparse"

    max_active_dims: int = TERMS

    @cached_property
    def fingerprint(self) -> str:
        options = self.max_tokens, self.precision, self.backend, self.max_active_dims
        return checkpoint.fingerprint(self.folder, RESULTS_VERSION, self.ranker, *options)

    @property
    def about(self) -> dict[str, Any]:
        about = super().about
        return {**about, "options": {**about["options"], "max_active_dims": self.max_active_dims}}

    @cached_property
    def similarity(self) -> str:
        """``dot`` or ``cosine``, as the model's own configuration says (dot where it does not)."""
        found = self._config.get("similarity_fn_name") or "dot"
        if found not in ("dot", "cosine"):
            raise UserError(
                f"{self.folder}: the model asks for {found!r}, which is not supported (valid: dot, cosine)"
            )
        return str(found)

    def check(self) -> None:
        """Refuse, without loading it, a model that sentence-transformers would make sparse by random weights."""
        kinds = checkpoint.read_json(self.folder / "config.json", dict).get("architectures") or []
        saved = (self.folder / "modules.json").is_file()
        sparse = self._config.get("model_type") == "SparseEncoder"
        if not (sparse if saved else any(str(kind).endswith("ForMaskedLM") for kind in kinds)):
            raise UserError(
                f"{self.folder}: no sparse encoder: expected a SparseEncoder of sentence-transformers, or a masked "
                "language model such as SPLADE"
            )

    def _encoded(self, texts: list[str], kind: Kind) -> Vectors:
        options = {
            "batch_size": len(texts),
            "task": kind,
            "show_progress_bar": False,
            "save_to_cpu": True,
        }
        found = self.module.encode(
            texts, prompt=self.prefix(kind), convert_to_sparse_tensor=False, **options
        )
        weights = found.float().numpy()
        count = min(self.max_active_dims, weights.shape[1])
        terms = np.argpartition(-np.abs(weights), count - 1, axis=1)[:, :count]
        return np.concatenate(
            [terms.astype(np.float32), np.take_along_axis(weights, terms, axis=1)], axis=1
        )


@dataclass(frozen=True)
class Sparse(TemplatedQueries, FirstStage):
    """Ranks by a learned sparse encoder, such as SPLADE: a text is a weight for each term of a vocabulary.

    `model` is a ``SparseEncoder`` of sentence-transformers, or the masked language model of a
    SPLADE. A document's score is the sum, over the terms that it shares with the query, of both
    weights' product, or their cosine where the model says so; one that shares none is not found.
    """

    name: ClassVar[str] = "sparse"
    argument: ClassVar[str | None] = "model"

    model: str
    max_tokens: int | None = field(default=None, kw_only=True)
    max_active_dims: int = field(default=TERMS, kw_only=True)
    precision: str = field(default="float32", kw_only=True)
    device: str | None = field(default=None, kw_only=True)
    backend: str = field(default=BACKENDS[0], kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_template()
        require_choices(self, precision=PRECISIONS)
        require_backend(self)
        require_range(self, "max_tokens", "max_active_dims", least=1)

    @cached_property
    def encoder(self) -> SparseEncoder:
        """The model; nothing is loaded yet."""
        folder = checkpoint.find(self.model, for_=f"{self.name}:{self.model}")
        return SparseEncoder(
            name=self.model,
            folder=folder,
            max_tokens=self.max_tokens,
            precision=self.precision,
            device=self.device,
            backend=self.backend,
            max_active_dims=self.max_active_dims,
        )

    def check(self) -> None:
        self.encoder.check()
        _ = self.encoder.similarity

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None where it has none that can be read without the model."""
        tokens = self.encoder.tokens
        return tokens if tokens.readable else None

    def provenance(self) -> dict[str, Any]:
        return encoder_provenance(self.encoder)

    def about(self, collection: Collection) -> dict[str, Any]:
        spec, tokens = self.template_spec(collection.queries_with_judgments["text"]), self.tokens()
        if tokens is None or tokens.limit is None:
            return spec
        over = (
            tokens.counts(collection.texts(self.text), f"{self!r}: counting tokens") > tokens.limit
        )
        return {**spec, **truncated_spec(collection.docs["source"], over, tokens.limit)}

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        self.check()
        documents, row = self.encoder.encode(
            collection.texts(self.text), "document", f"{self!r}: encoding documents"
        )
        asked = self.read_queries(collection.queries_with_judgments["text"])
        stored, query = self.encoder.encode(asked, "query", f"{self!r}: encoding queries")
        copies, cosine = (
            TextCopies.from_rows(row, len(documents)),
            self.encoder.similarity == "cosine",
        )
        for found, scores in _search(
            stored.take(query), documents, self.depth + slack, cosine, f"{self!r}: searching"
        ):
            yield copies.rows(found, scores)


def _search(
    queries: Vectors, documents: Blocks, k: int, cosine: bool, label: str
) -> Iterator[Found]:
    """Find each query's best `k` texts and all tied, of those that share a term with it.

    A score is summed up in float64 over the query's terms in their order and rounded once, so that
    neither the place of a text nor any other text changes a bit.
    """
    n = documents.shape[0]
    if not (n and len(queries)):
        yield from ((np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries)
        return
    size = 1 + int(
        queries[:, : queries.shape[1] // 2].max()
    )  # a document's other terms play no part
    asked = _matrix(queries, size, cosine)

    def parts() -> Iterator[list[Found]]:
        for start in range(0, n, _TEXTS_AT_ONCE):
            stop = min(start + _TEXTS_AT_ONCE, n)
            postings = _matrix(documents.read(start, stop), size, cosine).T.tocsr()
            found = (asked[number] @ postings for number in range(len(queries)))
            yield [
                (one.indices.astype(np.int64) + start, one.data.astype(np.float32)) for one in found
            ]
            report(label, stop, n)

    yield from merged(parts(), len(queries), k)


def _matrix(rows: Vectors, size: int, cosine: bool) -> Any:
    """Texts' weights of the first `size` terms, as a sparse matrix of float64; of unit length for cosines."""
    terms, weights = np.split(rows.astype(np.float64), 2, axis=1)
    if cosine:
        length = np.linalg.norm(weights, axis=1, keepdims=True)
        weights = weights / np.where(length > 0, length, 1)
    used = (weights != 0) & (terms < size)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    found = csr_matrix(
        (weights[used], terms[used].astype(np.int64), starts), shape=(len(rows), size)
    )
    found.sort_indices()
    return found
