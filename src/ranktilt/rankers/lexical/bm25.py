"""Lexical rankers: BM25 and TF-IDF over a shared index; only the queries' terms are ever weighed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.data.text.analyzers import analyzer
from ranktilt.data.text.nltk_tokens import require_nltk
from ranktilt.errors import UserError
from ranktilt.parallel.executor import executor
from ranktilt.parallel.memory_limits import memory_limit
from ranktilt.rankers.base import (
    FirstStage,
    Rows,
    Scores,
    TemplatedQueries,
    prefilter,
    require_choices,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import Candidates
from ranktilt.rankers.lexical.index import Ints, Terms, terms
from ranktilt.rankers.lexical.index_files import Postings, PostingTable

Array = npt.NDArray[np.float64]
_POSTING = 192
_QUERIES_A_PART = 64


@dataclass(frozen=True, kw_only=True)
class Lexical(TemplatedQueries, FirstStage):
    """A ranker whose score is a sum of term weights over the query's words, made by `analyzer`.

    Behind another stage it re-ranks that one's documents, weighing terms as in the whole
    collection; those that share no term with the query are tied at 0.
    """

    reranks: ClassVar[bool] = True

    analyzer: str = "english"
    k: int | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_template()
        analyzer(self.analyzer)

    def check(self) -> None:
        if self.analyzer == "paper":
            require_nltk()

    @abstractmethod
    def weights(self, found: Postings, lengths: Array) -> Array:
        """Weigh terms in the documents that hold them: a weight a posting, at least 0, that depends on no other one.

        `lengths` are the terms of each document of the collection, repeats counted.
        """

    def provenance(self) -> dict[str, Any]:
        """Return that scores are the same to the last bit on every machine."""
        return {"precision": "exact"}

    def about(self, collection: Collection) -> dict[str, Any]:
        return self.template_spec(collection.queries_with_judgments["text"])

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        table, queries = self.read(collection, collection.queries_with_judgments["text"])
        step = max(queries.shape[0] if executor().workers == 1 else _QUERIES_A_PART, 1)
        parts = (queries[start : start + step] for start in range(0, queries.shape[0], step))
        return executor().map(partial(self.best, table, self.depth + slack), parts)

    def best(
        self, table: PostingTable, most: int, parts: Iterator[sp.csr_array]
    ) -> Iterator[tuple[Rows, Scores]]:
        """Yield the best documents of each query of each part, and all that may be tied with the last."""
        for queries in parts:
            for scores, weightless in self._scored(table, queries):
                best = prefilter(scores, most)
                if len(best) < most:  # a word of no weight finds its documents too
                    for rows in weightless:
                        best = np.union1d(best, rows)
                yield best, scores[best]

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is None:
            return super().rank(collection)
        found = Candidates.from_run(collection, run, self)
        scores, ends = np.zeros(len(found.rows)), np.cumsum(found.lengths)
        scored = self._scored(*self.read(collection, found.texts))
        for low, high, (every, _) in zip(ends - found.lengths, ends, scored, strict=True):
            scores[low:high] = every[found.rows[low:high]]
        return reranked_run(
            self,
            collection,
            found,
            scores,
            {**self.provenance(), **self.template_spec(found.texts)},
        )

    def read(self, collection: Collection, texts: pl.Series) -> tuple[PostingTable, sp.csr_array]:
        """Where the collection's terms occur, and how often each query holds each of them."""
        shared: Terms = terms(collection, self.analyzer, self.text)
        return shared.table, shared.of_queries(self.read_queries(texts))

    def _scored(
        self, table: PostingTable, queries: sp.csr_array
    ) -> Iterator[tuple[Scores, list[Rows]]]:
        """Yield each query's score of every document, in one array that is used again, and rows of weightless terms."""
        lengths = table.lengths.astype(np.float64)
        scores = np.zeros(len(lengths))
        for first, last in _groups(queries.indptr, queries.indices, np.diff(table.offsets)):
            needed = np.unique(
                queries.indices[queries.indptr[first] : queries.indptr[last]]
            ).astype(np.int64)
            found = table.postings(needed)
            weights = self.weights(found, lengths)
            ends = np.concatenate([[0], np.cumsum(found.sizes)])
            for low, high in zip(
                queries.indptr[first:last], queries.indptr[first + 1 : last + 1], strict=True
            ):
                weightless = []
                numbers = np.searchsorted(needed, queries.indices[low:high])
                for term, times in zip(numbers, queries.data[low:high], strict=True):
                    rows, values = (
                        found.rows[ends[term] : ends[term + 1]],
                        weights[ends[term] : ends[term + 1]],
                    )
                    scores[rows] += values if times == 1 else float(times) * values
                    if not values[0]:
                        weightless.append(rows)
                yield scores, weightless
                scores.fill(0)


def _groups(starts: Ints, needed: Ints, sizes: Ints) -> Iterator[tuple[int, int]]:
    """First and last of consecutive queries whose terms' postings fit into the memory together; at least one query."""
    most = memory_limit() // _POSTING
    held: set[int] = set()
    first = room = 0
    for query, (low, high) in enumerate(pairwise(starts.tolist())):
        new = set(needed[low:high].tolist()) - held
        more = int(sizes[list(new)].sum())
        if more and query > first and room + more > most:
            yield first, query
            held, first, room = set(), query, 0
            new = set(needed[low:high].tolist())
            more = int(sizes[list(new)].sum())
        held |= new
        room += more
    if first < len(starts) - 1:
        yield first, len(starts) - 1


@dataclass(frozen=True, kw_only=True)
class BM25(Lexical):
    """BM25 (Robertson & Zaragoza 2009) with Elasticsearch's defaults.

    `k1` is the saturation of term frequencies, at least 0, `b` the normalization of lengths, 0 to
    1. The `method` is a variant as in Kamphuis et al., ECIR 2020: ``lucene`` idf ``ln(1 + (N - df +
    .5)/(df + .5))``; ``robertson`` idf ``ln((N - df + .5)/(df + .5))``, at least 0; ``atire`` idf
    ``ln(N/df)`` and the numerator ``(k1 + 1)·tf``; ``bm25l`` and ``bm25+`` (Lv & Zhai, CIKM and
    SIGIR 2011) lift long documents by `delta`, .5 and 1 by default, summed over the words that
    query and document share.
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

    def weights(self, found: Postings, lengths: Array) -> Array:
        mean = lengths.mean() if lengths.any() else 1.0
        norm = 1 - self.b + self.b * lengths / mean
        idf, frequency = _VARIANTS[self.method]
        delta = _DELTA.get(self.method, 0.0) if self.delta is None else self.delta
        saturated = frequency(found.times, norm[found.rows], self.k1, delta)
        return saturated * np.repeat(
            idf(float(len(lengths)), found.sizes.astype(np.float64)), found.sizes
        )


@dataclass(frozen=True, kw_only=True)
class TFIDF(Lexical):
    """TF-IDF: the sum of ``(1 + ln tf)·ln(N/df)`` over the query's words, as Dai et al. (2024) use it."""

    name: ClassVar[str] = "tfidf"

    def weights(self, found: Postings, lengths: Array) -> Array:
        idf = _idf_plain(float(len(lengths)), found.sizes.astype(np.float64))
        return (1 + np.log(found.times)) * np.repeat(idf, found.sizes)


def _idf_plain(n: float, df: Array) -> Array:
    return np.log(n / np.maximum(df, 1))


def _tf_lucene(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    return tf / (k1 * norm + tf)


def _tf_atire(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    return (k1 + 1) * tf / (k1 * norm + tf)


def _tf_l(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    c = tf / norm + delta
    return (k1 + 1) * c / (k1 + c)


_VARIANTS: dict[
    str, tuple[Callable[[float, Array], Array], Callable[[Array, Array, float, float], Array]]
] = {
    "lucene": (lambda n, df: np.log(1 + (n - df + 0.5) / (df + 0.5)), _tf_lucene),
    "robertson": (lambda n, df: np.maximum(np.log((n - df + 0.5) / (df + 0.5)), 0), _tf_lucene),
    "atire": (_idf_plain, _tf_atire),
    "bm25l": (lambda n, df: np.log((n + 1) / (df + 0.5)), _tf_l),
    "bm25+": (
        lambda n, df: np.log((n + 1) / np.maximum(df, 1)),
        lambda *given: given[3] + _tf_atire(*given),
    ),
}
_DELTA = {"bm25l": 0.5, "bm25+": 1.0}
