"""Score gap: how far apart the scores of twins are; it only describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.measures.ranking import Floats, Ranking
from ranktilt.measures.twins.base import Answers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters


@dataclass(frozen=True, repr=False)
class PairScoreGap(TwinEstimand):
    """Mean of ``(s_a − s_b)/sd`` over twins that are both retrieved, in standard deviations of the query's scores.

    0 where all scores of a query are equal.
    """

    name = "ScoreGap"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("all",)}
    question = "how far apart are the twins' scores?"
    descriptive = True
    digits = 3
    suffix = " sd"
    term = "score gap"
    definition = (
        "How far apart the scores of two twins are, in standard deviations of the query's scores. It only describes: "
        "no verdict rests on it."
    )
    pattern = r"[Ss]core gaps?"

    @property
    def key(self) -> str:
        return "score gap"

    @property
    def title(self) -> str:
        return "score gap"

    def answers(self, lists: TwinLists) -> Answers:
        ranking, n = lists.ranking, lists.queries
        if not lists.scored:
            return Answers(np.zeros(n), np.zeros(n), {"pairs": 0.0, "raw": np.nan})
        entry, partner = lists.partners.expand(lists.docs)
        query = ranking.query[entry]
        at = lists.entries.find(query, partner)
        entry, query, at = entry[at >= 0], query[at >= 0], at[at >= 0]
        # One order whichever side is first: floats added in another order would not negate exactly.
        order = np.lexsort((np.maximum(entry, at), np.minimum(entry, at)))
        entry, query, at = entry[order], query[order], at[order]
        gap = ranking.scores[entry] - ranking.scores[at]
        deviation = spread(ranking)[query]
        scaled = np.divide(gap, deviation, out=np.zeros_like(gap), where=deviation > 0)
        raw, total = (
            np.bincount(query, weights=w, minlength=n).astype(np.float64) for w in (gap, scaled)
        )
        parts = {
            "pairs": float(len(query)),
            "raw": float(raw.sum()) / len(query) if len(query) else np.nan,
        }
        weight = np.bincount(query, minlength=n).astype(np.float64)
        return Answers(
            total, weight, parts, Clusters(query, lists.docs[entry], scaled, np.ones(len(query)))
        )


def spread(ranking: Ranking) -> Floats:
    """Standard deviation of each query's scores."""
    n = len(ranking.offsets) - 1
    count = np.maximum(np.diff(ranking.offsets), 1)
    mean = np.bincount(ranking.query, weights=ranking.scores, minlength=n) / count
    off = ranking.scores - mean[ranking.query]
    return np.sqrt(np.bincount(ranking.query, weights=off * off, minlength=n) / count)


ScoreGap = PairScoreGap()
