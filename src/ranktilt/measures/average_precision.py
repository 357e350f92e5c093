"""AP: average precision."""

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
    in_block,
    per_block,
    per_query,
    rank_spans,
    running,
)


@dataclass(frozen=True, repr=False)
class AveragePrecision(Measure):
    """Average precision, trec_eval's map_cut: the mean over all relevant documents of the precision at their ranks.

    ``(1/R) Σ precision at the rank of each relevant document within k``, in [0, 1]; R counts all
    relevant documents, retrieved or not. Of a tie block with n documents, r of them relevant, below
    R_s relevant ones, place i gains ``(r/n) · (R_s + (i − 1)(r − 1)/(n − 1) + 1) / rank`` (McSherry
    & Najork, ECIR 2008).
    """

    name = "AP"
    question = "are the right answers high up, all of them?"
    term = "AP"
    definition = (
        "Average precision: the mean, over the relevant documents, of the share of relevant results down to each of "
        "them."
    )
    pattern = r"AP(?:@\d+)?"

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        r = per_block(ranking, gains)
        above = running(ranking, r) - r
        block, place = in_block(ranking)
        n, r, above, rank = (
            ranking.sizes[block],
            r[block],
            above[block],
            ranking.before[block] + place,
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            among = np.where(n > 1, (place - 1) * (r - 1) / (n - 1), 0.0)
        term = r / n * (above + among + 1) / rank
        if self.cutoff is not None:
            term = np.where(rank <= self.cutoff, term, 0.0)
        return per_query(ranking, per_block(ranking, term))

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        t = per_block(ranking, gains)
        block, place = in_block(ranking)
        n, rank = ranking.sizes[block], ranking.before[block] + place
        part = 1.0 / rank if self.cutoff is None else np.where(rank <= self.cutoff, 1.0 / rank, 0.0)
        chances = per_block(ranking, part) / ranking.sizes
        later = np.divide(place - 1, n - 1, out=np.zeros(len(n)), where=n > 1)
        among = per_block(ranking, part * later) / ranking.sizes
        below = chances * t / 2
        above = running(ranking, t) - t
        after = per_query(ranking, below)[ranking.block_query] - running(ranking, below)
        weights: Floats = chances * (above / 2 + 1) + among * (t - 1) + after
        return weights

    def block_weights(self, before: Ints, size: Ints, hits: Ints) -> tuple[tuple[Floats, ...], Any]:
        """Factors of r (above + 1) and r (r − 1), for blocks with r hits and so many above them."""
        width = rank_spans(before, size, self.cutoff)
        block = np.repeat(np.arange(len(width)), width)
        place = np.arange(len(block)) - (np.cumsum(width) - width)[block]
        inverse = 1.0 / (before[block] + place + 1)
        whole = np.bincount(block, weights=inverse, minlength=len(width)) / size
        among = np.bincount(block, weights=place * inverse, minlength=len(width)) / (
            size * np.maximum(size - 1, 1)
        )
        return ((whole, among - whole) if (hits > 1).any() else (whole,)), None

    def block_totals(self, weights: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        total: Floats = weights[0] @ hits.crossed
        return total + weights[1] @ (hits.gains * (hits.gains - 1)) if len(weights) > 1 else total


AP = AveragePrecision()
