"""RR: the reciprocal rank of the first relevant document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import (
    Bools,
    Floats,
    Hits,
    Ints,
    Ranking,
    per_block,
    per_query,
    rank_spans,
)

_EXPANDED = 1 << 20
"""Most ranks of tie blocks that `_by_hits` computes together, so that memory stays small."""


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Measure):
    """Reciprocal rank: 1 divided by the rank of the first relevant document; in [0, 1].

    It is 0 if that document is below k. In the first tie block with r relevant documents among n,
    position i is the first relevant one with the probability ``C(n − i, r − 1) / C(n, r)``
    (McSherry & Najork, ECIR 2008). The difference between twins is not linear in their labels,
    because only the first relevant document of each group counts.
    """

    name = "RR"
    question = "how soon does the first right answer come?"
    linear = False
    term = "RR"
    definition = "Reciprocal rank: 1 divided by the rank of the first relevant result."
    pattern = r"RR(?:@\d+)?"

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return the expected 1/rank of each query's first relevant document."""
        hits = per_block(ranking, gains)
        first = np.flatnonzero(_first_blocks(ranking, hits))
        values = np.zeros(len(hits))
        values[first] = expected_reciprocal(
            ranking.before[first], ranking.sizes[first], hits[first].astype(np.int64), self.cutoff
        )
        return per_query(ranking, values)

    def best(self, count: Floats) -> Floats:
        return np.where(count > 0, 1.0, 0.0)

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return the query's value, divided equally among the hits of its first block with hits."""
        hits = per_block(ranking, gains)
        value = self.totals(ranking, gains)[ranking.block_query]
        return np.where(_first_blocks(ranking, hits), value / np.maximum(hits, 1), 0.0)

    def block_weights(self, before: Ints, size: Ints, hits: Ints) -> tuple[tuple[Floats, ...], Any]:
        """Return one factor of each block, and a table if a block may have several hits.

        Without a table, the factor is the value of a block with one hit. With the table of
        `_by_hits`, it only says whether the block is within the cutoff.
        """
        if not (hits > 1).any():
            return (expected_reciprocal(before, size, hits, self.cutoff),), None
        is_within = rank_spans(before, size, self.cutoff) > 0
        return (np.where(is_within, 1.0, 0.0),), self._by_hits(before, size, hits)

    def block_totals(self, weights: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        """Look up the value of each query's first block with hits, under each labeling."""
        # Only in a query's first block with hits is the running sum the block's own gain. All other
        # blocks get 0 hits here.
        first = np.where(hits.running == hits.gains, hits.gains, 0.0)
        if table is not None:
            values, starts = table
            first = values[starts + first.astype(np.int64)]
        totals: Floats = weights[0] @ first
        return totals

    def _by_hits(self, before: Ints, size: Ints, count: Ints) -> tuple[Floats, Ints]:
        """Tabulate the value of each block for 0, 1, … `count` hits in it.

        Returns the values of all blocks, one block after the other, and the index at which each
        block's values start, as a column.
        """
        start = np.cumsum(count + 1) - (count + 1)
        block = np.repeat(np.arange(len(count)), count + 1)
        rows = np.stack([before[block], size[block], np.arange(len(block)) - start[block]])
        # Many blocks are alike, such as those of a single document at one rank of many queries.
        kinds, kind = np.unique(rows, axis=1, return_inverse=True)
        _, sizes, hit_counts = kinds
        values, hit_kinds = np.zeros(kinds.shape[1]), np.flatnonzero(hit_counts)
        for part in np.array_split(hit_kinds, 1 + int(sizes[hit_kinds].sum()) // _EXPANDED):
            above, tied, hits = kinds[:, part]
            values[part] = expected_reciprocal(above, tied, hits, self.cutoff)
        return values[kind.ravel()], start[:, None]


def _first_blocks(ranking: Ranking, hits: Floats) -> Bools:
    """Tell which tie blocks are the first of their query with a relevant document."""
    block = np.flatnonzero(hits > 0)
    is_first = np.zeros(len(hits), dtype=bool)
    is_first[block[np.unique(ranking.block_query[block], return_index=True)[1]]] = True
    return is_first


def expected_reciprocal(before: Ints, size: Ints, hits: Ints, cutoff: int | None) -> Floats:
    """Return the expected 1/rank of the first hit in each tie block; 0 below the cutoff.

    A block has `size` documents, of which `hits` are relevant, and `before` documents above it.
    """
    # The first of k hits among n documents is at position n − k + 1 at the latest.
    width = np.minimum(rank_spans(before, size, cutoff), size - hits + 1)
    block = np.repeat(np.arange(len(width)), width)
    position = np.arange(len(block)) - (np.cumsum(width) - width)[block] + 1
    rank, n, k = before[block] + position, size[block], hits[block]
    log_chance = _log_choose(n - position, k - 1) - _log_choose(n, k)
    # Two cases without logarithms, so that they are exact: one hit, and hits only.
    chance = np.where(k == 1, 1.0 / n, np.exp(log_chance))
    chance = np.where(n == k, 1.0, chance)
    return np.bincount(block, weights=chance / rank, minlength=len(width)).astype(np.float64)


def _log_choose(n: npt.NDArray[np.number], k: npt.NDArray[np.number]) -> Floats:
    """Return the logarithm of the binomial coefficient C(n, k)."""
    log: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return log


RR = ReciprocalRank()
