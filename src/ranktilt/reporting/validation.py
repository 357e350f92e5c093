"""A validation as text: the papers' tables, the check, and what they mean; for people and for spreadsheets."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import IO

import polars as pl
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.equivalence import Equivalence
from ranktilt.errors import unknown
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.similarity import ABOVE
from ranktilt.probes.validation import Validation
from ranktilt.reporting.checks import checks, show
from ranktilt.reporting.console import direction, fits, printing
from ranktilt.reporting.markdown import markdown, markdown_line
from ranktilt.reporting.validation_layout import DIFFERENCE, OUTCOME, PICTURE, Grid, grids, legend

FORMATS = ("table", "markdown", "csv")
_OUTCOMES = {"equivalent": "green", "different": "bold red", "inconclusive": "yellow", "not tested": "yellow"}
_COLUMNS = ("part", "source", "name", "quantity", "value")
_LABEL = 22
_Cell = tuple[str, str, str, str, object]


def validation_table(validation: Validation, format: str = "table", *, notes: bool = True) -> str:
    """Print a validation.

    Parameters
    ----------
    validation : Validation
        What to print.
    format : {"table", "markdown", "csv"}, optional
        ``table``: plain text. ``markdown``: the same as tables and lists. ``csv``: a line a number, unrounded.
    notes : bool, optional
        Whether to say how the tables are read and what was left out; not in CSV.

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
        return _csv(validation)
    if format == "markdown":
        return _markdown(validation, notes=notes)
    stream = io.StringIO()
    show_validation(validation, stream, notes=notes)
    return stream.getvalue()


def show_validation(
    validation: Validation, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print a validation for a terminal: its tables, the check, and last what was found in words.

    Parameters
    ----------
    validation : Validation
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to say how the tables are read and what was left out.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for grid in grids(validation):
            for part in _parts(grid, console):
                console.print(part, soft_wrap=plain)
        if validation.check is not None:
            console.print(Text("Check\n", style="bold"))
    if validation.check is not None:
        show(validation.check, stream, notes=notes, terminal=terminal)
    with printing(stream, terminal) as (console, plain):
        for sentence in validation.sentences():
            console.print(Text(sentence, style="bold"), soft_wrap=plain)
        for line in (*legend(validation), *validation.notes) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def _parts(grid: Grid, console: Console) -> Iterator[RenderableType]:
    yield Text(grid.title, style="bold")
    shown = grid
    while not fits(console, table := _table(shown)) and shown.spare:
        shown = shown.without(shown.spare[0])
    yield table
    for line in grid.below:
        yield Padding(Text(line), (0, 0, 0, 2))
    yield Text()


def _table(grid: Grid) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", max_width=_LABEL, overflow="fold")
    for title in grid.titles[1:]:
        table.add_column(title, justify="left" if grid.left(title) else "right", no_wrap=title != OUTCOME)
    for row in grid.rows:
        if len(row) == 1:
            table.add_row(Text(row[0], style="bold"))
            continue
        table.add_row(*(_cell(title, text, row) for title, text in zip(grid.titles, row, strict=True)))
    return table


def _cell(title: str, text: str, row: tuple[str, ...]) -> Text:
    if title == OUTCOME:
        return Text(text, style=next((style for name, style in _OUTCOMES.items() if text.startswith(name)), ""))
    if title == DIFFERENCE:
        return direction(text, row[-1].startswith("different"))
    return Text(text)


def _markdown(validation: Validation, *, notes: bool) -> str:
    lines: list[str] = []
    for whole in grids(validation):
        grid = whole.without(PICTURE) if PICTURE in whole.titles else whole
        lines += [f"**{markdown(grid.title)}**", "", markdown_line(grid.titles)]
        lines.append(markdown_line(["---" if grid.left(title) else "---:" for title in grid.titles]))
        lines += [markdown_line([cell.strip() for cell in _padded(row, len(grid.titles))]) for row in grid.rows]
        lines += ["", *(_bullet(line) for line in grid.below), *([""] if grid.below else [])]
    if validation.check is not None:
        lines += ["**Check**", "", checks(validation.check, "markdown", notes=notes)]
    said = validation.sentences()
    said += [*legend(validation), *validation.notes] if notes else []
    return "\n".join([*lines, *map(_bullet, said)]).rstrip("\n") + "\n"


def _padded(row: tuple[str, ...], width: int) -> tuple[str, ...]:
    return row + ("",) * (width - len(row))


def _bullet(text: str) -> str:
    return "- " + markdown_line([text])[2:-2]


def _csv(validation: Validation) -> str:
    rows = [(*row[:4], _plain(row[4])) for row in _numbers(validation)]
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row").write_csv()


def _plain(value: object) -> str | None:
    if isinstance(value, float):
        return None if math.isnan(value) else repr(value)
    return str(value)


def _numbers(validation: Validation) -> Iterator[_Cell]:
    """Every number by part, source, name and quantity."""
    for source in validation.statistics.sources:
        low, median, high = source.quartiles
        yield from _named("statistics", source.source, "", documents=source.documents, empty=source.empty)
        yield from _named("statistics", source.source, "", words=source.words, quarter=low, median=median)
        yield from _named("statistics", source.source, "", three_quarters=high, queries=source.queries)
        yield from _named("statistics", source.source, "", relevant=source.relevant)
    for one in validation.statistics.queries:
        yield from _named("queries", "", one.which, queries=one.queries, words=one.words)
    for terms in validation.overlaps:
        for found in (terms.jaccard, terms.overlap):
            yield from _distribution("terms", terms.source, found)
    for near in validation.similarities:
        for found in (near.cosine, near.baseline):
            yield from _distribution("similarity", near.source, found)
            yield from _named("similarity", near.source, found.name, **{f"above_{ABOVE:g}": found.above(ABOVE)})
        yield from _named("similarity", near.source, near.model, **vars(near.separation))
    for row in validation.effectiveness:
        yield from _named("effectiveness", row.source, f"{row.run} {row.measure}", **_effect(row))
    for check in validation.check.rows if validation.check else ():
        yield from _named("check", check.source, check.name, found=check.found, total=check.total, value=check.value)
        yield from _named("check", check.source, check.name, reference=check.reference, verdict=check.verdict)


def _named(part: str, source: str, name: str, **numbers: object) -> Iterator[_Cell]:
    for quantity, value in numbers.items():
        yield part, source, name, quantity, value


def _distribution(part: str, source: str, found: Distribution) -> Iterator[_Cell]:
    low, median, high = found.quartiles
    numbers = {"pairs": found.count, "undefined": found.undefined, "mean": found.mean}
    yield from _named(part, source, found.name, **numbers, quarter=low, median=median, three_quarters=high)


def _effect(row: Equivalence) -> dict[str, object]:
    return {name: value for name, value in row.row().items() if name not in ("run", "measure", "source", "verdict")}
