"""Figure 6 of Dai et al.: both sides' NDCG@1 and MAP@1, and Relative Δ, by temperature.

The sides are human texts, the *reference*, and a model's rewrites of them. A *series* is the
rewrites of one model at several temperatures. A *source* is the rewrites at one temperature.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.auditing.sources.sources_apart import AuditedSource
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.layouts.names import measure_name, system_names
from ranktilt.reporting.numbers import percent, signed

MEASURES = ("nDCG@1", "AP@1")
"""Measures of the figure."""


def temperature_figures(audits: SourceAudits | Audit) -> Iterator[Figure]:
    """Draw a figure for each series, ranker and measure of the paper.

    The label of each temperature has the Relative Δ there. Means are drawn without intervals; the
    interval of Relative Δ is in the audit's own figure.
    """
    if isinstance(audits, Audit):  # a single source has a single temperature
        return
    systems = system_names(audits.runs)
    measures = [name for name in MEASURES if name in audits.measures]
    for series, run, measure in product(audits.series, audits.runs, measures):
        points = audits.points(run, measure, series)
        if len(points) < 2:
            continue
        yield _figure(audits, points, quantity=f"{measure_name(measure)} of {systems[run]}")


def _figure(
    audits: SourceAudits,
    points: list[tuple[AuditedSource, Effect]],
    *,
    quantity: str,
) -> Figure:
    """Draw one series of sources that differ in their temperature; `quantity` is what is drawn."""
    reference = [_point(source, tilt.mean_a) for source, tilt in points]
    rewrites = [_point(source, tilt.mean_b) for source, tilt in points]
    ticks = {
        source.temperature: f"{source.temperature:g} (Δ {signed(tilt.value)} %)"
        for source, tilt in points
    }
    values = [point.value for point in (*reference, *rewrites)]
    drawing = lines(
        {audits.reference: reference, "rewrites": rewrites},
        x="temperature of the rewrites (Relative Δ)",
        y=f"{quantity}, %",
        tick_names=ticks,
        domain=[0.0, max(10.0, *values) * 1.1],
    )
    text = f"Δ: Relative Δ in %; + favours {audits.reference}."
    title = f"{quantity} by temperature, {points[0][0].series}"
    return Figure(title, text, drawing)


def _point(source: AuditedSource, mean: float) -> Point:
    """Return the point of a source: its temperature and mean."""
    value = 100 * mean
    label = f"temperature {source.temperature:g}: {percent(mean)} %"
    return Point(x=source.temperature, value=value, low=value, high=value, label=label)
