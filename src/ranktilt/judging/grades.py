"""Join the grades of humans and of a judge, and count the pairs that only one of them graded."""

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
"""Largest share of grades outside the scale; if there are more, it is another scale."""
_MOST_STEPS = 20
"""Most steps of a grade that are tried for fractions."""
_ROUNDING_ERROR = 0.005
"""Largest distance of a fraction from its step, in grades; files have two decimals."""
_HIGHEST_PERCENT = 100
"""Highest confidence in percent."""
_CHANCE_OVERLAP = 0.05
"""Share of common pairs in the smaller file below which common ids may be chance."""


class Graded(NamedTuple):
    """Pairs that both humans and one judge graded."""

    judge: str
    """Name of the judge."""
    pairs: pl.DataFrame
    """``query_id``, ``doc_id``, ``human`` and ``judged`` (whole numbers), in the humans' order."""
    human_only: int
    """Pairs that only humans graded, in queries that both have."""
    judge_only: int
    """Pairs that only the judge graded, in queries that both have."""
    human_queries: int
    """Queries that only humans graded."""
    more: pl.DataFrame
    """The judge's grades in queries without human grades; they are used with few human labels."""

    def notes(self) -> Iterator[Note]:
        """Note what is left out, and files that may be different ones than they seem."""
        if self.human_only or self.judge_only:
            yield PairsOfOneGrader(
                judge=self.judge, human_only=self.human_only, judge_only=self.judge_only
            )
        if self.human_queries:
            yield QueriesOfOneGrader(judge=self.judge, queries=self.human_queries, grader="humans")
        if judge_queries := self.more["query_id"].n_unique():
            yield QueriesOfOneGrader(judge=self.judge, queries=judge_queries, grader="judge")
        if (self.pairs["human"] == self.pairs["judged"]).all():
            yield GradesIdentical(judge=self.judge)
        if self.pairs["judged"].n_unique() == 1:
            yield OneGrade(judge=self.judge, grade=int(self.pairs["judged"][0]))
        smaller = self.pairs.height + min(self.human_only, self.judge_only)
        if self.pairs.height < _CHANCE_OVERLAP * smaller:
            yield FewCommonPairs(judge=self.judge, pairs=self.pairs.height)


def read_grades(
    grades: str | Path | pl.DataFrame, top: int | None, name: str
) -> tuple[pl.DataFrame, list[Note]]:
    """Read a judge's grades, whole numbers from 0 to `top` (None for any), with notes.

    Few grades outside the scale are left out and counted. More than 1 % mean another scale, and a
    `DataError` names the first of them. A column ``confidence`` has numbers from 0 to 1, or null.
    """
    frame = (
        read_judge_qrels(grades) if isinstance(grades, str | Path) else _grade_columns(grades, name)
    )
    frame, notes = _on_scale(frame, top, name, grades)
    columns: list[Any] = ["query_id", "doc_id", pl.col("grade").cast(pl.Int64)]
    if "confidence" in frame.columns:
        _require_confidence(frame, name if isinstance(grades, pl.DataFrame) else grades)
        columns.append(pl.col("confidence").cast(pl.Float64))
    return frame.select(columns), notes


def _on_scale(
    frame: pl.DataFrame, top: int | None, name: str, grades: str | Path | pl.DataFrame
) -> tuple[pl.DataFrame, list[Note]]:
    """Leave out few grades outside the scale, with a note; refuse many."""
    is_fraction = pl.col("grade") != pl.col("grade").round()
    is_outside = is_fraction | ~pl.col("grade").is_between(0, _HIGHEST_GRADE)
    if top is not None:
        is_outside = is_outside | (pl.col("grade") > top)
    outside = frame.filter(is_outside)
    scale = "0 or more" if top is None else f"0 to {top}"
    notes = list[Note]()
    if outside.height > _STRAY_SHARE * frame.height:
        number = counted(outside.height, "grade is not", "grades are not")
        message = f"expected whole grades from {scale}, got {outside['grade'][0]:g} ({number})"
        hint = "" if top is None else "; --top-grade N sets the highest"
        line = outside["line"][0] if "line" in outside.columns else None
        raise DataError(
            name if isinstance(grades, pl.DataFrame) else grades, message + hint, line=line
        )
    if outside.height:
        stray = {f"{grade:g}": float(grade) for grade in outside["grade"]}
        values = tuple(stray[text] for text in sorted(stray))
        note = GradesOutsideScale(judge=name, grades=outside.height, top=top, values=values)
        notes.append(note)
        frame = frame.join(outside, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    return frame, notes


def _require_confidence(frame: pl.DataFrame, file: str | Path) -> None:
    """Refuse a confidence that is no number from 0 to 1."""
    wrong = frame.filter(pl.col("confidence").is_nan() | ~pl.col("confidence").is_between(0, 1))
    if not wrong.height:
        return
    value = wrong["confidence"][0]
    number = counted(wrong.height, "value is not", "values are not")
    highest = frame["confidence"].fill_nan(None).to_numpy()
    is_percent = bool(
        np.nanmax(highest, initial=0.0) > 1 and np.nanmax(highest) <= _HIGHEST_PERCENT
    )
    hint = "; divide percentages by 100" if is_percent else ""
    shape = "a text" if np.isnan(value) else f"{value:g}"
    line = wrong["line"][0] if "line" in wrong.columns else None
    message = f"expected a confidence from 0 to 1, got {shape} ({number}){hint}"
    raise DataError(file, message, line=line)


def grade_steps(grades: Sequence[Any]) -> int:
    """Return how many steps make one grade in files and tables of grades.

    1 if all grades are whole, 4 if they are quarters. `UserError` if grades are fractions without a
    common step.
    """
    values = [_values(table) for table in grades if isinstance(table, str | Path | pl.DataFrame)]
    if all(np.mean(part != np.round(part)) <= _STRAY_SHARE for part in values if len(part)):
        return 1  # a few are left out where they are read
    all_grades = np.concatenate([*values, np.zeros(1)])
    for steps in range(1, _MOST_STEPS + 1):
        # Thirds are written .33 as well as .333.
        tolerance = _ROUNDING_ERROR * steps if steps > 1 else 0.0
        in_steps = all_grades * steps
        if (np.abs(in_steps - np.round(in_steps)) <= tolerance).all():
            return steps
    fraction = next(value for value in all_grades if value != round(value))
    raise UserError(
        f"grades are fractions without a common step (first: {fraction:g}): expected whole grades, "
        "or fractions such as halves, quarters or tenths; round them"
    )


def _values(grades: str | Path | pl.DataFrame) -> npt.NDArray[np.float64]:
    """Return the finite grades of a file or table."""
    frame = grades
    if isinstance(frame, str | Path):
        with warnings.catch_warnings():  # what is to be said is said where it is read
            warnings.simplefilter("ignore", DataWarning)
            frame = read_qrels(frame)
    if "grade" not in frame.columns:
        return np.zeros(0)  # refused where it is read
    values = scores_of(frame["grade"])
    return values[np.isfinite(values)]


def stepped(grades: Any, steps: int) -> Any:
    """Return grades with each step counted as one; unchanged if grades are whole."""
    if steps == 1 or not isinstance(grades, str | Path | pl.DataFrame):
        return grades
    frame = read_judge_qrels(grades) if isinstance(grades, str | Path) else grades
    return frame.with_columns((pl.col("grade") * steps).round().cast(pl.Int64).alias("grade"))


def _grade_columns(grades: Any, name: str) -> pl.DataFrame:
    """Return ids as strings and finite grades, one for each pair, from a table of grades."""
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


def side_by_side(human: pl.DataFrame, judged: pl.DataFrame, name: str) -> Graded:
    """Join the grades of humans and one judge; `UserError` if they have no pair in common."""
    human, judged = (frame.select("query_id", "doc_id", "grade") for frame in (human, judged))
    key = ["query_id", "doc_id"]
    pairs = human.join(judged, on=key, how="inner", maintain_order="left", suffix="_judge")
    human_queries, judged_queries = human["query_id"].unique(), judged["query_id"].unique()
    common = human_queries.filter(human_queries.is_in(judged_queries.implode()))
    if not judged.height:
        raise UserError(f"{name} gives no grade: expected grades for the pairs that humans graded")
    if not pairs.height:
        overlap = "have no query in common"
        if len(common):
            ids = counted(len(common), "query id", "query ids")
            overlap = f"share {ids} but no query with the same document"
        raise UserError(
            f"{name} and the human grades {overlap}: expected grades for the same pairs"
        )
    inside = pl.col("query_id").is_in(common.implode())
    human_only, judge_only = (
        frame.filter(inside).height - pairs.height for frame in (human, judged)
    )
    pairs = pairs.rename({"grade": "human", "grade_judge": "judged"})
    return Graded(
        judge=name,
        pairs=pairs,
        human_only=human_only,
        judge_only=judge_only,
        human_queries=len(human_queries) - len(common),
        more=judged.filter(~inside),
    )
