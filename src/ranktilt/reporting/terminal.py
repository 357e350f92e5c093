"""The table of an audit in a terminal: colour for the direction, and a sign that says it without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.reporting.card import Line, lines
from ranktilt.reporting.console import direction, fitting, printing
from ranktilt.reporting.controls import ControlRow, control_rows, control_titles
from ranktilt.reporting.layout import Row, header, legend, rows, sentences

_LABEL = 26
_CHANGED = 36


def show(audit: Audit, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print table, verdicts, legend and notes.

    Parameters
    ----------
    audit : Audit
        What to print.
    stream : file
        Where to.
    notes : bool, optional
        Whether to print legend and notes.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        for part in fitting(console, len(audit.measures), lambda chosen: _table(audit, chosen)):
            console.print(part)
        for card in (*_cards(audit), *_controls(audit, console)):
            console.print(card, soft_wrap=plain)
        if audit.estimates or audit.controls:
            console.print()
        for sentence in sentences(audit):
            console.print(Text(sentence, style="bold"), soft_wrap=plain)
        for line in (*legend(audit), *audit.notes) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def _table(audit: Audit, chosen: slice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", max_width=_LABEL, overflow="fold")
    titles = header(audit)
    for title in (*titles[: len(audit.measures)][chosen], *titles[len(audit.measures) :]):
        table.add_column(title, justify="right", no_wrap=True)
    before = None
    for row in rows(audit):
        if row.run != before:
            if before is not None:
                table.add_section()
            table.add_row(Text(row.run, style="bold"))
            before = row.run
        label, *cells = _cells(row)
        table.add_row(label, *cells[: len(row.cells)][chosen], *cells[len(row.cells) :])
    return table


def _cards(audit: Audit) -> Iterator[RenderableType]:
    """One card a run and pair of groups: per question a line of numbers, and one that says what they mean."""
    for run in audit.runs if audit.estimates else ():
        for pair in audit.pairs:
            yield Text()
            yield _card_title(audit, run, pair)
            found = lines(audit, run, pair)
            widths = [max(map(len, column)) for column in zip(*(_numbers(line) for line in found), strict=True)]
            for line in found:
                name, value, *rest = (
                    cell.rjust(width) if place else cell.ljust(width)
                    for place, (cell, width) in enumerate(zip(_numbers(line), widths, strict=True))
                )
                row = Text.assemble("  ", (name, "bold"), "   ")
                row.append_text(direction(value, bool(line.estimate.favours))).append("   " + "   ".join(rest), "dim")
                yield row
                favours = f"favours {line.favours}; " if line.estimate.favours else ""
                yield Padding(Text(f"{line.question} {favours}{line.basis}", style="dim"), (0, 0, 0, 4))


def _numbers(line: Line) -> tuple[str, ...]:
    p = line.p if line.p.startswith("<") or line.p == "–" else f"= {line.p}"
    return (line.estimate.name, line.answer, line.interval, f"p {p}")


def _card_title(audit: Audit, run: str, pair: Pair, what: str = "the estimand card") -> Text:
    which = f", {pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else ""
    return Text(f"{run}{which}: {what}", style="bold")


def _controls(audit: Audit, console: Console) -> Iterator[RenderableType]:
    """Raw beside controlled, one table a run and pair."""
    for run in audit.runs if audit.controls else ():
        for pair in audit.tilted_pairs:
            yield Text()
            yield _card_title(audit, run, pair, "raw and controlled")
            found = control_rows(audit, run, pair)
            yield from fitting(console, len(audit.measures), partial(_control_table, audit, found))


def _control_table(audit: Audit, found: Sequence[ControlRow], chosen: slice) -> Table:
    last = chosen.stop >= len(audit.measures)
    titles = control_titles(audit)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", max_width=_CHANGED if last else _LABEL, overflow="fold")
    for title in (*titles[: len(audit.measures)][chosen], *(titles[-2:-1] if last else ())):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found:
        label = Text.assemble(f"  {row.label}", (f"\n    {row.changed}" if last and row.changed else "", "dim"))
        cells = [direction(c, bool(side)) for c, side in zip(row.cells, row.favoured, strict=True)]
        table.add_row(label, *cells[chosen], *([Text(row.moved, style="dim")] if last else []))
    return table


def _cells(row: Row) -> list[Text]:
    dim = "dim" if row.kind in ("all", "interval", "band") else ""
    label = Text(f"  {row.label}", style="bold" if row.kind == "delta" else dim)
    if row.kind == "delta":
        cells = [direction(lines[0], bool(side)) for lines, side in zip(row.cells, row.favoured, strict=True)]
    else:
        cells = [Text("\n".join(lines), style=dim) for lines in row.cells]
    return [label, *cells, Text(row.queries, style=dim), Text(row.tied, style=dim)]
