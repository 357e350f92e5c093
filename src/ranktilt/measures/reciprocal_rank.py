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
"""Ranks of tie blocks that are looked at together."""


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Measure):
    """Reciprocal rank: 1 divided by the rank of the first relevant document, 0 where it lies below k; in [0, 1].

    Of the first tie block with r relevant documents among n, the i-th place is the first hit with
    the chance ``C(n − i, r − 1) / C(n, r)`` (McSherry & Najork, ECIR 2008). Its difference between
    twins is not linear in their labels: it goes to the first relevant documents of the group.
    """

    name = "RR"
    question = "how soon comes the first right answer?"
    linear = False
    term = "RR"
    definition = "Reciprocal rank: 1 divided by the rank of the first relevant result."
    pattern = r"RR(?:@\d+)?"

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        r = per_block(ranking, gains)
        hit = np.flatnonzero(_first_blocks(ranking, r))
        found = np.zeros(len(r))
        found[hit] = expected_reciprocal(
            ranking.before[hit], ranking.sizes[hit], r[hit].astype(np.int64), self.cutoff
        )
        return per_query(ranking, found)

    def best(self, count: Floats) -> Floats:
        return np.where(count > 0, 1.0, 0.0)

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        r = per_block(ranking, gains)
        value = self.totals(ranking, gains)[ranking.block_query]
        return np.where(_first_blocks(ranking, r), value / np.maximum(r, 1), 0.0)

    def block_weights(self, before: Ints, size: Ints, hits: Ints) -> tuple[tuple[Floats, ...], Any]:
        if not (hits > 1).any():
            return (expected_reciprocal(before, size, hits, self.cutoff),), None
        return (np.where(rank_spans(before, size, self.cutoff) > 0, 1.0, 0.0),), self._by_hits(
            before, size, hits
        )

    def block_totals(self, weights: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        first = np.where(hits.running == hits.gains, hits.gains, 0.0)
        total: Floats = weights[0] @ (
            first if table is None else table[0][table[1] + first.astype(np.int64)]
        )
        return total

    def _by_hits(self, before: Ints, size: Ints, count: Ints) -> tuple[Floats, Ints]:
        """Value of each block by 0, 1, … hits in it; and where each block's values begin, as a column."""
        start = np.cumsum(count + 1) - (count + 1)
        block = np.repeat(np.arange(len(count)), count + 1)
        rows = np.stack([before[block], size[block], np.arange(len(block)) - start[block]])
        # Many blocks are alike, such as those of one document at the same rank of different
        # queries.
        kinds, kind = np.unique(rows, axis=1, return_inverse=True)
        table, some = np.zeros(kinds.shape[1]), np.flatnonzero(kinds[2])
        for part in np.array_split(some, 1 + int(kinds[1, some].sum()) // _EXPANDED):
            above, tied, hits = kinds[:, part]
            table[part] = expected_reciprocal(above, tied, hits, self.cutoff)
        return table[kind.ravel()], start[:, None]


def _first_blocks(ranking: Ranking, r: Floats) -> Bools:
    """Whether each tie block is the first of its query that holds something relevant."""
    hit = np.flatnonzero(r > 0)
    is_first = np.zeros(len(r), dtype=bool)
    is_first[hit[np.unique(ranking.block_query[hit], return_index=True)[1]]] = True
    return is_first


def expected_reciprocal(before: Ints, size: Ints, hits: Ints, cutoff: int | None) -> Floats:
    """Expected 1/rank of the first of so many hits in each tie block; what lies below the cutoff counts 0."""
    width = np.minimum(rank_spans(before, size, cutoff), size - hits + 1)
    block = np.repeat(np.arange(len(width)), width)
    place = np.arange(len(block)) - (np.cumsum(width) - width)[block] + 1
    rank, n, k = before[block] + place, size[block], hits[block]
    log_chance = _log_choose(n - place, k - 1) - _log_choose(n, k)
    chance = np.where(k == 1, 1.0 / n, np.exp(log_chance))
    chance = np.where(n == k, 1.0, chance)
    return np.bincount(block, weights=chance / rank, minlength=len(width)).astype(np.float64)


def _log_choose(n: npt.NDArray[np.number], k: npt.NDArray[np.number]) -> Floats:
    log: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return log


RR = ReciprocalRank()
