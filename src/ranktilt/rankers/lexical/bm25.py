"""Lexical rankers: BM25 and TF-IDF over a shared index.

The index holds counts. Weights are computed when queries are ranked, and only for their terms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.data.text.analyzers import analyzer
from ranktilt.data.text.nltk_tokens import require_nltk
from ranktilt.errors import UserError
from ranktilt.parallel.executor import executor
from ranktilt.rankers.base import (
    CutLists,
    FirstStage,
    Rows,
    ScoredRows,
    Scores,
    TemplatedQueries,
    cut,
    exclude,
    prefilter,
    require_choices,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import Candidates
from ranktilt.rankers.lexical.index import Terms, terms
from ranktilt.rankers.lexical.index_files import Postings, PostingTable
from ranktilt.rankers.lexical.searching import compiled_search, query_groups, rarest_first

Array = npt.NDArray[np.float64]
_QUERIES_A_PART = 64
"""Queries that a worker ranks at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentLengths:
    """How many terms the documents of a collection have, repeats included."""

    terms: Array
    """Number of terms of each document."""
    mean: float
    """Mean of these numbers; 1 where no document has a term."""

    @classmethod
    def from_table(cls, table: PostingTable) -> DocumentLengths:
        """Return the lengths of the documents of a table of postings."""
        terms = table.lengths.astype(np.float64)
        return cls(terms=terms, mean=float(terms.mean()) if terms.any() else 1.0)

    @property
    def document_count(self) -> int:
        """Number of documents, those without a term included."""
        return len(self.terms)


@dataclass(frozen=True, kw_only=True)
class Lexical(TemplatedQueries, FirstStage):
    """A ranker whose score is a sum of term weights over the query's words.

    `analyzer` splits texts into terms. After another stage it re-ranks that stage's documents, and
    weighs terms as in the entire collection; documents without a term of the query are tied at 0.
    """

    reranks: ClassVar[bool] = True

    analyzer: str = "english"
    """Analyzer that splits texts into terms."""
    k: int | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_template()
        analyzer(self.analyzer)

    def check(self) -> None:
        if self.analyzer == "paper":
            require_nltk()

    @abstractmethod
    def weights(self, postings: Postings, lengths: DocumentLengths) -> Array:
        """Return a weight for each posting, at least 0.

        A term's weight in a document may depend on no other term. This is called for many parts of
        a collection's postings, so it must not take time for documents without a posting.
        """

    def provenance(self) -> dict[str, Any]:
        # Scores are the same to the last bit on every machine.
        return {"precision": "exact"}

    def about(self, collection: Collection) -> dict[str, Any]:
        return self.template_spec(collection.queries_with_judgments["text"])

    def lists(self, collection: Collection, excluded: Mapping[int, Rows]) -> CutLists:
        table, queries = self.read(collection, collection.queries_with_judgments["text"])
        slack = max(map(len, excluded.values()), default=0)
        search = compiled_search(table, queries)
        if search is None:
            scored_rows = self._searched(table, queries, self.depth + slack)
            return self.cut_lists(scored_rows, collection, excluded)
        keys = collection.tie_keys()
        lengths = DocumentLengths.from_table(table)
        lists = search.lists(
            weigh=lambda postings: self.weights(postings, lengths),
            keys=keys,
            depth=self.depth + slack,
            label=f"{self!r}: ranking",
        )
        if not excluded:
            return lists.offsets, lists.docs, lists.scores
        return cut(exclude(lists.by_query(), excluded), keys, self.depth)

    def candidates(self, collection: Collection, slack: int) -> Iterator[ScoredRows]:
        table, queries = self.read(collection, collection.queries_with_judgments["text"])
        return self._searched(table, queries, self.depth + slack)

    def _searched(
        self, table: PostingTable, queries: sp.csr_array, most: int
    ) -> Iterator[ScoredRows]:
        """Yield the best documents of each query, in parts where several workers share them."""
        step = max(queries.shape[0] if executor().workers == 1 else _QUERIES_A_PART, 1)
        parts = (queries[start : start + step] for start in range(0, queries.shape[0], step))
        return executor().map(partial(self.best, table, most), parts)

    def best(
        self, table: PostingTable, most: int, parts: Iterator[sp.csr_array]
    ) -> Iterator[ScoredRows]:
        """Yield the best documents of each query of each part.

        All documents that may be tied with the last of them are included.
        """
        for queries in parts:
            for scores, weightless in self._scored(table, queries):
                best = prefilter(scores, most)
                if len(best) < most:  # a word without weight retrieves its documents too
                    for rows in weightless:
                        best = np.union1d(best, rows)
                yield best, scores[best]

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is None:
            return super().rank(collection)
        candidates = Candidates.from_run(collection, run, self)
        table, queries = self.read(collection, candidates.texts)
        scores = np.zeros(len(candidates.rows))
        ends = np.cumsum(candidates.lengths)
        scored_queries = self._scored(table, queries)
        for low, high, (all_scores, _) in zip(
            ends - candidates.lengths, ends, scored_queries, strict=True
        ):
            scores[low:high] = all_scores[candidates.rows[low:high]]
        spec = {**self.provenance(), **self.template_spec(candidates.texts)}
        return reranked_run(self, collection, candidates, scores=scores, spec=spec)

    def read(self, collection: Collection, texts: pl.Series) -> tuple[PostingTable, sp.csr_array]:
        """Return the collection's postings, and how often each query holds each of their terms."""
        shared: Terms = terms(collection, self.analyzer, self.text)
        queries = shared.of_queries(self.read_queries(texts))
        return shared.table, rarest_first(queries, np.diff(shared.table.offsets))

    def _scored(
        self, table: PostingTable, queries: sp.csr_array
    ) -> Iterator[tuple[Scores, list[Rows]]]:
        """Yield each query's score of every document, and the documents of weightless terms.

        For speed, the scores are one array that the next query overwrites, and the postings of a
        group of queries are read and weighed together. The order in which a query's terms are added
        decides the last bit.
        """
        lengths = DocumentLengths.from_table(table)
        scores = np.zeros(lengths.document_count)
        starts = queries.indptr
        for first, last in query_groups(starts, queries.indices, np.diff(table.offsets)):
            needed = np.unique(queries.indices[starts[first] : starts[last]]).astype(np.int64)
            postings = table.postings(needed)
            weights = self.weights(postings, lengths)
            ends = np.concatenate([[0], np.cumsum(postings.sizes)])
            for low, high in zip(starts[first:last], starts[first + 1 : last + 1], strict=True):
                weightless = []
                positions = np.searchsorted(needed, queries.indices[low:high])
                for position, count in zip(positions, queries.data[low:high], strict=True):
                    span = slice(ends[position], ends[position + 1])
                    rows, term_weights = postings.rows[span], weights[span]
                    scores[rows] += term_weights if count == 1 else float(count) * term_weights
                    if not term_weights[0]:
                        weightless.append(rows)
                yield scores, weightless
                scores.fill(0)


@dataclass(frozen=True, kw_only=True)
class BM25(Lexical):
    """BM25 (Robertson & Zaragoza 2009) with Elasticsearch's defaults.

    `k1` is the saturation of term frequencies, at least 0, and `b` the normalization of lengths, 0
    to 1. The `method` is a variant as in Kamphuis et al., ECIR 2020: ``lucene`` with the idf
    ``ln(1 + (N - df + .5)/(df + .5))``; ``robertson`` with the idf ``ln((N - df + .5)/(df + .5))``,
    at least 0; ``atire`` with the idf ``ln(N/df)`` and the numerator ``(k1 + 1)·tf``; ``bm25l`` and
    ``bm25+`` (Lv & Zhai, CIKM and SIGIR 2011), which lift long documents by `delta`, .5 and 1 by
    default, for each word that query and document share.
    """

    name: ClassVar[str] = "bm25"
    k1: float = 1.2
    b: float = 0.75
    method: str = "lucene"
    delta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices(self, method=_VARIANTS)
        require_range(self, "k1", "delta", least=0)
        require_range(self, "b", least=0, most=1)
        if self.delta is not None and self.method not in _DELTA:
            raise UserError(f"bm25: delta goes with {' and '.join(_DELTA)}, not with {self.method}")

    def weights(self, postings: Postings, lengths: DocumentLengths) -> Array:
        norm = 1 - self.b + self.b * lengths.terms[postings.rows] / lengths.mean
        variant = _VARIANTS[self.method]
        delta = _DELTA.get(self.method, 0.0) if self.delta is None else self.delta
        frequency = variant.frequency(postings.times, norm, self.k1, delta)
        idf = variant.idf(float(lengths.document_count), postings.sizes.astype(np.float64))
        return frequency * np.repeat(idf, postings.sizes)


@dataclass(frozen=True, kw_only=True)
class TFIDF(Lexical):
    """TF-IDF as Dai et al. (2024) use it: the sum of ``(1 + ln tf)·ln(N/df)`` over query words."""

    name: ClassVar[str] = "tfidf"

    def weights(self, postings: Postings, lengths: DocumentLengths) -> Array:
        idf = _idf_plain(float(lengths.document_count), postings.sizes.astype(np.float64))
        return (1 + np.log(postings.times)) * np.repeat(idf, postings.sizes)


# n: documents of the collection, df: documents that hold a term, tf: how often a document holds it,
# norm: 1 − b + b · a document's length / the mean length.


def _idf_plain(n: float, df: Array) -> Array:
    """Return ln(N/df)."""
    return np.log(n / np.maximum(df, 1))


def _idf_lucene(n: float, df: Array) -> Array:
    """Return the idf of Lucene, which is never negative."""
    return np.log(1 + (n - df + 0.5) / (df + 0.5))


def _idf_robertson(n: float, df: Array) -> Array:
    """Return the idf of Robertson, at least 0."""
    idf: Array = np.maximum(np.log((n - df + 0.5) / (df + 0.5)), 0)
    return idf


def _idf_l(n: float, df: Array) -> Array:
    """Return the idf of BM25L."""
    return np.log((n + 1) / (df + 0.5))


def _idf_plus(n: float, df: Array) -> Array:
    """Return the idf of BM25+."""
    return np.log((n + 1) / np.maximum(df, 1))


def _tf_lucene(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    """Return the term frequency without the constant factor k1 + 1."""
    return tf / (k1 * norm + tf)


def _tf_atire(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    """Return the term frequency with the factor k1 + 1."""
    return (k1 + 1) * tf / (k1 * norm + tf)


def _tf_l(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    """Return the term frequency of BM25L, which shifts the normalised frequency by delta."""
    c = tf / norm + delta
    return (k1 + 1) * c / (k1 + c)


def _tf_plus(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    """Return the term frequency of BM25+, which adds delta."""
    return delta + _tf_atire(tf, norm, k1, delta)


@dataclass(frozen=True, kw_only=True)
class _Variant:
    """A variant of BM25: a term's weight is its idf times its term frequency."""

    idf: Callable[[float, Array], Array]
    """Function of the number of documents and the documents of each term."""
    frequency: Callable[[Array, Array, float, float], Array]
    """Function of counts, normalised lengths, k1 and delta."""


_VARIANTS = {
    "lucene": _Variant(idf=_idf_lucene, frequency=_tf_lucene),
    "robertson": _Variant(idf=_idf_robertson, frequency=_tf_lucene),
    "atire": _Variant(idf=_idf_plain, frequency=_tf_atire),
    "bm25l": _Variant(idf=_idf_l, frequency=_tf_l),
    "bm25+": _Variant(idf=_idf_plus, frequency=_tf_plus),
}
"""Variants by name."""
_DELTA = {"bm25l": 0.5, "bm25+": 1.0}
"""Default of `delta` for the variants that have it."""
