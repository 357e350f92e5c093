"""A document for a terminal, or as plain text where there is none."""

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

from ranktilt.errors import visible
from ranktilt.reporting.document import (
    Block,
    Cell,
    Code,
    Document,
    Lines,
    Pairs,
    Table,
    shown_lines,
)
from ranktilt.reporting.shown_names import isolated
from ranktilt.reporting.tones import TEXT_SIGNS, Tone

# Blue and orange stay apart for every common kind of colour blindness.
_TONES: dict[Tone, str] = {
    "first": "bold dodger_blue2",
    "second": "bold dark_orange",
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "unsure": "yellow",
}
_EMPHASIS = {"": "", "strong": "bold", "quiet": "dim", "alarm": "bold red"}
_CODE = re.compile(r"(\x1b\[[0-9;]*m)")
_WIDE = 400
_PLAIN = 140
"""Letters to which a table of plain text shrinks where texts that wrap allow it."""
_LEAST = 20
"""Letters to which a column of texts may shrink."""


class _VisibleConsole(Console):
    """A console that acts on no sign of what it prints: names and texts may hold escape sequences."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def print_document(
    document: Document, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print tables, then sentences, then legend and notes (or not), and last the outcome of a test.

    `terminal` is the terminal whose width and colours count, by default the stream itself; without
    one the text is plain, a sentence is a line, and a table is as wide as its numbers need, its
    texts wrapped.
    """
    with _printing(stream, terminal) as (console, plain):
        if document.answer_first:
            _print_sentences(document, console, notes=notes, plain=plain)
        for number, section in enumerate(document.shown_sections("text")):
            if section.titled:
                if number or document.answer_first:
                    console.print()
                console.print(
                    Text(f"{section.title}: {' '.join(section.lead)}", style="bold"),
                    soft_wrap=plain,
                )
            for block in section.shown("text"):
                for part in _block(block, console, notes=notes):
                    wrapped = plain and not isinstance(part, Ruled)
                    least = _least(console, part)
                    width = None if not plain else _PLAIN if least <= _PLAIN else least + _LEAST
                    console.print(part, soft_wrap=wrapped or isinstance(block, Pairs), width=width)
        if not document.answer_first:
            _print_sentences(document, console, notes=notes, plain=plain)
        for step in document.next_steps:
            console.print(Text(f"Next: {step.text}: {step.command}"), soft_wrap=True)
        for note in (*document.legend, *document.notes) if notes else ():
            console.print(Text(note, style="dim"), soft_wrap=plain)
        if document.outcome:
            style = f"bold {_TONES[document.outcome].removeprefix('bold ')}"
            console.print(
                Text(f"{TEXT_SIGNS[document.outcome]} {document.headline}", style=style),
                soft_wrap=plain,
            )


def render(document: Document, *, notes: bool = True) -> str:
    """Write what is printed where there is no terminal."""
    stream = io.StringIO()
    print_document(document, stream, notes=notes)
    return stream.getvalue()


def _print_sentences(document: Document, console: Console, *, notes: bool, plain: bool) -> None:
    for line in document.lines(notes=notes):
        sign = f"{TEXT_SIGNS[line.tone]} " if document.outcome and line.tone in TEXT_SIGNS else ""
        console.print(Text(sign + line.text, style=_EMPHASIS[line.emphasis]), soft_wrap=plain)


@contextmanager
def _printing(stream: IO[str], terminal: IO[str] | None) -> Iterator[tuple[Console, bool]]:
    """Yield a console of the terminal's width and colours, and whether there is no terminal."""
    terminal = terminal or (stream if stream.isatty() else None)
    buffer = io.StringIO()
    yield _console(buffer, terminal), terminal is None
    lines = buffer.getvalue().splitlines()
    stream.write("".join(f"{_isolated_line(line.rstrip(' '))}\n" for line in lines))


def _isolated_line(line: str) -> str:
    """Keep words from right to left together, between the codes of colours and styles."""
    parts = _CODE.split(line)
    return "".join(part if _CODE.fullmatch(part) else isolated(part) for part in parts)


def _console(buffer: IO[str], terminal: IO[str] | None) -> Console:
    if terminal is None:
        # A notebook would display it at once, and its kernel asks for colours.
        return _VisibleConsole(
            file=buffer,
            highlight=False,
            width=_WIDE,
            no_color=True,
            force_terminal=False,
            force_jupyter=False,
        )
    seen = Console(file=terminal)
    system: Any = seen.color_system or "auto"
    return _VisibleConsole(
        file=buffer,
        highlight=False,
        width=seen.width,
        force_terminal=True,
        color_system=system,
        no_color=seen.no_color,
        force_jupyter=False,
    )


def _block(block: Block, console: Console, *, notes: bool) -> Iterator[RenderableType]:
    if isinstance(block, Pairs):
        wide = max(len(name) for name, _ in block.pairs)
        yield from (Text(f"  {name:<{wide}}  {text}") for name, text in block.pairs)
    elif isinstance(block, Lines):
        for line in shown_lines(block.lines, notes=notes):
            yield Text(line.text, style=_TONES.get(line.tone) or _EMPHASIS[line.emphasis])
    elif isinstance(block, Code):
        yield Text(block.label, style="bold")
        yield from (Text(f"  {line}") for line in block.text.splitlines())
        yield Text("")
    elif isinstance(block, Table):
        yield Text(block.caption, style="bold")
        yield from _fitting(block, console)


def _fitting(table: Table, console: Console) -> list[Ruled]:
    """One table where it fits, with its intervals on two lines or without spare columns if need be; else several."""
    places = list(range(len(table.columns)))
    if console.width == _WIDE:
        return [_ruled(table, places, stacked=False, whole_headers=True)]
    for stacked in (False, True):
        if _fits(console, ruled := _ruled(table, places, stacked=stacked)):
            return [ruled]
    for rank in sorted({column.spare for column in table.columns} - {0}):
        places = [place for place in places if table.columns[place].spare != rank]
        if _fits(console, ruled := _ruled(table, places, stacked=True)):
            return [ruled]
    heads = [place for place in places if table.columns[place].header] or places[:1]
    made = list[list[int]]()
    for place in (place for place in places if place not in heads):
        if not made or not _fits(console, _ruled(table, [*made[-1], place], stacked=True)):
            made.append([*heads])
        made[-1].append(place)
    return [_ruled(table, some, stacked=True) for some in made]


def _fits(console: Console, table: Ruled) -> bool:
    """Whether it has room, its texts wrapped between words."""
    return _least(console, table) <= console.width


def _least(console: Console, part: RenderableType) -> int:
    """Letters to which it may shrink."""
    return console.measure(part, options=console.options.update(width=_WIDE)).minimum


def _ruled(
    table: Table, places: Sequence[int], *, stacked: bool, whole_headers: bool = False
) -> Ruled:
    """Lay out some columns: numbers keep to their lines, texts may wrap down to a few words."""
    texts = [
        [
            _text(cells[n], "  " * (n == places[0] and any(row.group)), stacked=stacked)
            for n in places
        ]
        for row, cells in ((row, row.shown_cells) for row in table.rows)
    ]
    ruled = Ruled(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, *cells in zip(places, *texts, strict=True):
        column = table.columns[place]
        widest = max(
            len(line) for text in (column.title, *map(str, cells)) for line in text.split("\n")
        )
        left = column.header or not column.number
        ruled.add_column(
            Text(column.title),
            justify="left" if left else "right",
            overflow="fold",
            min_width=min(widest, _LEAST)
            if left and not (whole_headers and column.header)
            else widest,
        )
    before: tuple[str, ...] = ()
    for row, cells in zip(table.rows, texts, strict=True):
        new = next(
            (n for n, (a, b) in enumerate(zip(row.group, before, strict=False)) if a != b),
            len(before),
        )
        if row.rule or (before and row.group[:1] != before[:1]):
            ruled.add_section()
        for level, text in list(enumerate(row.group))[new:]:
            if text:
                ruled.add_row(Text(" " * level + text, style="bold dim" if level else "bold"))
        before = row.group
        ruled.add_row(*cells)
    return ruled


def _text(cell: Cell, front: str, *, stacked: bool) -> Text:
    """The text of a cell, and below it its interval and note."""
    text = Text(front if cell.text else "").append(
        cell.text, _TONES.get(cell.tone) or _EMPHASIS[cell.emphasis]
    )
    interval = cell.interval.replace(", ", ",\n") if stacked else cell.interval
    for below in filter(None, (interval, cell.note)):
        text.append(f"{chr(10) if text else ''}{front and front * 2}{below}", "dim")
    return text
