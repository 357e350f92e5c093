"""Read grades, and join those of humans and of a judge.

A grade says how relevant a document is to a query; a *pair* is a query and a document. Grades are
whole numbers from 0. Where files hold fractions such as .25, the scale is divided into *steps*,
here four a grade, and each step counts as one grade from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.formats.ids import ids_of, require_frame, scores_of
from ranktilt.data.formats.judgments.qrels import read_judge_qrels, read_qrels
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import (
    FewCommonPairs,
    GradesIdentical,
    GradesOutsideScale,
    OneGrade,
    PairsOfOneGrader,
    QueriesOfOneGrader,
)
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten

_HIGHEST_GRADE = 2**31 - 1
"""Highest grade that is read."""
_STRAY_SHARE = 0.01
"""Largest share of grades that may lie outside the scale.

They are left out. If there are more, the file is of another scale.
"""
_MOST_STEPS = 20
"""Most steps into which a grade may be divided: twentieths are read."""
_ROUNDING_ERROR = 0.005
"""Largest distance of a fraction from its step, in grades: half of a second decimal.

Thirds are written .33.
"""
_HIGHEST_PERCENT = 100
"""Highest confidence in percent."""
_CHANCE_OVERLAP = 0.05
"""Smallest share of the smaller file that must be common pairs.

With fewer, ids may be the same by chance, as numbers from 1 are in two collections.
"""


class GradedPairs(NamedTuple):
    """The pairs that both humans and one judge graded, and how many only one of them graded."""

    judge: str
    """Name of the judge."""
    table: pl.DataFrame
    """A row for each pair: ``query_id``, ``doc_id``, and the grades ``human`` and ``judged``.

    Grades are whole numbers, and rows are in the order of the human grades.
    """
    human_only: int
    """Number of pairs that only humans graded, in queries that both have."""
    judge_only: int
    """Number of pairs that only the judge graded, in queries that both have."""
    human_queries: int
    """Number of queries that only humans graded."""
    further_grades: pl.DataFrame
    """The judge's grades in queries without human grades: ``query_id``, ``doc_id``, ``grade``.

    Prediction-powered estimates use them.
    """

    def notes(self) -> Iterator[Note]:
        """Note what is left out, and signs that a wrong file was named."""
        if self.human_only or self.judge_only:
            yield PairsOfOneGrader(
                judge=self.judge, human_only=self.human_only, judge_only=self.judge_only
            )
        if self.human_queries:
            yield QueriesOfOneGrader(judge=self.judge, queries=self.human_queries, grader="humans")
        if judge_queries := self.further_grades["query_id"].n_unique():
            yield QueriesOfOneGrader(judge=self.judge, queries=judge_queries, grader="judge")
        if (self.table["human"] == self.table["judged"]).all():
            yield GradesIdentical(judge=self.judge)
        if self.table["judged"].n_unique() == 1:
            yield OneGrade(judge=self.judge, grade=int(self.table["judged"][0]))
        pairs_of_smaller_file = self.table.height + min(self.human_only, self.judge_only)
        if self.table.height < _CHANCE_OVERLAP * pairs_of_smaller_file:
            yield FewCommonPairs(judge=self.judge, pairs=self.table.height)


def read_grades(
    grades: str | Path | pl.DataFrame, top: int | None, name: str, *, steps: int = 1
) -> tuple[pl.DataFrame, list[Note]]:
    """Read the grades of a judge, or of humans.

    Parameters
    ----------
    grades : path or polars.DataFrame
        A qrels file, or a table with ``query_id``, ``doc_id`` and ``grade``.
    top : int or None
        Highest grade of the scale; None for any.
    name : str
        Name of the judge, for notes and errors.
    steps : int, optional
        How many steps make one grade of the user's, if `grades` and `top` are numbers of steps.
        Notes and errors give grades as the user wrote them.

    Returns
    -------
    tuple of polars.DataFrame and list of Note
        The columns ``query_id``, ``doc_id`` and ``grade`` (whole numbers), and ``confidence`` (from
        0 to 1, or null) where the source has it. The notes count grades outside the scale, which
        are left out.

    Raises
    ------
    DataError
        If more than 1 % of the grades lie outside the scale, or a confidence is out of range.
    UserError
        If a table lacks a column, or has two grades of one pair.
    """
    frame = (
        read_judge_qrels(grades) if isinstance(grades, str | Path) else _grade_columns(grades, name)
    )
    frame, notes = _on_scale(frame, top, name, grades, steps)
    columns: list[Any] = ["query_id", "doc_id", pl.col("grade").cast(pl.Int64)]
    if "confidence" in frame.columns:
        _require_confidence(frame, name if isinstance(grades, pl.DataFrame) else grades)
        columns.append(pl.col("confidence").cast(pl.Float64))
    return frame.select(columns), notes


def _on_scale(
    frame: pl.DataFrame,
    top: int | None,
    name: str,
    grades: str | Path | pl.DataFrame,
    steps: int,
) -> tuple[pl.DataFrame, list[Note]]:
    """Leave out grades outside the scale, with a note; refuse more than a few.

    `name` is the judge's, and `grades` is what the user passed, which an error names if it is a
    file. The other parameters are those of `read_grades`.
    """
    is_fraction = pl.col("grade") != pl.col("grade").round()
    is_outside = is_fraction | ~pl.col("grade").is_between(0, _HIGHEST_GRADE)
    if top is not None:
        is_outside = is_outside | (pl.col("grade") > top)
    outside = frame.filter(is_outside)
    highest = None if top is None else top / steps
    notes = list[Note]()
    if outside.height > _STRAY_SHARE * frame.height:
        line = outside["line"][0] if "line" in outside.columns else None
        raise DataError(
            name if isinstance(grades, pl.DataFrame) else grades,
            _outside_words(outside, highest, steps),
            line=line,
        )
    if outside.height:
        stray = {f"{grade / steps:g}": float(grade / steps) for grade in outside["grade"]}
        values = tuple(stray[text] for text in sorted(stray))
        note = GradesOutsideScale(judge=name, grades=outside.height, top=highest, values=values)
        notes.append(note)
        frame = frame.join(outside, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    return frame, notes


def _outside_words(outside: pl.DataFrame, highest: float | None, steps: int) -> str:
    """Say which grades were expected, what the first is that lies outside, and how many do.

    `highest` is the highest grade as the user writes grades, of which each has `steps` steps.
    """
    noun = "whole grades" if steps == 1 else "grades"
    scale = "0 or more" if highest is None else f"0 to {highest:g}"
    hint = "" if highest is None else "; --top-grade N sets the highest"
    grade_count = counted(outside.height, "grade is not", "grades are not")
    first = outside["grade"][0] / steps
    return f"expected {noun} from {scale}, got {first:g} ({grade_count}){hint}"


def _require_confidence(frame: pl.DataFrame, file: str | Path) -> None:
    """Refuse a confidence that is no number from 0 to 1."""
    wrong = frame.filter(pl.col("confidence").is_nan() | ~pl.col("confidence").is_between(0, 1))
    if not wrong.height:
        return
    value = wrong["confidence"][0]
    value_count = counted(wrong.height, "value is not", "values are not")
    highest = float(np.nanmax(frame["confidence"].fill_nan(None).to_numpy(), initial=0.0))
    is_percent = 1 < highest <= _HIGHEST_PERCENT
    hint = "; divide percentages by 100" if is_percent else ""
    shape = "a text" if np.isnan(value) else f"{value:g}"  # texts were read as NaN
    line = wrong["line"][0] if "line" in wrong.columns else None
    message = f"expected a confidence from 0 to 1, got {shape} ({value_count}){hint}"
    raise DataError(file, message, line=line)


def steps_per_grade(sources: Sequence[Any]) -> int:
    """Return how many steps make one grade in files and tables of grades.

    1 if all grades are whole, 4 if they are quarters. `sources` are files, tables, or anything
    else, which has whole grades. `UserError` if grades are fractions without a common step.
    """
    values = [
        _finite_grades(source)
        for source in sources
        if isinstance(source, str | Path | pl.DataFrame)
    ]
    fraction_shares = [np.mean(grades != np.round(grades)) for grades in values if len(grades)]
    if all(share <= _STRAY_SHARE for share in fraction_shares):
        return 1  # `read_grades` leaves the few fractions out
    all_grades = np.concatenate([*values, np.zeros(1)])
    for steps in range(1, _MOST_STEPS + 1):
        # Thirds are written .33 as well as .333. In steps the error is as many times as large.
        tolerance = _ROUNDING_ERROR * steps if steps > 1 else 0.0
        in_steps = all_grades * steps
        if (np.abs(in_steps - np.round(in_steps)) <= tolerance).all():
            return steps
    fraction = next(value for value in all_grades if value != round(value))
    raise UserError(
        f"grades are fractions without a common step (first: {fraction:g}): expected whole grades, "
        "or fractions such as halves, quarters or tenths; round them"
    )


def _finite_grades(grades: str | Path | pl.DataFrame) -> npt.NDArray[np.float64]:
    """Return the finite grades of a file or table."""
    frame = grades
    if isinstance(frame, str | Path):
        # The file is read again by `read_grades`, which warns.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            frame = read_qrels(frame)
    if "grade" not in frame.columns:
        return np.zeros(0)  # `read_grades` refuses the table
    values = scores_of(frame["grade"])
    return values[np.isfinite(values)]


def grades_in_steps(grades: Any, steps: int) -> Any:
    """Return grades as numbers of steps.

    `steps` is how many make one grade: with 4, a grade of .75 becomes 3. Grades are returned
    unchanged if they are whole, or neither a file nor a table.
    """
    if steps == 1 or not isinstance(grades, str | Path | pl.DataFrame):
        return grades
    frame = read_judge_qrels(grades) if isinstance(grades, str | Path) else grades
    return frame.with_columns((pl.col("grade") * steps).round().cast(pl.Int64).alias("grade"))


def _grade_columns(grades: Any, name: str) -> pl.DataFrame:
    """Check a user's table of grades, and return it with ids as strings and grades as numbers.

    `name` is the judge's name, for errors. Refuses grades that are not finite, and two grades of
    one pair.
    """
    frame = require_frame(grades, ("query_id", "doc_id", "grade"), name)
    frame = frame.with_columns(
        ids_of(frame[column], f"{name}: column {column!r}").alias(column)
        for column in ("query_id", "doc_id")
    )
    values = scores_of(frame["grade"])
    if not (finite := np.isfinite(values)).all():
        row = int(finite.argmin())
        raise UserError(
            f"{name}: expected numbers in column 'grade', got {shorten(frame['grade'][row])} "
            f"in row {row}"
        )
    repeated = frame.filter(~pl.struct("query_id", "doc_id").is_first_distinct())
    if repeated.height:
        query, document = repeated.select("query_id", "doc_id").row(0)
        raise UserError(
            f"{name}: two grades for query {query!r}, document {document!r}; keep one of them"
        )
    return frame.with_columns(grade=values)


def join_grades(human: pl.DataFrame, judged: pl.DataFrame, name: str) -> GradedPairs:
    """Join the grades of humans and of the judge called `name`, by query and document.

    Both tables have ``query_id``, ``doc_id`` and ``grade``. `UserError` if they have no pair in
    common.
    """
    human, judged = (frame.select("query_id", "doc_id", "grade") for frame in (human, judged))
    key = ["query_id", "doc_id"]
    pairs = human.join(judged, on=key, how="inner", maintain_order="left", suffix="_judge")
    human_queries, judged_queries = human["query_id"].unique(), judged["query_id"].unique()
    common_queries = human_queries.filter(human_queries.is_in(judged_queries.implode()))
    if not judged.height:
        raise UserError(f"{name} gives no grade: expected grades for the pairs that humans graded")
    if not pairs.height:
        overlap = "have no query in common"
        if len(common_queries):
            ids = counted(len(common_queries), "query id", "query ids")
            overlap = f"share {ids} but no query with the same document"
        raise UserError(
            f"{name} and the human grades {overlap}: expected grades for the same pairs"
        )
    is_in_common_query = pl.col("query_id").is_in(common_queries.implode())
    human_only, judge_only = (
        frame.filter(is_in_common_query).height - pairs.height for frame in (human, judged)
    )
    pairs = pairs.rename({"grade": "human", "grade_judge": "judged"})
    return GradedPairs(
        judge=name,
        table=pairs,
        human_only=human_only,
        judge_only=judge_only,
        human_queries=len(human_queries) - len(common_queries),
        further_grades=judged.filter(~is_in_common_query),
    )
