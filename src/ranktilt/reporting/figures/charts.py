"""Charts as Vega-Lite specifications, from plain arrays: one function for each kind of chart.

A *tone* is the colour and shape of a mark, by its meaning: which side is favoured, or a verdict.
*Neutral* is the value that favours neither side. Values within a *margin* of it count as level, and
are shaded. A *band* is the range of values that random labels of documents would give; it is
hatched. The text that appears when a mark is pointed at is its *tip*. In every function, ``x`` and
``y`` are the titles of the axes, ``across`` and ``up`` the axes themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranktilt.reporting.figures.drawing import (
    COLOURS,
    DASHES,
    DIM,
    INK,
    LINE,
    SHAPES,
    Drawing,
    X,
    Y,
    axis,
    chart,
    distinct_labels,
    dots,
    finite_number,
    interval_lines,
    is_size_known,
    layer,
    level_band,
    range_around_zero,
    range_with_room,
    reference_line,
    row_axis,
    series_channel,
    single_line,
    tone_channels,
)
from ranktilt.reporting.shown_names import middle_out
from ranktilt.reporting.tones import Tone

_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Ranks that an axis labels."""
_FEW_POINTS = 500
"""Number of points from which on each of them is drawn small."""
_ROOM = 0.08
"""Share of an axis that is left free at either end."""
_HEIGHTS = {"histogram": 260, "clouds": 560, "lines": 360, "curves": 240, "scatter": 380}
"""Height in pixels of each kind of chart that has no rows."""
_ROW_HEIGHT = 24
"""Height of a row in pixels, which has room for one line of text."""
_LABEL_GAP = "\u2003" * 3
"""Blanks between two parts of a label."""
_NAME_LETTERS = 24
"""Most characters of a name that shares its line with other text."""
_LINE_LETTERS = 40
"""Most characters of a name that is alone in its line."""
_MOST_LABELLED = 12
"""Most points of a scatter plot that are labelled with their names."""
_LARGEST_DELTA = 205.0
"""Largest Relative Δ on an axis: 200, the largest possible value, and some room."""
_TIP = {"field": "tip"}
"""Channel of the text that appears when a mark is pointed at."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One value with its interval, and the values to compare it with."""

    label: str
    """Name of what has the value, such as a ranker."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    tone: Tone = ""
    """Verdict on the value, which the colour and shape of the mark show."""
    inner: float = float("nan")
    """Half-width of a second interval around the value, drawn thick; NaN for none."""
    detectable: float = float("nan")
    """Smallest difference from `neutral` that is detected four times in five (power 80 %).

    NaN or 0 where it is not drawn.
    """
    neutral: float = 0.0
    """The value that favours nobody."""
    band: tuple[float, float] = (0.0, 0.0)
    """Range that random labels give; (0, 0) for none."""
    hover: tuple[str, ...] = ()
    """Lines shown when the mark is pointed at; label, value and interval by default."""

    @property
    def is_detected(self) -> bool:
        """Whether the value is shown not to be neutral; never for an inconclusive verdict."""
        return self.tone != "unsure" and (self.low > self.neutral or self.high < self.neutral)

    @property
    def tip(self) -> str:
        """Text shown when the mark is pointed at."""
        if self.hover:
            return "\n".join(map(single_line, self.hover))
        interval = f"{self.value:+.4g} [{self.low:+.4g}, {self.high:+.4g}]".replace("-", "−")
        return f"{single_line(self.label)}: {interval}"


@dataclass(frozen=True, kw_only=True)
class ScatterPoint:
    """One point of a scatter plot, with an interval along either axis where it is known."""

    mark: Mark
    """Name of the point, and its value and interval on the vertical axis."""
    x: float
    """Value on the horizontal axis."""
    low: float = float("nan")
    """Lower end of the horizontal interval; NaN where it is not known."""
    high: float = float("nan")
    """Upper end of the horizontal interval; NaN where it is not known."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a line, with its interval."""

    x: float
    """Value on the horizontal axis."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    label: str = ""
    """Text shown when the point is pointed at."""


def histogram(
    shares: Mapping[str, ArrayLike], edges: ArrayLike, *, x: str, y: str = "share of pairs, %"
) -> Drawing:
    """Draw histograms over each other.

    `shares` are the heights of the bars of each distribution, in percent, and `edges` the borders
    of the bins, which are the same for all.
    """
    borders = np.asarray(edges, dtype=np.float64)
    rows = []
    for name, heights in shares.items():
        bins = zip(pairwise(borders), np.asarray(heights, dtype=np.float64), strict=True)
        rows += [_bin_row(name, low, high, height) for (low, high), height in bins if height]
    across = axis(x, [float(borders[0]), float(borders[-1])], field=X)
    up = axis(y, field=Y, scale={"zero": True}, stack=None)
    is_overlaid = len(shares) > 1
    mark = {"type": "bar", "opacity": 0.55 if is_overlaid else 0.9, "strokeWidth": 1}
    colour = series_channel(list(shares), COLOURS, legend=is_overlaid)
    columns = layer(
        rows,
        mark,
        x=across,
        x2={"field": "end"},
        y=up,
        y2={"field": "zero"},
        color=colour,
        stroke=colour,
        tooltip=_TIP,
    )
    return chart(_HEIGHTS["histogram"], [columns])


def _bin_row(name: str, low: float, high: float, height: float) -> dict[str, Any]:
    """Return the row of data of one bin of a histogram."""
    return {
        "name": single_line(name),
        X: finite_number(low),
        "end": finite_number(high),
        Y: finite_number(height),
        "zero": 0,
        "tip": f"{single_line(name)}, {low:.4g}–{high:.4g}: {height:.1f} %",
    }


def clouds(
    groups: Mapping[str, tuple[ArrayLike, Sequence[str]]], *, has_links: bool = False
) -> Drawing:
    """Draw groups of points in the plane, each group with a colour and a shape.

    A group has an array with two coordinates for each point, and a label for each, which shows when
    the point is pointed at. `has_links` draws a line between the first points of the groups,
    between the second points, and so on.
    """
    rows = []
    for name, (points, labels) in groups.items():
        coordinates = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        for index, ((x, y), label) in enumerate(zip(coordinates, labels, strict=True)):
            rows.append(
                {
                    "name": single_line(name),
                    X: finite_number(x, 4),
                    Y: finite_number(y, 4),
                    "tip": single_line(label),
                    "pair": index,
                }
            )
    across = axis("", range_with_room([row[X] for row in rows]), field=X, axis=None)
    up = axis("", range_with_room([row[Y] for row in rows]), field=Y, axis=None)
    names = list(groups)
    links = layer(
        rows if has_links else [],
        {"type": "line", "color": DIM, "size": 0.75, "opacity": 0.6},
        x=across,
        y=up,
        detail={"field": "pair", "type": "nominal"},
    )
    size = 60 if len(rows) < _FEW_POINTS else 25
    marks = layer(
        rows,
        {"type": "point", "size": size, "strokeWidth": 1.5},
        x=across,
        y=up,
        tooltip=_TIP,
        color=series_channel(names, COLOURS),
        shape=series_channel(names, SHAPES),
    )
    # Without the shift key the wheel scrolls the page.
    zoom = {"type": "interval", "zoom": "wheel![event.shiftKey]"}
    marks["params"] = [{"name": "zoom", "bind": "scales", "select": zoom}]
    return chart(_HEIGHTS["clouds"], [links, marks])


def lines(
    points: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    band: float = 0.0,
    dodge: float = 0.0,
    tick_names: Mapping[float, str] | None = None,
    domain: Sequence[float] | None = None,
) -> Drawing:
    """Draw a line for each series through points with intervals.

    `points` are those of each series by its name. `band` is the half-width of a shaded band around
    0; `dodge` moves each series sideways by so much from the one before, so that none hides
    another; `tick_names` are the labels of the horizontal axis by their positions, the numbers by
    default; `domain` is the range of the vertical axis, whose line at 0 is then left out.
    """
    middle = (len(points) - 1) / 2
    rows = []
    for index, (name, line) in enumerate(points.items()):
        shift = dodge * (index - middle)
        rows += [_point_row(name, point, shift) for point in line if np.isfinite(point.value)]
    all_points = list(chain.from_iterable(points.values()))
    ticks = sorted({point.x for point in all_points})
    room = _ROOM * (ticks[-1] - ticks[0] or 1.0)
    x_ticks: Drawing = {"values": ticks, "grid": False, "format": "~g"}
    if tick_names:
        # An expression of Vega's that looks up the label: a chain of conditions, else nothing.
        cases = [
            f"datum.value === {position:g} ? {name!r} : " for position, name in tick_names.items()
        ]
        x_ticks["labelExpr"] = "".join(cases) + "''"
    across = axis(x, [ticks[0] - room, ticks[-1] + room], field=X, axis=x_ticks)
    values = chain.from_iterable((point.value, point.low, point.high) for point in all_points)
    up = axis(y, domain or range_around_zero(list(values), band), field=Y)
    titles = list(points)
    colour = series_channel(titles, COLOURS)
    connections = layer(
        rows,
        {"type": "line", "size": 2},
        x=across,
        y=up,
        color=colour,
        strokeDash=series_channel(titles, DASHES),
    )
    intervals = interval_lines(rows, up, Y, size=1.5, encoding={"x": across, "color": colour})
    marks = dots(rows, 70, x=across, y=up, color=colour, shape=series_channel(titles, SHAPES))
    zero_line = [] if domain else [reference_line(up, Y)]
    return chart(
        _HEIGHTS["lines"],
        [*level_band(band, up, Y), *zero_line, connections, intervals, marks],
    )


def _point_row(name: str, point: Point, shift: float) -> dict[str, Any]:
    """Return the row of data of a point, which is moved sideways by `shift`."""
    return {
        "name": single_line(name),
        X: finite_number(point.x + shift),
        Y: finite_number(point.value),
        "low": finite_number(point.low),
        "high": finite_number(point.high),
        "tip": f"{single_line(name)}, {single_line(point.label)}",
    }


def curves(
    heights: Mapping[str, ArrayLike],
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    colours: Sequence[str] = COLOURS,
    has_zero_line: bool = False,
) -> Drawing:
    """Draw a line for each name over the ranks 1, 2, 3 …, on a logarithmic axis.

    `heights` are a curve's values at the ranks, in percent; `levels` are values with a dotted line
    across the chart; `has_zero_line` draws a line at 0.
    """
    rows = []
    lengths = [2]  # a logarithmic axis from 1 to 1 has no length
    for name, line in heights.items():
        values = np.asarray(line, dtype=np.float64)
        lengths.append(len(values))
        rows += [
            _rank_row(name, rank, height)
            for rank, height in enumerate(values, start=1)
            if np.isfinite(height)
        ]
    last_rank = max(lengths)
    x_ticks = {"values": [tick for tick in _TICKS if tick <= last_rank], "grid": False}
    across = axis(x, [1, last_rank], field=X, scale={"type": "log"}, axis=x_ticks)
    up = axis(y, field=Y)
    names = list(heights)
    level_lines = [reference_line(up, Y, level, dashed=True) for level in levels]
    curve_lines = layer(
        rows,
        {"type": "line", "size": 2.5},
        x=across,
        y=up,
        color=series_channel(names, colours),
        strokeDash=series_channel(names, DASHES),
        tooltip=_TIP,
    )
    zero_line = [reference_line(up, Y)] if has_zero_line else []
    return chart(_HEIGHTS["curves"], [*zero_line, *level_lines, curve_lines])


def _rank_row(name: str, rank: int, height: float) -> dict[str, Any]:
    """Return the row of data of a curve at one rank."""
    return {
        "name": single_line(name),
        X: rank,
        Y: finite_number(height, 4),
        "tip": f"{single_line(name)}, rank {rank}: {height:.1f}",
    }


def forest(
    groups: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    margin: float = 0.0,
    sides: tuple[str, str] | None = None,
    tone_names: Mapping[Tone, str] | None = None,
    also_covered: Sequence[float] = (),
) -> Drawing:
    """Draw a forest plot: values with intervals below each other, those of a group under its name.

    `margin` is the half-width of a shaded band around 0; `sides` are the sides that values to the
    right and to the left favour; `tone_names` are the names of tones in a legend, None for no
    legend; `also_covered` are further values that the axis must reach.
    """
    forest_rows = _forest_rows(groups)
    drawn = [row for row in forest_rows if row.mark is not None]
    marks = [row.mark for row in drawn if row.mark is not None]
    across = axis(x, _span(marks, margin, also_covered), field=X)
    if sides:
        across["title"] = [single_line(x), _directions(sides)]
    labels = [row.label for row in forest_rows]
    up = row_axis(labels, [row.label for row in forest_rows if row.mark is None])
    look = tone_channels((mark.tone for mark in marks), tone_names)
    row_and_colour = {"y": up, "color": look["color"]}
    rows = [
        _mark_row(row.label, row.mark, tone_names)
        for row in drawn
        if row.mark is not None and np.isfinite(row.mark.value)
    ]
    has_random_bands = any(mark.band != (0, 0) for mark in marks)
    margin_layers = [] if has_random_bands else level_band(margin, across)
    layers = [
        *margin_layers,
        *_forest_background(drawn, across, up),
        reference_line(across),
        interval_lines(rows, across, X, encoding=row_and_colour),
        interval_lines(rows, across, X, ("from", "to"), size=6, encoding=row_and_colour),
        dots(rows, 90, x=across, y=up, **look),
    ]
    return chart(_ROW_HEIGHT * len(labels) + 20, layers)


def _directions(sides: tuple[str, str]) -> str:
    """Return the text below an axis that says which side values in each direction favour."""
    first, second = (middle_out(side, _NAME_LETTERS) for side in sides)
    return single_line(f"◀ {second}{_LABEL_GAP}{first} ▶")


def _forest_background(
    drawn: Sequence[_ForestRow], across: Drawing, up: Drawing
) -> Iterator[Drawing]:
    """Yield the layers below the intervals: undetectable values, and values of random labels."""
    undetectable, random_bands = [], []
    for row in drawn:
        mark = row.mark
        if mark is None:
            continue
        if is_size_known(mark.detectable) and not mark.is_detected:
            low, high = mark.neutral - mark.detectable, mark.neutral + mark.detectable
            undetectable.append(
                {"row": row.label, "low": finite_number(low), "high": finite_number(high)}
            )
        if mark.band != (0, 0):
            random_bands.append({"row": row.label, "low": mark.band[0], "high": mark.band[1]})
    grey: Drawing = {"color": LINE, "opacity": 0.7, "clip": True}
    dark: Drawing = {"color": DIM, "opacity": 0.45, "clip": True}
    yield interval_lines(undetectable, across, X, size=15, encoding={"y": up}, **grey)
    yield interval_lines(random_bands, across, X, size=8, encoding={"y": up}, **dark)


@dataclass(frozen=True, kw_only=True)
class _ForestRow:
    """A row of a forest plot, or a heading where it has no mark."""

    label: str
    """Label of the row, or text of the heading."""
    mark: Mark | None = None
    """Mark of the row; None for a heading."""


def _forest_rows(groups: Mapping[str, Sequence[Mark]]) -> list[_ForestRow]:
    """Return all rows, with a heading above each group that has a name and several marks.

    A group of one mark needs no heading: its name is the label of the row.
    """
    rows: list[_ForestRow] = []
    for name, marks in groups.items():
        has_heading = bool(name) and len(marks) > 1
        if has_heading:
            rows.append(_ForestRow(label=middle_out(name, _LINE_LETTERS)))
        for mark in marks:
            label = _row_label(mark, name, has_heading=has_heading)
            rows.append(_ForestRow(label=label, mark=mark))
    labels = distinct_labels([row.label for row in rows])
    return [replace(row, label=label) for row, label in zip(rows, labels, strict=True)]


def _mark_row(label: str, mark: Mark, tone_names: Mapping[Tone, str] | None) -> dict[str, Any]:
    """Return the row of data of a mark of a forest plot."""
    inner_interval = {
        "from": finite_number(mark.value - mark.inner),
        "to": finite_number(mark.value + mark.inner),
    }
    return {
        "row": label,
        X: finite_number(mark.value),
        "low": finite_number(mark.low),
        "high": finite_number(mark.high),
        **inner_interval,
        "tip": mark.tip,
        "tone": single_line(tone_names[mark.tone]) if tone_names else mark.tone,
    }


def scatter(
    points: Sequence[ScatterPoint],
    *,
    x: str,
    y: str,
    margin: float,
    tone_names: Mapping[Tone, str],
    front: Sequence[int] = (),
) -> Drawing:
    """Draw a scatter plot of points with intervals along both axes.

    `margin` is the half-width of a shaded band around 0 on the vertical axis; `tone_names` are the
    names of tones in the legend; a dotted line joins the points whose indices are in `front`, such
    as a Pareto front, in this order.
    """
    drawn = [point for point in points if np.isfinite([point.x, point.mark.value]).all()]
    x_values = chain.from_iterable((point.x, point.low, point.high) for point in drawn)
    span = range_with_room([value for value in x_values if np.isfinite(value)])
    across = axis(x, span, field=X)
    # A scatter plot does not draw what is undetectable, which so needs no room.
    marks = [replace(point.mark, detectable=0) for point in drawn]
    up = axis(y, _span(marks, margin), field=Y)
    rows = [_scatter_row(point, tone_names) for point in drawn]
    look = tone_channels((point.mark.tone for point in drawn), tone_names)
    front_rows = [
        {
            X: finite_number(points[index].x),
            Y: finite_number(points[index].mark.value),
            "order": order,
        }
        for order, index in enumerate(front)
    ]
    front_line = layer(
        front_rows,
        {"type": "line", "color": DIM, "strokeDash": [2, 3], "size": 1.5},
        x=across,
        y=up,
        order={"field": "order", "type": "quantitative"},
    )
    sideways = {"y": up, "color": look["color"]}
    upwards = {"x": across, "color": look["color"]}
    labels = layer(
        rows if len(rows) <= _MOST_LABELLED else [],
        _point_label(middle=sum(span) / 2),
        x=across,
        y=up,
        text={"field": "text"},
    )
    layers = [
        *level_band(margin, up, Y),
        reference_line(up, Y),
        front_line,
        interval_lines(rows, across, X, ("left", "right"), size=1, encoding=sideways),
        interval_lines(rows, up, Y, size=1.5, encoding=upwards),
        dots(rows, 110, x=across, y=up, **look),
        labels,
    ]
    return chart(_HEIGHTS["scatter"], layers)


def _scatter_row(point: ScatterPoint, tone_names: Mapping[Tone, str]) -> dict[str, Any]:
    """Return the row of data of a point of a scatter plot."""
    mark = point.mark
    horizontal = {
        X: finite_number(point.x),
        "left": finite_number(point.low),
        "right": finite_number(point.high),
    }
    vertical = {
        Y: finite_number(mark.value),
        "low": finite_number(mark.low),
        "high": finite_number(mark.high),
    }
    texts = {
        "tone": single_line(tone_names[mark.tone]),
        "tip": mark.tip,
        "text": middle_out(single_line(mark.label), _NAME_LETTERS),
    }
    return {**horizontal, **vertical, **texts}


def _point_label(*, middle: float) -> Drawing:
    """Return the mark of a point's label: right of a point in the left half, left of any other.

    `middle` is the middle of the horizontal axis.
    """
    is_left = f"datum.x < {middle:g}"
    return {
        "type": "text",
        "color": INK,
        "baseline": "bottom",
        "dy": -4,
        "align": {"expr": f"{is_left} ? 'left' : 'right'"},
        "dx": {"expr": f"{is_left} ? 7 : -7"},
    }


def _row_label(mark: Mark, name: str, *, has_heading: bool) -> str:
    """Return the label of a mark's row, indented below a heading.

    `name` is the name of the mark's group, which is the label where the group has no heading.
    """
    if has_heading:
        return f"  {middle_out(mark.label, _NAME_LETTERS)}"
    return middle_out(name or mark.label, _LINE_LETTERS)


def _span(marks: Sequence[Mark], margin: float, also_covered: Sequence[float] = ()) -> list[float]:
    """Return the range of an axis, which holds every interval, band and neutral value.

    What could not have been detected is cut off where it reaches further. An interval that leaves
    the range of Relative Δ is cut off too, but no value is.
    """
    # One and a half margins, so that the borders of the shaded band are seen.
    values = [*also_covered, 0.0, -1.5 * margin, 1.5 * margin]
    for mark in marks:
        values += [mark.value, mark.low, mark.high, mark.neutral, *mark.band]
    finite_values = [value for value in values if np.isfinite(value)]
    low, high = min(finite_values), max(finite_values)
    room = 0.05 * (high - low) or 1e-6  # an axis of one value needs some length too
    # No Relative Δ is larger, but the marks may be of another measure.
    farthest = max([_LARGEST_DELTA, *(1.06 * abs(mark.value) for mark in marks)])
    return [max(low - room, -farthest), min(high + room, farthest)]
