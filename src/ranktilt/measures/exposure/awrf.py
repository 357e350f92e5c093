"""AWRF: how near the attention that each group gets is to the share that it should get.

*Attention* falls with the rank of a document. The shares that groups should get are the *target*,
such as the groups' shares of the relevant documents (`TargetedEstimand`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.errors import UserError
from ranktilt.measures.exposure.base import GroupLists, TargetedEstimand, attention, shares_of_rows
from ranktilt.measures.ranking import Bools, Floats, rank_weights

DEPTHS = {2022: 500, 2021: 1000}
"""Ranks that count without a cutoff, by the year of TREC's fair-ranking track."""
FLOOR = float(1 - np.log(2))
"""Smallest value of AWRF: the Jensen–Shannon divergence is at most ln 2."""


@dataclass(frozen=True, repr=False)
class AttentionWeightedRankFairness(TargetedEstimand):
    """Attention-weighted rank fairness, as TREC computes it: ``1 − JSD(ε ‖ target)``; .307 to 1.

    JSD is the Jensen–Shannon divergence in natural logarithms. ε has the share of attention that
    each group g gets: ``ε_g = Σ_{r of g} w_r / Σ_r w_r``, where r are ranks down to the cutoff and
    the weight w_r is ``1/log2(max(r, 2))``, so that ranks 1 and 2 weigh the same.

    Source: Sapiezynski et al., WWW 2019 Companion; TREC's fair-ranking track of 2021 and 2022,
    which uses ``unlabelled=class``.
    """

    year: int = 2022
    """Year of the track, which decides how many ranks count without a cutoff."""

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
        "Attention-weighted rank fairness: 1 if every group gets the attention that it should, "
        ".307 at worst. It covers all groups together and favours none."
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
        sums = lists.sums(attention(lists, self.depth))
        return 1 - _divergence(shares_of_rows(self.columns_of(sums)), self.shares(lists))

    def details(self, lists: GroupLists, known: Bools) -> dict[str, float]:
        """Compute the score of TREC's fair-ranking track: nDCG · AWRF.

        The nDCG has the weights of AWRF, and each relevant document gains 1. Empty if nothing is
        judged.
        """
        relevant = lists.judged.sum(axis=1).astype(np.int64)
        counts = known & (relevant > 0)
        if not counts.any():
            return {}
        gained = np.bincount(
            lists.ranking.query,
            weights=attention(lists, self.depth) * lists.relevant,
            minlength=lists.queries,
        )
        best = rank_weights(np.zeros_like(relevant), relevant, self.depth)
        ndcg = np.divide(gained, best, out=np.zeros(lists.queries), where=best > 0)[counts]
        return {
            "ndcg": float(ndcg.mean()),
            "score": float((ndcg * self.per_query(lists)[counts]).mean()),
        }


def _divergence(shares: Floats, target: Floats) -> Floats:
    """Return the Jensen–Shannon divergence of each row of shares from the same row of the target.

    It is the mean of both rows' Kullback–Leibler divergence from their mean. NaN if a row has NaN.
    """
    middle = (shares + target) / 2
    terms = _kl_terms(shares, middle) + _kl_terms(target, middle)
    divergence: Floats = terms.sum(axis=1) / 2
    return divergence


def _kl_terms(shares: Floats, reference: Floats) -> Floats:
    """Return the terms ``share · ln(share / reference)`` of the Kullback–Leibler divergence.

    A term is 0 if the share is 0, and NaN if it is NaN.
    """
    is_defined = (shares > 0) & (reference > 0)
    ratio = np.divide(shares, reference, out=np.ones_like(shares), where=is_defined)
    terms: Floats = shares * np.log(ratio)
    return terms


AWRF = AttentionWeightedRankFairness()
