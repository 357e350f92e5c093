"""A result in any format: its view, then the format's renderer."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

import polars as pl

from ranktilt.errors import UserError, unknown
from ranktilt.reporting.document import Document
from ranktilt.reporting.views import view

FORMATS = ("table", "markdown", "csv", "latex", "html")


def table(result: Any, format: str = "table", *, notes: bool = True) -> str:
    """Print a result.

    Parameters
    ----------
    result : Audit, Check, Comparison, Gate, Study, Validation, Calibration or Document
        What to print.
    format : {"table", "markdown", "csv", "latex", "html"}, optional
        ``table``: plain text with verdicts and legend. ``markdown``, ``latex`` (booktabs): the same. ``csv``: every
        number, unrounded. ``html``: a page.
    notes : bool, optional
        Whether to say how the tables are read and what a reader should know; not in CSV.

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
        raise unknown("format", format, FORMATS)
    return _csv(result) if format == "csv" else _renderer(format)(view(result), notes)


def show(result: Any, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print a result for a terminal, by default the stream itself; where there is none as plain text."""
    from ranktilt.reporting.render.terminal import print_document

    print_document(view(result), stream, notes=notes, terminal=terminal)


def _renderer(format: str) -> Callable[[Document, bool], str]:
    """The renderers are imported when they are used: a page needs other libraries than a terminal."""
    if format == "html":
        from ranktilt.reporting.render.html import html_document

        return lambda document, notes: html_document(document)
    if format == "latex":
        from ranktilt.reporting.render.latex import latex_document

        return lambda document, notes: latex_document(document, notes=notes)
    if format == "markdown":
        from ranktilt.reporting.render.markdown import markdown_document

        return lambda document, notes: markdown_document(document, notes=notes)
    return _plain


def _csv(result: Any) -> str:
    """Write its rows, every number unrounded; `records` are those of a list that is no result."""
    result = getattr(result, "audit", result)
    frame = getattr(result, "data", None)
    if hasattr(result, "frame"):
        frame = result.frame()
    elif hasattr(result, "records"):
        rows = [{k: " ".join(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in result.records]
        frame = pl.DataFrame(rows, infer_schema_length=None)
    if frame is None:
        raise UserError("there is no table to write as CSV")
    text: str = frame.write_csv()
    return text


def _plain(document: Document, notes: bool) -> str:
    from ranktilt.reporting.render.terminal import print_document

    stream = io.StringIO()
    print_document(document, stream, notes=notes)
    return stream.getvalue()


def notebook(result: Any) -> str:
    """Write what a notebook shows of a result: the answer and its tables."""
    from ranktilt.reporting.render.html import html_fragment

    return html_fragment(view(result))
