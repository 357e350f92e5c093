"""Pair rank gap: by how many ranks one twin stands above the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktilt.measures.twins.base import Answers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters


@dataclass(frozen=True, repr=False)
class PairRankGap(TwinEstimand):
    """Mean of ``rank_b − rank_a`` over twins; positive where the first group stands higher.

    Over every relevant pair, retrieved or not; where nothing is judged, summed over all pairs of a
    query. Tied documents have their middle rank, one that was not retrieved the rank after the last
    of its query.
    """

    pairs: str = field(default="relevant", kw_only=True)

    name = "RankGap"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("relevant", "all")}
    question = "by how many ranks is the twin above?"
    suffix = " ranks"
    term = "pair rank gap"
    definition = (
        "By how many ranks a text of the first side stands above its twin, on average; below 0 it "
        "stands lower."
    )
    pattern = r"(?:[Pp]air )?[Rr]ank gaps?"

    @property
    def key(self) -> str:
        return "rank gap"

    @property
    def title(self) -> str:
        return "pair rank gap" if self.pairs == "relevant" else "pair rank gap, summed per query"

    def answers(self, lists: TwinLists) -> Answers:
        if self.pairs == "all" or lists.wanted is None:
            return _summed(lists)
        query, pair = lists.wanted
        places = [lists.entries.find(query, lists.pairs[pair, side]) for side in (0, 1)]
        below = lists.below
        a, b = (
            np.where(at >= 0, below[at], 0.0) if len(below) else np.zeros(len(at)) for at in places
        )
        total = np.bincount(query, weights=b - a, minlength=lists.queries).astype(np.float64)
        weight = np.bincount(query, minlength=lists.queries).astype(np.float64)
        absent = int((places[0] < 0).sum()) + int((places[1] < 0).sum())
        parts = {
            "pairs": float(len(pair)),
            "absent": absent / (2 * len(pair)) if len(pair) else np.nan,
        }
        return Answers(
            total, weight, parts, Clusters(query, lists.pairs[pair, 0], b - a, np.ones(len(query)))
        )


def _summed(lists: TwinLists) -> Answers:
    """Sums over every pair of the collection, per query; unretrieved pairs add nothing."""
    docs, pairs, ranking = lists.docs, lists.pairs, lists.ranking
    width = int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1
    side = np.bincount(pairs[:, 1], minlength=width) - np.bincount(pairs[:, 0], minlength=width)
    known = docs >= 0
    weights = (
        np.where(known, lists.below * side[np.where(known, docs, 0)], 0.0)
        if width
        else np.zeros(len(docs))
    )
    totals = np.bincount(ranking.query, weights=weights, minlength=lists.queries).astype(np.float64)
    query, held = ranking.query[known], (np.diff(ranking.offsets) > 0).astype(np.float64)
    return Answers(
        totals,
        held,
        {},
        Clusters(query, docs[known], weights[known], 1.0 / np.bincount(query)[query]),
    )


RankGap = PairRankGap()
