"""Columns of judgments as tables and JSON hold them, made into judgments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.tables.cells import NumberColumn
from ranktilt.data.formats.tables.columns import whole_or_fractions
from ranktilt.errors import DataError, counted, shorten


def judgments_of_columns(
    path: Path,
    *,
    query: pl.Series,
    document: pl.Series,
    grade: NumberColumn,
    noun: str,
    lines: Sequence[int] = (),
    read_as: str = "",
    confidence: NumberColumn | None = None,
) -> JudgmentFile:
    """Make judgments of three columns; ids are null where there is none.

    A row without a grade was not judged, and is left out: tools also export what is still to be
    rated.

    Parameters
    ----------
    path : Path
        The file, for messages.
    query, document : polars.Series
        Ids of each row; null where there is none.
    grade : NumberColumn
        Grade of each row.
    noun : str
        What the file calls a grade.
    lines : sequence of int, optional
        Line of each row; empty if rows are not lines of the file.
    read_as : str, optional
        How the file was read, for a note.
    confidence : NumberColumn, optional
        How sure a judge was of each grade, where the file tells it.
    """
    line_numbers = lines if len(lines) else range(1, len(query) + 1)
    frame = pl.DataFrame(
        {
            "query_id": query,
            "doc_id": document,
            "grade": grade.values,
            "line": pl.Series(line_numbers, dtype=pl.Int64),
            "is_given": _is_given(grade),
        }
    )
    if confidence is not None:
        frame = frame.with_columns(confidence=_numbers_or_nan(confidence))
    grades = whole_or_fractions(frame["grade"])
    wrong = frame["is_given"] & (grades.is_null() | grades.cast(pl.Float64).is_nan())
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        prefix = "" if len(lines) else f"judgment {row + 1}: "
        message = f"{prefix}expected a number as {noun}, got {shorten(grade.raw[row])}"
        raise DataError(path, message, line=lines[row] if len(lines) else None)
    rated = frame.filter(pl.col("is_given"))
    if not rated.height:
        raise DataError(
            path, f"expected judgments, got {counted(frame.height, 'row', 'rows')} without {noun}"
        )
    skipped = rated.filter(pl.col("query_id").is_null() | pl.col("doc_id").is_null()).height
    if 2 * skipped > rated.height:
        judgments = counted(skipped, "judgment", "judgments")
        message = f"no query or document id in {judgments} of {rated.height:,}"
        raise DataError(path, f"{message}; name the columns: FILE:query=COLUMN,id=COLUMN")
    return JudgmentFile(
        frame=rated.drop("is_given").with_columns(whole_or_fractions(rated["grade"])),
        has_lines=len(lines) > 0,
        read_as=read_as,
        skipped=skipped + frame.height - rated.height,
    )


def _is_given(column: NumberColumn) -> pl.Series:
    """Tell which rows have any value in a column."""
    if isinstance(column.raw, pl.Series):
        return column.raw.is_not_null()
    return pl.Series([value is not None and value != "" for value in column.raw], dtype=pl.Boolean)


def _numbers_or_nan(column: NumberColumn) -> pl.Series:
    """Return numbers; NaN for what is no number, which only a reader of confidences refuses."""
    is_wrong = _is_given(column) & column.values.is_null()
    return column.values.set(is_wrong, float("nan"))
