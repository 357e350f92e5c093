"""An explanation: for each probe its question, numbers, effect sizes, and what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ranktilt.errors import counted, join_words
from ranktilt.probes.base import ProbeFigure, ProbeResult
from ranktilt.probes.explain import Explanation
from ranktilt.reporting.document import (
    PAGE,
    TEXT,
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Lines,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.figures.charts import ForestRow, curves, forest, histogram
from ranktilt.reporting.numbers import DASH, always_signed, count, decimal

_SMALL = 0.1
"""Numbers below it are shown with four decimals."""
_NEEDED = 3
"""Columns of a probe's table that a narrow terminal shows too."""
_LONGEST = 160
"""Characters of a headline."""


def view(found: Explanation) -> Document:
    """Return what is said of an explanation."""
    records = [{"probe": one.probe, **row} for one in found.results for row in one.rows]
    return Document(
        title="Explanation",
        kind=f"Texts held against {found.reference}",
        headline=_headline(found),
        sections=tuple(_section(one) for one in found.results),
        sentences=tuple(Sentence(table.says, only=PAGE) for one in found.results for table in one.tables),
        legend=tuple(_legend(found)),
        data=pl.DataFrame(records, infer_schema_length=None) if records else None,
    )


def _headline(found: Explanation) -> str:
    """What the probes found, or how many there are where that is too long."""
    said = " ".join(one.summary for one in found.results) or "Nothing was measured."
    if len(said) <= _LONGEST:
        return said
    probes = counted(len(found.results), "question", "questions")
    if not found.sources:
        return f"{probes} about the texts of {found.reference}."
    return f"{probes} about the texts of {join_words(found.sources)}, held against {found.reference}."


def _section(one: ProbeResult) -> Section:
    said = []
    if not one.tables:  # which say the same as summary and figures
        said = [Sentence(one.summary)]
        said += [Sentence(f"{figure.title}: {figure.says}", emphasis="quiet", only=TEXT) for figure in one.figures]
    said += [Sentence(note, emphasis="quiet") for note in one.notes]
    said += [Sentence(one.citation, emphasis="quiet")] if one.citation else []
    blocks: tuple[Block, ...] = (*_tables(one), Lines(tuple(said), only=()), *map(_figure, one.figures))
    return Section(one.probe, one.probe, (one.question,), blocks, titled=True)


def _figure(one: ProbeFigure) -> Figure:
    """Draw what a probe found; where it is not drawn, its sentence says it."""
    if one.kind == "histogram":
        drawing = histogram(one.series, one.edges, x=one.axis, y="share, %")
    elif one.kind == "curve":
        drawing = curves(one.series, x=one.axis, y="ratio", levels=(1.0,))
    else:
        drawing = forest(
            [ForestRow(name, row[0], row[1], row[2]) for name, row in one.series.items()], x=one.axis, margin=0.0,
            reached=one.edges,
        )  # fmt: skip
    return Figure(one.title, one.says, drawing)


def _tables(one: ProbeResult) -> Iterator[Table]:
    """Its tables, or else its rows; and the effect sizes."""
    for table in one.tables:
        titles = list(table.rows[0])
        cells = [[(_number(row[name], table.decimals.get(name)), row[name]) for name in titles] for row in table.rows]
        made = _table(table.title, titles, cells)
        columns = tuple(
            replace(column, spare=len(titles) - n if n >= _NEEDED else 0) for n, column in enumerate(made.columns)
        )
        yield replace(made, columns=columns, titled=True, below=(Sentence(table.says),), space=(0, 1))
    if one.rows and not one.tables:
        rows = [[(_number(value), value) for value in row.values()] for row in one.rows]
        yield _table("Numbers", list(one.rows[0]), rows)
    if one.effects:
        header = ["effect on twins", "of", "pairs", "g", "95 % interval"]
        effects: list[list[tuple[str, Any]]] = [
            [
                (e.source, None), (e.what, None), (count(e.pairs), e.pairs), (always_signed(e.g), e.g),
                (_interval(e.low, e.high), None),
            ]
            for e in one.effects
        ]  # fmt: skip
        yield _table("Effect sizes", header, effects)


def _table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[tuple[str, Any]]]) -> Table:
    columns = tuple(
        Column(title, number=not any(row[place][0].strip("–[")[:1].isalpha() for row in rows), header=not place)
        for place, title in enumerate(titles)
    )
    cells = (
        tuple(Cell(text, value if isinstance(value, int | float) else None) for text, value in row) for row in rows
    )
    return Table(caption, columns, tuple(map(Row, cells)), aligned=True, indent=0)


def _legend(found: Explanation) -> Iterator[str]:
    yield from found.notes
    if any(one.effects for one in found.results):
        yield (
            f"g: Hedges' g on twins, the mean difference in standard deviations; positive: more than in "
            f"{found.reference}. A difference between texts does not show that a ranker goes by it."
        )


def _number(value: Any, decimals: int | None = None) -> str:
    """Print a text, a number, or a number with its interval; small ones with four decimals unless told how many."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        middle, *both = (always_signed(end, decimals or 2) for end in value)
        return f"{middle} [{', '.join(both)}]"
    if value is None or math.isnan(value):
        return DASH
    if isinstance(value, int):
        return count(value)
    return decimal(value, decimals or (4 if 0 < abs(value) < _SMALL else 2))


def _interval(low: float, high: float) -> str:
    return DASH if math.isnan(low) else f"[{always_signed(low)}, {always_signed(high)}]"
