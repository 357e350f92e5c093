"""The table of an audit in a terminal: colour for the direction, and a sign that says it without colour."""

from __future__ import annotations

from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.result import Audit
from ranktilt.reporting.layout import Row, header, legend, rows, sentences

# Blue and orange stay apart for every common kind of colour blindness.
STYLES = {"a": "bold dodger_blue2", "b": "bold dark_orange"}
_WIDE = 400


def show(audit: Audit, stream: IO[str], *, notes: bool = True) -> None:
    """Print table, verdicts, legend and notes.

    Parameters
    ----------
    audit : Audit
        What to print.
    stream : file
        Where to; anything but a terminal gets plain text, as wide as the table needs.
    notes : bool, optional
        Whether to print legend and notes.
    """
    console = Console(file=stream, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, soft_wrap=True, width=_WIDE, no_color=True)
    console.print(_table(audit))
    for sentence in sentences(audit):
        console.print(Text(sentence, style="bold"))
    if notes:
        for line in (*legend(audit), *audit.notes):
            console.print(Text(line, style="dim"))


def _table(audit: Audit) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for title in header(audit):
        table.add_column(title, justify="right", no_wrap=True)
    before = None
    for row in rows(audit):
        if row.run != before:
            if before is not None:
                table.add_section()
            table.add_row(Text(row.run, style="bold"))
            before = row.run
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[Text]:
    dim = "dim" if row.kind in ("all", "interval", "band") else ""
    label = Text(f"  {row.label}", style="bold" if row.kind == "delta" else dim)
    favoured = row.favoured or ("",) * len(row.cells)
    cells = [Text("\n".join(c), style=STYLES.get(f, dim)) for c, f in zip(row.cells, favoured, strict=True)]
    return [label, *cells, Text(row.queries, style=dim), Text(row.tied, style=dim)]
