"""Answers of an audit of citations by group of queries: data only."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.query_groups.result import (
    GroupDifference,
    QueryGroup,
    RestDifference,
    TiltVariance,
)
from ranktilt.citing.effect import CitationEffect


@dataclass(frozen=True, kw_only=True)
class CitationGroupAnswer:
    """An answer on the queries of one group alone."""

    group: str
    """Name of the group of queries."""
    effect: CitationEffect
    """The answer; its p is corrected for all groups."""


@dataclass(frozen=True, kw_only=True)
class CitationBreakdown:
    """Every answer of an audit of citations by group of queries."""

    column: str
    """Column of the queries, with its parts: ``topic``, ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups, in order."""
    without_group: int
    """Queries that have no group."""
    answers: tuple[CitationGroupAnswer, ...]
    """Answers by group; a group that cannot answer a question has none."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question and pair."""
    against_rest: tuple[RestDifference, ...]
    """Each group against all others."""
    variances: tuple[TiltVariance, ...]
    """What queries differ in beyond noise, for the primary question of each pair."""

    def answers_to(self, difference: GroupDifference) -> list[CitationGroupAnswer]:
        """Return the answers that a test compares, in the order of the groups."""
        return [
            answer
            for answer in self.answers
            if answer.effect.question == difference.question
            and (answer.effect.a, answer.effect.b) == (difference.a, difference.b)
        ]

    def rest_of(self, answer: CitationGroupAnswer) -> RestDifference | None:
        """Return how a group's answer differs from that of all other queries."""
        effect = answer.effect
        for rest in self.against_rest:
            is_question = (rest.question, rest.a, rest.b) == (effect.question, effect.a, effect.b)
            if is_question and rest.group == answer.group:
                return rest
        return None
