"""RR: the reciprocal rank of the first relevant document.

A *tie block* is the documents of one list with the same score, of which all orders are equally
likely. A *hit* is a relevant document of the group.
"""

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

_MOST_RANKS = 1 << 20
"""Most ranks of tie blocks that are computed together, so that memory stays small."""


@dataclass(frozen=True, repr=False)
class ReciprocalRank(Measure):
    """Reciprocal rank: 1 divided by the rank of the first relevant document; in [0, 1].

    It is 0 if that document is below k. Let the first tie block with relevant documents have n
    documents, r of them relevant. Its first relevant document is at position i with the probability
    ``C(n − i, r − 1) / C(n, r)`` (McSherry & Najork, ECIR 2008). The difference between twins (two
    versions of one document, one in each group) is not linear in their labels, because only the
    first relevant document of each group counts.
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

    def block_factors(
        self, before: Ints, size: Ints, hit_counts: Ints
    ) -> tuple[tuple[Floats, ...], Any]:
        """Return one factor of each block, and a table if a block may have several hits.

        Without a table, the factor is the value of a block with one hit. With the table of
        `_values_by_hits`, the factor only says whether the block is within the cutoff.
        """
        if not (hit_counts > 1).any():
            return (expected_reciprocal(before, size, hit_counts, self.cutoff),), None
        is_within = rank_spans(before, size, self.cutoff) > 0
        return (np.where(is_within, 1.0, 0.0),), self._values_by_hits(before, size, hit_counts)

    def block_totals(self, factors: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        """Look up the value of each query's first block with hits, under each labeling."""
        # Only in a query's first block with hits is the running sum the block's own gain. All other
        # blocks get 0 hits here.
        first_hits = np.where(hits.running == hits.gains, hits.gains, 0.0)
        if table is None:  # no block has more than one hit
            totals: Floats = factors[0] @ first_hits
            return totals
        values, starts = table
        totals = factors[0] @ values[starts + first_hits.astype(np.int64)]
        return totals

    def _values_by_hits(self, before: Ints, size: Ints, hit_counts: Ints) -> tuple[Floats, Ints]:
        """Tabulate the value of each block for 0, 1, … up to `hit_counts` hits in it.

        Returns the values of all blocks, one block after the other, and the index at which each
        block's values start, as a column.
        """
        start = np.cumsum(hit_counts + 1) - (hit_counts + 1)
        block = np.repeat(np.arange(len(hit_counts)), hit_counts + 1)
        hits = np.arange(len(block)) - start[block]
        cases = np.stack([before[block], size[block], hits])
        # Many cases are alike, such as those of a single document at one rank of many queries. So
        # the value of each different case is computed only once.
        different, case_number = np.unique(cases, axis=1, return_inverse=True)
        _, sizes, case_hits = different
        values, with_hits = np.zeros(different.shape[1]), np.flatnonzero(case_hits)
        for chunk in np.array_split(with_hits, 1 + int(sizes[with_hits].sum()) // _MOST_RANKS):
            above, tied, hits = different[:, chunk]
            values[chunk] = expected_reciprocal(above, tied, hits, self.cutoff)
        return values[case_number.ravel()], start[:, None]


def _first_blocks(ranking: Ranking, hits: Floats) -> Bools:
    """Tell which tie blocks are the first of their query with a relevant document."""
    block = np.flatnonzero(hits > 0)
    _, first_of_query = np.unique(ranking.block_query[block], return_index=True)
    is_first = np.zeros(len(hits), dtype=bool)
    is_first[block[first_of_query]] = True
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
