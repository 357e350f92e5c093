"""Print a document on a terminal, or as plain text where there is no terminal.

A *block* of a document is a table, some sentences, named values or a command. A *tone* is the
meaning of a colour, such as the favoured side. Tables are laid out by Rich. A *stacked* table has
each interval on two lines of its cell, which makes columns narrower. Plain text is for other
programs too: every sentence is a single line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as Ruled
from rich.text import Text

from ranktilt.errors import escape_invisible
from ranktilt.reporting.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Lines,
    NamedValues,
    Row,
    Table,
    shown_lines,
)
from ranktilt.reporting.shown_names import isolated
from ranktilt.reporting.tones import TEXT_SIGNS, Tone

_TONES: dict[Tone, str] = {
    "first": "bold dodger_blue2",
    "second": "bold dark_orange",
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "unsure": "yellow",
}
"""Rich's style of each tone; the colour-blind can distinguish blue from orange."""
_EMPHASIS = {"": "", "strong": "bold", "quiet": "dim", "alarm": "bold red"}
"""Rich's style of each emphasis."""
_COLOUR_CODE = re.compile(r"(\x1b\[[0-9;]*m)")
"""Escape sequence that sets a colour."""
_UNLIMITED_WIDTH = 400
"""Width of plain text in characters, where no terminal limits it."""
_USUAL_WIDTH = 140
"""Width in characters of a table in plain text, whose texts wrap; numbers may make it wider."""
_LEAST_TEXT_WIDTH = 20
"""Least width in characters to which a column of texts may shrink."""


class _VisibleConsole(Console):
    """A console that prints escape sequences in names and texts as visible characters."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return what is printed, with escape sequences in texts made visible."""
        for segment in super().render(renderable, options):
            yield (
                segment
                if segment.control
                else segment._replace(text=escape_invisible(segment.text))
            )


def print_document(
    document: Document, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print tables, sentences, next commands, legend and notes, and last the outcome of a test.

    `terminal` is the terminal whose width and colours are used, by default the stream itself; if
    that is none, the text is plain. Without `notes` the legend and notes are left out.
    """
    with _printing(stream, terminal) as (console, plain):
        if document.answer_first:
            _print_sentences(document, console, notes=notes, plain=plain)
        _print_sections(document, console, notes=notes, plain=plain)
        if not document.answer_first:
            _print_sentences(document, console, notes=notes, plain=plain)
        for step in document.next_steps:
            console.print(Text(f"Next: {step.text}: {step.command}"), soft_wrap=True)
        for note in (*document.legend, *document.notes) if notes else ():
            console.print(Text(note, style="dim"), soft_wrap=plain)
        if document.outcome:
            style = f"bold {_TONES[document.outcome].removeprefix('bold ')}"
            outcome = f"{TEXT_SIGNS[document.outcome]} {document.headline}"
            console.print(Text(outcome, style=style), soft_wrap=plain)


def _print_sections(document: Document, console: Console, *, notes: bool, plain: bool) -> None:
    """Print the sections for text; a title has an empty line above it unless it comes first."""
    for index, section in enumerate(document.shown_sections("text")):
        if section.titled:
            if index or document.answer_first:
                console.print()
            title = Text(": ".join(section.text_heading), style="bold")
            console.print(title, soft_wrap=plain)
        for block in section.blocks_for("text"):
            _print_block(block, console, notes=notes, plain=plain)


def _print_block(block: Block, console: Console, *, notes: bool, plain: bool) -> None:
    """Print a block, each of its texts and tables after the other."""
    for part in _renderables(block, console, notes=notes):
        # Sentences of plain text, and names with values, never wrap, so that programs can search
        # their lines.
        is_single_line = isinstance(block, NamedValues) or (plain and not isinstance(part, Ruled))
        width = _plain_width(part, console) if plain else None
        console.print(part, soft_wrap=is_single_line, width=width)


def _plain_width(part: RenderableType, console: Console) -> int:
    """Return the width of a part in plain text: the usual one, or what a table's numbers need."""
    least_width = _least_width(console, part)
    if least_width <= _USUAL_WIDTH:
        return _USUAL_WIDTH
    return least_width + _LEAST_TEXT_WIDTH  # some room, so that texts do not wrap at every word


def render(document: Document, *, notes: bool = True) -> str:
    """Return a document as plain text."""
    stream = io.StringIO()
    print_document(document, stream, notes=notes)
    return stream.getvalue()


def _print_sentences(document: Document, console: Console, *, notes: bool, plain: bool) -> None:
    """Print the findings; those of a test have the sign of their tone in front, such as ✓."""
    for line in document.lines(notes=notes):
        sign = f"{TEXT_SIGNS[line.tone]} " if document.outcome and line.tone in TEXT_SIGNS else ""
        console.print(Text(sign + line.text, style=_EMPHASIS[line.emphasis]), soft_wrap=plain)


@contextmanager
def _printing(stream: IO[str], terminal: IO[str] | None) -> Iterator[tuple[Console, bool]]:
    """Yield a console of the terminal's width and colours, and whether there is no terminal.

    What was printed on the console is written to the stream at the end, without blanks at the ends
    of lines.
    """
    terminal = terminal or (stream if stream.isatty() else None)
    buffer = io.StringIO()
    yield _console(buffer, terminal), terminal is None
    lines = buffer.getvalue().splitlines()
    stream.write("".join(f"{_isolated_line(line.rstrip(' '))}\n" for line in lines))


def _isolated_line(line: str) -> str:
    """Isolate words from right to left in a line, but leave its codes of colours unchanged."""
    parts = _COLOUR_CODE.split(line)
    return "".join(part if _COLOUR_CODE.fullmatch(part) else isolated(part) for part in parts)


def _console(buffer: IO[str], terminal: IO[str] | None) -> Console:
    """Return a console that writes into a buffer, with the width and colours of a terminal."""
    if terminal is None:
        # Rich would display text at once in a notebook, and use colours there.
        return _VisibleConsole(
            file=buffer,
            highlight=False,
            width=_UNLIMITED_WIDTH,
            no_color=True,
            force_terminal=False,
            force_jupyter=False,
        )
    target = Console(file=terminal)
    system: Any = target.color_system or "auto"
    return _VisibleConsole(
        file=buffer,
        highlight=False,
        width=target.width,
        force_terminal=True,
        color_system=system,
        no_color=target.no_color,
        force_jupyter=False,
    )


def _renderables(block: Block, console: Console, *, notes: bool) -> Iterator[RenderableType]:
    """Yield the texts and tables that a block is printed as; none for a block of other formats."""
    if isinstance(block, NamedValues):
        name_width = max(len(name) for name, _ in block.pairs)
        yield from (Text(f"  {name:<{name_width}}  {text}") for name, text in block.pairs)
    elif isinstance(block, Lines):
        for line in shown_lines(block.lines, notes=notes):
            yield Text(line.text, style=_TONES.get(line.tone) or _EMPHASIS[line.emphasis])
    elif isinstance(block, Code):
        yield Text(block.label, style="bold")
        yield from (Text(f"  {line}") for line in block.text.splitlines())
        yield Text("")
    elif isinstance(block, Table):
        yield Text(block.caption, style="bold")
        yield from _fitting_tables(block, console)


def _fitting_tables(table: Table, console: Console) -> list[Ruled]:
    """Lay a table out so that it fits into the console's width, as several tables if need be.

    The first of these that fits: the table as it is; stacked; stacked and without one after the
    other of the columns that may be left out (`Column.drop_order`); split into several tables.
    """
    columns = list(range(len(table.columns)))
    if console.width == _UNLIMITED_WIDTH:
        return [_ruled_table(table, columns, stacked=False, wraps_names=False)]
    for stacked in (False, True):
        ruled = _ruled_table(table, columns, stacked=stacked)
        if _fits(console, ruled):
            return [ruled]
    for drop_order in sorted({column.drop_order for column in table.columns} - {0}):
        columns = [index for index in columns if table.columns[index].drop_order != drop_order]
        ruled = _ruled_table(table, columns, stacked=True)
        if _fits(console, ruled):
            return [ruled]
    parts = _split(table, columns, console)
    return [_ruled_table(table, part, stacked=True) for part in parts]


def _split(table: Table, columns: Sequence[int], console: Console) -> list[list[int]]:
    """Split columns into parts that fit; every part begins with the columns that name the rows."""
    headers = [index for index in columns if table.columns[index].header] or [columns[0]]
    parts: list[list[int]] = []
    for index in columns:
        if index in headers:
            continue
        if parts and _fits(console, _ruled_table(table, [*parts[-1], index], stacked=True)):
            parts[-1].append(index)
        else:
            parts.append([*headers, index])
    return parts


def _fits(console: Console, table: Ruled) -> bool:
    """Tell whether a table fits into the console's width, if its texts wrap between words."""
    return _least_width(console, table) <= console.width


def _least_width(console: Console, part: RenderableType) -> int:
    """Return the least width in characters to which a text or table may shrink."""
    options = console.options.update(width=_UNLIMITED_WIDTH)
    return console.measure(part, options=options).minimum


def _ruled_table(
    table: Table, columns: Sequence[int], *, stacked: bool, wraps_names: bool = True
) -> Ruled:
    """Lay out the columns with these indices; numbers never wrap, but texts may.

    `wraps_names` tells whether the names of rows may wrap too.
    """
    lines = [_row_texts(row, columns, stacked=stacked) for row in table.rows]
    ruled = Ruled(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, *cells in zip(columns, *lines, strict=True):
        _add_column(ruled, table.columns[index], cells, wraps_names=wraps_names)
    previous_group: tuple[str, ...] = ()
    for row, cells in zip(table.rows, lines, strict=True):
        if row.rule or (previous_group and row.group[:1] != previous_group[:1]):
            ruled.add_section()
        for heading in _headings(row.group, previous_group):
            ruled.add_row(heading)
        previous_group = row.group
        ruled.add_row(*cells)
    return ruled


def _row_texts(row: Row, columns: Sequence[int], *, stacked: bool) -> list[Text]:
    """Return the texts of a row's cells; below a heading the first is indented."""
    cells = row.shown_cells
    indent = "  " if any(row.group) else ""
    first, *others = columns
    texts = [_cell_text(cells[first], indent, stacked=stacked)]
    return texts + [_cell_text(cells[index], "", stacked=stacked) for index in others]


def _add_column(ruled: Ruled, column: Column, cells: Sequence[Text], *, wraps_names: bool) -> None:
    """Add a column to a table, as wide as its cells need; texts may wrap to `_LEAST_TEXT_WIDTH`."""
    is_text = column.header or not column.number
    width = max(_widest_line(text) for text in (column.title, *map(str, cells)))
    if is_text and (wraps_names or not column.header):
        width = min(width, _LEAST_TEXT_WIDTH)
    ruled.add_column(
        Text(column.title),
        justify="left" if is_text else "right",
        overflow="fold",
        min_width=width,
    )


def _widest_line(text: str) -> int:
    """Return the number of characters of the widest line of a text."""
    return max(map(len, text.split("\n")))


def _headings(group: tuple[str, ...], previous: tuple[str, ...]) -> Iterator[Text]:
    """Yield the headings of a group, from the first that differs from those of the row above."""
    same_count = 0
    for heading, previous_heading in zip(group, previous, strict=False):
        if heading != previous_heading:
            break
        same_count += 1
    for level, text in enumerate(group):
        if level >= same_count and text:
            yield Text(" " * level + text, style="bold dim" if level else "bold")


def _cell_text(cell: Cell, indent: str, *, stacked: bool) -> Text:
    """Return the text of a cell, with the interval and the note on separate lines below."""
    style = _TONES.get(cell.tone) or _EMPHASIS[cell.emphasis]
    text = Text(indent if cell.text else "").append(cell.text, style)
    interval = cell.interval.replace(", ", ",\n") if stacked else cell.interval
    for line in filter(None, (interval, cell.note)):
        line_end = "\n" if text else ""
        text.append(f"{line_end}{2 * indent}{line}", "dim")
    return text
