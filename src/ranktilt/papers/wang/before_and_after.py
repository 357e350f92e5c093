"""Figure 4: a model before and after fine-tuning, by the lists that it orders and by the pairs it chooses from."""

from __future__ import annotations

import polars as pl

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.layouts.selection import part_of
from ranktilt.reporting.views.compare import BEFORE_AND_AFTER, choices_of, ratios

EXPOSURE = "ExposureRatio"


def preferences(comparison: Comparison) -> pl.DataFrame:
    """Return the ratio of each kind of pairs before and after: ``system``, ``kind``, ``when``, ``value``."""
    rows = [
        {"system": comparison.runs[0].old, "kind": kind, "when": when, "value": ratio.value}
        for kind, change in choices_of(comparison).items()
        for when, ratio in zip(BEFORE_AND_AFTER, ratios(change), strict=True)
    ]
    return pl.DataFrame(rows)


def exposures(comparison: Comparison) -> pl.DataFrame:
    """Return the exposure ratio of each pair of runs before and after: ``system``, ``when``, ``ratio``."""
    rows = part_of(comparison, "estimates")
    if not rows.height or "old_run" not in rows.columns:
        return pl.DataFrame()
    is_known = pl.all_horizontal(pl.col("old", "new").cast(pl.Float64).is_finite())
    exposed = rows.filter((pl.col("kind") == EXPOSURE) & is_known)
    named = by_condition(exposed.with_columns(run=pl.col("old_run")), windows=False)
    ends = zip(BEFORE_AND_AFTER, ("old", "new"), strict=True)
    return pl.concat(
        named.select("system", when=pl.lit(when), ratio=pl.col(end)) for when, end in ends
    )


def draw_exposures(comparison: Comparison) -> tuple[Figure, ...]:
    """Draw the exposure ratios of each ranker before and after; nothing where the audits have none."""
    rows = exposures(comparison)
    if not rows.height:
        return ()
    systems = rows["system"].unique(maintain_order=True).to_list()
    points = {
        when: [
            Point(systems.index(system), ratio, ratio, ratio)
            for system, ratio in rows.filter(pl.col("when") == when)
            .select("system", "ratio")
            .iter_rows()
        ]
        for when in BEFORE_AND_AFTER
    }
    highest = max(rows["ratio"].to_list())
    figure = Figure(
        title="Exposure of the protected group over that of the unprotected one, before and after",
        says="Ratio of both groups' exposure; 1 is level.",
        drawing=lines(
            points,
            x="",
            y="exposure ratio",
            dodge=0.02,
            domain=(0.0, highest * 1.1),
            names={float(number): system for number, system in enumerate(systems)},
        ),
    )
    return (figure,)
