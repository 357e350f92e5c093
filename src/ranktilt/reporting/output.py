"""Print a result in any format.

A *view* makes the result's document: its headings, tables, figures and sentences as data. The
*renderer* of the format turns the document into text. CSV needs neither; it has the result's rows.
"""

from __future__ import annotations

from typing import IO, Any

import polars as pl

from ranktilt.data.artifact import used_from_files
from ranktilt.data.formats.tables.spreadsheet import csv_text
from ranktilt.errors import UserError, unknown_name
from ranktilt.reporting.views import view

FORMATS = ("table", "markdown", "csv", "latex", "html")
"""Formats of an output; ``table`` is text for a terminal."""


def table(result: Any, format: str = "table", *, notes: bool = True) -> str:
    """Print a result.

    Parameters
    ----------
    result : Audit, Comparison, Gate, another result, or Document
        What to print.
    format : {"table", "markdown", "csv", "latex", "html"}, optional
        ``table``: plain text with verdicts and legend. ``markdown``, ``latex`` (booktabs): the
        same. ``csv``: every number, unrounded; no text in it can act as a formula of a spreadsheet.
        ``html``: a page.
    notes : bool, optional
        Whether to say how the tables are read and what a reader should know; CSV never does.

    Returns
    -------
    str
        Ends with a line end.

    Raises
    ------
    UserError
        If the format is unknown.
    """
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    with used_from_files(result):
        return _csv(result) if format == "csv" else _rendered(result, format, notes=notes)


def _rendered(result: Any, format: str, *, notes: bool) -> str:
    """Return a result in a format other than CSV."""
    # Imported when it is used: a page needs other libraries than a terminal.
    if format == "html":
        from ranktilt.reporting.render.html import render
    elif format == "latex":
        from ranktilt.reporting.render.latex import render
    elif format == "markdown":
        from ranktilt.reporting.render.markdown import render
    else:
        from ranktilt.reporting.render.terminal import render
    return render(view(result), notes=notes)


def show(
    result: Any, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print a result to a stream, in the colours and width of a terminal.

    The terminal is by default the stream itself; if it is none, the result is printed as plain
    text.
    """
    from ranktilt.reporting.render.terminal import print_document

    with used_from_files(result):
        print_document(view(result), stream, notes=notes, terminal=terminal)


def _csv(result: Any) -> str:
    """Return the rows of a result as CSV, every number unrounded.

    The rows are the result's data frame, a document's `Document.data`, or the `records` of a list,
    such as that of installed models.
    """
    result = getattr(result, "audit", result)  # of an audit that was loaded with its collection
    frame = getattr(result, "data", None)
    if hasattr(result, "frame"):
        frame = result.frame()
    elif hasattr(result, "records"):
        rows = [
            dict(zip(row, map(_csv_value, row.values()), strict=True)) for row in result.records
        ]
        frame = pl.DataFrame(rows, infer_schema_length=None)
    if frame is None:
        raise UserError("there is no table to write as CSV")
    return csv_text(frame)


def _csv_value(value: Any) -> Any:
    """Return a value as CSV holds it: a tuple of texts as one text, with blanks between them."""
    return " ".join(value) if isinstance(value, tuple) else value


def notebook(result: Any) -> str:
    """Return the findings and tables of a result as HTML for a notebook."""
    from ranktilt.reporting.render.html import html_fragment

    with used_from_files(result):
        return html_fragment(view(result))
