"""AP: average precision, the mean of the precisions at the ranks of all relevant documents.

The *precision* at a rank is the share of relevant documents down to it. A *tie block* is the
documents of one list with the same score, of which all orders are equally likely. A *hit* is a
relevant document of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import (
    Floats,
    Hits,
    Ints,
    Ranking,
    block_positions,
    per_block,
    per_query,
    rank_spans,
    running_sums,
)


@dataclass(frozen=True, repr=False)
class AveragePrecision(Measure):
    """Average precision, trec_eval's map_cut: the mean precision at relevant documents.

    ``(1/R) Σ precision at the rank of each relevant document within k``, in [0, 1]; R counts all
    relevant documents, retrieved or not. Position i of a tie block with n documents, r of them
    relevant, below R_s relevant ones, gains
    ``(r/n) · (R_s + (i − 1)(r − 1)/(n − 1) + 1) / rank`` (McSherry & Najork, ECIR 2008).
    """

    name = "AP"
    question = "are all the right answers high up?"
    term = "AP"
    definition = (
        "Average precision: the share of relevant results down to each relevant document, "
        "averaged over the relevant documents."
    )
    pattern = r"AP(?:@\d+)?"

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return the sum of precisions at relevant documents, in expectation over ties."""
        block_hits = per_block(ranking, gains)
        block_hits_above = running_sums(ranking, block_hits) - block_hits
        block, position = block_positions(ranking)
        # The letters are those of the formula in the class's docstring: a tie block has n
        # documents, r of them relevant; `above` (R_s) relevant documents are in the blocks above.
        n = ranking.sizes[block]
        r = block_hits[block]
        above = block_hits_above[block]
        rank = ranking.before[block] + position
        with np.errstate(invalid="ignore", divide="ignore"):
            above_in_block = np.where(n > 1, (position - 1) * (r - 1) / (n - 1), 0.0)
        term = r / n * (above + above_in_block + 1) / rank
        if self.cutoff is not None:
            term = np.where(rank <= self.cutoff, term, 0.0)
        return per_query(ranking, per_block(ranking, term))

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return what a relevant document of each tie block adds to ``M_a − M_b`` by its label.

        M_a and M_b are the AP sums of the two groups of twins. Two documents of one group add to
        each other's precision; half of that counts for each of them. The result has the shape
        (n_blocks,).
        """
        hits = per_block(ranking, gains)
        block, position = block_positions(ranking)
        n = ranking.sizes[block]
        rank = ranking.before[block] + position
        # 1/rank of each position. A document is at each position of its block equally often, so it
        # has the mean over the block.
        inverse = 1.0 / rank
        if self.cutoff is not None:
            inverse = np.where(rank <= self.cutoff, inverse, 0.0)
        mean_inverse = per_block(ranking, inverse) / ranking.sizes
        # Share of the block's other documents that are above a position.
        share_before = np.divide(position - 1, n - 1, out=np.zeros(len(n)), where=n > 1)
        mean_inverse_before = per_block(ranking, inverse * share_before) / ranking.sizes
        # A document counts in its own precision, and in that of each relevant document below it.
        half_precisions = mean_inverse * hits / 2
        hits_above = running_sums(ranking, hits) - hits
        query_sums = per_query(ranking, half_precisions)[ranking.block_query]
        below = query_sums - running_sums(ranking, half_precisions)
        own_precision = mean_inverse * (hits_above / 2 + 1)
        weights: Floats = own_precision + mean_inverse_before * (hits - 1) + below
        return weights

    def block_factors(
        self, before: Ints, size: Ints, hit_counts: Ints
    ) -> tuple[tuple[Floats, ...], Any]:
        """Return two factors of each block, from which `block_totals` computes the sum of AP.

        A block adds the first factor times r · (hits above and in the block), plus the second
        factor times r · (r − 1), where r is its number of hits. The second factor is left out if no
        block has more than one hit. There is no table.

        The first factor is the mean of 1/rank over the block's ranks. Its product counts all hits
        of a block as above each other. But another hit is above the one at position i (from 0) only
        with the probability i/(size − 1); the second product takes off the difference.
        """
        width = rank_spans(before, size, self.cutoff)
        block = np.repeat(np.arange(len(width)), width)
        position = np.arange(len(block)) - (np.cumsum(width) - width)[block]
        inverse = 1.0 / (before[block] + position + 1)
        mean_inverse = np.bincount(block, weights=inverse, minlength=len(width)) / size
        if not (hit_counts > 1).any():
            return (mean_inverse,), None
        by_position = np.bincount(block, weights=position * inverse, minlength=len(width))
        mean_inverse_before = by_position / (size * np.maximum(size - 1, 1))
        return (mean_inverse, mean_inverse_before - mean_inverse), None

    def block_totals(self, factors: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        """Return the sums of each query from the one or two factors of `block_factors`."""
        totals: Floats = factors[0] @ hits.gain_products
        if len(factors) > 1:
            totals = totals + factors[1] @ (hits.gains * (hits.gains - 1))
        return totals


AP = AveragePrecision()
