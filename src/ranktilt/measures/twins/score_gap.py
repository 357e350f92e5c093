"""Score gap: how far apart the scores of twins are.

*Twins* are two versions of one document, one in each of two groups. The gap describes a ranker and
gives no verdict, because the scores of two rankers have no common scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.measures.twins.base import TwinAnswers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters, sums


@dataclass(frozen=True, repr=False)
class PairScoreGap(TwinEstimand):
    """Mean of ``(s_a − s_b)/sd`` over twins that are both retrieved.

    s_a and s_b are the scores of the two twins, and sd is the standard deviation of the query's
    scores. The gap is 0 if all scores of a query are equal.
    """

    name = "ScoreGap"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("all",)}
    question = "how far apart are the twins' scores?"
    descriptive = True
    digits = 3
    suffix = " sd"
    term = "score gap"
    definition = (
        "How far apart the scores of two twins are, in standard deviations of the query's scores. "
        "It only describes and gives no verdict."
    )
    pattern = r"[Ss]core gaps?"

    @property
    def key(self) -> str:
        return "score gap"

    @property
    def title(self) -> str:
        return "score gap"

    def answers(self, lists: TwinLists) -> TwinAnswers:
        ranking, query_count = lists.ranking, lists.queries
        if not lists.scored:
            return TwinAnswers(
                total=np.zeros(query_count),
                weight=np.zeros(query_count),
                details={"pairs": 0.0, "raw": np.nan},
            )
        first, second = _retrieved_pairs(lists)
        query = ranking.query[first]
        gap = ranking.scores[first] - ranking.scores[second]
        deviation = spread(ranking)[query]
        scaled = np.divide(gap, deviation, out=np.zeros_like(gap), where=deviation > 0)
        raw_total = float(sums(query, gap, query_count).sum())
        clusters = Clusters(
            query=query, origin=lists.docs[first], total=scaled, weight=np.ones(len(query))
        )
        return TwinAnswers(
            total=sums(query, scaled, query_count),
            weight=np.bincount(query, minlength=query_count).astype(np.float64),
            details={
                "pairs": float(len(query)),
                "raw": raw_total / len(query) if len(query) else np.nan,
            },
            clusters=clusters,
        )


def _retrieved_pairs(lists: TwinLists) -> tuple[Ints, Ints]:
    """Return the entries of the first and of the second sides of twins that are both retrieved."""
    first, partner = lists.partners.expand(lists.docs)
    second = lists.entries.find(lists.ranking.query[first], partner)
    first, second = first[second >= 0], second[second >= 0]
    # This order does not depend on which side is the first. In another order, sums of floats would
    # differ in their last digits, and not only in their sign.
    order = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
    return first[order], second[order]


def spread(ranking: Ranking) -> Floats:
    """Return the standard deviation of each query's scores."""
    query_count = len(ranking.offsets) - 1
    count = np.maximum(np.diff(ranking.offsets), 1)
    mean = np.bincount(ranking.query, weights=ranking.scores, minlength=query_count) / count
    deviations = ranking.scores - mean[ranking.query]
    squares = deviations * deviations
    return np.sqrt(np.bincount(ranking.query, weights=squares, minlength=query_count) / count)


ScoreGap = PairScoreGap()
