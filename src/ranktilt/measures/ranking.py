"""Rankings as tie blocks, and the judgments of one group: the input of every measure.

Everything is array code over all queries together. A ranking is a flat list of entries, one for
each retrieved document: first those of query 0 with falling scores, then those of query 1, and so
on. A *tie block* is a stretch of entries of one query with the same score; measures are computed
block by block, so that tied documents share their ranks. A *labeling* says which documents belong
to a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ranking:
    """Scores of many queries and their tie blocks.

    Query i has the entries ``offsets[i]:offsets[i + 1]``, whose scores fall.
    """

    offsets: Ints
    """Index of each query's first entry, and at the end the number of entries; (n_queries + 1,)."""
    scores: Floats
    """Score of each entry."""
    _heads: dict[int | None, tuple[Ranking, Bools]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Results of `head` by depth."""

    _block_shares: dict[tuple[str, int | None], Floats] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Results of `_shares_of_blocks`, by function and cutoff, because they are often needed again.
    """

    @cached_property
    def query(self) -> Ints:
        """Number of each entry's query."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def count(self, is_member: Bools) -> Ints:
        """Count the entries of each query that are members of a group."""
        running = np.concatenate([[0], np.cumsum(is_member)])
        counts: Ints = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return counts

    @cached_property
    def starts(self) -> Ints:
        """Index of the first entry of each tie block."""
        is_start = np.ones(len(self.scores), dtype=bool)
        is_start[1:] = self.scores[1:] != self.scores[:-1]
        first_entries = self.offsets[:-1]
        is_start[first_entries[first_entries < len(self.scores)]] = True  # of lists with an entry
        return np.flatnonzero(is_start)

    @cached_property
    def sizes(self) -> Ints:
        """Number of documents in each tie block (n in the papers' formulas)."""
        return np.diff(np.append(self.starts, len(self.scores)))

    @cached_property
    def block_query(self) -> Ints:
        """Query of each tie block."""
        return self.query[self.starts]

    @cached_property
    def before(self) -> Ints:
        """Number of documents above each tie block (s in the papers' formulas)."""
        return self.starts - self.offsets[:-1][self.block_query]

    def head(self, depth: int | None) -> tuple[Ranking, Bools]:
        """Return the top of each list, and a mask of the entries that it has.

        The top has all tie blocks that begin within the first `depth` ranks; its last block may
        reach below them. If the depth is None, the top is the whole list. The mask has an element
        for each entry of this ranking.
        """
        if depth not in self._heads:
            self._heads[depth] = self._head(depth)
        return self._heads[depth]

    def _head(self, depth: int | None) -> tuple[Ranking, Bools]:
        """Compute what `head` returns and remembers."""
        if depth is None:
            return self, np.ones(len(self.scores), dtype=bool)
        is_kept = np.repeat(self.before < depth, self.sizes)
        lengths = np.bincount(self.query[is_kept], minlength=len(self.offsets) - 1)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Ranking(offsets, self.scores[is_kept]), is_kept


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The relevant documents of one group, retrieved or not: judgments with grades above 0.

    The ideal ranking of a query is made from them: the best grade first.
    """

    query: Ints
    """Number of each judgment's query."""
    grade: Floats
    """Grade of each judgment."""
    n_queries: int
    """Number of queries, also those without a judgment."""

    def count(self, rel: int = 1) -> Ints:
        """Count the documents of each query with a grade of at least `rel` (R_g in formulas)."""
        return np.bincount(self.query[self.grade >= rel], minlength=self.n_queries)

    @cached_property
    def _ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, rank and discounted gain of each relevant document in the ideal ranking."""
        order = np.lexsort((-self.grade, self.query))
        query = self.query[order]
        counts = np.bincount(query, minlength=self.n_queries)
        start_of_query = np.concatenate([[0], np.cumsum(counts)])
        rank = np.arange(len(query)) - start_of_query[query] + 1
        return query, rank, self.grade[order] / np.log2(1 + rank)

    def ideal(self, cutoff: int | None) -> Floats:
        """Return the DCG of the ideal ranking of each query, down to `cutoff`."""
        query, rank, gain = self._ideal_order
        if cutoff is not None:
            query, gain = query[rank <= cutoff], gain[rank <= cutoff]
        return np.bincount(query, weights=gain, minlength=self.n_queries).astype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Hits:
    """Gains of tie blocks under many labelings.

    A relevant document of the group gains 1, or its grade if the measure reads grades; any other
    document gains 0.
    """

    gains: Floats
    """Sum of the gains of each block's documents, shape (n_blocks, n_labelings)."""
    query: Ints
    """Number of each block's query."""

    @cached_property
    def running(self) -> Floats:
        """Sum of the gains of a query down to each block, the block included."""
        return running_row_sums(self.gains, self.query)

    @cached_property
    def gain_products(self) -> Floats:
        """Gain of each block times the sum of gains down to it, the block included."""
        return self.gains * self.running


def running_sums(ranking: Ranking, block_values: Floats) -> Floats:
    """Return, for each block, the sum of the query's values down to it, the block included."""
    total = np.cumsum(block_values)
    # Blocks are in order of query, so this is the index of the first block of each block's query.
    first = np.searchsorted(ranking.block_query, ranking.block_query)
    total_above_query = total - block_values
    return total - total_above_query[first] if len(total) else total


def running_row_sums(rows: Floats, query: Ints) -> Floats:
    """Return the running sums down the rows of a table, which start again with each query.

    `query` has the number of each row's query, in rising order.
    """
    total = np.cumsum(rows, axis=0)
    is_first = np.diff(query, prepend=-1) != 0
    total_above_query = total[is_first] - rows[is_first]
    total -= total_above_query[np.cumsum(is_first) - 1]
    return total


def per_block(ranking: Ranking, entry_values: Floats) -> Floats:
    """Return the sum of the entries of each tie block."""
    return np.add.reduceat(entry_values, ranking.starts) if len(entry_values) else np.empty(0)


def per_query(ranking: Ranking, block_values: Floats) -> Floats:
    """Return the sum of the tie blocks of each query."""
    query_count = len(ranking.offsets) - 1
    sums = np.bincount(ranking.block_query, weights=block_values, minlength=query_count)
    return sums.astype(np.float64)


def share_of_query(ranking: Ranking, weights: Floats) -> Floats:
    """Return each entry's share of its query's sum; NaN where the sum is 0."""
    query_count = len(ranking.offsets) - 1
    sums = np.bincount(ranking.query, weights=weights, minlength=query_count)[ranking.query]
    share: Floats = np.divide(weights, sums, out=np.full(len(weights), np.nan), where=sums > 0)
    return share


def discounts(depth: int) -> Floats:
    """Return the sums of ``1/log2(1 + rank)`` over the first 0, 1, … `depth` ranks.

    The result has the shape (depth + 1,), so ``discounts(depth)[k]`` is the sum over k ranks.
    """
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(2.0 + np.arange(depth)))])


def _ends_of_blocks(before: Ints, size: Ints, cutoff: int | None) -> tuple[Ints, Ints]:
    """Return the rank just above each block, and the rank of its last document.

    Both are at most the cutoff. A cutoff of None is no cutoff.
    """
    low, high = before, before + size
    return (low, high) if cutoff is None else (np.minimum(low, cutoff), np.minimum(high, cutoff))


def discount_spans(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Return the sum of the discounts of each tie block's ranks, down to the cutoff.

    The discount of a rank is ``1/log2(1 + rank)``. A block has `size` ranks, and `before` ranks are
    above it.
    """
    low, high = _ends_of_blocks(before, size, cutoff)
    sums = discounts(int(high.max(initial=0)))
    # A single document gets its discount itself: a difference of two sums loses the last digits.
    is_single = (size == 1) & (high > low)
    return np.where(is_single, 1 / np.log2(2.0 + low), sums[high] - sums[low])


def rank_weights(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Return the sum of the weights of each tie block's ranks, down to the cutoff.

    A rank weighs ``1/log2(max(rank, 2))``, as in TREC's fair-ranking track, so that ranks 1 and 2
    weigh the same.
    """
    low, high = _ends_of_blocks(before, size, cutoff)
    ranks = np.maximum(np.arange(1, int(high.max(initial=0)) + 1), 2)
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(ranks))])
    weights: Floats = sums[high] - sums[low]
    return weights


def rank_spans(before: Ints, size: Ints, cutoff: int | None) -> Ints:
    """Return how many of each tie block's ranks are within the cutoff.

    A block has `size` ranks, and `before` ranks are above it.
    """
    low, high = _ends_of_blocks(before, size, cutoff)
    return high - low


def probability_within(ranking: Ranking, cutoff: int | None) -> Floats:
    """Return the probability that each entry is within the cutoff.

    It is 1 or 0, or between them for documents that are tied across the cutoff: all their orders
    are equally likely.
    """
    return _shares_of_blocks(ranking, rank_spans, cutoff)


def document_discounts(ranking: Ranking, cutoff: int | None) -> Floats:
    """Return the expected discount of each entry, over all orders of tied documents.

    The discount is ``1/log2(1 + rank)`` down to the cutoff, and 0 below it.
    """
    return _shares_of_blocks(ranking, discount_spans, cutoff)


def _shares_of_blocks(
    ranking: Ranking,
    block_totals: Callable[[Ints, Ints, int | None], npt.NDArray[Any]],
    cutoff: int | None,
) -> Floats:
    """Return each entry's equal share of the total of its tie block.

    `block_totals` computes the totals, from the blocks' `before` and `size` and from the cutoff.
    """
    key = (block_totals.__name__, cutoff)
    if key not in ranking._block_shares:
        share_in_block = block_totals(ranking.before, ranking.sizes, cutoff) / ranking.sizes
        shares = np.repeat(share_in_block, ranking.sizes)
        shares.setflags(write=False)  # the same array is returned to every caller
        ranking._block_shares[key] = shares
    return ranking._block_shares[key]


def block_positions(ranking: Ranking) -> tuple[Ints, Ints]:
    """Return the number of each entry's block, and its position in the block, from 1."""
    block = np.repeat(np.arange(len(ranking.starts)), ranking.sizes)
    return block, np.arange(len(block)) - ranking.starts[block] + 1
