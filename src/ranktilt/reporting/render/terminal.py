"""A document for a terminal, or as plain text where there is none."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Ruled
from rich.text import Text

from ranktilt.errors import visible
from ranktilt.reporting.document import (
    INTERVAL,
    Block,
    Cell,
    Column,
    Document,
    Lines,
    Pairs,
    Points,
    Row,
    Table,
    shown_lines,
)
from ranktilt.reporting.tones import TEXT_SIGNS, Tone

# Blue and orange stay apart for every common kind of colour blindness.
_DIRECTIONS = {"+": "dodger_blue2", "−": "dark_orange"}
_TONES: dict[Tone, str] = {"good": "green", "bad": "bold red", "warning": "yellow", "unsure": "yellow"}
_EMPHASIS = {"": "", "strong": "bold", "quiet": "dim", "alarm": "bold red"}
_WIDE = 400


class _VisibleConsole(Console):
    """A console that acts on no sign of what it prints: names and texts may hold escape sequences."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def print_document(document: Document, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None) -> None:
    """Print tables, then sentences, then legend and notes (or not), and last the outcome of a test.

    `terminal` is the terminal whose width and colours count, by default the stream itself; without one the text is
    plain and as wide as it needs to be.
    """
    with _printing(stream, terminal) as (console, plain):
        for number, section in enumerate(document.sections):
            if section.titled:
                if number:
                    console.print()
                console.print(Text(f"{section.title}: {' '.join(section.lead)}", style="bold"), soft_wrap=plain)
            for block in section.shown("terminal"):
                for part in _block(block, console, notes=notes):
                    wrapped = plain and not isinstance(part, Ruled)
                    console.print(part, soft_wrap=wrapped or isinstance(block, Points | Pairs))
        for line in document.lines("terminal", notes=notes):
            console.print(Text(line.text, style=_EMPHASIS[line.emphasis]), soft_wrap=plain)
        for step in document.next_steps:
            console.print(Text(f"Next: {step.text}: {step.command}"), soft_wrap=True)
        for note in (*document.legend, *document.notes) if notes else ():
            console.print(Text(note, style="dim"), soft_wrap=plain)
        if document.outcome:
            style = f"bold {_TONES[document.outcome].removeprefix('bold ')}"
            console.print(Text(f"{TEXT_SIGNS[document.outcome]} {document.headline}", style=style), soft_wrap=plain)


@contextmanager
def _printing(stream: IO[str], terminal: IO[str] | None) -> Iterator[tuple[Console, bool]]:
    """Yield a console of the terminal's width and colours, and whether there is no terminal."""
    terminal = terminal or (stream if stream.isatty() else None)
    buffer = io.StringIO()
    yield _console(buffer, terminal), terminal is None
    stream.write("".join(f"{line.rstrip(' ')}\n" for line in buffer.getvalue().splitlines()))


def _console(buffer: IO[str], terminal: IO[str] | None) -> Console:
    if terminal is None:
        return _VisibleConsole(file=buffer, highlight=False, width=_WIDE, no_color=True)
    seen = Console(file=terminal)
    system: Any = seen.color_system or "auto"
    return _VisibleConsole(
        file=buffer, highlight=False, width=seen.width, force_terminal=True, color_system=system,
        no_color=seen.no_color,
    )  # fmt: skip


def _block(block: Block, console: Console, *, notes: bool) -> Iterator[RenderableType]:
    if isinstance(block, Points | Pairs):
        yield from map(Text, _list_lines(block))
    elif isinstance(block, Lines):
        for line in shown_lines(block.lines, "terminal", notes=notes):
            yield Text(line.text, style=_EMPHASIS[line.emphasis])
    elif isinstance(block, Table):
        yield from _table(block, console, notes=notes)


def _list_lines(block: Points | Pairs) -> list[str]:
    if isinstance(block, Points):
        return list(block.items)
    wide = max(len(name) for name, _ in block.pairs)
    return [f"  {name:<{wide}}  {text}" for name, text in block.pairs]


def _table(table: Table, console: Console, *, notes: bool) -> Iterator[RenderableType]:
    if table.split:
        for heading, rows in table.grouped():
            one = replace(
                table, caption=heading[0], rows=rows, split=False, titled=True, plain=(*table.plain, "headings")
            )
            yield from _table(one, console, notes=notes)
        return
    yield from [Text()] * table.space[0]
    if table.titled:
        yield Text(table.caption, style="bold")
        yield from [Text()] * table.above
    if table.aligned:
        yield from _aligned(table, console.width, notes=notes)
    else:
        yield from _fitting(table, console)
    for line in table.below:
        style = (line.tone and _TONES[line.tone]) or _EMPHASIS[line.emphasis]
        yield Padding(Text(line.text, style=style), (0, 0, 0, 2))
    yield from [Text()] * table.space[1]


def _spares(table: Table) -> Iterator[set[int]]:
    """Which columns may go, one rank after the other."""
    gone: set[int] = set()
    yield gone
    for rank in sorted({column.spare for column in table.columns} - {0}):
        gone = gone | {place for place, column in enumerate(table.columns) if column.spare == rank}
        yield gone


def _fitting(table: Table, console: Console) -> list[Ruled]:
    """One table where it fits, without its spare columns if need be; else over as few tables as the width asks for."""
    places = [place for place in table.columns_of("terminal") if not table.columns[place].beneath]
    spread = [place for place in places if table.columns[place].spread]
    made: list[Ruled] = []
    for gone in _spares(table):
        kept = [place for place in places if place not in gone]
        if _fits(console, one := _ruled(table, kept)):
            return [one]
        made = [one]
    for parts in range(2, len(spread) + 1):
        size = -(-len(spread) // parts)
        chunks = [spread[start : start + size] for start in range(0, len(spread), size)]
        made = [_ruled(table, _part(table, places, chunks, number)) for number in range(len(chunks))]
        if _fits(console, *made):
            return made
    return [] if table.optional else made


def _part(table: Table, places: Sequence[int], chunks: Sequence[Sequence[int]], number: int) -> list[int]:
    wanted = {"every", *(["first"] if number == 0 else []), *(["last"] if number == len(chunks) - 1 else [])}
    return [
        place for place in places
        if place in chunks[number] or (not table.columns[place].spread and table.columns[place].part in wanted)
    ]  # fmt: skip


def _fits(console: Console, *tables: Ruled) -> bool:
    wide = console.options.update(width=_WIDE)
    return all(console.measure(table, options=wide).maximum <= console.width for table in tables)


def _ruled(table: Table, places: Sequence[int]) -> Ruled:
    ruled = Ruled(box=box.SIMPLE_HEAD, pad_edge=False, show_edge="edges" not in table.plain)
    for place in places:
        column = table.columns[place]
        left = column.header or not column.number
        wraps = column.width is not None
        ruled.add_column(
            _title(column), justify="left" if left else "right", max_width=column.width or None, no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )  # fmt: skip
    before: tuple[str, ...] = ()
    for row in table.rows:
        headings = () if "headings" in table.plain else row.headings
        new = next((n for n, (a, b) in enumerate(zip(headings, before, strict=False)) if a != b), len(before))
        if row.rule or (before and table.groups and headings[:1] != before[:1]):
            ruled.add_section()
        for level, text in list(enumerate(headings))[new:]:
            if text:
                ruled.add_row(Text(" " * level + text, style="bold dim" if level else "bold"))
        before = headings
        ruled.add_row(*_texts(table, row, places))
        if table.intervals == "row" and any(cell.ends and cell.text for cell in row.cells):
            ruled.add_row(*_interval(table, row, places))
    return ruled


def _title(column: Column) -> str:
    return column.title if column.label is None else column.label


def _texts(table: Table, row: Row, places: Sequence[int]) -> list[Text]:
    beneath = [row.cells[n].text for n, column in enumerate(table.columns) if column.beneath]
    last = all(n in places for n, column in enumerate(table.columns) if column.part == "last")
    texts = []
    for place in places:
        cell, column = row.cells[place], table.columns[place]
        if place < row.repeats:
            cell = Cell("")
        text = Text("\n".join(cell.ends) if cell.ends and not cell.text else cell.text, style=style_of(cell))
        if column.header:
            if row.headings and cell.text:
                text = Text.assemble("  ", text)
            for note in filter(None, (cell.note, *beneath)):
                if last:
                    text.append(f"\n    {note}", "not bold dim default")
        elif cell.text and cell.ends and table.intervals == "cell":
            text.append(f"\n[{', '.join(cell.ends)}]", "not bold dim default")
        texts.append(text)
    return texts


def _interval(table: Table, row: Row, places: Sequence[int]) -> list[Text]:
    """Intervals in a row of their own."""
    found = []
    for place in places:
        ends = row.cells[place].ends
        text = f"  {INTERVAL}" if table.columns[place].header else "\n".join(ends) if ends else ""
        found.append(Text(text, style="dim"))
    return found


def style_of(cell: Cell) -> str:
    """Return the style of a cell: its emphasis, the colour of its tone, or that of its sign."""
    if cell.emphasis == "quiet":
        return "dim"
    bold = "bold" if cell.emphasis == "strong" or cell.tone in ("first", "second") else ""
    if cell.signed:
        return f"{bold} {_DIRECTIONS.get(cell.text.strip()[:1], '')}".strip()
    if cell.tone in ("warning", "unsure") and bold:
        return "bold dark_orange"
    return _TONES.get(cell.tone, bold)


def _aligned(table: Table, width: int, *, notes: bool) -> Iterator[RenderableType]:
    """Rows as aligned text, headings above and details below."""
    places = table.columns_of("terminal")
    cells = [[_title(table.columns[n]) for n in range(len(table.columns))] if "titles" not in table.plain else []]
    cells += [[cell.text for cell in row.cells] for row in table.rows]
    widths = {place: max(len(texts[place]) for texts in cells if texts) for place in places}
    for gone in _spares(table):
        kept = {place: n for place, n in widths.items() if place not in gone}
        if sum(kept.values()) + table.gap * len(kept) <= width:
            break
    before: tuple[str, ...] | None = None
    line = _Aligner(table, kept, width)
    for number, row in enumerate(table.rows):
        headings = () if "headings" in table.plain else row.headings
        if not number and "titles" not in table.plain:
            yield line.of(Row(tuple(Cell(text, emphasis="quiet") for text in cells[0])))[0]
        if headings != before:
            if before:
                yield Text()
            yield from (Text(text, style="bold") for text in headings)
        before = headings
        text, apart = line.of(row)
        yield text
        details = [one.text for one in row.details if notes or one.emphasis != "quiet"]
        yield from (Padding(Text(one, style="dim"), (0, 0, 0, 4)) for one in (*apart, *details))


class _Aligner:
    """Makes a line of a row: names to the left, numbers to the right."""

    def __init__(self, table: Table, widths: dict[int, int], width: int) -> None:
        self.table, self.widths, self.width = table, widths, width
        self.last = next(reversed(widths))

    def of(self, row: Row) -> tuple[Text, list[str]]:
        """Return the line, and the note of its last cell where there is no room for it."""
        text = Text(" " * self.table.indent)
        for place, width in self.widths.items():
            cell = row.cells[place]
            number = self.table.columns[place].number
            wide = cell.text.rjust(width) if number else cell.text if place == self.last else cell.text.ljust(width)
            text.append(wide, style_of(replace(cell, text=cell.text.strip())))
            text.append("" if place == self.last else " " * self.table.gap)
        note = row.cells[self.last].note
        if not note:
            return text, []
        others = sum(self.widths.values()) - self.widths[self.last] + self.table.gap * len(self.widths)
        if others + len(row.cells[self.last].text) + 3 + len(note) > self.width:
            return text, [note]
        return text.append(f" ({note})", "dim"), []
