"""Interleaving: the groups take turns, each by score; the simplest correction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.mitigation.base import Correction, Lists, expected_counts, in_order, uniform
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.mitigation.remedy import Rule

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interleave(Correction):
    """Round robin by score: every prefix holds each group's share of the candidates.

    Shares are rounded up or down at random. A prefix of k ranks aims at ``(1 − strength)·today +
    strength·share·k`` documents of a group, and holds exactly so many on average over seeds; so no
    group comes first more often than its share. Several groups are placed one after the other, each
    compared with all that follow. Documents of no group keep their places.
    """

    strength: float = field(default=1.0, kw_only=True)
    """How far each prefix goes from the list of today to equal shares."""
    seed: int = field(default=0, kw_only=True)
    """Random seed."""

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

    def rescored(self, lists: Lists) -> Floats:
        scores = lists.run.scores.copy()
        if self.strength == 0:
            return scores
        for query, part in lists.parts():
            side = lists.group[part]
            order = np.arange(len(side))
            known = np.flatnonzero(side >= 0)
            order[known] = known[self._turns(query, side[known], scores[part][known])]
            scores[part] = in_order(order, scores[part], side)
        return scores

    def _turns(self, query: str, side: Ints, scores: Floats) -> Ints:
        """Return the order of a list: the groups get their ranks one after the other."""
        order = np.empty(len(side), dtype=np.int64)
        free = rest = np.arange(len(side))
        for group in np.unique(side)[:-1].tolist():
            first = side[rest] == group
            count, n = int(first.sum()), len(rest)
            today = expected_counts(first, scores[rest])
            aim = (1 - self.strength) * today + self.strength * count * np.arange(1, n + 1) / n
            aim[-1] = count
            # Systematic sampling: one number moves all roundings, so that each is right on average.
            ranks = np.searchsorted(aim + uniform(self.seed, query, group), np.arange(1, count + 1))
            order[free[ranks]] = rest[first]
            free, rest = np.delete(free, ranks), rest[~first]
        order[free] = rest
        return order


@dataclass(frozen=True, kw_only=True)
class InterleaveMethod(Method):
    """Take documents from each group in turn."""

    name: ClassVar[str] = "interleave"

    def fit(self, queries: FittingQueries) -> FittedMethod:
        return FittedMethod(full=Interleave(by=queries.by, seed=queries.seed))
