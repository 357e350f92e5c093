"""Lexical rankers: BM25 and TF-IDF over shared term counts, one sparse product a block of queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.rankers.analyze import Terms, analyzer, terms
from ranktilt.rankers.base import FirstStage, Rows, Scores, worth_a_look

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Lexical(FirstStage):
    """A ranker whose score is a sum of term weights over the query's words.

    Parameters
    ----------
    analyzer : str, optional
        How text becomes terms; see `ranktilt.rankers.analyze.analyzer`.
    """

    analyzer: str = "english"

    def __post_init__(self) -> None:
        super().__post_init__()
        analyzer(self.analyzer)

    @abstractmethod
    def weights(self, counts: sp.csr_array) -> sp.csr_array:
        """Turn term counts (documents × terms) into term weights of the same shape, none below 0."""

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Yield every document that shares a term with the query; see `FirstStage.candidates`."""
        shared: Terms = terms(collection, self.analyzer, self.text)
        weights = sp.csr_array(self.weights(shared.counts).T.tocsr())
        queries = shared.of_queries(collection.judged["text"])
        documents = weights.indices.astype(np.intp)
        scores = np.zeros(shared.counts.shape[0])
        for low, high in zip(queries.indptr[:-1], queries.indptr[1:], strict=True):
            weightless = []
            for term, times in zip(queries.indices[low:high], queries.data[low:high], strict=True):
                posting = slice(weights.indptr[term], weights.indptr[term + 1])
                rows, values = documents[posting], weights.data[posting]
                scores[rows] += values if times == 1 else float(times) * values
                if not values[0]:
                    weightless.append(rows)
            found = worth_a_look(scores, self.k + slack)
            if len(found) < self.k + slack:  # a word of no weight finds its documents too
                for rows in weightless:
                    found = np.union1d(found, rows)
            yield found, scores[found]
            scores.fill(0)


@dataclass(frozen=True, kw_only=True)
class BM25(Lexical):
    """BM25 with Elasticsearch's defaults.

    Parameters
    ----------
    k1 : float, optional
        Term-frequency saturation, at least 0.
    b : float, optional
        Length normalization, 0 to 1.
    method : {"lucene", "robertson", "atire", "bm25l", "bm25+"}, optional
        The variant: ``lucene`` idf ``ln(1 + (N - df + .5)/(df + .5))``; ``robertson`` idf
        ``ln((N - df + .5)/(df + .5))``, at least 0; ``atire`` idf ``ln(N/df)`` and the numerator
        ``(k1 + 1)·tf``; ``bm25l`` and ``bm25+`` (δ = .5 and 1) lift long documents.
    delta : float, optional
        δ of ``bm25l`` and ``bm25+``; their usual values by default.

    Notes
    -----
    Robertson & Zaragoza 2009; variants as in Kamphuis et al., ECIR 2020, and Lv & Zhai, CIKM and SIGIR 2011.
    The two variants with δ sum over the words that query and document share.
    """

    name: ClassVar[str] = "bm25"
    k1: float = 1.2
    b: float = 0.75
    method: str = "lucene"
    delta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in _VARIANTS:
            raise unknown("method of bm25", self.method, _VARIANTS)
        if not (np.isfinite(self.k1) and self.k1 >= 0):
            raise UserError(f"bm25: expected k1 of at least 0, got {self.k1}")
        if not 0 <= self.b <= 1:
            raise UserError(f"bm25: expected b between 0 and 1, got {self.b}")
        if self.delta is not None and self.method not in _DELTA:
            raise UserError(f"bm25: delta goes with {' and '.join(_DELTA)}, not with {self.method}")
        if self.delta is not None and not (np.isfinite(self.delta) and self.delta >= 0):
            raise UserError(f"bm25: expected delta of at least 0, got {self.delta}")

    def weights(self, counts: sp.csr_array) -> sp.csr_array:
        """BM25 weight of each term in each document."""
        length = np.asarray(counts.sum(axis=1), dtype=np.float64)
        mean = length.mean() if length.any() else 1.0
        norm = 1 - self.b + self.b * length / mean
        tf = counts.data.astype(np.float64)
        idf, frequency = _VARIANTS[self.method]
        delta = _DELTA.get(self.method, 0.0) if self.delta is None else self.delta
        saturated = frequency(tf, np.repeat(norm, np.diff(counts.indptr)), self.k1, delta)
        return _weighted(counts, saturated, idf(float(counts.shape[0]), document_frequency(counts)))


@dataclass(frozen=True, kw_only=True)
class TFIDF(Lexical):
    """TF-IDF: the sum of ``(1 + ln tf)·ln(N/df)`` over the query's words, as Dai et al. (2024) use it."""

    name: ClassVar[str] = "tfidf"

    def weights(self, counts: sp.csr_array) -> sp.csr_array:
        """TF-IDF weight of each term in each document."""
        df = document_frequency(counts)
        return _weighted(counts, 1 + np.log(counts.data.astype(np.float64)), _idf_plain(float(counts.shape[0]), df))


def document_frequency(counts: sp.csr_array) -> Array:
    """Return in how many documents each term occurs."""
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.float64)


def _weighted(counts: sp.csr_array, frequency: Array, idf: Array) -> sp.csr_array:
    return sp.csr_array((frequency * idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)


def _idf_lucene(n: float, df: Array) -> Array:
    return np.log(1 + (n - df + 0.5) / (df + 0.5))


def _idf_robertson(n: float, df: Array) -> Array:
    return np.maximum(np.log((n - df + 0.5) / (df + 0.5)), 0)


def _idf_plain(n: float, df: Array) -> Array:
    return np.log(n / np.maximum(df, 1))


def _idf_plus(n: float, df: Array) -> Array:
    return np.log((n + 1) / np.maximum(df, 1))


def _idf_l(n: float, df: Array) -> Array:
    return np.log((n + 1) / (df + 0.5))


def _tf_lucene(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    return tf / (k1 * norm + tf)


def _tf_atire(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    return (k1 + 1) * tf / (k1 * norm + tf)


def _tf_plus(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    return delta + _tf_atire(tf, norm, k1, delta)


def _tf_l(tf: Array, norm: Array, k1: float, delta: float) -> Array:
    c = tf / norm + delta
    return (k1 + 1) * c / (k1 + c)


_VARIANTS: dict[str, tuple[Callable[[float, Array], Array], Callable[[Array, Array, float, float], Array]]] = {
    "lucene": (_idf_lucene, _tf_lucene),
    "robertson": (_idf_robertson, _tf_lucene),
    "atire": (_idf_plain, _tf_atire),
    "bm25l": (_idf_l, _tf_l),
    "bm25+": (_idf_plus, _tf_plus),
}
_DELTA = {"bm25l": 0.5, "bm25+": 1.0}
