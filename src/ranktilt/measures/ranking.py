"""Rankings as tie blocks, and the judgments of one group: what every measure reads.

Everything is array code over all queries at once: entries lie query by query, sorted by falling
score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ranking:
    """Scores of many queries and their tie blocks; query i owns ``offsets[i]:offsets[i + 1]``, falling within it."""

    offsets: Ints
    scores: Floats
    _heads: dict[int | None, tuple[Ranking, Bools]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def query(self) -> Ints:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def starts(self) -> Ints:
        """First entry of each tie block."""
        new = np.ones(len(self.scores), dtype=bool)
        new[1:] = (self.scores[1:] != self.scores[:-1]) | (self.query[1:] != self.query[:-1])
        return np.flatnonzero(new)

    @cached_property
    def sizes(self) -> Ints:
        """Documents in each tie block (n)."""
        return np.diff(np.append(self.starts, len(self.scores)))

    @cached_property
    def block_query(self) -> Ints:
        """Query of each tie block."""
        return self.query[self.starts]

    @cached_property
    def before(self) -> Ints:
        """Documents ranked above each tie block (s)."""
        return self.starts - self.offsets[:-1][self.block_query]

    def head(self, depth: int | None) -> tuple[Ranking, Bools]:
        """Keep the blocks that begin above `depth`; all where None. Returns the mask of kept entries too."""
        if depth not in self._heads:
            self._heads[depth] = self._head(depth)
        return self._heads[depth]

    def _head(self, depth: int | None) -> tuple[Ranking, Bools]:
        if depth is None:
            return self, np.ones(len(self.scores), dtype=bool)
        keep = np.repeat(self.before < depth, self.sizes)
        lengths = np.bincount(self.query[keep], minlength=len(self.offsets) - 1)
        return Ranking(np.concatenate([[0], np.cumsum(lengths)]), self.scores[keep]), keep


@dataclass(frozen=True)
class Judged:
    """All judgments of one group, of grades above 0: what an ideal ranking would hold."""

    query: Ints
    grade: Floats
    n_queries: int

    def count(self, rel: int = 1) -> Ints:
        """Relevant documents of each query (R_g), retrieved or not."""
        return np.bincount(self.query[self.grade >= rel], minlength=self.n_queries)

    @cached_property
    def _ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, rank and discounted gain of each relevant document in its query's ideal ranking."""
        order = np.lexsort((-self.grade, self.query))
        query = self.query[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=self.n_queries))])
        rank = np.arange(len(query)) - first[query] + 1
        return query, rank, self.grade[order] / np.log2(1 + rank)

    def ideal(self, cutoff: int | None) -> Floats:
        """DCG of the ideal ranking of each query, down to `cutoff`."""
        query, rank, gain = self._ideal_order
        if cutoff is not None:
            query, gain = query[rank <= cutoff], gain[rank <= cutoff]
        return np.bincount(query, weights=gain, minlength=self.n_queries).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Hits:
    """What each tie block gains under each labeling, shape (n_blocks, labelings)."""

    gains: Floats
    query: Ints

    @cached_property
    def running(self) -> Floats:
        """Running sums down each query."""
        return running_rows(self.gains, self.query)

    @cached_property
    def crossed(self) -> Floats:
        """What a block gains times what was gained down to it."""
        return self.gains * self.running


def running(ranking: Ranking, per_block: Floats) -> Floats:
    """Running sums of each query over its blocks, the block itself included."""
    total = np.cumsum(per_block)
    first = np.searchsorted(ranking.block_query, ranking.block_query)
    return total - (total - per_block)[first] if len(total) else total


def _ends(before: Ints, size: Ints, cutoff: int | None) -> tuple[Ints, Ints]:
    """Ranks above each block, and of its last document, both no deeper than the cutoff."""
    low, high = before, before + size
    return (low, high) if cutoff is None else (np.minimum(low, cutoff), np.minimum(high, cutoff))


def per_block(ranking: Ranking, per_entry: Floats) -> Floats:
    """Sums of the entries of each tie block."""
    return np.add.reduceat(per_entry, ranking.starts) if len(per_entry) else np.empty(0)


def per_query(ranking: Ranking, per_block: Floats) -> Floats:
    """Sums of the tie blocks of each query."""
    return np.bincount(
        ranking.block_query, weights=per_block, minlength=len(ranking.offsets) - 1
    ).astype(np.float64)


def share_of_query(ranking: Ranking, weights: Floats) -> Floats:
    """Each entry's part of its query's sum; NaN where that is 0."""
    whole = np.bincount(ranking.query, weights=weights, minlength=len(ranking.offsets) - 1)[
        ranking.query
    ]
    share: Floats = np.divide(weights, whole, out=np.full(len(weights), np.nan), where=whole > 0)
    return share


def discounts(depth: int) -> Floats:
    """Running sums of ``1/log2(1 + rank)`` over the first 0, 1, … `depth` ranks."""
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(2.0 + np.arange(depth)))])


def discount_spans(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Sum of the discounts of each tie block's ranks: of `size` ranks, with `before` ranks above them."""
    low, high = _ends(before, size, cutoff)
    running = discounts(int(high.max(initial=0)))
    # A block of one takes its own discount: the difference of running sums would lose its last
    # digits.
    return np.where(
        (size == 1) & (high > low), 1 / np.log2(2.0 + low), running[high] - running[low]
    )


def rank_weights(before: Ints, size: Ints, cutoff: int | None) -> Floats:
    """Sum of ``1/log2(max(rank, 2))`` over each tie block's ranks down to the cutoff: weights of TREC's fair track."""
    low, high = _ends(before, size, cutoff)
    ranks = np.maximum(np.arange(1, int(high.max(initial=0)) + 1), 2)
    running = np.concatenate([[0.0], np.cumsum(1 / np.log2(ranks))])
    found: Floats = running[high] - running[low]
    return found


def rank_spans(before: Ints, size: Ints, cutoff: int | None) -> Ints:
    """Number of each tie block's ranks down to the cutoff."""
    low, high = _ends(before, size, cutoff)
    return high - low


def first_ranks(ranking: Ranking, cutoff: int | None) -> Floats:
    """How much of each entry's place lies within the cutoff, 0 to 1: tied documents share the ranks of their block."""
    spans = rank_spans(ranking.before, ranking.sizes, cutoff)
    return np.repeat(spans / ranking.sizes, ranking.sizes)


def in_block(ranking: Ranking) -> tuple[Ints, Ints]:
    """Block of each entry, and its place in it (i, from 1)."""
    block = np.repeat(np.arange(len(ranking.starts)), ranking.sizes)
    return block, np.arange(len(block)) - ranking.starts[block] + 1


def running_rows(rows: Floats, query: Ints) -> Floats:
    """Running sums down the rows, which begin anew with each query."""
    total = np.cumsum(rows, axis=0)
    new = np.diff(query, prepend=-1) != 0
    total -= (total[new] - rows[new])[np.cumsum(new) - 1]
    return total
