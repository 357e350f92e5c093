"""An explanation as text: for each probe its question, numbers, effect sizes, and what they say."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import IO, Any

from rich.table import Table
from rich.text import Text

from ranktilt.errors import unknown
from ranktilt.probes.base import ProbeResult
from ranktilt.probes.explain import Explanation
from ranktilt.reporting.console import printing
from ranktilt.reporting.markdown import markdown_line, one_line

FORMATS = ("table", "markdown")
_Cells = tuple[str, ...]


def explanation_text(found: Explanation, format: str = "table", *, notes: bool = True) -> str:
    """Print an explanation as plain text or Markdown; `UserError` if the format is neither."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if format == "markdown":
        return "\n".join(_markdown(found, notes=notes)) + "\n"
    stream = io.StringIO()
    show_explanation(found, stream, notes=notes)
    return stream.getvalue()


def show_explanation(
    found: Explanation, stream: IO[str], *, notes: bool = True, terminal: IO[str] | None = None
) -> None:
    """Print an explanation for a terminal; without one the text is plain and as wide as it needs to be."""
    with printing(stream, terminal) as (console, plain):
        for number, one in enumerate(found.results):
            if number:
                console.print()
            console.print(Text(f"{one.probe}: {one.question}", style="bold"), soft_wrap=plain)
            for header, *rows in _tables(one):
                table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
                for place, title in enumerate(header):
                    table.add_column(Text(title), justify="left" if _named(rows, place) else "right", no_wrap=True)
                for row in rows:
                    table.add_row(*map(Text, row))
                console.print(table)
            console.print(Text(one.summary), soft_wrap=plain)
            for line in _below(one) if notes else ():
                console.print(Text(line, style="dim"), soft_wrap=plain)
        for line in _legend(found) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def _markdown(found: Explanation, *, notes: bool) -> Iterator[str]:
    for one in found.results:
        yield f"### {one_line(one.probe)}"
        yield from ("", markdown_line([one.question])[2:-2], "")
        for header, *rows in _tables(one):
            right = ["---" if _named(rows, place) else "---:" for place in range(len(header))]
            yield from (markdown_line(header), markdown_line(right), *map(markdown_line, rows), "")
        for line in (one.summary, *(_below(one) if notes else ())):
            yield "- " + markdown_line([line])[2:-2]
        yield ""
    for line in _legend(found) if notes else ():
        yield "- " + markdown_line([line])[2:-2]


def _tables(one: ProbeResult) -> Iterator[list[_Cells]]:
    """The rows, and the effect sizes; titles first."""
    if one.rows:
        yield [tuple(one.rows[0]), *(tuple(_number(value) for value in row.values()) for row in one.rows)]
    if one.effects:
        header = ("effect on twins", "of", "pairs", "g", "95 % interval")
        yield [
            header,
            *((e.source, e.what, f"{e.pairs:,}", _signed(e.g), _interval(e.low, e.high)) for e in one.effects),
        ]


def _below(one: ProbeResult) -> Iterator[str]:
    """What the figures show in words, and where the probe comes from."""
    for figure in one.figures:
        yield f"{figure.title}: {figure.says}"
    if one.citation:
        yield one.citation


def _legend(found: Explanation) -> Iterator[str]:
    yield from found.notes
    if any(one.effects for one in found.results):
        yield (
            f"g: Hedges' g on twins, the mean difference in standard deviations; positive: more than in "
            f"{found.reference}. A difference between texts does not show that a ranker goes by it."
        )


def _named(rows: Sequence[_Cells], place: int) -> bool:
    """Whether a column holds names, which stand to the left."""
    return any(row[place].strip("–[")[:1].isalpha() for row in rows)


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _signed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


def _interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"[{_signed(low)}, {_signed(high)}]"
