"""Learned sparse retrieval, such as SPLADE: exact search over postings of weighted terms.

A sparse encoder gives each term of its vocabulary a weight for a text; most weights are 0. The
*postings* of a term are the texts in which its weight is not 0, so a query reads only the postings
of its own terms.
"""

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
    ScoredRows,
    TemplatedQueries,
    encoder_provenance,
    require_backend,
    require_choices,
    require_range,
)
from ranktilt.rankers.candidates import truncated_spec
from ranktilt.rankers.dense.search import Blocks, Matches, TextCopies, merged
from ranktilt.rankers.lexical.weighted_search import compiled_matches

TERMS = 512
"""Most terms of a text by default; SPLADE gives a passage some 200."""
_TEXTS_AT_ONCE = 1 << 15
"""Number of texts that are compared with all queries at the same time."""


@dataclass(frozen=True, kw_only=True)
class SparseEncoder(Encoder):
    """A sparse encoder in a local folder.

    For each text the cache holds one vector: the numbers of its terms in the first half, and their
    weights in the second. A text with fewer terms has weights of 0 at the end.
    """

    library_class: ClassVar[str] = "SparseEncoder"
    ranker: ClassVar[str] = "sparse"

    max_active_dims: int = TERMS
    """Most terms of a text that are kept: those with the largest weights."""

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
        """``dot`` or ``cosine``, as the model's configuration says; ``dot`` where it does not."""
        similarity = self._config.get("similarity_fn_name") or "dot"
        if similarity not in ("dot", "cosine"):
            raise UserError(
                f"{self.folder}: the model asks for {similarity!r}, which is not supported "
                "(valid: dot, cosine)"
            )
        return str(similarity)

    def check(self) -> None:
        """Refuse a model that is no sparse encoder, without loading it.

        sentence-transformers would add a sparse layer of random weights to it.
        """
        if (self.folder / "modules.json").is_file():
            is_sparse = self._config.get("model_type") == "SparseEncoder"
        else:
            config = checkpoint.read_json(self.folder / "config.json", dict)
            kinds = config.get("architectures") or []
            is_sparse = any(str(kind).endswith("ForMaskedLM") for kind in kinds)
        if not is_sparse:
            raise UserError(
                f"{self.folder}: no sparse encoder: expected a SparseEncoder of "
                "sentence-transformers, or a masked language model such as SPLADE"
            )

    def _encoded(self, texts: list[str], kind: Kind) -> Vectors:
        """Return the terms with the largest weights, and these weights, of each text."""
        dense = self.module.encode(
            texts,
            prompt=self.prefix(kind),
            convert_to_sparse_tensor=False,
            batch_size=len(texts),
            task=kind,
            show_progress_bar=False,
            save_to_cpu=True,
        )
        weights = dense.float().numpy()
        count = min(self.max_active_dims, weights.shape[1])
        terms = np.argpartition(-np.abs(weights), count - 1, axis=1)[:, :count]
        term_weights = np.take_along_axis(weights, terms, axis=1)
        return np.concatenate([terms.astype(np.float32), term_weights], axis=1)


@dataclass(frozen=True)
class Sparse(TemplatedQueries, FirstStage):
    """Ranks by a learned sparse encoder, such as SPLADE, which gives each term of a text a weight.

    `model` is a ``SparseEncoder`` of sentence-transformers, or the masked language model of a
    SPLADE. A document's score is the dot product of its weights and the query's, or the cosine if
    the model's configuration says so. A document that shares no term with the query is not
    retrieved.
    """

    name: ClassVar[str] = "sparse"
    argument: ClassVar[str | None] = "model"

    model: str
    """Folder or hub name of the model."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Tokens after which a text is cut; None for the model's limit."""
    max_active_dims: int = field(default=TERMS, kw_only=True)
    """Most terms of a text that count: those with the largest weights."""
    precision: str = field(default="float32", kw_only=True)
    """Arithmetic of the model."""
    device: str | None = field(default=None, kw_only=True)
    """Device of the model; None chooses one."""
    backend: str = field(default=BACKENDS[0], kw_only=True)
    """Library that runs the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_template()
        require_choices(self, precision=PRECISIONS)
        require_backend(self)
        require_range(self, "max_tokens", "max_active_dims", least=1)

    @cached_property
    def encoder(self) -> SparseEncoder:
        """The model, which is not loaded yet."""
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
        """Refuse a model that is no sparse encoder, or asks for another similarity."""
        self.encoder.check()
        _ = self.encoder.similarity

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None if it cannot be read without the model."""
        tokens = self.encoder.tokens
        return tokens if tokens.readable else None

    def provenance(self) -> dict[str, Any]:
        return encoder_provenance(self.encoder)

    def about(self, collection: Collection) -> dict[str, Any]:
        """Return, for a spec, the query template and the share of each source's cut documents."""
        spec = self.template_spec(collection.queries_with_judgments["text"])
        tokens = self.tokens()
        if tokens is None or tokens.limit is None:
            return spec
        counts = tokens.counts(collection.texts(self.text), f"{self!r}: counting tokens")
        is_truncated = counts > tokens.limit
        return {**spec, **truncated_spec(collection.docs["source"], is_truncated, tokens.limit)}

    def candidates(self, collection: Collection, slack: int) -> Iterator[ScoredRows]:
        """Search the postings of distinct texts; yield all documents that have the best texts."""
        self.check()
        documents, text_row = self.encoder.encode(
            collection.texts(self.text), "document", f"{self!r}: encoding documents"
        )
        query_texts = self.read_queries(collection.queries_with_judgments["text"])
        stored, query_row = self.encoder.encode(query_texts, "query", f"{self!r}: encoding queries")
        copies = TextCopies.from_rows(text_row, len(documents))
        matches = _search(
            stored.take(query_row),
            documents,
            self.depth + slack,
            cosine=self.encoder.similarity == "cosine",
            label=f"{self!r}: searching",
        )
        for text_rows, scores in matches:
            yield copies.rows(text_rows, scores)


def _search(
    queries: Vectors, documents: Blocks, k: int, *, cosine: bool, label: str
) -> Iterator[Matches]:
    """Yield each query's best `k` texts that share a term with it, and all tied with the last.

    Texts are compared with all queries part by part; `merged` keeps the best texts of all parts.
    `label` names the work in the progress.

    A score is summed up in float64 over the query's terms, in the order of their numbers, and
    rounded once. So it is the same to the last bit at any position and beside any other texts.
    """
    n = documents.shape[0]
    if not (n and len(queries)):
        yield from ((np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries)
        return
    query_terms = queries[:, : queries.shape[1] // 2]  # the first half of a vector
    # Terms with a number above the largest of any query add nothing to a score.
    size = 1 + int(query_terms.max())
    query_weights = _matrix(queries, size, cosine)

    # The last score of each query's best k texts so far: no later text with a lower one is wanted.
    least = np.zeros(len(queries))

    def parts() -> Iterator[list[Matches]]:
        for start in range(0, n, _TEXTS_AT_ONCE):
            stop = min(start + _TEXTS_AT_ONCE, n)
            postings = _matrix(documents.read(start, stop), size, cosine).T.tocsr()
            additions = _additions(query_weights, postings) * -(-n // _TEXTS_AT_ONCE)
            matches = compiled_matches(query_weights, postings, k, least=least, additions=additions)
            if matches is None:
                part = list(_products(query_weights, postings))
            else:
                part = list(matches)
                _raise_least_scores(least, part, k)
            yield [(rows + start, scores) for rows, scores in part]
            report(label, stop, n)

    yield from merged(parts(), len(queries), k)


def _raise_least_scores(least: np.ndarray, part: list[Matches], k: int) -> None:
    """Raise each query's least wanted score to the score of its `k`-th text in a part.

    A part lists the texts of each query with the best score first.
    """
    for query, (_, scores) in enumerate(part):
        if len(scores) >= k:
            least[query] = max(least[query], float(scores[k - 1]))


def _additions(query_weights: Any, postings: Any) -> int:
    """Return how many weights a search of all queries adds up."""
    return int(np.diff(postings.indptr)[query_weights.indices].sum())


def _products(query_weights: Any, postings: Any) -> Iterator[Matches]:
    """Yield all texts that share a term with each query, and their scores."""
    for query in range(query_weights.shape[0]):
        scores = query_weights[query] @ postings
        yield scores.indices.astype(np.int64), scores.data.astype(np.float32)


def _matrix(vectors: Vectors, size: int, cosine: bool) -> Any:
    """Return the weights of texts for the first `size` terms, as a sparse matrix in float64.

    `vectors` has the terms of each text in its first half, and their weights in its second. For
    cosines, the weights of each text are divided by their length.
    """
    terms, weights = np.split(vectors.astype(np.float64), 2, axis=1)
    if cosine:
        length = np.linalg.norm(weights, axis=1, keepdims=True)
        weights = weights / np.where(length > 0, length, 1)
    is_used = (weights != 0) & (terms < size)
    starts = np.concatenate([[0], np.cumsum(is_used.sum(axis=1))])
    columns = terms[is_used].astype(np.int64)
    matrix = csr_matrix((weights[is_used], columns, starts), shape=(len(vectors), size))
    # Terms are summed up in this order, so it must be the same for every text.
    matrix.sort_indices()
    return matrix
