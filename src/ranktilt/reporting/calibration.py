"""A calibration as text: measured beside expected, for people and for spreadsheets."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import IO

import polars as pl
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ranktilt.auditing.calibration.result import EXPECTED, MEANINGS, SIMULATED, Calibration, Check, CheckOutcome
from ranktilt.errors import unknown
from ranktilt.reporting.console import printing
from ranktilt.reporting.markdown import markdown, markdown_line

FORMATS = ("table", "markdown", "csv")
STYLES = {"ok": "", "untested": "dim", "failed": "bold red"}
_CLOSE = (90.0, 99.0)
"""Shares of intervals, in %, outside of which what is accepted as coverage of 95 % is a rough check."""
_COLUMNS = ("check", "ranker", "estimand", "expected", "measured", "verdict", "tests", "failed", "details")


def calibration_text(calibration: Calibration, format: str = "table", *, notes: bool = True) -> str:
    """Print a calibration.

    Parameters
    ----------
    calibration : Calibration
        What to print.
    format : {"table", "markdown", "csv"}, optional
        ``table``: plain text. ``markdown``: a table of every row, and a list. ``csv``: a line a row.
    notes : bool, optional
        Whether to say how it was done and how to read it; not in CSV.

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
        return pl.DataFrame([asdict(row) for row in calibration.rows]).select(_COLUMNS).write_csv()
    if format == "markdown":
        return _markdown(calibration, notes=notes)
    stream = io.StringIO()
    show(calibration, stream, notes=notes)
    return stream.getvalue()


def show(calibration: Calibration, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print a calibration for a terminal: a table a ranker with a column a check, coverage, and one sentence.

    Parameters
    ----------
    calibration : Calibration
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to say how it was done and how to read it.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for part in _parts(calibration, notes):
            console.print(part, soft_wrap=plain)


def _parts(calibration: Calibration, notes: bool) -> Iterator[RenderableType]:
    for ranker in calibration.rankers:
        rows = [row for row in calibration.rows if row.ranker == ranker]
        checks = list(dict.fromkeys(row.check for row in rows))
        yield Text(ranker, style="bold")
        yield from _grid(rows, checks, [EXPECTED[check] for check in checks])
        yield from _faults(rows)
        yield Text()
    covered = [row for row in calibration.rows if row.ranker == SIMULATED]
    if covered:
        yield Text(SIMULATED, style="bold")
        yield from _grid(covered, ["coverage"], [covered[0].expected])
        yield from _faults(covered)
        yield Text()
    yield Text(closing(calibration), style="bold" if calibration.passed else STYLES["failed"])
    for line in (*legend(calibration), *calibration.notes) if notes else ():
        yield Text(line, style="dim")


def closing(calibration: Calibration) -> str:
    """Say the verdict on the whole, and where few simulated collections leave coverage a rough check.

    Parameters
    ----------
    calibration : Calibration
        What is printed.

    Returns
    -------
    str
        One sentence, or two.
    """
    accepted = next((row.expected for row in calibration.rows if row.check == "coverage"), "")
    ends = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", accepted)]
    if len(ends) != 2 or (ends[0] >= _CLOSE[0] and ends[1] <= _CLOSE[1]):
        return calibration.sentence
    draws = f"{calibration.spec['draws']:,} draws" if "draws" in calibration.spec else "so few draws"
    return (
        f"{calibration.sentence} Of coverage this is a rough check: with {draws} {accepted} passes; --draws narrows it."
    )


def _grid(rows: Sequence[CheckOutcome], checks: Sequence[Check], expected: Sequence[str]) -> Iterator[Text]:
    """A line an estimand, a column a check; above it what each check expects."""
    cells = {(row.estimand, row.check): row for row in rows}
    names = list(dict.fromkeys(row.estimand for row in rows))
    lines = [[_cell(cells.get((name, check))) for check in checks] for name in names]
    first = max(map(len, (*names, "expected")))
    widths = [max(map(len, column)) for column in zip(checks, expected, *lines, strict=True)]
    widths[-1] = 0
    for title, head in (("", checks), ("expected", expected)):
        texts = [text.ljust(width) for text, width in zip(head, widths, strict=True)]
        yield Text("  ".join(["  " + title.ljust(first), *texts]), style="dim")
    for name, line in zip(names, lines, strict=True):
        text = Text("  " + name.ljust(first))
        for check, cell, width in zip(checks, line, widths, strict=True):
            row = cells.get((name, check))
            text.append("  ").append(cell.ljust(width), STYLES[row.verdict] if row else "dim")
        yield text


def _cell(row: CheckOutcome | None) -> str:
    if row is None:
        return "–"
    return f"FAILED: {row.measured}" if row.verdict == "failed" else row.measured


def _faults(rows: Sequence[CheckOutcome]) -> Iterator[RenderableType]:
    """Where each check failed first, once a check."""
    for check in dict.fromkeys(row.check for row in rows if row.verdict == "failed"):
        bad = [row for row in rows if row.check == check and row.verdict == "failed"]
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        text = f"{check} failed for {bad[0].estimand}{more}: {bad[0].details}"
        yield Padding(Text(text, style=STYLES["failed"]), (0, 0, 0, 2))
        if check in ADVICE:
            yield Padding(Text(ADVICE[check], style="dim"), (0, 0, 0, 2))


ADVICE: dict[Check, str] = {
    "null": "A ranker that tells copies apart breaks ties by id or order, or reads something other than the text; "
    "do not audit it before this is mended.",
    "random labels": "Labels that mean nothing are taken for a tilt too often: trust no p of this row by other columns "
    "than source.",
    "chunk sizes": "The same text gets another score in another chunk: score each distinct text once.",
}


def legend(calibration: Calibration) -> list[str]:
    """Say how it was done, in a few lines.

    Parameters
    ----------
    calibration : Calibration
        What is printed.

    Returns
    -------
    list of str
        Sentences.
    """
    spec = calibration.spec
    lines = []
    checks = dict.fromkeys(row.check for row in calibration.rows)
    settings = {
        "null": f"id schemes: {', '.join(spec.get('schemes', ()))}; depths: {_listed(spec.get('depths', ()))}",
        "known tilt": f"in standard deviations of a query's scores: {_listed(spec.get('tilts', ()))}; whole rankings "
        "with their ties, and cut at 10 with distinct scores",
        "random labels": f"{spec.get('labellings')} draws",
        "coverage": f"{spec.get('draws')} collections of {spec.get('draw_queries')} queries",
    }
    for check in checks:
        more = f" ({settings[check]})" if check in settings else ""
        lines.append(f"{check[0].upper()}{check[1:]}: {MEANINGS[check]}{more}.")
    return lines


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{n:g}".replace("-", "−") for n in numbers)


def _markdown(calibration: Calibration, *, notes: bool) -> str:
    titles = ("check", "ranker", "estimand", "expected", "measured", "verdict")
    lines = [markdown_line(titles), markdown_line(["---"] * len(titles))]
    lines += [markdown_line([getattr(row, title) for title in titles]) for row in calibration.rows]
    said = [closing(calibration)]
    said += [f"{row.check} of {row.ranker}, {row.estimand}: {row.details}" for row in calibration.failures]
    said += [*legend(calibration), *calibration.notes] if notes else []
    return "\n".join([*lines, "", *(f"- {markdown(text)}" for text in said)]) + "\n"
