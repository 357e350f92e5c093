"""A study's figure for a paper: Relative Δ by the temperature of the rewrites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ranktilt.auditing.study import Study
from ranktilt.measures.base import signed
from ranktilt.reporting.papers.figures_style import (
    COLUMN,
    DARK,
    INCH,
    PAGE,
    PALE,
    SMALL,
    Plate,
    blank,
    colour,
    dash,
    label,
    legend,
    mark,
    sides,
    slug,
)

_DODGE = 0.014
_ABREAST = 3


def study_plates(study: Study) -> Iterator[Plate]:
    """Draw what a study holds; call it within `inked`."""
    drawn = [series for series in study.series if _spots(study, series)]
    for series in drawn:
        yield _plate(study, series, f"temperature-{slug(series)}" if len(drawn) > 1 else "temperature")


def _spots(study: Study, series: str) -> list[float]:
    """Temperatures of a series with anything to draw."""
    points = [point for run in study.runs for m in study.measures for point in study.points(run, m, series)]
    return sorted({arm.temperature for arm, tilt in points if np.isfinite(tilt.value)})


def _plate(study: Study, series: str, name: str) -> Plate:
    spots, many = _spots(study, series), len(study.measures)
    columns = min(many, _ABREAST)
    rows = -(-many // columns)
    wide = COLUMN if many == 1 else PAGE
    figure = blank(wide, 0.5 + (1.95 if many == 1 else 1.6) * rows + 0.14 * len(study.runs) / columns)
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    handles: list[Any] = []
    for place, (axes, measure) in enumerate(zip(panels, study.measures, strict=False)):
        handles = _panel(axes, study, series, measure, spots)
        if many > 1:
            axes.set_title(label(measure))
        if place + columns >= many:
            axes.set_xlabel("temperature of the rewrites")
            axes.tick_params(labelbottom=True)
        if place % columns == 0:
            one = f" {label(measure)}" if many == 1 else ""
            axes.set_ylabel(f"Relative Δ{one}, %\n{sides(study.reference, series, 1.55 * INCH)}", fontsize=SMALL)
    for axes in panels[many:]:
        axes.set_axis_off()
    legend(figure, handles, list(study.runs))
    band = f" Shaded: ±{study.level:g} points, which count as level." if study.level else ""
    return Plate(
        name,
        figure,
        f"Relative Δ by temperature, {study.reference} against {series}",
        f"Above 0 a ranker puts {study.reference} text higher, below 0 the rewrites. Bars: 95 % intervals over "
        f"queries.{band} {study.measures[0]}: {_numbers(study, series)}.",
    )


def _numbers(study: Study, series: str) -> str:
    return "; ".join(
        f"{run} "
        + ", ".join(
            f"{signed(tilt.value) if np.isfinite(tilt.value) else 'undefined'} at {arm.temperature:g}"
            for arm, tilt in study.points(run, study.measures[0], series)
        )
        for run in study.runs
    )


def _panel(axes: Any, study: Study, series: str, measure: str, spots: Sequence[float]) -> list[Any]:
    if study.level:
        axes.axhspan(-study.level, study.level, color=PALE, linewidth=0, zorder=0)
    axes.axhline(0, color=DARK, linewidth=0.7, zorder=1)
    span = spots[-1] - spots[0] or 1.0
    middle, handles = (len(study.runs) - 1) / 2, []
    for number, run in enumerate(study.runs):
        points = [(arm, tilt) for arm, tilt in study.points(run, measure, series) if np.isfinite(tilt.value)]
        values = np.array([tilt.value for _, tilt in points])
        ends = np.array([[tilt.value - tilt.low, tilt.high - tilt.value] for _, tilt in points]).reshape(-1, 2)
        handles.append(
            axes.errorbar(
                [arm.temperature + _DODGE * span * (number - middle) for arm, _ in points], values,
                yerr=np.clip(np.nan_to_num(ends.T), 0, None), color=colour(number), marker=mark(number),
                linestyle=dash(number), elinewidth=0.8, capsize=1.5, zorder=2 + number,
            )
        )  # fmt: skip
    axes.set_xticks(spots, [f"{spot:g}" for spot in spots])
    axes.set_xlim(spots[0] - 0.09 * span, spots[-1] + 0.09 * span)
    return handles
