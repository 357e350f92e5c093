"""Measures of one ranking under many labelings at once.

A document that is relevant under no label adds nothing but its rank, so only relevant documents and
their tie blocks are looked at. The values are those of `ranktilt.measures.relevance`, but for the
order in which they are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Hits, Ints, Ranking, running_rows


@dataclass(frozen=True)
class RelevantDocuments:
    """Relevant documents of queries 0, 1, … whose labels are shuffled: query by query, the best grade first."""

    query: Ints
    grade: Floats
    _matrices: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def queries(self) -> int:
        return int(self.query.max(initial=-1)) + 1

    def best(self, measures: Sequence[Measure], mine: Floats) -> list[Floats]:
        """Total of each query's best ranking, per measure (n_queries, labelings): what `Held.totals` is divided by.

        `mine` is 1 for documents that are the group's under a labeling, else 0: (n, labelings).
        """
        rank = (
            running_rows(mine, self.query).astype(np.int64)
            if any(not m.binary for m in measures)
            else None
        )
        count = {rel: self._sums(rel) @ mine for rel in {m.rel for m in measures if m.binary}}
        found = []
        for m in measures:
            if rank is not None and not m.binary:
                found.append(self._sums(0) @ (mine * m.discount(int(rank.max(initial=0)))[rank]))
            else:
                found.append(m.best(count[m.rel]))
        return found

    def _sums(self, key: int) -> Any:
        """What adds up documents by query: their grades (key 0), or those with at least this grade."""
        if key not in self._matrices:
            shape = self.queries, len(self.query)
            self._matrices[key] = _matrix(
                _gains(self.grade, key), self.query, np.arange(len(self.query)), shape
            )
        return self._matrices[key]


@dataclass(frozen=True)
class Held:
    """What a ranking holds of relevant documents, tie block by tie block, the first rank first.

    `gains` holds, for each grade that counts, what each document adds to its block: its grade (key
    0), or 1 where it is at least the key; `weights` and `tables` are per measure what
    `Measure.block_weights` gives.
    """

    measures: Sequence[Measure]
    query: Ints
    gains: dict[int, Any]
    weights: list[tuple[Any, ...]]
    tables: list[Any]

    @classmethod
    def from_ranking(
        cls, pool: RelevantDocuments, measures: Sequence[Measure], ranking: Ranking, at: Ints
    ) -> Held:
        """Find it; `at` holds the place of each entry in the pool, or −1."""
        entry = np.flatnonzero(at >= 0)
        place, block = at[entry], np.searchsorted(ranking.starts, entry, side="right") - 1
        hit, first, number, count = np.unique(
            block, return_index=True, return_inverse=True, return_counts=True
        )
        query, grade, shape = (
            pool.query[place[first]],
            pool.grade[place],
            (len(hit), len(pool.query)),
        )
        gains = {
            key: _matrix(_gains(grade, key), number, place, shape)
            for key in sorted({m.grade for m in measures})
        }
        weights, tables = list[tuple[Any, ...]](), list[Any]()
        for m in measures:
            made, table = m.block_weights(ranking.before[hit], ranking.sizes[hit], count)
            weights.append(
                tuple(
                    _matrix(w, query, np.arange(len(hit)), (pool.queries, len(hit))) for w in made
                )
            )
            tables.append(table)
        return cls(measures, query, gains, weights, tables)

    def totals(self, mine: Floats) -> list[Floats]:
        """Sum up every query under every labeling, per measure: (n_queries, labelings); `mine` as for `best`."""
        hits = {key: Hits(gains @ mine, self.query) for key, gains in self.gains.items()}
        parts = zip(self.measures, self.weights, self.tables, strict=True)
        return [m.block_totals(weights, table, hits[m.grade]) for m, weights, table in parts]


def _gains(grade: Floats, key: int) -> Floats:
    """Grades themselves (key 0), or 1 where they are at least the key."""
    return np.where(grade >= key, 1.0, 0.0) if key else grade


def _matrix(data: npt.NDArray[Any], row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """A sparse matrix whose products add up in the order of the columns."""
    kept = np.flatnonzero(data)
    return sparse.csr_array((data[kept].astype(np.float64), (row[kept], column[kept])), shape=shape)
