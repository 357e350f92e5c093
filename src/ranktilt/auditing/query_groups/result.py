"""What an audit says of groups of queries: each answer by group, and whether the groups differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import ALPHA, FEWEST, Effect

NoiseSource = Literal["documents", "units", "repeats"]
"""What noise is of: a query's documents, its units such as domains, or repeats of a run."""


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """What tells an answer from the others."""

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
    """Queries of the group that are asked about."""


@dataclass(frozen=True, kw_only=True)
class RestDifference:
    """A group of queries against all others, on one question."""

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
    """The group's distance from neutral minus that of the other queries, in the question's unit.

    NaN for ratios of citations."""
    p: float
    p_corrected: float
    """Corrected for the number of groups; NaN with fewer than three groups, where `GroupDifference`
    asks the same."""


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
    """Groups of queries that are compared: with ten effective queries and documents that count."""
    p: float
    """The larger of both tests; NaN with fewer than two groups."""
    shuffle_p: float
    """p among shuffled groups of queries."""
    welch_p: float
    """p of Welch's test, with documents in its error."""
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
    """Share of the variance, 0 to 1; NaN where too few queries can be split or nothing varies."""
    low: float
    high: float
    """95 % interval over other queries."""
    queries: int
    """Queries whose documents can be split, or that count in every repeat."""
    by: NoiseSource = "documents"
    """What the noise is of: halves of each query's documents or units, or repeats of the run.

    A run with repeats has a value by documents and one by repeats."""


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
    """Column of the queries, with its parts: ``topic``, ``year:3``."""
    groups: tuple[QueryGroup, ...]
    """The groups, in order."""
    without_group: int
    """Queries that have no group."""
    answers: tuple[GroupAnswer, ...]
    """Answers by group; a group that cannot answer a question has none."""
    differences: tuple[GroupDifference, ...]
    """Whether the groups differ, for each question that has sides."""
    against_rest: tuple[RestDifference, ...]
    """Each group against all others."""
    variances: tuple[TiltVariance, ...]
    """What queries differ in beyond noise, for the primary question of each run and pair."""

    def answers_to(self, difference: GroupDifference) -> list[GroupAnswer]:
        """Return the answers that a test compares, in the order of the groups."""
        key = key_of(difference)
        return [answer for answer in self.answers if key_of(answer.effect) == key]

    def worst(self, difference: GroupDifference) -> GroupAnswer | None:
        """Return the group of the largest tilt, among those with enough for a verdict.

        It is the largest of several, so its value is larger than further queries would give.
        """
        answers = self.answers_to(difference)
        enough = [answer for answer in answers if answer.effect.testable]
        enough = [answer for answer in enough if not np.isnan(answer.effect.value)]
        return max(enough, key=_distance, default=None)

    def rest_of(self, answer: GroupAnswer) -> RestDifference | None:
        """Return how a group's answer differs from that of all other queries."""
        key = key_of(answer.effect)
        return next(
            (
                rest
                for rest in self.against_rest
                if rest.group == answer.group and key_of(rest) == key
            ),
            None,
        )


def key_of(row: Effect | GroupDifference | RestDifference | TiltVariance) -> AnswerKey:
    """Return the answer that a row is about."""
    question = row.measure if isinstance(row, Effect) else row.question
    return AnswerKey(run=row.run, question=question, a=row.a, b=row.b)


def query_group_counts(names: Sequence[str], code: npt.NDArray[np.int64]) -> tuple[QueryGroup, ...]:
    """Return the groups with their numbers of queries."""
    counts = np.bincount(code[code >= 0], minlength=len(names)).tolist()
    return tuple(
        QueryGroup(name=name, queries=count) for name, count in zip(names, counts, strict=True)
    )


def _distance(answer: GroupAnswer) -> float:
    return abs(answer.effect.value - answer.effect.neutral)


def small_groups(groups: Iterable[QueryGroup]) -> list[QueryGroup]:
    """Return the groups with fewer queries than a verdict takes."""
    return [group for group in groups if group.queries < FEWEST]
