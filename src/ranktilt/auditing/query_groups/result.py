"""What an audit says of groups of queries: each answer by group, and whether the groups differ.

There are groups of queries, such as topics, and the two groups of documents, *a* and *b*, that an
answer compares. A *question* is an estimand about two groups of documents, written in its notation.
An answer's distance from its neutral value, which favours neither group, is a *tilt*. *Noise* is
what would be different with other documents, or in another repeat of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import ALPHA, FEWEST, Effect

NoiseSource = Literal["documents", "units", "repeats"]
"""What the noise comes from.

A query's documents, its units such as domains, or the repeats of a run: several rankings by the
same ranker.
"""


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """What identifies an answer."""

    run: str
    """Name of the run; empty for answers of one engine."""
    question: str
    """Notation of the question."""
    a: str
    """The first group of documents."""
    b: str
    """The second group of documents."""


@dataclass(frozen=True, kw_only=True)
class QueryGroup:
    """A group of queries."""

    name: str
    """Name of the group."""
    queries: int
    """Number of queries of the group that are audited."""


@dataclass(frozen=True, kw_only=True)
class RestDifference:
    """A group of queries against those of all other groups that are compared, on one question."""

    group: str
    """Name of the group of queries."""
    run: str
    """Name of the run; empty for answers of one engine."""
    question: str
    """Notation of the question."""
    a: str
    """The first group of documents."""
    b: str
    """The second group of documents."""
    value: float
    """The group's distance from neutral minus that of the other groups, in the question's unit.

    NaN for ratios of citations.
    """
    p: float
    """p of no difference, by this test alone."""
    p_corrected: float
    """The p, corrected for the number of groups.

    NaN with fewer than three groups: then `GroupDifference` is the same test.
    """


@dataclass(frozen=True, kw_only=True)
class GroupDifference:
    """Whether the groups of queries differ on one question."""

    run: str
    """Name of the run; empty for answers of one engine."""
    question: str
    """Notation of the question."""
    a: str
    """The first group of documents."""
    b: str
    """The second group of documents."""
    groups: tuple[str, ...]
    """Names of the groups that are compared: those with an effective number of at least ten queries
    and documents."""
    p: float
    """The larger one of `shuffle_p` and `welch_p`; NaN with fewer than two groups."""
    shuffle_p: float
    """p among queries with shuffled groups."""
    welch_p: float
    """p of Welch's test, in whose error documents count, too."""
    p_corrected: float
    """p corrected for several questions; those on the primary question are corrected together."""
    family_size: int
    """Number of tests that are corrected together."""

    @property
    def is_shown(self) -> bool:
        """Whether it is shown that the groups differ."""
        return self.p_corrected < ALPHA


@dataclass(frozen=True, kw_only=True)
class TiltVariance:
    """How much of the variance over queries is more than noise, for the primary question."""

    run: str
    """Name of the run; empty for answers of one engine."""
    question: str
    """Notation of the question."""
    a: str
    """The first group of documents."""
    b: str
    """The second group of documents."""
    share: float
    """Share of the variance that is more than noise, 0 to 1.

    NaN if too few queries can be split into halves, or nothing varies.
    """
    low: float
    """Lower end of the share's 95 % interval, over other queries."""
    high: float
    """Upper end of the share's interval."""
    queries: int
    """Number of queries whose documents can be split, or that count in every repeat."""
    by: NoiseSource = "documents"
    """What the noise comes from: halves of each query's documents or units, or repeats of the run.

    A run with repeats has a share by documents, and another by repeats.
    """


@dataclass(frozen=True, kw_only=True)
class GroupAnswer:
    """An answer on the queries of one group alone."""

    group: str
    """Name of the group of queries."""
    effect: Effect
    """The answer; its p is corrected for all groups."""


@dataclass(frozen=True, kw_only=True)
class QueryBreakdown:
    """Every answer of an audit by group of queries."""

    column: str
    """Column of the queries, such as ``topic``; with its number of bins, such as ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups, in order."""
    without_group: int
    """Number of queries that have no group."""
    answers: tuple[GroupAnswer, ...]
    """Answers by group; a group that cannot answer a question has none."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question about two groups of documents."""
    against_rest: tuple[RestDifference, ...]
    """Each group against all other queries."""
    variances: tuple[TiltVariance, ...]
    """How much of the variance over queries is more than noise.

    There is one for the primary question of each run and pair of groups.
    """

    def answers_to(self, difference: GroupDifference) -> list[GroupAnswer]:
        """Return the answers that a test compares, in the order of the groups."""
        key = key_of(difference)
        return [answer for answer in self.answers if key_of(answer.effect) == key]

    def worst(self, difference: GroupDifference) -> GroupAnswer | None:
        """Return the group with the largest tilt, among those with enough queries for a verdict.

        As the largest of several, it overestimates the tilt that further queries would show.
        """
        candidates = [
            answer
            for answer in self.answers_to(difference)
            if answer.effect.testable and not np.isnan(answer.effect.value)
        ]
        return max(candidates, key=_distance, default=None)

    def rest_of(self, answer: GroupAnswer) -> RestDifference | None:
        """Return how a group's answer differs from that of all other queries; None if untested."""
        key = key_of(answer.effect)
        for rest in self.against_rest:
            if rest.group == answer.group and key_of(rest) == key:
                return rest
        return None


def key_of(row: Effect | GroupDifference | RestDifference | TiltVariance) -> AnswerKey:
    """Return the key of the answer that a row is about."""
    question = row.measure if isinstance(row, Effect) else row.question
    return AnswerKey(run=row.run, question=question, a=row.a, b=row.b)


def query_group_counts(names: Sequence[str], code: npt.NDArray[np.int64]) -> tuple[QueryGroup, ...]:
    """Return the groups with their numbers of queries.

    `names` are those of the groups, and `code` is the index of each query's group.
    """
    counts = np.bincount(code[code >= 0], minlength=len(names)).tolist()
    return tuple(
        QueryGroup(name=name, queries=count) for name, count in zip(names, counts, strict=True)
    )


def _distance(answer: GroupAnswer) -> float:
    """Return the distance of an answer from its neutral value."""
    return abs(answer.effect.value - answer.effect.neutral)


def small_groups(groups: Iterable[QueryGroup]) -> list[QueryGroup]:
    """Return the groups with fewer queries than a verdict needs."""
    return [group for group in groups if group.queries < FEWEST]
