"""The table of an audit in a terminal: colour for the direction, and a sign that says it without colour."""

from __future__ import annotations

import io
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranktilt.auditing.result import Audit
from ranktilt.reporting.layout import Row, header, legend, rows, sentences

# Blue and orange stay apart for every common kind of colour blindness.
STYLES = {"+": "dodger_blue2", "−": "dark_orange"}
_WIDE = 400
_LABEL = 26


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
    terminal = terminal or (stream if stream.isatty() else None)
    plain = terminal is None
    buffer = io.StringIO()
    console = _console(buffer, terminal)
    for part in _fitting(audit, console):
        console.print(part)
    for sentence in sentences(audit):
        console.print(Text(sentence, style="bold"), soft_wrap=plain)
    if notes:
        for line in (*legend(audit), *audit.notes):
            console.print(Text(line, style="dim"), soft_wrap=plain)
    stream.write("".join(f"{line.rstrip(' ')}\n" for line in buffer.getvalue().splitlines()))


def _console(buffer: IO[str], terminal: IO[str] | None) -> Console:
    """Write into the buffer as for the terminal, or plainly where there is none."""
    if terminal is None:
        return Console(file=buffer, highlight=False, width=_WIDE, no_color=True)
    seen = Console(file=terminal)
    system: Any = seen.color_system or "auto"
    return Console(
        file=buffer,
        highlight=False,
        width=seen.width,
        force_terminal=True,
        color_system=system,
        no_color=seen.no_color,
    )


def _fitting(audit: Audit, console: Console) -> list[Table]:
    """One table where it fits; otherwise the measures spread over as few tables as the width asks for."""
    count = len(audit.measures)
    for parts in range(1, count + 1):
        size = -(-count // parts)
        tables = [_table(audit, slice(start, start + size)) for start in range(0, count, size)]
        if all(
            console.measure(t, options=console.options.update(width=_WIDE)).maximum <= console.width for t in tables
        ):
            return tables
    return tables


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


def _cells(row: Row) -> list[Text]:
    dim = "dim" if row.kind in ("all", "interval", "band") else ""
    label = Text(f"  {row.label}", style="bold" if row.kind == "delta" else dim)
    if row.kind == "delta":
        cells = [_direction(lines[0], bool(side)) for lines, side in zip(row.cells, row.favoured, strict=True)]
    else:
        cells = [Text("\n".join(lines), style=dim) for lines in row.cells]
    return [label, *cells, Text(row.queries, style=dim), Text(row.tied, style=dim)]


def _direction(text: str, favoured: bool) -> Text:
    """Colour for the direction, bold where the verdict's rule finds a side."""
    colour = STYLES.get(text[:1], "")
    return Text(text, style=f"bold {colour}".strip() if favoured else colour)
