"""Sentences of the notes on judges of relevance, such as language models that give grades.

A note is what a reader of the result should know besides its numbers. A pair is a query and a
document, which humans and the judge grade; twins are versions of one document. Systems are rankers
that the grades evaluate, as in a shared task.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

import math

from ranktilt.data.notes.judges import (
    ClusterJoined,
    ConfidenceUnreadable,
    ConfidenceUnused,
    FewCommonPairs,
    FewJudgedQueries,
    GradesIdentical,
    GradesOfOneAudit,
    GradesOutsideScale,
    GradeSteps,
    JudgedWithoutIntervals,
    LabelsWorth,
    LikelyRepeats,
    OneGrade,
    OneSystem,
    PairsOfOneGrader,
    QueriesOfOneGrader,
    QueriesWithoutRelevant,
    QueriesWithoutValues,
    RepeatedGrades,
    RequestsWithoutGrade,
    SystemsOfOneGrader,
    TopGradesDiffer,
    TwinsWithoutGap,
    ValuesIdentical,
)
from ranktilt.errors import counted, join_words
from ranktilt.judging.calibration import FEWEST_PAIRS
from ranktilt.judging.records import FEWEST_QUERIES
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words
from ranktilt.statistics.judges.prediction_powered import FEWEST_LABELS

_GRADERS = {"humans": "humans", "judge": "the judge"}
"""Words for who graded."""
_NO_GAP = {"one side": "graded on one side only", "two human grades": "with two human grades"}
"""Words for why twins have no grade gap, the difference of the judge's grades."""
_MOST_NAMED = 4
"""Systems that a note names; it counts the others."""
_LITTLE_HELP = 80.0
"""Percent of the variance without a judge; a judge that leaves more of it helps little."""


@note_words.register
def _grade_steps(note: GradeSteps) -> str:
    return f"grades are fractions in steps of 1/{note.steps}, so 1 becomes grade {note.steps} here"


@note_words.register
def _requests_without_grade(note: RequestsWithoutGrade) -> str:
    requests = counted(note.requests, "request", "requests")
    return f"{note.judge}: {requests} without a grade ({note.reason}), left out, not counted as 0"


@note_words.register
def _repeated_grades(note: RepeatedGrades) -> str:
    return (
        f"{note.judge}: asked {note.times} times, {100 * note.same:.0f} % of pairs get the same "
        f"grade each time; Krippendorff's α {note.alpha:.2f}"
    )


@note_words.register
def _pairs_of_one_grader(note: PairsOfOneGrader) -> str:
    human_only = counted(note.human_only, "pair", "pairs")
    return (
        f"{note.judge}: {human_only} graded by humans only and {note.judge_only:,} by the judge "
        "only left out, not counted as 0"
    )


@note_words.register
def _queries_of_one_grader(note: QueriesOfOneGrader) -> str:
    queries = counted(note.queries, "query", "queries")
    return f"{note.judge}: {queries} graded by {_GRADERS[note.grader]} only left out"


@note_words.register
def _grades_identical(note: GradesIdentical) -> str:
    return f"{note.judge} always gives the human grade; are these the same labels?"


@note_words.register
def _one_grade(note: OneGrade) -> str:
    return f"{note.judge} gives grade {note.grade} to all pairs: κ is undefined"


@note_words.register
def _few_common_pairs(note: FewCommonPairs) -> str:
    pairs = counted(note.pairs, "pair", "pairs")
    return (
        f"{note.judge} shares only {pairs} with the human grades; do both cover the same queries "
        "and documents?"
    )


@note_words.register
def _grades_outside_scale(note: GradesOutsideScale) -> str:
    scale = "0 or more" if note.top is None else f"0 to {note.top:g}"
    values = join_words([f"{value:g}" for value in note.values])
    grades = counted(note.grades, "grade", "grades")
    return f"{note.judge}: {grades} outside {scale} left out ({values})"


@note_words.register
def _judged_without_intervals(note: JudgedWithoutIntervals) -> str:
    subject = f"{note.judge}, {note.measure}" if note.measure else note.judge
    queries = counted(note.queries, "query", "queries")
    return f"{subject}: {queries}, but intervals need {FEWEST_QUERIES}"


@note_words.register
def _twins_without_gap(note: TwinsWithoutGap) -> str:
    twins = counted(note.twins, "twin", "twins")
    return f"{note.judge}: {twins} {_NO_GAP[note.reason]} left out of the grade gap"


@note_words.register
def _labels_worth(note: LabelsWorth) -> str:
    """Say how many queries with human labels would be as precise as these with the judge."""
    queries = counted(note.queries, "human query", "human queries")
    are = singular_or_plural(note.queries, "is", "are")
    if note.queries < FEWEST_LABELS:
        return (
            f"{note.judge}: {queries} {are} enough for values, but intervals need {FEWEST_LABELS} "
            "queries"
        )
    if note.effective is None:
        return f"{note.judge}: no system's values differ in {queries}, so there are no intervals"
    # A variance falls with the number of queries, so this is its share of the one without a judge.
    variance_share = 100 * note.queries / note.effective if note.effective else math.nan
    helps = "the judge helps little" if variance_share > _LITTLE_HELP else "the judge helps"
    return (
        f"{note.judge}: with it, {queries} {are} worth {note.effective:.0f} (median of systems); "
        f"the variance falls to {variance_share:.0f} %, so {helps}"
    )


@note_words.register
def _one_system(note: OneSystem) -> str:
    return "there is only one system, so nothing to order"


@note_words.register
def _cluster_joined(note: ClusterJoined) -> str:
    return f"{note.cluster}: {note.runs:,} runs count as one system, by their mean values"


@note_words.register
def _likely_repeats(note: LikelyRepeats) -> str:
    more = len(note.systems) - _MOST_NAMED
    systems = [*note.systems[:_MOST_NAMED], f"{more} more"] if more > 1 else list(note.systems)
    least_correlation = f"{note.correlation:g}".removeprefix("0")
    reasons = {
        "correlation": f"their values per query correlate above {least_correlation}",
        "tag": f"they share the tag {note.tag!r}",
        "names": (
            f"their names differ only in a number, and values correlate above {least_correlation}"
        ),
    }
    return (
        f"{join_words(systems)} look like repeats of one system ({reasons[note.reason]}), but "
        "count as independent, which makes intervals too narrow; join them with a third column, "
        "cluster, in --systems FILE"
    )


@note_words.register
def _queries_without_relevant(note: QueriesWithoutRelevant) -> str:
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.judge}, {note.measure}: {queries} without a relevant document under one judge "
        "left out"
    )


@note_words.register
def _queries_without_values(note: QueriesWithoutValues) -> str:
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.judge}, {note.measure}: {queries} without a value for every system left out, not "
        "counted as 0"
    )


@note_words.register
def _values_identical(note: ValuesIdentical) -> str:
    return (
        f"{note.judge}, {note.measure}: all values equal the human ones; are these the same grades?"
    )


@note_words.register
def _systems_of_one_grader(note: SystemsOfOneGrader) -> str:
    systems = counted(note.systems, "system", "systems")
    grader = _GRADERS[note.grader]
    return f"{note.judge}, {note.measure}: {systems} evaluated by {grader} only left out"


@note_words.register
def _confidence_unused(note: ConfidenceUnused) -> str:
    if note.reason == "constant":
        return (
            f"{note.judge} tells the same confidence for every grade, which says nothing about "
            "single grades"
        )
    pairs = counted(note.pairs, "pair", "pairs")
    return (
        f"{note.judge}: {pairs} with a confidence and a human grade; a calibration curve needs "
        f"{FEWEST_PAIRS}"
    )


@note_words.register
def _confidence_unreadable(note: ConfidenceUnreadable) -> str:
    answers = counted(note.answers, "answer tells", "answers tell")
    return (
        f"{note.judge}: {answers} a confidence that is no number from 0 to 1, left out; ask for "
        "such a number in the prompt"
    )


@note_words.register
def _grades_of_one_audit(note: GradesOfOneAudit) -> str:
    common = counted(note.common, "pair", "pairs")
    return (
        f"{note.judge}: compared on the {common} that both judges graded; {note.only_new:,} graded "
        f"by the new judge only and {note.only_old:,} by the old one only left out"
    )


@note_words.register
def _few_judged_queries(note: FewJudgedQueries) -> str:
    queries = counted(note.queries, "query", "queries")
    return f"{note.judge}: compared on only {queries}, which can show large changes alone"


@note_words.register
def _top_grades_differ(note: TopGradesDiffer) -> str:
    return (
        f"{note.judge}: the highest grade is {note.new} now and was {note.old} before; did both "
        "judges grade on the same scale?"
    )
