"""Exact search: documents stream once past all queries, and each query keeps its best.

There are two steps. Matrix products are fast, but their last bits depend on the kernel and on a
vector's position in the matrix. They find the candidates: every document that could be among the
best once the products' rounding error is allowed for. The scores that count are then computed pair
by pair in float64 and rounded once, so that they depend on the two vectors and on nothing else.

Here a *candidate* is a document that may still be among the best k of a query, and a *block* is as
many documents as are compared together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.parallel.executor import executor
from ranktilt.parallel.memory_limits import memory_limit
from ranktilt.progress import report

Vectors = npt.NDArray[np.float32]
"""Vectors of texts, shape (n, dimension)."""
Rows = npt.NDArray[np.int64]
"""Numbers of documents."""
Matches = tuple[Rows, npt.NDArray[np.float32]]
"""Rows of the documents that are best for one query, and their scores."""
Projection = Callable[[Vectors], Vectors]
"""Changes the vectors of queries before they are compared, such as `Direction.remove`."""

QUERIES = 256
"""Queries of a matrix product."""
CELLS = 1 << 22
"""Numbers of a block of documents: 16 MiB in float32."""
PAIRS = 512
"""Pairs that are scored together."""
_MOST, _FEWEST = 8192, 256
"""Most and fewest documents of a block."""
_ROOM = 1024
"""Candidates that a query has room for, in addition to twice the number that it asks for."""
_WORK = 48 << 20
"""Bytes that the search needs apart from candidates."""
_ENTRY = 28
"""Bytes of a candidate while it is kept and ranked."""
_THREADS = 2
"""Threads that score pairs."""
_PART = 1 << 24
"""Numbers in a part of the documents that is sent to another machine."""
_PARTS_WAITING = 4
"""Parts whose results may wait to be merged into the best so far."""


class Blocks(Protocol):
    """Vectors that are read in parts."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of vectors and their length."""

    def read(self, start: int, stop: int) -> Vectors:
        """Return the vectors of these rows, C-contiguous."""


def search(
    queries: Vectors,
    documents: Blocks,
    k: int,
    *,
    cosine: bool,
    label: str,
    project: Projection | None = None,
) -> Iterator[Matches]:
    """Yield each query's best `k` documents and all tied with the last, in no order.

    Documents are read once for all queries. If the candidates of all queries need more memory than
    `memory_limit` allows, documents are read once for each group of queries. Scores are computed in
    float64 and rounded once, so that neither the memory nor the position of a query or document
    changes a bit.

    Parameters
    ----------
    queries : array of float32
        Vectors of the queries, shape (n_queries, dimension).
    documents : Blocks
        Vectors of the documents.
    k : int
        Number of documents for each query.
    cosine : bool
        Whether vectors are scaled to unit length first; those of length 0 stay.
    label : str
        Name of the work in progress bars; empty for none.
    project : callable, optional
        Applied to the queries after they are scaled.
    """
    n = documents.shape[0]
    k = min(k, n)
    if not k:
        yield from ((np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries)
        return
    queries = _prepare(queries, cosine, project)
    if executor().workers == 1:
        exact = _ExactSearch(documents=documents, k=k, cosine=cosine, label=label)
        yield from exact.matches(queries, width=min(2 * k + _ROOM, n))
    else:
        parts = _search_elsewhere(documents, queries, k, cosine=cosine, label=label)
        yield from merged(parts, len(queries), k)


def _search_elsewhere(
    documents: Blocks, queries: Vectors, k: int, *, cosine: bool, label: str
) -> Iterator[list[Matches]]:
    """Search parts of the documents on other machines; yield every query's best of a part."""
    n, d = documents.shape
    step = max(_PART // d, _FEWEST)
    starts = range(0, n, step)
    parts = ((start, documents.read(start, min(start + step, n))) for start in starts)
    stage = partial(_search_parts, queries, k, cosine)
    for done, part_matches in enumerate(executor().map(stage, parts, ordered=False), start=1):
        report(label, min(done * step, n), n)
        yield part_matches


def _search_parts(
    queries: Vectors, k: int, cosine: bool, parts: Iterator[tuple[int, Vectors]]
) -> Iterator[list[Matches]]:
    """Search parts of the documents; yield the matches of each query, part by part.

    Each part comes with the number of its first document.
    """
    for start, vectors in parts:
        exact = _ExactSearch(
            documents=InMemory(vectors=vectors), k=min(k, len(vectors)), cosine=cosine, label=""
        )
        width = min(2 * k + _ROOM, len(vectors))
        yield [(rows + start, scores) for rows, scores in exact.matches(queries, width)]


def merged(parts: Iterable[list[Matches]], n_queries: int, k: int) -> Iterator[Matches]:
    """Keep each query's best `k` of all parts, and all tied with the last."""
    best_of_queries: list[list[Matches]] = [[] for _ in range(n_queries)]
    for part in parts:
        for waiting, matches in zip(best_of_queries, part, strict=True):
            waiting.append(matches)
            if len(waiting) == _PARTS_WAITING:
                waiting[:] = [_best(waiting, k)]
    for waiting in best_of_queries:
        yield _best(waiting, k)


def _best(parts: Sequence[Matches], k: int) -> Matches:
    """Return the best `k` of one query from several parts, and all tied with the last."""
    rows, scores = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    keep = scores >= _least_of_best(scores, k)
    return rows[keep], scores[keep]


@dataclass(frozen=True, kw_only=True)
class InMemory:
    """Vectors in memory, with the interface of vectors in files."""

    vectors: Vectors
    """The vectors."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of vectors and their length."""
        return self.vectors.shape[0], self.vectors.shape[1]

    def read(self, start: int, stop: int) -> Vectors:
        """Return the vectors of these rows."""
        return self.vectors[start:stop]


def score_pairs(
    queries: Vectors,
    documents: Blocks,
    *,
    query: npt.NDArray[np.integer[Any]],
    row: Rows,
    cosine: bool,
    project: Projection | None = None,
) -> npt.NDArray[np.float32]:
    """Score pairs as `search` does, to the last bit, and read no more documents than needed.

    `query` and `row` hold the rows of each pair's vectors in `queries` and `documents`.
    """
    if not len(row):
        return np.empty(0, dtype=np.float32)
    exact = _ExactSearch(documents=documents, k=1, cosine=cosine, label="")
    queries = _prepare(queries, cosine, project)
    return exact.scores(queries, query.astype(np.int32), row.astype(np.int32))


def _prepare(queries: Vectors, cosine: bool, project: Projection | None) -> Vectors:
    """Scale and project queries, as `search` says."""
    scaled = unit(queries) if cosine else queries
    return scaled if project is None else project(scaled)


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to unit length in float32; those of length 0 stay.

    Each row of the result depends on that row alone.
    """
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norm > 0, norm, 1)).astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class TextCopies:
    """Which documents share a text, and so its vector and, to the last bit, its score.

    Each distinct text is searched once; its documents are put in its place afterwards.
    """

    order: Rows
    """Document rows, sorted by their text."""
    start: Rows
    """Position in `order` of each text's first document."""
    count: Rows
    """Number of documents of each text."""

    @classmethod
    def from_rows(cls, text_row: Rows, n_texts: int) -> TextCopies:
        """Group documents by their text; `text_row` has the text of each document."""
        count = np.bincount(text_row, minlength=n_texts)
        order = np.argsort(text_row, kind="stable")
        return cls(order=order, start=np.cumsum(count) - count, count=count)

    def rows(
        self, texts: Rows, scores: npt.NDArray[np.float32]
    ) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Return the rows and scores of all documents with these texts."""
        count = self.count[texts]
        # 0, 1, 2, … for the documents of each text in turn.
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        rows = self.order[np.repeat(self.start[texts], count) + within]
        return rows, np.repeat(scores, count).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class _ExactSearch:
    """A search of a table of documents."""

    documents: Blocks
    """Vectors of the documents."""
    k: int
    """Number of documents for each query."""
    cosine: bool
    """Whether vectors are compared by cosine."""
    label: str
    """Name of the work in progress bars; empty for none."""

    def matches(self, queries: Vectors, width: int) -> Iterator[Matches]:
        """Yield each query's best, with room for `width` candidates of each.

        Queries with more candidates, such as many documents of equal score, are searched again with
        room for all documents.
        """
        n, d = self.documents.shape
        # Half of the memory, because a second search runs while this group's results are in memory.
        size = max((memory_limit() - _WORK) // (2 * (_ENTRY * width + 16 * d)), 1)
        for start in range(0, len(queries), size):
            group = queries[start : start + size]
            best = self._stream(group, width, start, len(queries))
            crowded = np.flatnonzero(best.crowded)
            rows, scores, ends = self._ranked(group, best)
            del best
            second_search = replace(self, label="").matches(group[crowded], width=n)
            crowded_queries = set(crowded.tolist())
            for query, (low, high) in enumerate(pairwise([0, *ends])):
                if query in crowded_queries:
                    yield next(second_search)
                else:
                    yield rows[low:high].astype(np.int64), scores[low:high]

    def _stream(self, queries: Vectors, width: int, done: int, total: int) -> _BestSoFar:
        """Compare all documents with a group of queries; `done` of `total` queries came before."""
        n, d = self.documents.shape
        best = _BestSoFar(
            k=self.k,
            width=width,
            rounding=_rounding(queries, d),
            # Products below float32's normal numbers lose bits, by less than this.
            underflow=np.float32(8 * d * float(np.finfo(np.float32).tiny)),
        )
        step = min(max(CELLS // d, _FEWEST), _MOST)
        longest = 0.0
        for start in range(0, n, step):
            stop = min(start + step, n)
            block = self.documents.read(start, stop)
            norm = np.sqrt(np.einsum("ij,ij->i", block, block))
            if not np.isfinite(norm).all():
                raise UserError(
                    "vectors are NaN, infinite or too large: a cache file may be damaged; prune it"
                )
            longest = 1.0 if self.cosine else max(longest, float(norm.max()))
            best.allow_for_length(longest)
            inverse_norm = np.divide(1, norm, out=np.zeros_like(norm), where=norm > 0)
            for first in range(0, len(queries), QUERIES):
                scores = queries[first : first + QUERIES] @ block.T
                if self.cosine:
                    scores *= inverse_norm
                best.add(first, scores, start)
            if self.label:
                report(self.label, n * done + stop * len(queries), n * total)
        return best

    def _ranked(
        self, queries: Vectors, best_so_far: _BestSoFar
    ) -> tuple[npt.NDArray[np.int32], Vectors, list[int]]:
        """Return rows and scores of the best, query after query, and the end of each query."""
        query, rows = best_so_far.candidates()
        scores = self.scores(queries, query, rows)
        is_best = np.empty(len(rows), dtype=bool)
        starts = np.searchsorted(query, np.arange(len(queries) + 1))
        for low, high in pairwise(starts.tolist()):
            query_scores = scores[low:high]
            is_best[low:high] = query_scores >= _least_of_best(query_scores, self.k)
        ends = np.searchsorted(query[is_best], np.arange(len(queries)), side="right")
        return rows[is_best], scores[is_best], ends.tolist()

    def scores(
        self, queries: Vectors, query: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
    ) -> Vectors:
        """Score pairs of query and document; no sum depends on which other pairs there are.

        For speed, the documents of a block are read once for all pairs, sorted by a radix sort
        (NumPy has one for 16 bits), and two threads compute.
        """
        exact = np.empty(len(rows), dtype=np.float32)
        wide_queries = queries.astype(np.float64)
        n, d = self.documents.shape
        step = min(max(CELLS // d // 4, _FEWEST), _MOST)
        # The block of each pair's document, the pairs in the order of their blocks, and where the
        # pairs of each block begin.
        block_of = rows // step
        sort_key = block_of.astype(np.uint16) if n // step < 1 << 16 else block_of
        order = np.argsort(sort_key, kind="stable")
        cuts = np.searchsorted(block_of, np.arange(-(-n // step) + 1), sorter=order)

        def fill(block_number: int) -> None:
            """Score the pairs whose document is in a block."""
            pairs = order[cuts[block_number] : cuts[block_number + 1]]
            start = block_number * step
            needed, position = _distinct(rows[pairs] - start, step)
            first, last = int(needed[0]), int(needed[-1])
            block = self.documents.read(start + first, start + last + 1)[needed - first]
            block = (unit(block) if self.cosine else block).astype(np.float64)
            for begin in range(0, len(pairs), PAIRS):
                part = pairs[begin : begin + PAIRS]
                query_vectors = wide_queries.take(query[part], axis=0)
                document_vectors = block.take(position[begin : begin + PAIRS], axis=0)
                exact[part] = np.einsum("ij,ij->i", query_vectors, document_vectors)

        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(fill, np.flatnonzero(np.diff(cuts)).tolist()):
                pass
        return exact


class _BestSoFar:
    """Candidates of a group of queries: documents that may be among the best `k`.

    Their scores are products of float32, off by at most `error`. So a document can still be among
    the best if its score is no more than two errors below the k-th best.
    """

    def __init__(
        self, *, k: int, width: int, rounding: npt.NDArray[np.float32], underflow: np.float32
    ) -> None:
        self.k = k
        # Candidates that each query has room for.
        self.width = width
        # Error of a product with a document of length 1; `error` allows for longer ones.
        self.rounding = rounding
        self.error = rounding
        self.underflow = underflow
        # Scores and rows of the candidates; the first `count` of each query's line are in use.
        self.scores = np.empty((len(rounding), width), dtype=np.float32)
        self.rows = np.empty((len(rounding), width), dtype=np.int32)
        self.count = np.zeros(len(rounding), dtype=np.int64)
        # The k-th best score of each query so far.
        self.kth = np.full(len(rounding), -np.inf, dtype=np.float32)
        # Queries with more candidates than there is room for, which are searched again.
        self.crowded = np.zeros(len(rounding), dtype=bool)

    def allow_for_length(self, longest: float) -> None:
        """Allow for the rounding of products with vectors up to this length."""
        self.error = self.rounding * np.float32(longest) + self.underflow

    def add(self, first: int, scores: Vectors, start: int) -> None:
        """Add the scores of some queries, from `first` on, and some documents, from `start` on.

        `scores` has the shape (n_queries, n_documents). For speed, all queries that have room are
        served by one assignment; only the others are merged one by one.
        """
        group = slice(first, first + len(scores))
        n = scores.shape[1]
        if not start and n > self.k:
            # The first block gives each query a k-th best score, which keeps most others out.
            self.kth[group] = np.partition(scores, n - self.k, axis=1)[:, n - self.k]
        threshold = self.kth[group] - 2 * self.error[group]
        threshold[self.crowded[group]] = np.inf
        # Cells of the table of scores that are candidates, query after query.
        cells = np.flatnonzero(scores >= threshold[:, None])
        query, column = np.divmod(cells, n)
        rows = (column + start).astype(np.int32)
        values = scores.ravel()[cells]
        added = np.bincount(query, minlength=len(scores))
        ends = np.cumsum(added)
        has_room = self.count[group] + added <= self.width
        taken = slice(None) if has_room.all() else has_room[query]
        # The place of a candidate in its query's line: after those that are there already.
        position = self.count[group][query] + np.arange(len(cells)) - (ends - added)[query]
        self.scores[first + query[taken], position[taken]] = values[taken]
        self.rows[first + query[taken], position[taken]] = rows[taken]
        self.count[group] += np.where(has_room, added, 0)
        for full in np.flatnonzero(~has_room):
            part = slice(ends[full] - added[full], ends[full])
            self._merge(first + int(full), rows[part], values[part])

    def _merge(self, query: int, rows: npt.NDArray[np.int32], scores: Vectors) -> None:
        """Merge a query's candidates with new ones, and keep those that may be among the best."""
        present = slice(self.count[query])
        rows = np.concatenate([self.rows[query, present], rows])
        scores = np.concatenate([self.scores[query, present], scores])
        self.kth[query] = _kth(scores, self.k)
        keep = scores >= self.kth[query] - 2 * self.error[query]
        count = int(np.count_nonzero(keep))
        if count > self.width:
            self.crowded[query], count = True, 0
        else:
            self.rows[query, :count], self.scores[query, :count] = rows[keep], scores[keep]
        self.count[query] = count

    def candidates(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return query and row of every candidate, query after query."""
        rows_of_queries = []
        for query, count in enumerate(self.count):
            scores = self.scores[query, :count]
            threshold = _least_of_best(scores, self.k) - 2 * self.error[query]
            rows_of_queries.append(self.rows[query, :count][scores >= threshold])
        counts = [len(rows) for rows in rows_of_queries]
        owner = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return owner, np.concatenate(rows_of_queries)


def _rounding(queries: Vectors, d: int) -> npt.NDArray[np.float32]:
    """Bound how far a product with a vector of length 1 may be from the exact score.

    Each float32 sum of d products is off by at most d·2⁻²⁴ of the lengths, in whatever order it is
    computed (Higham 2002, sec. 3.1); so are, together, the lengths that a cosine divides by. Four
    times that covers both ways to the score.
    """
    length: npt.NDArray[np.float64] = np.linalg.norm(queries.astype(np.float64), axis=1)
    return (4 * (d + 8) * 2.0**-24 * length).astype(np.float32)


def _kth(scores: Vectors, k: int) -> float:
    """Return the k-th largest score."""
    position = len(scores) - k
    return float(np.partition(scores, position)[position])


def _least_of_best(scores: Vectors, k: int) -> float:
    """Return the score of the last of the best `k`; −∞ where there are no more than `k`."""
    return _kth(scores, k) if len(scores) > k else -np.inf


def _distinct(rows: npt.NDArray[np.int32], most: int) -> tuple[Rows, Rows]:
    """Return the distinct rows, all below `most`, in order, and the position of each among them."""
    is_present = np.zeros(most, dtype=bool)
    is_present[rows] = True
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[rows]
