"""A terminal, or plain text where there is none: what every printed result shares."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ranktilt.errors import visible

# Blue and orange stay apart for every common kind of colour blindness.
STYLES = {"+": "dodger_blue2", "−": "dark_orange"}
_WIDE = 400


class VisibleConsole(Console):
    """A console that acts on no sign of what it prints: names and texts may hold escape sequences."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as always, control characters as visible signs."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


@contextmanager
def printing(stream: IO[str], terminal: IO[str] | None) -> Iterator[tuple[Console, bool]]:
    """Print into a stream as for a terminal, or plainly.

    Parameters
    ----------
    stream : file
        Where to.
    terminal : file or None
        The terminal whose width and colours count; where None the stream itself, if it is one.

    Yields
    ------
    console : rich.console.Console
        To print with.
    plain : bool
        Whether there is no terminal: lines are then as wide as they need to be (``soft_wrap=plain``).
    """
    terminal = terminal or (stream if stream.isatty() else None)
    buffer = io.StringIO()
    yield _console(buffer, terminal), terminal is None
    stream.write("".join(f"{line.rstrip(' ')}\n" for line in buffer.getvalue().splitlines()))


def _console(buffer: IO[str], terminal: IO[str] | None) -> Console:
    if terminal is None:
        return VisibleConsole(file=buffer, highlight=False, width=_WIDE, no_color=True)
    seen = Console(file=terminal)
    system: Any = seen.color_system or "auto"
    return VisibleConsole(
        file=buffer,
        highlight=False,
        width=seen.width,
        force_terminal=True,
        color_system=system,
        no_color=seen.no_color,
    )


def fits(console: Console, *tables: Table) -> bool:
    """Tell whether tables fit the console without wrapping a cell."""
    wide = console.options.update(width=_WIDE)
    return all(console.measure(table, options=wide).maximum <= console.width for table in tables)


def fitting(console: Console, count: int, make: Callable[[slice], Table]) -> list[Table]:
    """Make one table where it fits; otherwise the columns spread over as few tables as the width asks for.

    Parameters
    ----------
    console : rich.console.Console
        Whose width counts.
    count : int
        Columns to spread.
    make : callable
        Makes the table of some of them.

    Returns
    -------
    list of rich.table.Table
        None at all for no columns.
    """
    tables: list[Table] = []
    for parts in range(1, count + 1):
        size = -(-count // parts)
        tables = [make(slice(start, start + size)) for start in range(0, count, size)]
        if fits(console, *tables):
            return tables
    return tables


def direction(text: str, favoured: bool) -> Text:
    """Colour a number by its sign, bold where the verdict's rule finds a side."""
    colour = STYLES.get(text.strip()[:1], "")
    return Text(text, style=f"bold {colour}".strip() if favoured else colour)
