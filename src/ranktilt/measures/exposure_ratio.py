"""Exposure ratio: how much of the readers' attention a document of one group gets, for one of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Bools, Floats, Ranking, discount_spans, first_ranks


@dataclass(frozen=True, repr=False)
class ExposureRatioOfGroups(GroupEstimand):
    """Mean over queries of the ratio of two groups' exposure, the first (protected) over the second.

    ``Exposure(G)`` is the mean of ``1/log(1 + rank)`` over the documents of G in the query's list;
    one below k has none, and stays in the denominator. Singh & Joachims, KDD 2018; Wang et al.,
    NAACL 2024.

    Where labels mean nothing, the mean is 1 for equal halves of whole long lists, and above 1 for a
    part: a ratio rises further above 1 than it falls below. Of lists of 200 cut at 20 it is 1.14,
    of lists of 20 cut at 5 1.50. So values are read against the median of random labels, never
    against 1.
    """

    exposure: str = "rank"
    """``softmax``: a document's probability of standing first, ``softmax(score)`` (Zehlike & Castillo, WWW 2020)."""
    aggregate: str = "queries"
    """``means``: the ratio of both groups' mean exposures over the queries, in place of the mean of ratios."""

    name = "ExposureRatio"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "exposure": ("rank", "softmax"),
        "aggregate": ("queries", "means"),
    }
    question = "who gets more attention, document for document?"
    bounds = (0.0, np.inf)
    neutral = 1.0
    directed = True
    digits = 3
    signed = False
    term = "exposure ratio"
    definition = (
        "How much of the readers' attention a document of the first group gets for each share of one of the second: "
        "1 is equal in one list. Means over queries are above 1 even by chance, the more the shorter the counted part, "
        "so they are read against random labels. The top ranks count most."
    )
    pattern = r"[Ee]xposure ratios?|ExposureRatio(?:\([\w=, ]*\))?(?:@\d+)?"

    @property
    def reads_scores(self) -> bool:
        return self.exposure == "softmax"

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        one, two = self._exposures(ranking, first, second)
        ratio: Floats = np.divide(one, two, out=np.full(len(one), np.nan), where=two > 0)
        return ratio

    def columns(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        if self.aggregate == "queries":
            return super().columns(ranking, first, second)
        one, two = self._exposures(ranking, first, second)
        lacking = np.isnan(one + two)
        return np.where(lacking, np.nan, one), np.where(lacking, np.nan, two)

    def label_effects(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        either, seen = first | second, self._seen(ranking)
        n, query = len(ranking.offsets) - 1, ranking.query
        sizes = [np.bincount(query, weights=group, minlength=n)[query] for group in (first, second)]
        mean = np.bincount(query, weights=np.where(either, seen, 0.0), minlength=n)[
            query
        ] / np.maximum(sum(sizes), 1)
        known = either & (sizes[0] > 0) & (sizes[1] > 0) & (mean > 0)
        scale = np.ones(n)[query] if self.aggregate == "queries" else mean
        safe, size = np.where(known, mean, 1.0), np.where(known, np.where(first, *sizes), 1.0)
        effect = np.where(first, 1.0, -1.0) * (seen - safe) / (size * safe)
        weight = seen / (safe * np.maximum(sum(sizes), 1))
        return np.where(known, scale * effect, 0.0), np.where(known, scale * weight, 0.0)

    def counts(self, one: Floats, two: Floats) -> Bools:
        return two > 0 if self.aggregate == "queries" else ~np.isnan(two)

    def value(self, one: Floats, two: Floats, *, rounding: str = "none") -> float:
        known = self.counts(one, two)
        return super().value(one[known], two[known])

    def _exposures(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Mean exposure of both groups in each query; NaN where a list lacks the group."""
        n, seen = len(ranking.offsets) - 1, self._seen(ranking)
        found = []
        for group in (first, second):
            size = np.bincount(ranking.query, weights=group, minlength=n)
            total = np.bincount(ranking.query, weights=np.where(group, seen, 0.0), minlength=n)
            found.append(np.divide(total, size, out=np.full(n, np.nan), where=size > 0))
        return found[0], found[1]

    def _seen(self, ranking: Ranking) -> Floats:
        """Exposure of each document, in expectation over ties."""
        if self.exposure == "rank":
            spans = discount_spans(ranking.before, ranking.sizes, self.cutoff)
            return np.repeat(spans / ranking.sizes, ranking.sizes)
        top = ranking.scores[ranking.offsets[:-1][ranking.query]]
        odds = np.exp(ranking.scores - top)
        whole = np.bincount(ranking.query, weights=odds, minlength=len(ranking.offsets) - 1)
        # Divided by the whole list's sum, before the cut: in a ratio of means it does not cancel.
        return odds / whole[ranking.query] * first_ranks(ranking, self.cutoff)


ExposureRatio = ExposureRatioOfGroups()
