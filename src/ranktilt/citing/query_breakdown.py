"""Effects of an audit of citations by group of queries: data only.

An effect is the value of one question about two groups of pages. Here "group" means a group of
queries, such as a topic, unless pages are named.
"""

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
    """An effect on the queries of one group alone."""

    group: str
    """Name of the group of queries."""
    effect: CitationEffect
    """The effect; its p is corrected over all groups."""


@dataclass(frozen=True, kw_only=True)
class CitationBreakdown:
    """Every effect of an audit of citations by group of queries."""

    column: str
    """Column of the queries that groups them, with its number of bins: ``topic``, ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups with their numbers of queries, in order."""
    without_group: int
    """Number of queries that have no group."""
    answers: tuple[CitationGroupAnswer, ...]
    """Effects by group; none where the queries of a group cannot answer a question."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question and pair of groups of pages."""
    against_rest: tuple[RestDifference, ...]
    """How each group differs from all other queries."""
    variances: tuple[TiltVariance, ...]
    """How far single queries differ beyond noise, for the primary question of each pair."""

    def answers_to(self, difference: GroupDifference) -> list[CitationGroupAnswer]:
        """Return the effects that a test of differences compares, in the order of the groups."""
        return [
            answer
            for answer in self.answers
            if answer.effect.question == difference.question
            and (answer.effect.a, answer.effect.b) == (difference.a, difference.b)
        ]

    def rest_of(self, answer: CitationGroupAnswer) -> RestDifference | None:
        """Return how a group's effect differs from that of all other queries, if tested."""
        effect = answer.effect
        for rest in self.against_rest:
            is_question = (rest.question, rest.a, rest.b) == (effect.question, effect.a, effect.b)
            if is_question and rest.group == answer.group:
                return rest
        return None
