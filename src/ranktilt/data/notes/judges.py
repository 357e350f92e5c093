"""Notes on judges of relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class GradeSteps(Note):
    """Grades are fractions, each step of which counts as one grade."""

    steps: int
    """Steps that make one grade."""


@dataclass(frozen=True, kw_only=True)
class RequestsWithoutGrade(Note):
    """Requests to a model that gave no grade."""

    judge: str
    requests: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class RepeatedGrades(Note):
    """How far a model that was asked several times agrees with itself."""

    judge: str
    times: int
    same: float
    """Share of pairs with the same grade each time, in [0, 1]."""
    alpha: float
    """Krippendorff's α, at most 1."""


@dataclass(frozen=True, kw_only=True)
class PairsOfOneGrader(Note):
    """Pairs that only humans, or only the judge, graded."""

    judge: str
    human_only: int
    judge_only: int


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneGrader(Note):
    """Queries that only humans, or only the judge, graded."""

    judge: str
    queries: int
    grader: Literal["humans", "judge"]


@dataclass(frozen=True, kw_only=True)
class GradesIdentical(Note):
    """A judge that gives the human grade to every pair."""

    severity: Severity = "warning"
    judge: str


@dataclass(frozen=True, kw_only=True)
class OneGrade(Note):
    """A judge that gives one grade to all pairs."""

    judge: str
    grade: int


@dataclass(frozen=True, kw_only=True)
class FewCommonPairs(Note):
    """A judge that shares few pairs with the human grades."""

    severity: Severity = "warning"
    judge: str
    pairs: int


@dataclass(frozen=True, kw_only=True)
class GradesOutsideScale(Note):
    """Grades that lie outside the scale."""

    severity: Severity = "warning"
    judge: str
    grades: int
    top: int | None
    """Highest grade of the scale; None where it has no end."""
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class JudgedWithoutIntervals(Note):
    """Too few queries for intervals."""

    judge: str
    measure: str
    """Empty where agreement of grades is meant."""
    queries: int


@dataclass(frozen=True, kw_only=True)
class TwinsWithoutGap(Note):
    """Twins that are left out of the grade gap."""

    judge: str
    twins: int
    reason: Literal["one side", "two human grades"]
    """``one side``: the judge graded one of both; else humans graded them differently."""


@dataclass(frozen=True, kw_only=True)
class LabelsWorth(Note):
    """What human labels are worth together with a judge's."""

    judge: str
    queries: int
    """Queries with human labels."""
    effective: float | None
    """Queries that they are worth, the median of the systems; None where values do not differ, or
    labels are too few for intervals."""


@dataclass(frozen=True, kw_only=True)
class OneSystem(Note):
    """One system, so that nothing is ordered."""


@dataclass(frozen=True, kw_only=True)
class ClusterJoined(Note):
    """Runs that are repeats of one system and count as one."""

    cluster: str
    runs: int


@dataclass(frozen=True, kw_only=True)
class LikelyRepeats(Note):
    """Systems that look like repeats of one, and count as independent ones."""

    severity: Severity = "warning"
    systems: tuple[str, ...]
    reason: Literal["correlation", "tag", "names"]
    """``names``: they differ in a number alone, and values correlate nearly as highly."""
    correlation: float
    """Correlation of values per query above which the reason speaks; 0 for tags."""
    tag: str
    """The tag that they share; empty for other reasons."""


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutRelevant(Note):
    """Queries without a relevant document under one judge."""

    judge: str
    measure: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutValues(Note):
    """Queries without a value of every system."""

    judge: str
    measure: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class ValuesIdentical(Note):
    """A judge under which every value is the human one."""

    severity: Severity = "warning"
    judge: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class SystemsOfOneGrader(Note):
    """Systems that only humans, or only the judge, evaluated."""

    judge: str
    measure: str
    systems: int
    grader: Literal["humans", "judge"]


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnused(Note):
    """Confidences of a judge that make no calibration curve."""

    severity: Severity = "warning"
    judge: str
    reason: Literal["few", "constant"]
    pairs: int
    """Pairs with a confidence and a human grade."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnreadable(Note):
    """Answers of a model whose confidence is no number from 0 to 1."""

    severity: Severity = "warning"
    judge: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class GradesOfOneAudit(Note):
    """Pairs that one of two judges graded, left out of their comparison."""

    judge: str
    common: int
    """Pairs that both graded."""
    only_new: int
    only_old: int


@dataclass(frozen=True, kw_only=True)
class FewJudgedQueries(Note):
    """Few queries to compare two judges on."""

    severity: Severity = "warning"
    judge: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class TopGradesDiffer(Note):
    """Two judges whose highest grades differ, which may be of two scales."""

    severity: Severity = "warning"
    judge: str
    new: int
    """Highest grade that the new judge gives."""
    old: int
    """Highest grade that the old judge gives."""
