"""How texts differ from their twins: the table and figures that checks and explanations share.

A *twin* is the version of a text in the reference, such as the human original of a rewrite. An
*effect size* is the mean difference of a property in standard deviations (Hedges' g). The *source*
of a text is who wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from ranktilt.explaining.base import EffectSize
from ranktilt.measures.printing import ends_apart
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
    """Return the table of effect sizes with the means of source and reference."""
    source_mean = Column("mean", drop_order=2)
    reference_mean = Column(f"mean of {reference}", drop_order=1)
    columns = (
        (name_column("source"), attrgetter("source")),
        (text_column("property"), attrgetter("quantity")),
        ("g", _effect_cell),
        ("pairs", number_cells("pairs", with_commas)),
        (source_mean, number_cells("source_mean", short_decimal)),
        (reference_mean, number_cells("reference_mean", short_decimal)),
    )
    return make_table(caption, effects, columns, collapsed=True)


def _effect_cell(effect: EffectSize) -> Cell:
    """Return the cell of an effect size with its interval; a dash where it is undefined."""
    if np.isnan(effect.g):
        return Cell(DASH, effect.g)
    ends = ends_apart((effect.low, effect.high), 0.0, always_signed)
    return Cell(always_signed(effect.g), effect.g, ends=ends)


def effect_figure(effects: Sequence[EffectSize], reference: str) -> Figure | None:
    """Draw all effect sizes with their intervals; None where all are undefined."""
    has_several_sources = len({effect.source for effect in effects}) > 1
    marks = []
    for effect in effects:
        if not np.isnan(effect.g):
            label = _effect_label(effect, has_several_sources=has_several_sources)
            marks.append(Mark(label=label, value=effect.g, low=effect.low, high=effect.high))
    if not marks:
        return None
    description = f"Hedges' g with its 95 % interval; right of 0: more than in {reference}."
    drawing = forest({"": marks}, x="g")
    # Where the first screen's chart has room for all of them, it draws the same.
    audience: Audience = "paper" if len(marks) <= MOST_ROWS else ""
    return Figure("How far texts differ from their twins", description, drawing, audience=audience)


def effect_chart(effects: Sequence[EffectSize], reference: str) -> Iterator[IntervalChart]:
    """Yield the chart of the largest effect sizes; nothing where all are undefined."""
    defined = [effect for effect in effects if not np.isnan(effect.g)]
    if not defined:
        return
    has_several_sources = len({effect.source for effect in defined}) > 1
    largest = sorted(defined, key=lambda effect: -abs(effect.g))[:MOST_ROWS]
    rows = [
        IntervalRow(
            label=_effect_label(effect, has_several_sources=has_several_sources),
            readings=(_effect_reading(effect),),
        )
        for effect in largest
    ]
    drawn = ""
    if len(rows) < len(defined):
        drawn = f" Drawn: {len(rows)} of {len(defined)} differences, the largest."
    others = "the others" if has_several_sources else defined[0].source
    yield interval_chart(
        "How far texts differ from their twins, in standard deviations",
        f"Line: 95 % interval of Hedges' g. Black: no difference.{drawn}",
        rows,
        scale_titles=["Hedges' g"],
        sides=(f"◀ more in {reference}", f"more in {others} ▶"),
    )


def _effect_label(effect: EffectSize, *, has_several_sources: bool) -> str:
    """Name the property of an effect size, and its source where there are several."""
    return f"{effect.quantity}, {effect.source}" if has_several_sources else effect.quantity


def _effect_reading(effect: EffectSize) -> IntervalReading:
    """Return an effect size with its interval, for a chart; ``unsure`` where it is not shown."""
    low, high = always_signed(effect.low), always_signed(effect.high)
    return IntervalReading(
        mark=IntervalMark(value=effect.g, low=effect.low, high=effect.high),
        text=f"{always_signed(effect.g)} [{low}, {high}]",
        tone="" if effect.is_shown else "unsure",
    )
