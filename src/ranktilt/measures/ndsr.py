"""NDSR: who fills the page, relevant or not.

The *page* is the first ranks of a list. NDSR is the normalised discounted share of ranks: a group's
share of the page, in which higher ranks weigh more. ΔNDSR is the difference of two groups' shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Floats, Ranking, discount_spans, discounts


@dataclass(frozen=True, repr=False)
class PageShare(GroupEstimand):
    """Difference of two groups' normalised discounted shares of the first k ranks, in [−1, 1].

    ``NDSR_a − NDSR_b`` with ``NDSR_g = Σ_{rank ≤ k, group = g} 1/log2(1 + rank) ÷ Σ_{rank ≤ k}
    1/log2(1 + rank)``, relevant or not. Ranks beyond the end of a list do not count.
    """

    name = "NDSR"
    question = "who fills the page, relevant or not?"
    bounds = (-1.0, 1.0)
    scale = 100.0
    suffix = " points"
    term = "ΔNDSR"
    definition = (
        "Who fills the page: the first side's share of the top results minus the second side's, "
        "in points from −100 to +100. The top counts most; relevance does not matter. The number "
        "after @ says how many results the page has."
    )
    pattern = r"Δ?NDSR(?:@(?:\d+|k))?"
    needs_cutoff = True

    @property
    def key(self) -> str:
        return "page"

    @property
    def title(self) -> str:
        return f"Δ{self!r}"

    def weights(self, ranking: Ranking) -> Floats:
        return page_shares(ranking, self.cutoff or 1)


def page_shares(ranking: Ranking, depth: int) -> Floats:
    """Return each entry's share of the first `depth` ranks.

    A rank counts ``1/log2(1 + rank)``, divided by the sum of this over the first `depth` ranks (all
    ranks of a shorter list). Tied documents have the mean of their block's ranks. Documents below
    `depth` have no share. The shares of a query add up to 1, and those of a group's documents to
    NDSR@k.
    """
    means = discount_spans(ranking.before, ranking.sizes, depth) / ranking.sizes
    length = np.minimum(np.diff(ranking.offsets), depth)
    totals = discounts(int(length.max(initial=0)))[length]
    return np.repeat(means / totals[ranking.block_query], ranking.sizes)


NDSR = PageShare()
