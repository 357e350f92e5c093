"""Interleaving: the groups take turns, each in the order of its scores.

It is the simplest correction: it learns nothing, and reads only the order of each list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.mitigation.base import (
    Correction,
    Lists,
    expected_counts,
    random_share,
    reassign_scores,
)
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import Rule

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interleave(Correction):
    """Give each group its share of every prefix, in the order of the group's scores.

    A *prefix* of a list is its first k ranks. The number of a group's documents there becomes

        ``(1 − strength) · uncorrected + strength · share · k``

    where `uncorrected` is the number without correction, and `share` the group's share of the whole
    list. The number is rounded up or down at random, and is exact on average over seeds. So no
    group comes first more often than its share. With more than two groups, the first group gets its
    ranks, then the second group among the ranks that are left, and so on. Documents without a group
    keep their ranks.
    """

    strength: float = field(default=1.0, kw_only=True)
    """How far each prefix moves: 0 leaves it as it is, 1 gives each group its share."""
    seed: int = field(default=0, kw_only=True)
    """Seed of the rounding."""

    name: ClassVar[str] = "interleave"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.strength <= 1:
            raise UserError(f"{self.name}: expected a strength from 0 to 1, got {self.strength}")

    def rule(self) -> Rule:
        return Rule(
            method=self.name,
            reads="order",
            parameters={"strength": self.strength, "seed": self.seed},
        )

    def rescore(self, lists: Lists) -> Floats:
        scores = lists.run.scores.copy()
        if self.strength == 0:
            return scores
        for query, span in lists.slices():
            side = lists.group[span]
            order = np.arange(len(side))
            known = np.flatnonzero(side >= 0)  # documents with a group
            order[known] = known[self._turns(query, side[known], scores[span][known])]
            scores[span] = reassign_scores(order, scores[span], side)
        return scores

    def _turns(self, query: str, side: Ints, scores: Floats) -> Ints:
        """Return the corrected order of the documents of one list.

        `side` has the number of each document's group, and `scores` its score.
        """
        order = np.empty(len(side), dtype=np.int64)
        free_ranks = np.arange(len(side))
        unranked = np.arange(len(side))  # documents that have no rank yet
        for group in np.unique(side)[:-1].tolist():  # the last group gets the ranks that are left
            is_member = side[unranked] == group
            count, n = int(is_member.sum()), len(unranked)
            uncorrected = expected_counts(is_member, scores[unranked])
            ranks = np.arange(1, n + 1)
            aim = (1 - self.strength) * uncorrected + self.strength * count * ranks / n
            aim[-1] = count  # without a rounding error: the complete list holds the whole group
            # Systematic sampling: one random number is added to all aims, and the group gets a rank
            # wherever the sum passes the next whole number. So each count is right on average.
            sums = aim + random_share(self.seed, query, group)
            taken = np.searchsorted(sums, np.arange(1, count + 1))
            order[free_ranks[taken]] = unranked[is_member]
            free_ranks, unranked = np.delete(free_ranks, taken), unranked[~is_member]
        order[free_ranks] = unranked
        return order


@dataclass(frozen=True, kw_only=True)
class InterleaveMethod(Method):
    """Take documents from each group in turn."""

    name: ClassVar[str] = "interleave"

    def fit(self, queries: FittingQueries) -> FittedMethod:
        return FittedMethod(full=Interleave(by=queries.by, seed=queries.seed))
