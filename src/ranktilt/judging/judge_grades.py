"""The grades of humans and judges: read from files, tables or models, and put on one scale.

A judge is whoever gives grades of relevance to pairs of query and document: a language model, or a
person.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import file_of
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import (
    ConfidenceUnreadable,
    GradeSteps,
    JudgedWithoutIntervals,
    RepeatedGrades,
    RequestsWithoutGrade,
)
from ranktilt.errors import UserError, counted, refuse_twice, shorten
from ranktilt.judging.grades import (
    GradedPairs,
    grades_in_steps,
    join_grades,
    read_grades,
    steps_per_grade,
)
from ranktilt.judging.grading.grading import Grades, confidences
from ranktilt.judging.grading.parsing import GRADES, UNREADABLE
from ranktilt.judging.records import FEWEST_QUERIES, HUMAN
from ranktilt.statistics.judges.agreement import coincidences_of, krippendorff_alpha

GradeSource = str | Path | pl.DataFrame | Grades
"""Grades as a user passes them: a file, a table, or what `grade` returns for a model."""
_ENDING = re.compile(r"(\.(qrels|txt|tsv|csv|json|jsonl|parquet))*(\.(gz|bz2|xz|zst|zip))?$")
"""Endings of files of grades, which are no part of a judge's name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeGrades:
    """Grades of every judge, and the pairs that humans graded too."""

    by_judge: Mapping[str, pl.DataFrame]
    """All grades of each judge: ``query_id``, ``doc_id``, ``grade``, maybe ``confidence``."""
    pairs_of_judges: tuple[GradedPairs, ...]
    """For each judge, the pairs that humans graded too."""
    notes: tuple[Note, ...]
    """Notes on what was left out, and why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonScale:
    """The scale that human grades and judges' grades share."""

    human: pl.DataFrame
    """Human grades: ``query_id``, ``doc_id``, ``grade``."""
    judges: Mapping[str, GradeSource]
    """Judges' grades, not read yet."""
    top: int
    """Highest grade; the lowest is 0."""
    steps: int
    """Number of steps that make one grade in the files; 1 if all grades are whole.

    Grades such as .25 are counted in steps: each step is one grade of this scale.
    """

    @classmethod
    def from_grades(
        cls,
        judges: Mapping[str, GradeSource],
        human: str | Path | pl.DataFrame | None,
        collection: Collection | None,
        top_grade: int | None,
    ) -> CommonScale:
        """Read the human grades, and decide on the scale.

        Parameters
        ----------
        judges : mapping
            Each judge's grades by its name.
        human : path, polars.DataFrame or None
            Human grades; None for the judgments of `collection`.
        collection : Collection or None
            A collection with judgments.
        top_grade : int or None
            Highest grade, as the files write grades; None for the highest human grade.
        """
        if human is None:
            human = _judgments_of(collection)
        steps = steps_per_grade([human, *judges.values()])
        has_model = any(isinstance(grades, Grades) for grades in judges.values())
        human_grades, top = _human_grades(
            grades_in_steps(human, steps),
            None if top_grade is None else top_grade * steps,
            least_top=GRADES[-1] if has_model else 1,  # models grade on a scale of their own
            steps=steps,
        )
        return cls(
            human=human_grades,
            judges={name: grades_in_steps(grades, steps) for name, grades in judges.items()},
            top=top,
            steps=steps,
        )

    def require_relevant(self, relevant: int) -> None:
        """Refuse a smallest relevant grade that is off the scale, or 0, which all would reach."""
        if not 1 <= relevant <= self.top:
            raise UserError(
                f"expected the smallest relevant grade between 1 and {self.top}, got {relevant}"
            )

    def read_judges(self) -> JudgeGrades:
        """Read every judge's grades, with notes on what was left out."""
        by_judge, notes = dict[str, pl.DataFrame](), list[Note]()
        if self.steps > 1:
            notes.append(GradeSteps(steps=self.steps))
        for name, grades in self.judges.items():
            if isinstance(grades, Grades):
                _refuse_ungraded(name, grades)
                notes += grading_notes(grades, self.top)
                grades = grades.qrels
            by_judge[name], stray_notes = read_grades(grades, self.top, name, steps=self.steps)
            notes += stray_notes
        pairs_of_judges = [join_grades(self.human, frame, name) for name, frame in by_judge.items()]
        for pairs_of_judge in pairs_of_judges:
            notes += pairs_of_judge.notes()
        notes += _few_query_notes(pairs_of_judges)
        return JudgeGrades(
            by_judge=by_judge, pairs_of_judges=tuple(pairs_of_judges), notes=tuple(notes)
        )


def _few_query_notes(pairs_of_judges: Sequence[GradedPairs]) -> Iterator[Note]:
    """Note judges with too few queries for intervals."""
    for pairs_of_judge in pairs_of_judges:
        queries = pairs_of_judge.table["query_id"].n_unique()
        if queries < FEWEST_QUERIES:
            yield JudgedWithoutIntervals(judge=pairs_of_judge.judge, measure="", queries=queries)


def named_judges(
    judges: GradeSource | Sequence[str | Path] | Mapping[str, GradeSource],
) -> dict[str, GradeSource]:
    """Return grades by the name of their judge, which for a file is its name without endings."""
    if isinstance(judges, Mapping):
        return dict(judges)
    if isinstance(judges, Grades):
        return {judges.judge: judges}
    if isinstance(judges, pl.DataFrame):
        return {"judge": judges}
    files = (
        list(judges) if isinstance(judges, Iterable) and not isinstance(judges, str) else [judges]
    )
    wrong = next((file for file in files if not isinstance(file, str | Path)), None)
    if wrong is not None or judges is None:
        raise UserError(
            "judges: expected files of grades, frames by name, or results of grade(), got "
            f"{shorten(wrong)}"
        )
    paths = [Path(file) for file in files]
    names = [_ENDING.sub("", file_of(path).name) for path in paths]
    refuse_twice(names, "judge")
    return dict(zip(names, paths, strict=True))


def _judgments_of(collection: Collection | None) -> pl.DataFrame:
    """Return a collection's judgments, which are the human grades if no file has any."""
    if collection is None or not collection.qrels.height:
        raise UserError(
            "no human grades: name a file (--human FILE), or a collection with judgments"
        )
    return collection.qrels


def _human_grades(
    human: str | Path | pl.DataFrame, top: int | None, *, least_top: int, steps: int
) -> tuple[pl.DataFrame, int]:
    """Return the human grades, and the highest grade of the scale.

    The highest grade is `top`, or else the highest human grade, but at least `least_top`. All are
    numbers of steps, of which `steps` make one grade of the user's.
    """
    frame, _ = read_grades(human, top, HUMAN, steps=steps)
    if not frame.height:
        raise UserError("no human grades: the table has no row")
    if top is None:
        top = max(int(frame["grade"].max()), least_top)  # type: ignore[arg-type]
    return frame, top


def file_name(grades: GradeSource | pl.DataFrame) -> str:
    """Return the file that grades were read from; empty for tables and models."""
    return str(grades) if isinstance(grades, str | Path) else ""


def _refuse_ungraded(name: str, grades: Grades) -> None:
    """Refuse a model's grading without a single grade; the error counts its requests by outcome."""
    if grades.qrels.height:
        return
    counts = grades.counts
    if set(counts.rejected) == {UNREADABLE}:  # the model answered, but never with a grade
        answers = grades.answers.filter(pl.col("grade").is_null())["answer"].drop_nulls()
        first = f" (first: {shorten(answers[0], 100)})" if len(answers) else ""
        unparsed = f"{counts.rejected[UNREADABLE]:,} of {counts.requests:,} unparsed{first}"
        raise UserError(
            f"{name}: no answer could be read: {unparsed}; try another model, or another --prompt"
        )
    reasons = [f"{number:,} {reason}" for reason, number in counts.rejected.items()]
    raise UserError(
        f"{name}: no pair has a grade: of {counted(counts.requests, 'request', 'requests')}, "
        f"{', '.join(reasons) or 'nothing was asked'}"
    )


def grading_notes(grades: Grades, top: int) -> Iterator[Note]:
    """Note which requests of a model's grading have no grade, and whether it agrees with itself."""
    for reason, number in grades.counts.rejected.items():
        yield RequestsWithoutGrade(judge=grades.judge, requests=number, reason=reason)
    unreadable = int(confidences(grades.answers)["confidence"].is_nan().sum())
    if unreadable:
        yield ConfidenceUnreadable(judge=grades.judge, answers=unreadable)
    if not math.isnan(grades.exact_agreement):
        alpha = float(krippendorff_alpha(coincidences_of(grades.ratings, top)))
        yield RepeatedGrades(
            judge=grades.judge,
            times=grades.ratings.shape[1],
            same=grades.exact_agreement,
            alpha=alpha,
        )
