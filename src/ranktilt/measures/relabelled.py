"""Measures of one ranking under many labelings at once.

A document that is relevant under no label adds nothing but its rank, so only relevant documents and their tie blocks
are looked at. The values are those of `ranktilt.measures.relevance`, but for the order in which they are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ranktilt.measures.base import Measure
from ranktilt.measures.relevance import Ranking, discount_spans, expected_reciprocal, rank_spans

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_EXPANDED = 1 << 20
"""Ranks of tie blocks that are looked at together."""


@dataclass(frozen=True)
class Pool:
    """Relevant documents of some queries, whose labels are shuffled: query by query, the best grade first.

    Parameters
    ----------
    query : ndarray of int64, shape (n,)
        Number of each document's query, from 0 without a gap.
    grade : ndarray of float64, shape (n,)
        Its grade, above 0.
    """

    query: Ints
    grade: Floats
    _matrices: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def queries(self) -> int:
        """How many there are."""
        return int(self.query.max(initial=-1)) + 1

    def best(self, measures: Sequence[Measure], mine: Floats) -> list[Floats]:
        """Compute the total of each query's best ranking: what `Held.totals` is divided by.

        Parameters
        ----------
        measures : sequence of Measure
            What to compute.
        mine : ndarray of float64, shape (n, labelings)
            1 for documents that are the group's, else 0.

        Returns
        -------
        list of ndarray, each of shape (n_queries, labelings)
            Per measure; 0 for a query without a relevant document in the group.
        """
        rank = _running(mine, self.query).astype(np.int64) if any(not m.binary for m in measures) else None
        count = {rel: self._sums(rel) @ mine for rel in {m.rel for m in measures if m.binary}}
        found = []
        for m in measures:
            if rank is not None and not m.binary:
                discount = np.append(0.0, 1 / np.log2(2.0 + np.arange(int(rank.max(initial=0)))))
                discount[len(discount) if m.cutoff is None else m.cutoff + 1 :] = 0.0
                found.append(self._sums(0) @ (mine * discount[rank]))
            elif m.name in ("P", "RR"):
                found.append(np.where(count[m.rel] > 0, float(m.cutoff or 1) if m.name == "P" else 1.0, 0.0))
            else:
                found.append(count[m.rel])
        return found

    def _sums(self, key: int) -> Any:
        """What adds up documents by query: their grades (key 0), or those with at least this grade."""
        if key not in self._matrices:
            shape = self.queries, len(self.query)
            self._matrices[key] = _matrix(_gains(self.grade, key), self.query, np.arange(len(self.query)), shape)
        return self._matrices[key]


@dataclass(frozen=True)
class Held:
    """What a ranking holds of a pool, tie block by tie block, the first rank first.

    Parameters
    ----------
    measures : sequence of Measure
        What to compute.
    query : ndarray of int64, shape (n_blocks,)
        Number of each block's query in the pool.
    gains : dict of sparse array, each of shape (n_blocks, n)
        What each document of the pool adds to its block: its grade (key 0), or 1 where it is at least the key.
    weights : list of sparse arrays, each of shape (n_queries, n_blocks)
        Per measure, what makes totals of blocks.
    tables : list
        Per measure; where blocks hold several documents, RR by the number of hits, and where each block's begin.
    """

    measures: Sequence[Measure]
    query: Ints
    gains: dict[int, Any]
    weights: list[tuple[Any, ...]]
    tables: list[tuple[Floats, Ints] | None]

    @classmethod
    def of(cls, pool: Pool, measures: Sequence[Measure], ranking: Ranking, at: Ints) -> Held:
        """Find it; `at` holds the place of each entry in the pool, or −1."""
        entry = np.flatnonzero(at >= 0)
        place, block = at[entry], np.searchsorted(ranking.starts, entry, side="right") - 1
        hit, first, number, count = np.unique(block, return_index=True, return_inverse=True, return_counts=True)
        query, grade, shape = pool.query[place[first]], pool.grade[place], (len(hit), len(pool.query))
        gains = {
            key: _matrix(_gains(grade, key), number, place, shape)
            for key in sorted({m.rel if m.binary else 0 for m in measures})
        }
        weights, tables = list[tuple[Any, ...]](), list[tuple[Floats, Ints] | None]()
        for m in measures:
            made, table = _weights(m, ranking.before[hit], ranking.sizes[hit], count)
            weights.append(tuple(_matrix(w, query, np.arange(len(hit)), (pool.queries, len(hit))) for w in made))
            tables.append(table)
        return cls(measures, query, gains, weights, tables)

    def totals(self, mine: Floats) -> list[Floats]:
        """Sum up every query under every labeling.

        Parameters
        ----------
        mine : ndarray of float64, shape (n, labelings)
            1 for documents of the pool that are the group's, else 0.

        Returns
        -------
        list of ndarray, each of shape (n_queries, labelings)
            Per measure.
        """
        hits = {key: gains @ mine for key, gains in self.gains.items()}
        ordered = {m.rel for m in self.measures if m.name in ("AP", "RR")}
        running = {rel: _running(hits[rel], self.query) for rel in ordered}
        pairs = {m.rel: hits[m.rel] * running[m.rel] for m in self.measures if m.name == "AP"}
        found = []
        for m, weights, table in zip(self.measures, self.weights, self.tables, strict=True):
            r = hits[m.rel if m.binary else 0]
            if m.name == "AP":
                total = weights[0] @ pairs[m.rel]
                found.append(total + weights[1] @ (r * (r - 1)) if len(weights) > 1 else total)
            elif m.name == "RR":
                first = np.where(running[m.rel] == r, r, 0.0)
                found.append(weights[0] @ (first if table is None else table[0][table[1] + first.astype(np.int64)]))
            else:
                found.append(weights[0] @ r)
        return found


def _weights(
    measure: Measure, before: Ints, size: Ints, count: Ints
) -> tuple[tuple[Floats, ...], tuple[Floats, Ints] | None]:
    """Weights of the blocks, and the table that RR needs where a block holds several documents."""
    tied = bool((count > 1).any())
    if measure.name == "AP":
        whole, among = _precision_weights(before, size, measure.cutoff)
        return (whole, among - whole) if tied else (whole,), None
    if measure.name == "RR" and tied:
        return (np.where(rank_spans(before, size, measure.cutoff) > 0, 1.0, 0.0),), _reciprocals(
            before, size, count, measure.cutoff
        )
    if measure.name == "RR":
        return (expected_reciprocal(before, size, count, measure.cutoff),), None
    spans = rank_spans if measure.binary else discount_spans
    return (spans(before, size, measure.cutoff) / size,), None


def _precision_weights(before: Ints, size: Ints, cutoff: int | None) -> tuple[Floats, Floats]:
    """AP's factors of r (above + 1) and r (r − 1), for blocks with r hits and so many above them."""
    width = rank_spans(before, size, cutoff)
    block = np.repeat(np.arange(len(width)), width)
    place = np.arange(len(block)) - (np.cumsum(width) - width)[block]
    inverse = 1.0 / (before[block] + place + 1)
    whole = np.bincount(block, weights=inverse, minlength=len(width)) / size
    among = np.bincount(block, weights=place * inverse, minlength=len(width)) / (size * np.maximum(size - 1, 1))
    return whole, among


def _reciprocals(before: Ints, size: Ints, count: Ints, cutoff: int | None) -> tuple[Floats, Ints]:
    """Expected 1/rank of the first hit in each block, by 0, 1, … hits; and where each block's begin, as a column."""
    start = np.cumsum(count + 1) - (count + 1)
    block = np.repeat(np.arange(len(count)), count + 1)
    rows = np.stack([before[block], size[block], np.arange(len(block)) - start[block]])
    # Many blocks are alike, such as those of one document at the same rank of different queries.
    kinds, kind = np.unique(rows, axis=1, return_inverse=True)
    table, some = np.zeros(kinds.shape[1]), np.flatnonzero(kinds[2])
    for part in np.array_split(some, 1 + int(kinds[1, some].sum()) // _EXPANDED):
        above, tied, hits = kinds[:, part]
        table[part] = expected_reciprocal(above, tied, hits, cutoff)
    return table[kind.ravel()], start[:, None]


def _gains(grade: Floats, key: int) -> Floats:
    """Grades themselves (key 0), or 1 where they are at least the key."""
    return np.where(grade >= key, 1.0, 0.0) if key else grade


def _matrix(data: npt.NDArray[Any], row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """A sparse matrix whose products add up in the order of the columns."""
    kept = np.flatnonzero(data)
    return sparse.csr_array((data[kept].astype(np.float64), (row[kept], column[kept])), shape=shape)


def _running(rows: Floats, query: Ints) -> Floats:
    """Running sums down the rows, which begin anew with each query."""
    total = np.cumsum(rows, axis=0)
    new = np.diff(query, prepend=-1) != 0
    total -= (total[new] - rows[new])[np.cumsum(new) - 1]
    return total
