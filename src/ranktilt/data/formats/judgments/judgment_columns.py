"""Make judgments from the columns of a table or of JSON: query, document and grade.

A *grade* says how relevant a document is to a query; a judge's *confidence* says how sure it is of
the grade. All readers of judgments but that of plain lines end here.
"""

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
    grade_name: str,
    lines: Sequence[int] = (),
    read_as: str = "",
    confidence: NumberColumn | None = None,
) -> JudgmentFile:
    """Make judgments from the columns of a file.

    A row without a grade was not judged, and is left out: tools also export what is still to be
    rated. Rows without a query or a document are kept, and counted as skipped.

    Parameters
    ----------
    path : Path
        The file, for messages.
    query, document : polars.Series
        Ids of each row; null where there is none.
    grade : NumberColumn
        Grade of each row.
    grade_name : str
        What the file calls a grade, such as ``rating``; messages call it the same.
    lines : sequence of int, optional
        Line of each row; empty if rows are not lines of the file.
    read_as : str, optional
        Description of the layout that the file was read as, which the user sees.
    confidence : NumberColumn, optional
        How sure a judge was of each grade, if the file has a column of it.

    Raises
    ------
    DataError
        If a grade is no number, no row has a grade, or more than half of the graded rows lack a
        query or a document.
    """
    line_numbers = lines if len(lines) else range(1, len(query) + 1)
    frame = pl.DataFrame(
        {
            "query_id": query,
            "doc_id": document,
            "grade": grade.values,
            "line": pl.Series(line_numbers, dtype=pl.Int64),
            "is_graded": _has_value(grade),
        }
    )
    if confidence is not None:
        frame = frame.with_columns(confidence=_numbers_or_nan(confidence))
    grades = whole_or_fractions(frame["grade"])
    is_wrong = frame["is_graded"] & (grades.is_null() | grades.cast(pl.Float64).is_nan())
    if is_wrong.any():
        row = int(is_wrong.arg_max() or 0)
        prefix = "" if len(lines) else f"judgment {row + 1}: "
        message = f"{prefix}expected a number as {grade_name}, got {shorten(grade.raw[row])}"
        raise DataError(path, message, line=lines[row] if len(lines) else None)
    graded = frame.filter(pl.col("is_graded"))
    if not graded.height:
        raise DataError(
            path,
            f"expected judgments, got {counted(frame.height, 'row', 'rows')} without {grade_name}",
        )
    lacks_id = pl.col("query_id").is_null() | pl.col("doc_id").is_null()
    without_id_count = graded.filter(lacks_id).height
    if 2 * without_id_count > graded.height:
        judgments = counted(without_id_count, "judgment", "judgments")
        message = f"no query or document id in {judgments} of {graded.height:,}"
        raise DataError(path, f"{message}; name the columns: FILE:query=COLUMN,id=COLUMN")
    without_grade_count = frame.height - graded.height
    return JudgmentFile(
        frame=graded.drop("is_graded").with_columns(whole_or_fractions(graded["grade"])),
        has_lines=len(lines) > 0,
        read_as=read_as,
        skipped=without_id_count + without_grade_count,
    )


def _has_value(column: NumberColumn) -> pl.Series:
    """Tell which rows have any value in a column, a number or not."""
    if isinstance(column.raw, pl.Series):
        return column.raw.is_not_null()
    return pl.Series([value is not None and value != "" for value in column.raw], dtype=pl.Boolean)


def _numbers_or_nan(column: NumberColumn) -> pl.Series:
    """Return the numbers of a column; null for a missing one, and NaN for any other value.

    Callers that use confidences refuse NaN; to all others it does not matter.
    """
    is_wrong = _has_value(column) & column.values.is_null()
    return column.values.set(is_wrong, float("nan"))
