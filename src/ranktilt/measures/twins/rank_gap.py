"""Pair rank gap: by how many ranks one twin is above the other.

*Twins* are two versions of one document, one in each of two groups; a *pair* is two twins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktilt.measures.ranking import Floats, Ints
from ranktilt.measures.twins.base import TwinAnswers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters, sums


@dataclass(frozen=True, repr=False)
class PairRankGap(TwinEstimand):
    """Mean of ``rank_b − rank_a`` over twins; positive if the first group ranks higher.

    Every relevant pair counts, retrieved or not. If nothing is judged, the gaps of all pairs are
    summed for each query, and the value is the mean of these sums. Tied documents have the middle
    of their ranks. A document that was not retrieved has the rank after the last of its query.
    """

    pairs: str = field(default="relevant", kw_only=True)
    """Twins that count: ``relevant``, those that are relevant to the query; ``all``."""

    name = "RankGap"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("relevant", "all")}
    question = "by how many ranks is the twin above?"
    suffix = " ranks"
    term = "pair rank gap"
    definition = (
        "How many ranks a text of the first side is above its twin, on average; below 0, it is "
        "lower."
    )
    pattern = r"(?:[Pp]air )?[Rr]ank gaps?"

    @property
    def key(self) -> str:
        return "rank gap"

    @property
    def title(self) -> str:
        return "pair rank gap" if self.pairs == "relevant" else "pair rank gap, summed per query"

    def answers(self, lists: TwinLists) -> TwinAnswers:
        if self.pairs == "all" or lists.relevant_pairs is None:
            return _answers_of_all_pairs(lists)
        query, pair = lists.relevant_pairs
        first, second = lists.pairs[pair, 0], lists.pairs[pair, 1]
        first_entries = lists.entries.find(query, first)
        second_entries = lists.entries.find(query, second)
        gaps = _ranks_from_end(lists, second_entries) - _ranks_from_end(lists, first_entries)
        absent = int((first_entries < 0).sum()) + int((second_entries < 0).sum())
        details = {
            "pairs": float(len(pair)),
            "absent": absent / (2 * len(pair)) if len(pair) else np.nan,
        }
        weight = np.ones(len(query))
        return TwinAnswers(
            total=sums(query, gaps, lists.queries),
            weight=sums(query, weight, lists.queries),
            details=details,
            clusters=Clusters(query=query, origin=first, total=gaps, weight=weight),
        )


def _ranks_from_end(lists: TwinLists, entries: Ints) -> Floats:
    """Return the rank of each entry, minus the rank after the last of its query.

    0 for a document that was not retrieved, whose entry is negative.
    """
    if not len(lists.ranks_from_end):
        return np.zeros(len(entries))
    return np.where(entries >= 0, lists.ranks_from_end[entries], 0.0)


def _answers_of_all_pairs(lists: TwinLists) -> TwinAnswers:
    """Return the sum of the gaps of all pairs of the collection, for each query.

    A pair adds ``rank_b − rank_a``, so the sum over pairs is a sum over documents: each document's
    rank times the number of pairs in which it is the second side, minus those in which it is the
    first. A pair of which nothing was retrieved adds 0.
    """
    docs, pairs, ranking = lists.docs, lists.pairs, lists.ranking
    width = int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1
    # The number of pairs in which each document is the second side, minus those as the first.
    sign = np.bincount(pairs[:, 1], minlength=width) - np.bincount(pairs[:, 0], minlength=width)
    is_known = docs >= 0
    gaps = np.zeros(len(docs))
    if width:
        signs = sign[np.where(is_known, docs, 0)]
        gaps = np.where(is_known, lists.ranks_from_end * signs, 0.0)
    query = ranking.query[is_known]
    # The weights of a query's documents add up to 1, the weight of the query.
    clusters = Clusters(
        query=query,
        origin=docs[is_known],
        total=gaps[is_known],
        weight=1.0 / np.bincount(query)[query],
    )
    is_listed = np.diff(ranking.offsets) > 0
    return TwinAnswers(
        total=sums(ranking.query, gaps, lists.queries),
        weight=is_listed.astype(np.float64),
        clusters=clusters,
    )


RankGap = PairRankGap()
