"""An explanation: for each probe its question, numbers, effect sizes, and what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ranktilt.probes.base import ProbeResult
from ranktilt.probes.explain import Explanation
from ranktilt.reporting.document import Cell, Column, Document, Lines, Row, Section, Sentence, Table
from ranktilt.reporting.numbers import DASH, always_signed, count


def view(found: Explanation) -> Document:
    """Return what is said of an explanation."""
    records = [{"probe": one.probe, **row} for one in found.results for row in one.rows]
    return Document(
        title="Explanation",
        kind=f"Texts held against {found.reference}",
        headline=" ".join(one.summary for one in found.results) or "Nothing was measured.",
        sections=tuple(_section(one) for one in found.results),
        legend=tuple(_legend(found)),
        data=pl.DataFrame(records, infer_schema_length=None) if records else None,
    )


def _section(one: ProbeResult) -> Section:
    below = [f"{figure.title}: {figure.says}" for figure in one.figures]
    below += [one.citation] if one.citation else []
    said = Lines((Sentence(one.summary), *(Sentence(text, emphasis="quiet") for text in below)), only=())
    return Section(one.probe, one.probe, (one.question,), (*_tables(one), said), titled=True)


def _tables(one: ProbeResult) -> Iterator[Table]:
    """The rows, and the effect sizes."""
    if one.rows:
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


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return DASH
    return count(value) if isinstance(value, int) else f"{value:,.2f}"


def _interval(low: float, high: float) -> str:
    return DASH if math.isnan(low) else f"[{always_signed(low)}, {always_signed(high)}]"
