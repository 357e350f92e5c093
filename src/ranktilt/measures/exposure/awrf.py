"""AWRF: how far the attention that each group gets lies from the share that it should get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.errors import UserError
from ranktilt.measures.exposure.base import GroupLists, TargetedEstimand, attention, shared
from ranktilt.measures.ranking import Bools, Floats, rank_weights

DEPTHS = {2022: 500, 2021: 1000}
"""Ranks that count where none are named, by the year of TREC's fair-ranking track."""
FLOOR = float(1 - np.log(2))


@dataclass(frozen=True, repr=False)
class AttentionWeightedRankFairness(TargetedEstimand):
    """Attention-weighted rank fairness as TREC codes it: ``1 − JSD(ε ‖ target)``, natural logarithms; .307 to 1.

    ``ε_g = Σ w_r [document at r is of g] / Σ w_r`` with ``w_r = 1/log2(max(r, 2))``, so that ranks
    1 and 2 weigh the same. Sapiezynski et al., WWW 2019 Companion; TREC fair ranking, 2021 and
    2022, whose own is ``unlabelled=class``.
    """

    year: int = 2022

    name = "AWRF"
    question = "does every group get its share of attention?"
    outside = (
        "farther from the target than random rankings",
        "nearer to the target than random rankings",
    )
    bounds = (FLOOR, 1.0)
    neutral = 1.0
    term = "AWRF"
    definition = (
        "Attention-weighted rank fairness: 1 where every group gets the share of attention that it should, .307 at "
        "least. It speaks of all groups at once and favours none."
    )
    pattern = r"AWRF(?:\([^()]*\))?(?:@\d+)?"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.year not in DEPTHS:
            raise UserError(
                f"measure {self.name}: expected year=2022 or year=2021, got {self.year}"
            )

    @property
    def depth(self) -> int:
        """Ranks that count."""
        return self.cutoff or DEPTHS[self.year]

    def per_query(self, lists: GroupLists) -> Floats:
        found = shared(self.columns_of(lists.sums(attention(lists, self.depth))))
        return 1 - _divergence(found, self.shares(lists))

    def beside(self, lists: GroupLists, known: Bools) -> dict[str, float]:
        """The track's score, nDCG · AWRF with the same weights and binary gains, where anything is judged."""
        relevant = lists.judged.sum(axis=1).astype(np.int64)
        some = known & (relevant > 0)
        if not some.any():
            return {}
        gained = np.bincount(
            lists.ranking.query,
            weights=attention(lists, self.depth) * lists.relevant,
            minlength=lists.queries,
        )
        best = rank_weights(np.zeros_like(relevant), relevant, self.depth)
        ndcg = np.divide(gained, best, out=np.zeros(lists.queries), where=best > 0)[some]
        return {
            "ndcg": float(ndcg.mean()),
            "score": float((ndcg * self.per_query(lists)[some]).mean()),
        }


def _divergence(one: Floats, two: Floats) -> Floats:
    """Jensen–Shannon divergence of rows, with natural logarithms; NaN where a row is."""
    middle = (one + two) / 2
    found: Floats = (_relative(one, middle) + _relative(two, middle)).sum(axis=1) / 2
    return found


def _relative(one: Floats, two: Floats) -> Floats:
    """Terms of the Kullback–Leibler divergence; 0 where a share is 0, NaN where it is NaN."""
    ratio = np.divide(one, two, out=np.ones_like(one), where=(one > 0) & (two > 0))
    found: Floats = one * np.log(ratio)
    return found


AWRF = AttentionWeightedRankFairness()
