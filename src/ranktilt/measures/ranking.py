"""Rankings as tie blocks, and the judgments of one group: the input of every measure.

Everything is array code over all queries together. A ranking is a flat list of entries, one for
each retrieved document: first those of query 0 with falling scores, then those of query 1, and so
on. A tie block is a stretch of entries of one query with the same score; measures are computed
block by block, so that tied documents share their ranks.
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

    Query i owns the entries ``offsets[i]:offsets[i + 1]``, whose scores fall.
    """

    offsets: Ints
    """Entry at which each query begins, and behind the last one the number of entries."""
    scores: Floats
    """Score of each entry."""
    _heads: dict[int | None, tuple[Ranking, Bools]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Results of `head` by depth."""

    _weights: dict[tuple[str, int | None], Floats] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Results of `_of_entries` by function and cutoff, because many draws of labels ask for the
    same ones."""

    @cached_property
    def query(self) -> Ints:
        """Query of each entry."""
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
        has_new_score = self.scores[1:] != self.scores[:-1]
        has_new_query = self.query[1:] != self.query[:-1]
        is_start[1:] = has_new_score | has_new_query
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
        """Return the ranking of the blocks that begin above `depth`, and which entries it has.

        A depth of None keeps all of them. The mask tells for each entry of this ranking whether it
        is in the other.
        """
        if depth not in self._heads:
            self._heads[depth] = self._head(depth)
        return self._heads[depth]

    def _head(self, depth: int | None) -> tuple[Ranking, Bools]:
        """Return the first ranks of each list, and which entries these are."""
        if depth is None:
            return self, np.ones(len(self.scores), dtype=bool)
        keep = np.repeat(self.before < depth, self.sizes)
        lengths = np.bincount(self.query[keep], minlength=len(self.offsets) - 1)
        return Ranking(np.concatenate([[0], np.cumsum(lengths)]), self.scores[keep]), keep


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Judgments of one group with grades above 0, from which an ideal ranking is made."""

    query: Ints
    """Query of each judgment."""
    grade: Floats
    """Grade of each judgment."""
    n_queries: int
    """Number of queries, also those without a judgment."""

    def count(self, rel: int = 1) -> Ints:
        """Count the relevant documents of each query (R_g), whether retrieved or not."""
        return np.bincount(self.query[self.grade >= rel], minlength=self.n_queries)

    @cached_property
    def _ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, rank and discounted gain of each relevant document in the ideal ranking."""
        order = np.lexsort((-self.grade, self.query))
        query = self.query[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=self.n_queries))])
        rank = np.arange(len(query)) - first[query] + 1
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

    A labeling is one way to say which documents are the group's.
    """

    gains: Floats
    """Sum of the gains of each block's documents in the group, of shape (n_blocks, n_labelings)."""
    query: Ints
    """Query of each block."""

    @cached_property
    def running(self) -> Floats:
        """Running sums of the gains down each query."""
        return running_rows(self.gains, self.query)

    @cached_property
    def crossed(self) -> Floats:
        """Each block's gain times the sum of gains down to and including it."""
        return self.gains * self.running


def running_sums(ranking: Ranking, block_values: Floats) -> Floats:
    """Return the running sums of each query over its blocks; each includes its own block."""
    total = np.cumsum(block_values)
    first = np.searchsorted(ranking.block_query, ranking.block_query)
    return total - (total - block_values)[first] if len(total) else total


def running_rows(rows: Floats, query: Ints) -> Floats:
    """Return the running sums down the rows, which begin anew with each query."""
    total = np.cumsum(rows, axis=0)
    is_first = np.diff(query, prepend=-1) != 0
    total -= (total[is_first] - rows[is_first])[np.cumsum(is_first) - 1]
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
    """Return the sums of ``1/log2(1 + rank)`` over the first 0, 1, … `depth` ranks."""
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(2.0 + np.arange(depth)))])


def _ends(before: Ints, size: Ints, cutoff: int | None) -> tuple[Ints, Ints]:
    """Return the ranks just above each block and of its last document, at most the cutoff."""
    low, high = before, before + size
    return (low, high) if cutoff is None else (np.minimum(low, cutoff), np.minimum(high, cutoff))


def discount_spans(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Return the discounts of each tie block's ranks, added up down to the cutoff.

    The discount of a rank is ``1/log2(1 + rank)``. A block has `size` ranks, with `before` ranks
    above them.
    """
    low, high = _ends(before, size, cutoff)
    sums = discounts(int(high.max(initial=0)))
    # A single document takes its own discount: the difference of sums would lose its last digits.
    is_single = (size == 1) & (high > low)
    return np.where(is_single, 1 / np.log2(2.0 + low), sums[high] - sums[low])


def rank_weights(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Return the weights of each tie block's ranks, added up down to the cutoff.

    A rank weighs ``1/log2(max(rank, 2))``, as in TREC's fair-ranking track.
    """
    low, high = _ends(before, size, cutoff)
    ranks = np.maximum(np.arange(1, int(high.max(initial=0)) + 1), 2)
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(ranks))])
    weights: Floats = sums[high] - sums[low]
    return weights


def rank_spans(before: Ints, size: Ints, cutoff: int | None) -> Ints:
    """Return the number of each tie block's ranks that lie within the cutoff."""
    low, high = _ends(before, size, cutoff)
    return high - low


def first_ranks(ranking: Ranking, cutoff: int | None) -> Floats:
    """Return the probability that each entry is within the cutoff.

    Over all orders of tied documents, which share the ranks of their block.
    """
    return _of_entries(ranking, rank_spans, cutoff)


def document_discounts(ranking: Ranking, cutoff: int | None) -> Floats:
    """Return the expected discount of each entry, over all orders of tied documents.

    The discount is ``1/log2(1 + rank)`` down to the cutoff, and 0 below it.
    """
    return _of_entries(ranking, discount_spans, cutoff)


def _of_entries(
    ranking: Ranking,
    spans: Callable[[Ints, Ints, int | None], npt.NDArray[Any]],
    cutoff: int | None,
) -> Floats:
    """Divide a number of each tie block, as `spans` computes it, evenly among its entries."""
    key = (spans.__name__, cutoff)
    if key not in ranking._weights:
        shares = spans(ranking.before, ranking.sizes, cutoff) / ranking.sizes
        weights = np.repeat(shares, ranking.sizes)
        weights.setflags(write=False)
        ranking._weights[key] = weights
    return ranking._weights[key]


def block_positions(ranking: Ranking) -> tuple[Ints, Ints]:
    """Return the block of each entry, and its position in the block (i, from 1)."""
    block = np.repeat(np.arange(len(ranking.starts)), ranking.sizes)
    return block, np.arange(len(block)) - ranking.starts[block] + 1
