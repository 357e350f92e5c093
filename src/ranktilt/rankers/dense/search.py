"""Exact search: documents stream once past all queries, and each query keeps its best.

It goes in two steps. Matrix products, fast but uneven in their last bits (these depend on the
kernel and on where in the matrix a vector stands), find the candidates: everything that could be
among the best once the products' rounding error is allowed for. The scores that count are then
computed one pair at a time in float64 and rounded once, so that they depend on the two vectors and
on nothing else.
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
Rows = npt.NDArray[np.int64]
Found = tuple[Rows, npt.NDArray[np.float32]]

QUERIES, CELLS, PAIRS = 256, 1 << 22, 512
"""Queries a product; numbers in a block of documents; pairs whose scores are computed together."""
_MOST, _FEWEST = 8192, 256
_ROOM = 1024
_WORK = 48 << 20
_ENTRY = 28
_THREADS = 2
_PART, _PARTS_HELD = 1 << 24, 4
"""Numbers in a part of the documents that travels; parts whose results are kept before they are merged."""


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
    project: Callable[[Vectors], Vectors] | None = None,
) -> Iterator[Found]:
    """Find each query's best `k` documents and all tied with the last, in no order, with their scores.

    Documents are read once for all queries, or once for each group of them where what is kept of
    all would take more than `memory_limit` allows. `cosine` brings vectors to unit length first
    (those of length 0 stay), and `project` is then done to the queries one by one. Scores are
    computed in float64 and rounded once, so that neither the memory nor the place of a query or
    document changes a bit.
    """
    n = documents.shape[0]
    k = min(k, n)
    if not k:
        yield from ((np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries)
        return
    ready = _ready(queries, cosine, project)
    if executor().workers == 1:
        yield from _ExactSearch(documents, k, cosine, label).each(ready, min(2 * k + _ROOM, n))
    else:
        yield from merged(
            _each_part(documents, ready, k, cosine=cosine, label=label), len(queries), k
        )


def _each_part(
    documents: Blocks, queries: Vectors, k: int, *, cosine: bool, label: str
) -> Iterator[list[Found]]:
    """Search each part of the documents by itself, on whatever machine: every query's best of a part at a time."""
    n, d = documents.shape
    step = max(_PART // d, _FEWEST)
    starts = range(0, n, step)
    parts = ((start, documents.read(start, min(start + step, n))) for start in starts)
    stage = partial(_search_parts, queries, k, cosine)
    for done, found in enumerate(executor().map(stage, parts, ordered=False), start=1):
        report(label, min(done * step, n), n)
        yield found


def _search_parts(
    queries: Vectors, k: int, cosine: bool, parts: Iterator[tuple[int, Vectors]]
) -> Iterator[list[Found]]:
    for start, vectors in parts:
        exact = _ExactSearch(InMemory(vectors), min(k, len(vectors)), cosine, "")
        width = min(2 * k + _ROOM, len(vectors))
        yield [(rows + start, scores) for rows, scores in exact.each(queries, width)]


def merged(parts: Iterable[list[Found]], n_queries: int, k: int) -> Iterator[Found]:
    """Keep each query's best `k` of all parts, and all tied with the last."""
    best: list[list[Found]] = [[] for _ in range(n_queries)]
    for part in parts:
        for held, new in zip(best, part, strict=True):
            held.append(new)
            if len(held) == _PARTS_HELD:
                held[:] = [_best(held, k)]
    for held in best:
        yield _best(held, k)


def _best(held: Sequence[Found], k: int) -> Found:
    rows, scores = (np.concatenate(columns) for columns in zip(*held, strict=True))
    keep = scores >= (_kth(scores, k) if len(scores) > k else -np.inf)
    return rows[keep], scores[keep]


@dataclass(frozen=True)
class InMemory:
    """Vectors in memory, read as those in files are."""

    vectors: Vectors

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
    query: npt.NDArray[np.integer[Any]],
    row: Rows,
    *,
    cosine: bool,
    project: Callable[[Vectors], Vectors] | None = None,
) -> npt.NDArray[np.float32]:
    """Score pairs given by the rows of query and document, to the last bit as `search` does; reads no other parts."""
    if not len(row):
        return np.empty(0, dtype=np.float32)
    exact = _ExactSearch(documents, 1, cosine, "")
    return exact.scores(
        _ready(queries, cosine, project), query.astype(np.int32), row.astype(np.int32)
    )


def _ready(queries: Vectors, cosine: bool, project: Callable[[Vectors], Vectors] | None) -> Vectors:
    ready = unit(queries) if cosine else queries
    return ready if project is None else project(ready)


def unit(vectors: Vectors) -> Vectors:
    """Bring vectors to unit length in float32; those of length 0 stay. Each row depends on that row only."""
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norm > 0, norm, 1)).astype(np.float32, copy=False)


@dataclass(frozen=True)
class _ExactSearch:
    """What is the same for all queries; an empty label reports nothing."""

    documents: Blocks
    k: int
    cosine: bool
    label: str

    def each(self, queries: Vectors, width: int) -> Iterator[Found]:
        """Yield each query's best, with room for `width` candidates; those that need more are searched again."""
        d = self.documents.shape[1]
        # Half of the memory, because what needs more room is searched while this group's results
        # are still held.
        size = max((memory_limit() - _WORK) // (2 * (_ENTRY * width + 16 * d)), 1)
        for start in range(0, len(queries), size):
            group = queries[start : start + size]
            kept = self._stream(group, width, start, len(queries))
            crowded = np.flatnonzero(kept.crowded)
            rows, scores, ends = self._ranked(group, kept)
            del kept
            again = replace(self, label="").each(group[crowded], self.documents.shape[0])
            others = set(crowded.tolist())
            for query, (low, high) in enumerate(pairwise([0, *ends])):
                yield (
                    next(again)
                    if query in others
                    else (rows[low:high].astype(np.int64), scores[low:high])
                )

    def _stream(self, queries: Vectors, width: int, done: int, total: int) -> _BestSoFar:
        """Let all documents pass by a group of queries; `done` of `total` queries came before."""
        n, d = self.documents.shape
        kept = _BestSoFar(
            self.k,
            _rounding(queries, d),
            np.float32(8 * d * float(np.finfo(np.float32).tiny)),
            width,
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
            kept.reach(longest)
            shrink = np.divide(1, norm, out=np.zeros_like(norm), where=norm > 0)
            for first in range(0, len(queries), QUERIES):
                scores = queries[first : first + QUERIES] @ block.T
                if self.cosine:
                    scores *= shrink
                kept.add(first, scores, start)
            if self.label:
                report(self.label, n * done + stop * len(queries), n * total)
        return kept

    def _ranked(
        self, queries: Vectors, kept: _BestSoFar
    ) -> tuple[npt.NDArray[np.int32], Vectors, list[int]]:
        """Rows and scores of the best, query after query, and where each query's end."""
        query, rows = kept.candidates()
        scores = self.scores(queries, query, rows)
        best = np.empty(len(rows), dtype=bool)
        starts = np.searchsorted(query, np.arange(len(queries) + 1))
        for low, high in pairwise(starts.tolist()):
            mine = scores[low:high]
            best[low:high] = mine >= (_kth(mine, self.k) if high - low > self.k else -np.inf)
        ends = np.searchsorted(query[best], np.arange(len(queries)), side="right")
        return rows[best], scores[best], ends.tolist()

    def scores(
        self, queries: Vectors, query: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
    ) -> Vectors:
        """Score pairs one by one: no sum depends on which other pairs there are."""
        exact = np.empty(len(rows), dtype=np.float32)
        wide = queries.astype(np.float64)
        n, d = self.documents.shape
        step = min(max(CELLS // d // 4, _FEWEST), _MOST)
        part = rows // step
        order = np.argsort(part.astype(np.uint16) if n // step < 1 << 16 else part, kind="stable")
        cuts = np.searchsorted(part, np.arange(-(-n // step) + 1), sorter=order)

        def fill(number: int) -> None:
            some, start = order[cuts[number] : cuts[number + 1]], number * step
            needed, place = _distinct(rows[some] - start, step)
            block = self.documents.read(start + int(needed[0]), start + int(needed[-1]) + 1)[
                needed - needed[0]
            ]
            block = (unit(block) if self.cosine else block).astype(np.float64)
            for begin in range(0, len(some), PAIRS):
                pairs = some[begin : begin + PAIRS]
                left, right = (
                    wide.take(query[pairs], axis=0),
                    block.take(place[begin : begin + PAIRS], axis=0),
                )
                exact[pairs] = np.einsum("ij,ij->i", left, right)

        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(fill, np.flatnonzero(np.diff(cuts)).tolist()):
                pass
        return exact


class _BestSoFar:
    """Candidates of a group of queries: what may be among the best `k` by scores that are off by `error` at most."""

    def __init__(
        self, k: int, rounding: npt.NDArray[np.float32], underflow: np.float32, width: int
    ) -> None:
        self.k, self.width = k, width
        self.rounding, self.error = rounding, rounding
        self.underflow = underflow
        self.scores = np.empty((len(rounding), width), dtype=np.float32)
        self.rows = np.empty((len(rounding), width), dtype=np.int32)
        self.count = np.zeros(len(rounding), dtype=np.int64)
        self.kth = np.full(len(rounding), -np.inf, dtype=np.float32)
        self.crowded = np.zeros(len(rounding), dtype=bool)

    def reach(self, longest: float) -> None:
        """Allow for the rounding of products with vectors up to this length."""
        self.error = self.rounding * np.float32(longest) + self.underflow

    def add(self, first: int, scores: Vectors, start: int) -> None:
        """Take in the scores of some queries, from `first` on, over some documents, from row `start` on."""
        mine = slice(first, first + len(scores))
        n = scores.shape[1]
        if not start and n > self.k:
            self.kth[mine] = np.partition(scores, n - self.k, axis=1)[:, n - self.k]
        threshold = self.kth[mine] - 2 * self.error[mine]
        threshold[self.crowded[mine]] = np.inf
        hit = np.flatnonzero(scores >= threshold[:, None])
        query, row = np.divmod(hit, n)
        row, value = (row + start).astype(np.int32), scores.ravel()[hit]
        new = np.bincount(query, minlength=len(scores))
        ends = np.cumsum(new)
        fits = self.count[mine] + new <= self.width
        some = slice(None) if fits.all() else fits[query]
        place = self.count[mine][query] + np.arange(len(hit)) - (ends - new)[query]
        self.scores[first + query[some], place[some]] = value[some]
        self.rows[first + query[some], place[some]] = row[some]
        self.count[mine] += np.where(fits, new, 0)
        for other in np.flatnonzero(~fits):
            part = slice(ends[other] - new[other], ends[other])
            self._merge(first + int(other), row[part], value[part])

    def _merge(self, query: int, rows: npt.NDArray[np.int32], scores: Vectors) -> None:
        """Keep what may be among the best of the old and the new together."""
        old = slice(self.count[query])
        rows, scores = (
            np.concatenate([self.rows[query, old], rows]),
            np.concatenate([self.scores[query, old], scores]),
        )
        self.kth[query] = _kth(scores, self.k)
        keep = scores >= self.kth[query] - 2 * self.error[query]
        count = int(np.count_nonzero(keep))
        if count > self.width:
            self.crowded[query], count = True, 0
        else:
            self.rows[query, :count], self.scores[query, :count] = rows[keep], scores[keep]
        self.count[query] = count

    def candidates(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Query and row of every candidate, query after query."""
        found = []
        for query, count in enumerate(self.count):
            scores = self.scores[query, :count]
            threshold = _kth(scores, self.k) - 2 * self.error[query] if count > self.k else -np.inf
            found.append(self.rows[query, :count][scores >= threshold])
        owner = np.repeat(np.arange(len(found), dtype=np.int32), [len(rows) for rows in found])
        return owner, np.concatenate(found)


def _rounding(queries: Vectors, d: int) -> npt.NDArray[np.float32]:
    """Bound how far a product with a vector of length 1 may be from the score that counts.

    Each float32 sum of d products is off by d·2⁻²⁴ of the lengths at most, in whatever order it
    adds up (Higham 2002, sec. 3.1); so are, together, the lengths that a cosine divides by. Four
    times that covers both ways to the score.
    """
    length: npt.NDArray[np.float64] = np.linalg.norm(queries.astype(np.float64), axis=1)
    return (4 * (d + 8) * 2.0**-24 * length).astype(np.float32)


def _kth(scores: Vectors, k: int) -> float:
    place = len(scores) - k
    return float(np.partition(scores, place)[place])


def _distinct(rows: npt.NDArray[np.int32], most: int) -> tuple[Rows, Rows]:
    """Distinct ones among rows below `most`, in order, and the place of each row among them."""
    held = np.zeros(most, dtype=bool)
    held[rows] = True
    return np.flatnonzero(held), (np.cumsum(held) - 1)[rows]
