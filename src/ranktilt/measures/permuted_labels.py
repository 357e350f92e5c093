"""Compute measures of one ranking under many labelings.

A labeling says which relevant documents belong to the group. To see what random labels give,
thousands of labelings are drawn and computed together. Labelings are the columns of a matrix, and
every sum over documents is a product of a sparse matrix with it.

A *tie block* is a set of documents of one list with the same score. Only relevant documents and
their tie blocks are read, because other documents only take up ranks. The values are those of
`ranktilt.measures.relevance`, but added up in another order.

In every function, `is_member` is a matrix of shape (n_documents, n_labelings): 1 for a relevant
document that the labeling puts in the group, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Hits, Ints, Ranking, running_row_sums


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

    def ideal_totals(self, measures: Sequence[Measure], is_member: Floats) -> list[Floats]:
        """Return what the best possible ranking of the group would reach, under each labeling.

        The result has an array of shape (n_queries, n_labelings) for each measure. The value of a
        measure is `RelevantBlocks.totals` divided by this.
        """
        # Documents are sorted by grade, so a document's rank in the ideal ranking of its group is
        # the number of the group's documents up to here. Only graded measures need it.
        rank = None
        if not all(measure.binary for measure in measures):
            rank = running_row_sums(is_member, self.query).astype(np.int64)
        relevant_counts: dict[int, Floats] = {}
        for measure in measures:
            if measure.binary and measure.rel not in relevant_counts:
                relevant_counts[measure.rel] = self._sums(measure.rel) @ is_member
        totals = []
        for measure in measures:
            if rank is not None and not measure.binary:
                discount = measure.discount(int(rank.max(initial=0)))
                totals.append(self._sums(0) @ (is_member * discount[rank]))
            else:
                totals.append(measure.best(relevant_counts[measure.rel]))
        return totals

    def _sums(self, grade: int) -> Any:
        """Return a matrix whose product with labels counts the group's documents of each query.

        Only documents of at least this grade count. For grade 0, the product has the sums of their
        grades instead.
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
    """What each document gains in its block: matrices (n_blocks, n_documents) by a least grade.

    A document gains 1 if it has at least this grade. For a least grade of 0, it gains its grade.
    """
    factors: list[tuple[Any, ...]]
    """Factors of each measure, as matrices (n_queries, n_blocks).

    The product of a factor with the gains of the blocks is a sum over each query's blocks.
    """
    tables: list[Any]
    """Table of each measure, in which it looks up the values of blocks; None for most measures."""

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
        entry_index = np.flatnonzero(pool_position >= 0)  # entries with a relevant document
        document = pool_position[entry_index]
        block_of_entry = np.searchsorted(ranking.starts, entry_index, side="right") - 1
        # The blocks that hold relevant documents are numbered anew, from 0 without gaps.
        block, first_entry, block_number, hit_counts = np.unique(
            block_of_entry, return_index=True, return_inverse=True, return_counts=True
        )
        query, grade = pool.query[document[first_entry]], pool.grade[document]
        gains = {}
        for least_grade in sorted({measure.gain_grade for measure in measures}):
            shape = len(block), len(pool.query)
            gains[least_grade] = _matrix(_gains(grade, least_grade), block_number, document, shape)
        factors, tables = list[tuple[Any, ...]](), list[Any]()
        column, shape = np.arange(len(block)), (pool.queries, len(block))
        for measure in measures:
            block_factors, table = measure.block_factors(
                ranking.before[block], ranking.sizes[block], hit_counts
            )
            factors.append(tuple(_matrix(factor, query, column, shape) for factor in block_factors))
            tables.append(table)
        return cls(measures=measures, query=query, gains=gains, factors=factors, tables=tables)

    def totals(self, is_member: Floats) -> list[Floats]:
        """Return what the ranking reaches under each labeling: the numerator of each measure.

        The result has an array of shape (n_queries, n_labelings) for each measure.
        """
        hits = {
            least_grade: Hits(gains=gains @ is_member, query=self.query)
            for least_grade, gains in self.gains.items()
        }
        totals = []
        for measure, factors, table in zip(self.measures, self.factors, self.tables, strict=True):
            totals.append(measure.block_totals(factors, table, hits[measure.gain_grade]))
        return totals


def _gains(grade: Floats, least_grade: int) -> Floats:
    """Return 1 for grades of at least `least_grade`, else 0; if that is 0, return the grades."""
    return np.where(grade >= least_grade, 1.0, 0.0) if least_grade else grade


def _matrix(data: npt.NDArray[Any], row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix with these values in the cells of `row` and `column`.

    Its products add up in the order of the columns, so that they are the same on every machine.
    """
    # A stored 0 would only cost time in every product.
    cells = np.flatnonzero(data)
    values = data[cells].astype(np.float64)
    return sparse.csr_array((values, (row[cells], column[cells])), shape=shape)
