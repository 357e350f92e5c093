"""Differences between texts and their twins: the table and figure of checks and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from ranktilt.explaining.base import EffectSize
from ranktilt.reporting.document import (
    Audience,
    Cell,
    Column,
    Figure,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import DASH, always_signed, number_cells, short_decimal, with_commas


def effect_table(caption: str, effects: Sequence[EffectSize], reference: str) -> Table:
    """Lay out effect sizes and both means, in the order given."""
    mean_of_source = Column("mean", drop_order=2)
    mean_of_reference = Column(f"mean of {reference}", drop_order=1)
    columns = (
        (name_column("source"), attrgetter("source")),
        (text_column("property"), attrgetter("quantity")),
        ("g", _effect_cell),
        ("pairs", number_cells("pairs", with_commas)),
        (mean_of_source, number_cells("source_mean", short_decimal)),
        (mean_of_reference, number_cells("reference_mean", short_decimal)),
    )
    return make_table(caption, effects, columns, collapsed=True)


def _effect_cell(effect: EffectSize) -> Cell:
    """Print an effect size with its interval."""
    if np.isnan(effect.g):
        return Cell(DASH, effect.g)
    ends = (always_signed(effect.low), always_signed(effect.high))
    return Cell(always_signed(effect.g), effect.g, ends=ends)


def effect_figure(effects: Sequence[EffectSize], reference: str) -> Figure | None:
    """Draw effect sizes with their intervals; None where there is nothing to draw."""
    has_sources = len({effect.source for effect in effects}) > 1
    marks = []
    for effect in effects:
        if not np.isnan(effect.g):
            label = f"{effect.quantity}, {effect.source}" if has_sources else effect.quantity
            marks.append(Mark(label=label, value=effect.g, low=effect.low, high=effect.high))
    if not marks:
        return None
    description = f"Hedges' g with its 95 % interval; right of 0: more than in {reference}."
    drawing = forest({"": marks}, x="g")
    # The first screen has drawn the same where its rows are enough.
    audience: Audience = "paper" if len(marks) <= MOST_ROWS else ""
    return Figure("How far texts differ from their twins", description, drawing, audience=audience)


def effect_chart(effects: Sequence[EffectSize], reference: str) -> Iterator[IntervalChart]:
    """Yield the chart of the largest differences; nothing where there is none to draw."""
    known = [effect for effect in effects if not np.isnan(effect.g)]
    if not known:
        return
    has_several = len({effect.source for effect in known}) > 1
    largest = sorted(known, key=lambda effect: -abs(effect.g))[:MOST_ROWS]
    rows = [
        IntervalRow(
            label=f"{effect.quantity}, {effect.source}" if has_several else effect.quantity,
            readings=(_effect_reading(effect),),
        )
        for effect in largest
    ]
    drawn = ""
    if len(rows) < len(known):
        drawn = f" Drawn: {len(rows)} of {len(known)} differences, the largest."
    others = "the others" if has_several else known[0].source
    yield interval_chart(
        "How far texts differ from their twins, in standard deviations",
        f"Line: 95 % interval of Hedges' g. Black: no difference.{drawn}",
        rows,
        scale_titles=["Hedges' g"],
        sides=(f"◀ more in {reference}", f"more in {others} ▶"),
    )


def _effect_reading(effect: EffectSize) -> IntervalReading:
    """Return an effect size, as a chart draws it."""
    ends = ", ".join(always_signed(end) for end in (effect.low, effect.high))
    return IntervalReading(
        mark=IntervalMark(value=effect.g, low=effect.low, high=effect.high),
        text=f"{always_signed(effect.g)} [{ends}]",
        tone="" if effect.is_shown else "unsure",
    )
