"""Figure 4 of Wang et al. (2024): a model before and after fine-tuning.

Its preferences are compared by the lists that it ranks, and by the pairs of documents between which
it chooses.
"""

from __future__ import annotations

import polars as pl

from ranktilt.auditing.comparison.result import Comparison
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.layouts.selection import part_of
from ranktilt.reporting.views.compare.compare import BEFORE_AND_AFTER, choices_of, ratios

EXPOSURE = "ExposureRatio"
"""Name of the measure, without its cutoff."""


def preferences(comparison: Comparison) -> pl.DataFrame:
    """Return how often the protected group is preferred over the other, before and after.

    There is a ratio for each kind of pairs, relevant and irrelevant ones. The columns are
    ``system``, ``kind``, ``when`` and ``value``.
    """
    system = comparison.runs[0].old
    rows = []
    for kind, change in choices_of(comparison).items():
        for when, ratio in zip(BEFORE_AND_AFTER, ratios(change), strict=True):
            rows.append({"system": system, "kind": kind, "when": when, "value": ratio.value})
    return pl.DataFrame(rows)


def exposures(comparison: Comparison) -> pl.DataFrame:
    """Return the exposure ratio of each ranker before and after.

    The columns are ``system``, ``when`` and ``ratio``.
    """
    rows = part_of(comparison, "estimates")
    if not rows.height or "old_run" not in rows.columns:
        return pl.DataFrame()
    is_known = pl.all_horizontal(pl.col("old", "new").cast(pl.Float64).is_finite())
    rows = rows.filter((pl.col("kind") == EXPOSURE) & is_known)
    rows = by_condition(rows.with_columns(run=pl.col("old_run")), windows=False)
    before, after = BEFORE_AND_AFTER
    return pl.concat(
        [
            rows.select("system", when=pl.lit(before), ratio=pl.col("old")),
            rows.select("system", when=pl.lit(after), ratio=pl.col("new")),
        ]
    )


def draw_exposures(comparison: Comparison) -> tuple[Figure, ...]:
    """Draw the exposure ratios of each ranker before and after; no figure if there are none."""
    rows = exposures(comparison)
    if not rows.height:
        return ()
    systems = rows["system"].unique(maintain_order=True).to_list()
    points: dict[str, list[Point]] = {when: [] for when in BEFORE_AND_AFTER}
    for system, when, ratio in rows.select("system", "when", "ratio").iter_rows():
        point = Point(x=systems.index(system), value=ratio, low=ratio, high=ratio)
        points[when].append(point)
    highest = max(rows["ratio"].to_list())
    figure = Figure(
        title="Exposure of the protected group over that of the unprotected one, before and after",
        description="Ratio of both groups' exposure; 1 is level.",
        drawing=lines(
            points,
            x="",
            y="exposure ratio",
            dodge=0.02,
            domain=(0.0, highest * 1.1),
            tick_names={float(number): system for number, system in enumerate(systems)},
        ),
    )
    return (figure,)
