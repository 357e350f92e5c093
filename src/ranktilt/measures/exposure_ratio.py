"""Exposure ratio: how much attention a document of one group gets for one of the other group.

The *exposure* of a document is the attention that it gets by its rank, or by its score. The first
of the two groups is the *protected* one: the group whose treatment is examined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Bools, Floats, Ranking, document_discounts, probability_within


@dataclass(frozen=True, repr=False)
class ExposureRatioOfGroups(GroupEstimand):
    """Mean over queries of the ratio of two groups' exposure, the first over the second.

    ``Exposure(G)`` is the mean of ``1/log(1 + rank)`` over the documents of G in the query's list;
    the base of the logarithm cancels in the ratio. A document below k has no exposure, but is
    counted in the mean (Singh & Joachims, KDD 2018; Wang et al., NAACL 2024).

    If labels are random and the groups equally large, the mean is 1 for long lists without a
    cutoff. With a cutoff it is above 1, because a ratio rises further above 1 than it falls below:
    1.14 for lists of 200 documents cut at rank 20, and 1.50 for lists of 20 cut at rank 5. So
    values are compared with the median of random labels, never with 1.
    """

    exposure: str = "rank"
    """How a document is exposed: ``rank`` by its rank, ``softmax`` by its probability of the first
    rank, ``softmax(score)`` (Zehlike & Castillo, WWW 2020)."""
    aggregate: str = "queries"
    """What is averaged over queries: ``queries``, the ratio of each query; ``means``, the exposure
    of each group, and the estimand is the ratio of the two means."""

    name = "ExposureRatio"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "exposure": ("rank", "softmax"),
        "aggregate": ("queries", "means"),
    }
    question = "who gets more attention per document?"
    bounds = (0.0, np.inf)
    neutral = 1.0
    directed = True
    digits = 3
    signed = False
    term = "exposure ratio"
    definition = (
        "Attention per document of the first group, divided by attention per document of the "
        "second: 1 is equal in one list. Means over queries exceed 1 even by chance, more so if "
        "few ranks count, so compare them with random labels. Top ranks count most."
    )
    pattern = r"[Ee]xposure ratios?|ExposureRatio(?:\([\w=, ]*\))?(?:@\d+)?"

    @property
    def reads_scores(self) -> bool:
        return self.exposure == "softmax"

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        """Return the ratio of each query; NaN where a list lacks a group."""
        of_first, of_second = self._exposures(ranking, first, second)
        undefined = np.full(len(of_first), np.nan)
        ratio: Floats = np.divide(of_first, of_second, out=undefined, where=of_second > 0)
        return ratio

    def columns(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return ratios and ones, or the exposures of both groups, for each query."""
        if self.aggregate == "queries":
            return super().columns(ranking, first, second)
        of_first, of_second = self._exposures(ranking, first, second)
        is_undefined = np.isnan(of_first + of_second)
        total = np.where(is_undefined, np.nan, of_first)
        weight = np.where(is_undefined, np.nan, of_second)
        return total, weight

    def label_effects(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return the effect of each entry's label on the ratio, and its part of the denominator.

        The effect is the derivative of the ratio, at the point where both groups have the mean
        exposure of the list. There, a document of the first group raises the ratio by (its exposure
        − mean) / (size of its group · mean), and a document of the second group lowers it by the
        same expression.
        """
        exposure = self._document_exposure(ranking)
        query, query_count = ranking.query, len(ranking.offsets) - 1
        first_size = np.bincount(query, weights=first, minlength=query_count)[query]
        second_size = np.bincount(query, weights=second, minlength=query_count)[query]
        size = np.maximum(first_size + second_size, 1)
        labelled_exposure = np.where(first | second, exposure, 0.0)
        mean = np.bincount(query, weights=labelled_exposure, minlength=query_count)[query] / size
        is_known = (first | second) & (first_size > 0) & (second_size > 0) & (mean > 0)
        # The total is a ratio if ratios are averaged, and an exposure if exposures are.
        scale = np.ones(query_count)[query] if self.aggregate == "queries" else mean
        # A 1 for entries without an effect, so that nothing is divided by 0.
        safe_mean = np.where(is_known, mean, 1.0)
        safe_size = np.where(is_known, np.where(first, first_size, second_size), 1.0)
        effect = np.where(first, 1.0, -1.0) * (exposure - safe_mean) / (safe_size * safe_mean)
        weight = exposure / (safe_mean * size)
        return np.where(is_known, scale * effect, 0.0), np.where(is_known, scale * weight, 0.0)

    def counts(self, total: Floats, weight: Floats) -> Bools:
        return weight > 0 if self.aggregate == "queries" else ~np.isnan(weight)

    def value(self, total: Floats, weight: Floats, *, rounding: str = "none") -> float:
        is_counted = self.counts(total, weight)
        return super().value(total[is_counted], weight[is_counted])

    def _exposures(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return the mean exposure of each group in each query.

        NaN where a list lacks the group.
        """
        exposure = self._document_exposure(ranking)
        return _group_means(ranking, exposure, first), _group_means(ranking, exposure, second)

    def _document_exposure(self, ranking: Ranking) -> Floats:
        """Return the expected exposure of each entry, over all orders of tied documents."""
        if self.exposure == "rank":
            return document_discounts(ranking, self.cutoff)
        # The highest score of the list is subtracted, so that `exp` cannot overflow.
        top = ranking.scores[ranking.offsets[:-1][ranking.query]]
        odds = np.exp(ranking.scores - top)
        sums = np.bincount(ranking.query, weights=odds, minlength=len(ranking.offsets) - 1)
        # The sum is over the whole list, not only down to the cutoff: in a ratio of means over
        # queries, it does not cancel.
        return odds / sums[ranking.query] * probability_within(ranking, self.cutoff)


def _group_means(ranking: Ranking, values: Floats, group: Bools) -> Floats:
    """Return the mean of a group's values in each query; NaN where a list lacks the group."""
    query_count = len(ranking.offsets) - 1
    size = ranking.count(group)
    total = np.bincount(ranking.query, weights=values * group, minlength=query_count)
    undefined = np.full(query_count, np.nan)
    means: Floats = np.divide(total, size, out=undefined, where=size > 0)
    return means


ExposureRatio = ExposureRatioOfGroups()
