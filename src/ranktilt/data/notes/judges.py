"""Notes on judges of relevance, such as language models that give grades.

`judge` is the name of a judge. A pair is a query and a document, which humans and the judge grade.
Systems are rankers whose values on a `measure` follow from these grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class GradeSteps(Note):
    """Grades of a judge are fractions, each step of which counts as one grade."""

    steps: int
    """Number of steps from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class RequestsWithoutGrade(Note):
    """Requests to a model that gave no grade."""

    judge: str
    requests: int
    reason: str
    """Reason, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class RepeatedGrades(Note):
    """How far a model that was asked several times agrees with itself."""

    judge: str
    times: int
    """Times that the model was asked about each pair."""
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
    """Who graded them."""


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
    """A judge that graded few of the pairs that humans graded."""

    severity: Severity = "warning"
    judge: str
    pairs: int
    """Number of pairs that both graded."""


@dataclass(frozen=True, kw_only=True)
class GradesOutsideScale(Note):
    """Grades of a judge that lie outside the scale, left out."""

    severity: Severity = "warning"
    judge: str
    grades: int
    top: int | None
    """Highest grade of the scale; None where it has no end."""
    values: tuple[float, ...]
    """These grades, each once."""


@dataclass(frozen=True, kw_only=True)
class JudgedWithoutIntervals(Note):
    """A judge with too few queries for intervals."""

    judge: str
    measure: str
    """Measure of the systems; empty for the agreement of grades."""
    queries: int


@dataclass(frozen=True, kw_only=True)
class TwinsWithoutGap(Note):
    """Twins that are left out of the grade gap, the difference of the judge's grades."""

    judge: str
    twins: int
    reason: Literal["one side", "two human grades"]
    """``one side``: the judge graded only one of both; else human grades differ."""


@dataclass(frozen=True, kw_only=True)
class LabelsWorth(Note):
    """How many queries with human labels a judge's grades save."""

    judge: str
    queries: int
    """Queries with human labels."""
    effective: float | None
    """Queries with human labels alone that would be as precise, the median of the systems.

    None if values do not differ between systems, or labels are too few for intervals.
    """


@dataclass(frozen=True, kw_only=True)
class OneSystem(Note):
    """There is one system, so that no order can be compared."""


@dataclass(frozen=True, kw_only=True)
class ClusterJoined(Note):
    """Runs that are repeats of one system, and count as one by their mean values."""

    cluster: str
    """Name of the system."""
    runs: int


@dataclass(frozen=True, kw_only=True)
class LikelyRepeats(Note):
    """Systems that look like repeats of one, but count as independent."""

    severity: Severity = "warning"
    systems: tuple[str, ...]
    reason: Literal["correlation", "tag", "names"]
    """How they look alike.

    ``names``: names differ only in a number, and values correlate nearly as highly.
    """
    correlation: float
    """Correlation of values per query above which the reason holds; 0 for tags."""
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
    """Queries without a value for every system."""

    judge: str
    measure: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class ValuesIdentical(Note):
    """A judge under which the values of systems are all those under human grades."""

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
    """Whose grades evaluate them."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnused(Note):
    """Confidences of a judge from which no calibration curve can be drawn."""

    severity: Severity = "warning"
    judge: str
    reason: Literal["few", "constant"]
    """``few`` pairs, or the same confidence for every grade."""
    pairs: int
    """Pairs with a confidence and a human grade."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnreadable(Note):
    """Answers of a model with a confidence that is no number from 0 to 1."""

    severity: Severity = "warning"
    judge: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class GradesOfOneAudit(Note):
    """Pairs that only one of two judges graded, left out of their comparison."""

    judge: str
    common: int
    """Pairs that both graded."""
    only_new: int
    """Pairs that only the new judge graded."""
    only_old: int
    """Pairs that only the old judge graded."""


@dataclass(frozen=True, kw_only=True)
class FewJudgedQueries(Note):
    """Few queries to compare two judges on."""

    severity: Severity = "warning"
    judge: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class TopGradesDiffer(Note):
    """Two judges with different highest grades, which may be on different scales."""

    severity: Severity = "warning"
    judge: str
    new: int
    """Highest grade that the new judge gives."""
    old: int
    """Highest grade that the old judge gives."""
