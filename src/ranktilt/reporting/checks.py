"""A check of a collection as text: a row a check, what it found, and the verdict, for people and for spreadsheets."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

import polars as pl
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ranktilt.datasets.check_result import LENGTH, LENGTH_NOTICE, CheckResult, CheckRow, percent, shown
from ranktilt.errors import unknown
from ranktilt.reporting.console import printing
from ranktilt.reporting.markdown import markdown_line

FORMATS = ("table", "markdown", "csv")
STYLES = {"ok": "dim", "warning": "bold dark_orange", "void": "bold red"}
_LONGEST_NAME = 12
_REFERENCE = 3


def checks(check: CheckResult, format: str = "table", *, notes: bool = True) -> str:
    """Print a check.

    Parameters
    ----------
    check : CheckResult
        What to print.
    format : {"table", "markdown", "csv"}, optional
        ``table``: plain text. ``markdown``: the same as a table and a list. ``csv``: a line a row, unrounded.
    notes : bool, optional
        Whether to say what a fault means and how to read the table; not in CSV.

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
    if format == "csv":
        return _csv(check)
    if format == "markdown":
        return _markdown(check, notes=notes)
    stream = io.StringIO()
    show(check, stream, notes=notes)
    return stream.getvalue()


def show(check: CheckResult, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print a check for a terminal: per source a line a check, examples below, and one sentence at the end.

    Parameters
    ----------
    check : CheckResult
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to say what a fault means and how to read the table.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for part in _parts(check, notes, console.width):
            console.print(part, soft_wrap=plain)


def _parts(check: CheckResult, notes: bool, width: int) -> Iterator[RenderableType]:
    grid = [_header(check), *(_cells(row) for row in check.rows)]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    for dropped in ("limit", grid[0][_REFERENCE]):  # a verdict that wraps is harder to find than a limit
        if _wide(widths) > width:
            place = grid[0].index(dropped)
            grid = [cells[:place] + cells[place + 1 :] for cells in grid]
            widths.pop(place)
    before = None
    for row, cells in zip(check.rows, grid[1:], strict=True):
        if row.source != before:
            if before is not None:
                yield Text()
            else:
                yield Text("  " + "  ".join(_aligned(grid[0], widths)), style="dim")
            yield _title(check, row.source)
            before = row.source
        outside = _outside(row)
        apart = outside and _wide([*widths[:-1], len(row.verdict) + 3 + len(outside)]) > width
        yield _line(row, _aligned(cells, widths), "" if apart else outside)
        for detail in [outside] * bool(apart) + list(_details(row, notes)):
            yield Padding(Text(detail, style="dim"), (0, 0, 0, 4))
    yield Text()
    yield Text(check.sentence, style="bold" if check.fair else STYLES["void"])
    for line in legend(check) if notes else ():
        yield Text(line, style="dim")


def _header(check: CheckResult) -> tuple[str, ...]:
    name = check.reference if len(check.reference) <= _LONGEST_NAME else "reference"
    return ("", "found", "share", name, "limit", "verdict")


def _cells(row: CheckRow) -> tuple[str, ...]:
    found = f"{row.found:,} of {row.total:,}"
    return (row.name, found, shown(row), percent(row.reference), row.limit, row.verdict)


def _aligned(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    """Name and verdict to the left, numbers to the right."""
    name, *numbers, verdict = cells
    return [name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:-1], strict=True)), verdict]


def _title(check: CheckResult, source: str) -> Text:
    return Text(f"{source} against {check.reference}" if source else "judgments and queries", style="bold")


def _wide(widths: list[int]) -> int:
    return sum(widths) + 2 * len(widths)


def _outside(row: CheckRow) -> str:
    """Why a length ratio within its limit is a warning all the same."""
    if row.name != LENGTH or row.verdict != "warning" or math.isnan(row.value):
        return ""
    return f"outside {LENGTH_NOTICE[0]:g}–{LENGTH_NOTICE[1]:g}"


def _line(row: CheckRow, cells: list[str], outside: str) -> Text:
    name, *numbers, verdict = cells
    text = Text.assemble("  ", (name, "" if row.verdict == "ok" else "bold"), "  ", "  ".join(numbers), "  ")
    text.append(verdict, STYLES[row.verdict])
    return text.append(f" ({outside})", "dim") if outside else text


def _details(row: CheckRow, notes: bool) -> Iterator[str]:
    """What the fault means, where there is one, and where to look."""
    if notes and row.verdict != "ok":
        yield row.meaning
    if notes and row.note:
        yield row.note
    if row.examples:
        yield f"such as {', '.join(row.examples)}" + (", …" if row.found > len(row.examples) else "")


def legend(check: CheckResult) -> list[str]:
    """Say how the table is read, in a few lines.

    Parameters
    ----------
    check : CheckResult
        What is printed.

    Returns
    -------
    list of str
        Sentences.
    """
    low, high = LENGTH_NOTICE
    return [
        "Found: documents, pairs, judgments or queries with the fault, and their share; beside it the share in "
        f"{check.reference} itself. Length ratio: pairs outside of the limits, and the median.",
        f"Void: beyond the limit. Warning: a share over {check.limits.notice:g} %, a median length ratio outside "
        f"{low:g}–{high:g}, any dangling judgment or repeated query, or nothing to count.",
    ]


def _markdown(check: CheckResult, *, notes: bool) -> str:
    many = len({row.source for row in check.rows if row.source}) > 1
    titles = (*(["source"] if many else []), "check", *_header(check)[1:], "examples")
    rows = [
        (*([row.source] if many else []), *_cells(row)[:-1], _said(row), ", ".join(row.examples)) for row in check.rows
    ]  # fmt: skip
    right = {"found", "share", _header(check)[3], "limit"}
    lines = [markdown_line(titles), markdown_line(["---:" if title in right else "---" for title in titles])]
    said = [check.sentence]
    for row in check.rows if notes else ():
        name = f"{row.source}, {row.name}" if many and row.source else row.name
        said += [f"{name}: {row.meaning}"] if row.verdict != "ok" else []
        said += [f"{name}: {row.note}"] if row.note else []
    said += legend(check) if notes else []
    bullets = ["- " + markdown_line([text])[2:-2] for text in said]
    return "\n".join([*lines, *map(markdown_line, rows), "", *bullets]) + "\n"


def _said(row: CheckRow) -> str:
    outside = _outside(row)
    return f"{row.verdict} ({outside})" if outside else row.verdict


def _csv(check: CheckResult) -> str:
    columns = ("source", "name", "found", "total", "value", "reference", "limit", "verdict", "note")
    table = [
        {**{k: v for k, v in asdict(row).items() if k in columns}, "examples": "; ".join(row.examples)}
        for row in check.rows
    ]
    numbers = dict.fromkeys(("value", "reference"), pl.Float64)
    frame = pl.DataFrame(table, schema_overrides=numbers).select(*columns, "examples")
    return frame.with_columns(pl.col("value", "reference").fill_nan(None)).write_csv()
