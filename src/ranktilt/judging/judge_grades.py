"""The grades of humans and judges: read from files, tables or models, and put on one scale."""

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
from ranktilt.judging.grades import Graded, grade_steps, read_grades, side_by_side, stepped
from ranktilt.judging.grading.grading import Grades, confidences
from ranktilt.judging.grading.parsing import GRADES, UNREADABLE
from ranktilt.judging.records import FEWEST_QUERIES, HUMAN
from ranktilt.statistics.agreement import coincidences_of, krippendorff_alpha

GradesOf = str | Path | pl.DataFrame | Grades
"""Grades as a user passes them: a file, a table, or a model's."""
_ENDING = re.compile(r"(\.(qrels|txt|tsv|csv|json|jsonl|parquet))*(\.(gz|bz2|xz|zst|zip))?$")
"""Endings of files of grades."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgeGrades:
    """Grades of every judge, and the pairs that humans graded too."""

    by_judge: Mapping[str, pl.DataFrame]
    """All grades of each judge."""
    graded: tuple[Graded, ...]
    """For each judge, the pairs that humans graded too."""
    notes: tuple[Note, ...]
    """What was left out, and why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonScale:
    """The scale that human grades and judges' grades share."""

    human: pl.DataFrame
    """Human grades."""
    judges: Mapping[str, GradesOf]
    """Judges' grades, not read yet."""
    top: int
    """Highest grade; the lowest is 0."""
    steps: int
    """Steps that make one grade in the files; here, each step counts as one grade."""

    @classmethod
    def from_grades(
        cls,
        judges: Mapping[str, GradesOf],
        human: str | Path | pl.DataFrame | None,
        collection: Collection | None,
        top_grade: int | None,
    ) -> CommonScale:
        """Read the human grades, and count fractions of grades in steps."""
        steps = grade_steps([human, *judges.values()])
        has_model = any(isinstance(grades, Grades) for grades in judges.values())
        human_grades, top = _human(
            stepped(human, steps),
            collection,
            None if top_grade is None else top_grade * steps,
            least=GRADES[-1] if has_model else 1,
        )
        return cls(
            human=human_grades,
            judges={name: stepped(grades, steps) for name, grades in judges.items()},
            top=top,
            steps=steps,
        )

    def require_relevant(self, relevant: int) -> None:
        """Refuse a smallest relevant grade that is off the scale, or that every document has."""
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
            by_judge[name], stray_notes = read_grades(grades, self.top, name)
            notes += stray_notes
        graded = [side_by_side(self.human, frame, name) for name, frame in by_judge.items()]
        for pairs in graded:
            notes += pairs.notes()
        notes += _few_query_notes(graded)
        return JudgeGrades(by_judge=by_judge, graded=tuple(graded), notes=tuple(notes))


def _few_query_notes(graded: Sequence[Graded]) -> Iterator[Note]:
    """Note judges with too few queries for intervals."""
    for pairs_of_judge in graded:
        queries = pairs_of_judge.pairs["query_id"].n_unique()
        if queries < FEWEST_QUERIES:
            yield JudgedWithoutIntervals(judge=pairs_of_judge.judge, measure="", queries=queries)


def named_judges(
    judges: GradesOf | Sequence[str | Path] | Mapping[str, GradesOf],
) -> dict[str, GradesOf]:
    """Return grades by their judge's name; a file's is its stem."""
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


def _human(
    human: str | Path | pl.DataFrame | None,
    collection: Collection | None,
    top: int | None,
    *,
    least: int,
) -> tuple[pl.DataFrame, int]:
    """Read the human grades; the scale goes as high as they, and at least to `least`."""
    if human is None:
        if collection is None or not collection.qrels.height:
            raise UserError(
                "no human grades: name a file (--human FILE), or a collection with judgments"
            )
        human = collection.qrels
    frame, _ = read_grades(human, top, HUMAN)
    if not frame.height:
        raise UserError("no human grades: the table has no row")
    if top is None:
        top = max(int(frame["grade"].max()), least)  # type: ignore[arg-type]
    return frame, top


def file_name(grades: GradesOf | pl.DataFrame) -> str:
    """Return the file that grades were read from; empty for tables and models."""
    return str(grades) if isinstance(grades, str | Path) else ""


def _refuse_ungraded(name: str, grades: Grades) -> None:
    """Refuse a model's grading without a single grade, and say what became of its requests."""
    if grades.qrels.height:
        return
    counts = grades.counts
    if set(counts.rejected) == {UNREADABLE}:
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
