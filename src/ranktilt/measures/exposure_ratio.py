"""Exposure ratio: how much of the readers' attention a document of one group gets, for one of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.errors import counted
from ranktilt.measures.base import Answered, Bools, GroupEstimand
from ranktilt.measures.ranking import Ranking, discount_spans

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class ExposureRatioOfGroups(GroupEstimand):
    """Mean over queries of the ratio of two groups' exposure, the first (protected) over the second; 1 is level.

    ``Exposure(G)`` is the mean over the documents of G in the query's list of ``1/log(1 + rank)``; the base of the
    logarithm cancels. A document below k has no exposure and stays in its group's denominator; tied documents share
    their block's mean. Queries whose list lacks a group say nothing. Beside it stands what random lists give (each
    query's list shuffled), whose middle is level: with groups of unequal size it is not exactly 1.

    Parameters
    ----------
    cutoff : int, optional
        Ranks that are seen (k); the whole list where None.

    References
    ----------
    Singh & Joachims, KDD 2018; Wang et al., NAACL 2024 (rank variant).
    """

    name = "ExposureRatio"
    question = "who gets more attention, document for document?"
    heading = "exposure"
    method = (
        "a document at a rank gets 1 / log(1 + rank) of attention; the mean over the first group's documents in a list "
        "is divided by that over the second's, and averaged over queries. Random labels: each list is shuffled."
    )
    bounds = (0.0, np.inf)
    level = 1.0
    directed = True
    digits = 3
    signed = False
    term = "exposure ratio"
    definition = (
        "How much of the readers' attention a document of the first group gets for each share of one of the second: "
        "1 is equal, above 1 the first group gets more. The top ranks count most."
    )
    page = "exposure-ratio"
    pattern = r"[Ee]xposure ratios?|ExposureRatio(?:@\d+)?"

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        n = len(ranking.offsets) - 1
        seen = np.repeat(discount_spans(ranking.before, ranking.sizes, self.cutoff) / ranking.sizes, ranking.sizes)
        exposure = []
        for group in (first, second):
            size = np.bincount(ranking.query, weights=group, minlength=n)
            total = np.bincount(ranking.query, weights=np.where(group, seen, 0.0), minlength=n)
            exposure.append(np.divide(total, size, out=np.full(n, np.nan), where=size > 0))
        one, two = exposure
        ratio: Floats = np.divide(one, two, out=np.full(n, np.nan), where=two > 0)
        return ratio

    def basis(self, effect: Answered) -> str:
        queries = counted(effect.queries, "query", "queries")
        return f"{effect.a} / {effect.b}; {queries}; level {self.amount(effect.level)}, the middle of the random band"


ExposureRatio = ExposureRatioOfGroups()
