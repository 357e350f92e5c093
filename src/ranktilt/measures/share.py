"""Share@k: how much of the first k ranks a group holds, against its share of the candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Bools, Floats, Ints, Ranking, first_ranks, share_of_query


@dataclass(frozen=True, repr=False)
class ShareOfFirstRanks(GroupEstimand):
    """Share of a group among the first k documents less its share among the query's candidates, in points.

    Of the documents of both groups: ``a_k/(a_k + b_k) − a/(a + b)``, where a and b are those in the
    query's whole list (the candidates). A query whose candidates are of one group alone says
    nothing.
    """

    name = "Share"
    question = "does a group hold more of the first ranks than of the candidates?"
    bounds = (-1.0, 1.0)
    scale = 100.0
    suffix = " points"
    term = "share@k"
    definition = (
        "How much of the first ranks the first group holds, less how much of the whole list: in points; above 0 it "
        "holds more of the top than of the candidates."
    )
    pattern = r"[Ss]hare@(?:\d+|k)"
    needs_cutoff = True

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        n = len(ranking.offsets) - 1
        sign = first.astype(np.float64) - second
        either = first.astype(np.float64) + second
        within = first_ranks(ranking, self.cutoff)

        def lead(weight: Floats) -> Floats:
            """Share of the first group less that of the second, of what both hold."""
            held = np.bincount(ranking.query, weights=either * weight, minlength=n)
            ahead = np.bincount(ranking.query, weights=sign * weight, minlength=n)
            found: Floats = np.divide(ahead, held, out=np.full(n, np.nan), where=held > 0)
            return found

        # Half the difference of two leads is the difference of shares, and turns its sign exactly.
        candidates = lead(np.ones(len(sign)))
        moved: Floats = np.where(np.abs(candidates) < 1, (lead(within) - candidates) / 2, np.nan)
        return moved

    def depends_on_order(self, lengths: Ints) -> Bools:
        # The first ranks are compared with the whole list: where that ends within them, they are
        # the same documents.
        return np.ones(len(lengths), dtype=bool) if self.cutoff is None else lengths > self.cutoff

    def label_effects(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return (label − mean label of the query) · (share of the first k − share of the list).

        A label is 1 for a document of the first group and 0 for one of the second.
        """
        either = (first | second).astype(np.float64)
        share = share_of_query(ranking, first_ranks(ranking, self.cutoff) * either)
        even = share_of_query(ranking, either)
        known = ~np.isnan(self.contrast(ranking, first, second))[ranking.query]
        n = len(ranking.offsets) - 1
        # Half of 1 and −1, less their mean: turns its sign exactly.
        sign = first.astype(np.float64) - second
        lead = np.bincount(ranking.query, weights=sign, minlength=n)
        count = np.maximum(np.bincount(ranking.query, weights=either, minlength=n), 1.0)
        label = (sign - (lead / count)[ranking.query]) / 2
        return np.where(known, label * (share - even), 0.0), np.where(known, share, 0.0)

    def composition(self, ranking: Ranking, first: Bools, second: Bools) -> dict[str, float]:
        known = ~np.isnan(self.contrast(ranking, first, second))
        sizes = [
            np.bincount(ranking.query, weights=group, minlength=len(known))[known]
            for group in (first, second)
        ]
        if not known.any():
            return {"even_a": np.nan, "even_b": np.nan}
        even_a, even_b = (float(np.mean(size / (sizes[0] + sizes[1]))) for size in sizes)
        return {"even_a": even_a, "even_b": even_b}


Share = ShareOfFirstRanks()
