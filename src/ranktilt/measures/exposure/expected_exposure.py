"""EE-L: how far the exposure of groups over all rankings of a query is from the ideal exposure.

A ranker may rank a query several times, each time differently: the queries of these rankings have
the same text. The *exposure* of a group is the attention that its documents get by their ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.errors import UserError
from ranktilt.measures.exposure.base import AttentionEstimand, GroupLists, attention
from ranktilt.measures.ranking import Bools, Floats, rank_weights

DEPTHS = {2022: 20, 2021: 50}
"""Ranks that count without a cutoff, by the year of TREC's fair-ranking track."""


@dataclass(frozen=True, repr=False)
class ExpectedExposureLoss(AttentionEstimand):
    """Squared distance of the groups' expected exposure from the ideal one.

    ``EE-L = Σ_g (ε_g − ε*_g)²``. The exposure ε_g of a group g is the sum of ``1/log2(max(rank,
    2))`` over its documents down to rank k. It is averaged over all rankings of a query, which are
    the queries with the same text. In the ideal exposure ε*, the relevant documents have the first
    ranks, and each of them the same exposure. EE-L is also ``EE-D − 2·EE-R + ‖ε*‖²``, where EE-D is
    ‖ε‖² and EE-R is ε·ε*.

    Source: Diaz et al., CIKM 2020; TREC's fair-ranking track, 2022.
    """

    year: int = 2022
    """Year of the track: in 2022, only relevant documents have exposure, as in Diaz et al.; in
    2021, all documents do."""

    name = "EEL"
    question = "do the groups get the exposure that their relevant documents deserve?"
    outside = (
        "nearer to the ideal than random rankings",
        "farther from the ideal than random rankings",
    )
    bounds = (0.0, np.inf)
    term = "EE-L"
    definition = (
        "Expected-exposure loss: how far the exposure of groups, over all rankings of a query, is "
        "from the ideal ranking's; 0 is ideal. It covers all groups together and favours none."
    )
    pattern = r"EE-?L(?:\([^()]*\))?(?:@\d+)?"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.year not in DEPTHS:
            raise UserError(
                f"measure {self.name}: expected year=2022 or year=2021, got {self.year}"
            )

    @property
    def title(self) -> str:
        return repr(self).replace("EEL", "EE-L", 1)

    @property
    def depth(self) -> int:
        """Ranks that count."""
        return self.cutoff or DEPTHS[self.year]

    def needs_judgments(self) -> bool:
        return True

    def per_query(self, lists: GroupLists) -> Floats:
        exposure, ideal = self._exposures(lists)
        loss: Floats = np.square(exposure - ideal).sum(axis=1)
        return loss

    def details(self, lists: GroupLists, known: Bools) -> dict[str, float]:
        """Compute EE-D, EE-R and the mean number of rankings of a query.

        EE-D is the squared length of the exposure, and EE-R its product with the ideal exposure.
        """
        exposures, ideals = self._exposures(lists)
        exposure, ideal = exposures[known], ideals[known]
        if not len(exposure):
            return {}
        is_listed = np.asarray(np.diff(lists.ranking.offsets) > 0)
        rankings = np.bincount(lists.repeats[is_listed], minlength=lists.queries)[known]
        return {
            "ee_d": float(np.square(exposure).sum(axis=1).mean()),
            "ee_r": float((exposure * ideal).sum(axis=1).mean()),
            "rankings": float(rankings.mean()),
        }

    def _exposures(self, lists: GroupLists) -> tuple[Floats, Floats]:
        """Return the exposure ε and the ideal exposure ε* of each query and group.

        Queries with the same text are rankings of one query: the row of the first of them has the
        means, and the rows of the others are NaN. So are those of a query without a list or without
        relevant documents.
        """
        weight = attention(lists, self.depth) * (lists.relevant if self.year == 2022 else 1.0)
        is_listed = np.asarray(np.diff(lists.ranking.offsets) > 0)
        exposure = _mean_of_repeats(lists, self.columns_of(lists.sums(weight)), is_listed)
        count = lists.judged.sum(axis=1).astype(np.int64)
        attention_sum = rank_weights(np.zeros_like(count), count, self.depth)
        per_document = np.divide(attention_sum, count, out=np.zeros(len(count)), where=count > 0)
        ideal = self.columns_of(lists.judged @ lists.parts) * per_document[:, None]
        ideal = _mean_of_repeats(lists, ideal, np.asarray(ideal.sum(axis=1) > 0))
        is_undefined = np.isnan(exposure + ideal).any(axis=1, keepdims=True)
        return np.where(is_undefined, np.nan, exposure), np.where(is_undefined, np.nan, ideal)


def _mean_of_repeats(lists: GroupLists, table: Floats, counts: Bools) -> Floats:
    """Return the mean row of each query over its rankings.

    `counts` says which rankings are in the mean. It is in the row of the query's first ranking, and
    NaN if none of them counts. All other rows are NaN.
    """
    total, number = np.zeros_like(table), np.zeros((len(table), 1))
    np.add.at(total, lists.repeats[counts], table[counts])
    np.add.at(number, lists.repeats[counts], 1.0)
    undefined = np.full(table.shape, np.nan)
    means: Floats = np.divide(total, number, out=undefined, where=number > 0)
    return means


EEL = ExpectedExposureLoss()
