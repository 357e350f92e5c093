"""Notes on judges of relevance, such as language models that give grades.

A note has the severity ``note``, unless its class says ``warning``. `judge` is the name of a judge.
A pair is a query and a document, which humans and the judge grade. A system is a ranker that is
evaluated by these grades: `measure`, such as nDCG, gives each of its lists a value. A run is the
ranked lists of a system, of which there are several if a system was run repeatedly.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class GradeSteps(Note):
    """Grades of a judge are fractions from 0 to 1, which are counted in equal steps.

    With 4 steps, the grades 0, 0.25 … 1 become 0, 1 … 4.
    """

    steps: int
    """Number of steps from 0 to 1, which is also the highest grade."""


@dataclass(frozen=True, kw_only=True)
class RequestsWithoutGrade(Note):
    """Requests to a model that gave no grade, left out."""

    judge: str
    requests: int
    reason: str
    """Why there is no grade, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class RepeatedGrades(Note):
    """How far a model agrees with itself that graded each pair several times."""

    judge: str
    times: int
    """Times that the model was asked about each pair."""
    same: float
    """Share of pairs with the same grade each time, in [0, 1]."""
    alpha: float
    """Krippendorff's α, at most 1."""


@dataclass(frozen=True, kw_only=True)
class PairsOfOneGrader(Note):
    """Pairs that only humans, or only the judge, graded; both are left out."""

    judge: str
    human_only: int
    """Number of pairs that only humans graded."""
    judge_only: int
    """Number of pairs that only the judge graded."""


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneGrader(Note):
    """Queries of which only humans, or only the judge, graded documents; left out."""

    judge: str
    queries: int
    grader: Literal["humans", "judge"]
    """Who graded them."""


@dataclass(frozen=True, kw_only=True)
class GradesIdentical(Note):
    """A judge that gives the human grade to every pair.

    A warning, because the two files most likely hold the same labels.
    """

    severity: Severity = "warning"
    judge: str


@dataclass(frozen=True, kw_only=True)
class OneGrade(Note):
    """A judge that gives one grade to all pairs, so that κ is undefined."""

    judge: str
    grade: int


@dataclass(frozen=True, kw_only=True)
class FewCommonPairs(Note):
    """A judge that graded few of the pairs that humans graded.

    A warning, because the files may cover different queries or documents.
    """

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
    top: float | None
    """Highest grade of the scale; None where it has no end."""
    values: tuple[float, ...]
    """These grades, each once."""


@dataclass(frozen=True, kw_only=True)
class JudgedWithoutIntervals(Note):
    """A judge with too few queries for intervals."""

    judge: str
    measure: str
    """Measure of the systems; empty if the intervals are those of agreement between grades."""
    queries: int
    """Number of queries that there are."""


@dataclass(frozen=True, kw_only=True)
class TwinsWithoutGap(Note):
    """Twins that are left out of the grade gap.

    Twins are two versions of one text, such as a human text and its rewrite by an LLM. The grade
    gap is how much higher the judge grades the first of them than the second.
    """

    judge: str
    twins: int
    reason: Literal["one side", "two human grades"]
    """Why they are left out.

    ``one side``: the judge graded only one of the two. ``two human grades``: humans graded them
    differently, so that the judge should too.
    """


@dataclass(frozen=True, kw_only=True)
class LabelsWorth(Note):
    """How many queries with human labels the judge's grades are worth.

    A label is a human grade. Means of systems are estimated from the labels of some queries and the
    judge's grades of more queries.
    """

    judge: str
    queries: int
    """Number of queries with human labels."""
    effective: float | None
    """Number of queries with human labels that would be as precise without the judge.

    It is computed for each system, and this is the median of all systems. None if each system has
    the same value for all queries, or if labels are too few for intervals.
    """


@dataclass(frozen=True, kw_only=True)
class OneSystem(Note):
    """There is a single system, so that there is no order of systems to compare."""


@dataclass(frozen=True, kw_only=True)
class ClusterJoined(Note):
    """Runs that the user declared repeats of one system, a cluster.

    They count as one system, whose values are the means of theirs.
    """

    cluster: str
    """Name of the cluster, which becomes that of the system."""
    runs: int
    """Number of its runs."""


@dataclass(frozen=True, kw_only=True)
class LikelyRepeats(Note):
    """Systems that look like repeats of one, but count as independent.

    A warning, because intervals are too narrow if they are repeats.
    """

    severity: Severity = "warning"
    systems: tuple[str, ...]
    reason: Literal["correlation", "tag", "names"]
    """Why they look like repeats.

    ``correlation``: their values per query correlate very highly. ``tag``: their run files have
    the same tag. ``names``: their names differ only in a number, and their values correlate highly.
    """
    correlation: float
    """Limit that the correlation of their values per query exceeds; 0 if the reason is the tag."""
    tag: str
    """The tag that they share: the name of a system in the last column of a TREC run.

    It is empty for other reasons.
    """


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutRelevant(Note):
    """Queries without a relevant document by human grades or by the judge's, left out."""

    judge: str
    measure: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutValues(Note):
    """Queries for which at least one system has no value, left out for all systems."""

    judge: str
    measure: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class ValuesIdentical(Note):
    """A judge under which all values of systems equal those under human grades.

    A warning, because both were most likely computed from the same grades.
    """

    severity: Severity = "warning"
    judge: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class SystemsOfOneGrader(Note):
    """Systems with values by human grades only, or by the judge's only; left out."""

    judge: str
    measure: str
    systems: int
    grader: Literal["humans", "judge"]
    """Whose grades evaluate them."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnused(Note):
    """Confidences of a judge from which no calibration curve can be drawn.

    A judge tells its confidence in each grade, from 0 to 1. The curve is the share of grades that
    equal the human ones, by confidence.
    """

    severity: Severity = "warning"
    judge: str
    reason: Literal["few", "constant"]
    """``few``: there are too few pairs. ``constant``: every grade has the same confidence."""
    pairs: int
    """Pairs with a confidence and a human grade."""


@dataclass(frozen=True, kw_only=True)
class ConfidenceUnreadable(Note):
    """Answers of a model with a confidence that is no number from 0 to 1, left out."""

    severity: Severity = "warning"
    judge: str
    answers: int


@dataclass(frozen=True, kw_only=True)
class GradesOfOneAudit(Note):
    """Pairs that only one of two judges graded, left out of their comparison.

    An audit of the new judge is compared with an earlier one of the old judge.
    """

    judge: str
    """Name of the new judge."""
    common: int
    """Pairs that both graded."""
    only_new: int
    """Pairs that only the new judge graded."""
    only_old: int
    """Pairs that only the old judge graded."""


@dataclass(frozen=True, kw_only=True)
class FewJudgedQueries(Note):
    """So few queries to compare two judges on that only large changes can be shown."""

    severity: Severity = "warning"
    judge: str
    """Name of the new judge."""
    queries: int


@dataclass(frozen=True, kw_only=True)
class TopGradesDiffer(Note):
    """Two judges with different highest grades, which may be on different scales."""

    severity: Severity = "warning"
    judge: str
    """Name of the new judge."""
    new: int
    """Highest grade that the new judge gives."""
    old: int
    """Highest grade that the old judge gives."""
