"""Compute measures of one ranking under many labelings.

A labeling says which relevant documents belong to the group. To see what random labels give,
thousands of labelings are drawn. They are computed together: everything here is a product of sparse
matrices, with a column for each labeling. Only relevant documents and their tie blocks are read,
because other documents only take up ranks. The values are those of `ranktilt.measures.relevance`,
but added up in another order.
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


@dataclass(frozen=True, kw_only=True)
class RelevantDocuments:
    """The relevant documents of all queries, query by query and the best grade first.

    Their labels are shuffled within each query.
    """

    query: Ints
    """Number of each document's query, from 0."""
    grade: Floats
    """Grade of each document."""
    _matrices: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results of `_sums`, by grade: the same ones are needed for every batch of labelings."""

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.query.max(initial=-1)) + 1

    def best(self, measures: Sequence[Measure], mine: Floats) -> list[Floats]:
        """Return `Measure.ideal` under each labeling.

        The result has an array of shape (n_queries, n_labelings) for each measure. A measure is
        `RelevantBlocks.totals` divided by it. `mine` is 1 for documents of the group and 0 for
        others, shape (n_documents, n_labelings).
        """
        # Documents are sorted by grade, so a document's rank in the ideal ranking of its group is
        # the number of the group's documents up to here.
        rank = None
        if not all(measure.binary for measure in measures):
            rank = running_rows(mine, self.query).astype(np.int64)
        counts: dict[int, Floats] = {}
        for measure in measures:
            if measure.binary and measure.rel not in counts:
                counts[measure.rel] = self._sums(measure.rel) @ mine
        totals = []
        for measure in measures:
            if rank is not None and not measure.binary:
                discount = measure.discount(int(rank.max(initial=0)))
                totals.append(self._sums(0) @ (mine * discount[rank]))
            else:
                totals.append(measure.best(counts[measure.rel]))
        return totals

    def _sums(self, grade: int) -> Any:
        """Return a matrix whose product with labels counts the group's documents of each query.

        Only documents of at least this grade count. For grade 0, grades are added up instead.
        """
        if grade not in self._matrices:
            column = np.arange(len(self.query))
            shape = self.queries, len(self.query)
            gains = _gains(self.grade, grade)
            self._matrices[grade] = _matrix(gains, self.query, column, shape)
        return self._matrices[grade]


@dataclass(frozen=True, kw_only=True)
class RelevantBlocks:
    """The relevant documents of a ranking, tie block by tie block, from the first rank."""

    measures: Sequence[Measure]
    """Measures to compute, in this order."""
    query: Ints
    """Query of each block."""
    gains: dict[int, Any]
    """What each document adds to its block: matrices (n_blocks, n_documents) by `Measure.grade`.

    A document adds 1 if it has at least this grade. For grade 0, it adds its grade.
    """
    weights: list[tuple[Any, ...]]
    """The factors of `Measure.block_weights` of each measure, as matrices (n_queries, n_blocks)."""
    tables: list[Any]
    """The table of `Measure.block_weights` of each measure."""

    @classmethod
    def from_ranking(
        cls,
        pool: RelevantDocuments,
        measures: Sequence[Measure],
        ranking: Ranking,
        pool_position: Ints,
    ) -> RelevantBlocks:
        """Return the tie blocks of a ranking that hold relevant documents.

        Parameters
        ----------
        pool : RelevantDocuments
            The relevant documents of all queries.
        measures : sequence of Measure
            The measures to compute.
        ranking : Ranking
            The ranking.
        pool_position : ndarray of int64, shape (n_entries,)
            Index of each entry's document in `pool`; −1 if it is not relevant.
        """
        listed = np.flatnonzero(pool_position >= 0)
        row = pool_position[listed]
        block_of_listed = np.searchsorted(ranking.starts, listed, side="right") - 1
        block, first, number, count = np.unique(
            block_of_listed, return_index=True, return_inverse=True, return_counts=True
        )
        query, grade = pool.query[row[first]], pool.grade[row]
        gains = {}
        for least in sorted({measure.grade for measure in measures}):
            shape = len(block), len(pool.query)
            gains[least] = _matrix(_gains(grade, least), number, row, shape)
        weights, tables = list[tuple[Any, ...]](), list[Any]()
        column, shape = np.arange(len(block)), (pool.queries, len(block))
        for measure in measures:
            block_weights, table = measure.block_weights(
                ranking.before[block], ranking.sizes[block], count
            )
            weights.append(tuple(_matrix(part, query, column, shape) for part in block_weights))
            tables.append(table)
        return cls(measures=measures, query=query, gains=gains, weights=weights, tables=tables)

    def totals(self, mine: Floats) -> list[Floats]:
        """Return `Measure.totals` under each labeling.

        The result has an array of shape (n_queries, n_labelings) for each measure. `mine` is that
        of `RelevantDocuments.best`.
        """
        hits = {
            least: Hits(gains=gains @ mine, query=self.query) for least, gains in self.gains.items()
        }
        totals = []
        for measure, weights, table in zip(self.measures, self.weights, self.tables, strict=True):
            totals.append(measure.block_totals(weights, table, hits[measure.grade]))
        return totals


def _gains(grade: Floats, least: int) -> Floats:
    """Return 1 for grades of at least `least`, else 0; if `least` is 0, return the grades."""
    return np.where(grade >= least, 1.0, 0.0) if least else grade


def _matrix(data: npt.NDArray[Any], row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix of these cells, without explicit zeros.

    Its products add up in the order of the columns, so that they are the same on every machine.
    """
    cells = np.flatnonzero(data)
    values = data[cells].astype(np.float64)
    return sparse.csr_array((values, (row[cells], column[cells])), shape=shape)
