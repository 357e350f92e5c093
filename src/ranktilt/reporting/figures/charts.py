"""Charts as Vega-Lite specifications, from plain arrays."""

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
    bars,
    chart,
    distinct_labels,
    dots,
    known_size,
    layer,
    number,
    plain,
    reach,
    roomy,
    row_axis,
    series,
    strip,
    tones,
    zero,
)
from ranktilt.reporting.shown_names import middle_out
from ranktilt.reporting.tones import Tone

_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Ranks that an axis labels."""
_FEW_POINTS = 500
"""Number of points below which each of them is drawn large."""
_ROOM = 0.08
"""Share of an axis that is left free at either end."""
_LINE_HEIGHT = 24
"""Pixels of a row."""
_LABEL_GAP = "\u2003" * 3
"""Blanks between two parts of a label."""
_NAME_LETTERS = 24
"""Most letters of a name beside other text."""
_LINE_LETTERS = 40
"""Most letters of a name that is alone in its line."""
_MOST_LABELLED = 12
"""Most points that each have their name."""
_LARGEST_DELTA = 205.0
"""Largest Relative Δ on an axis: 200, the largest possible value, and some room."""
_TIP = {"field": "tip"}
"""Field of the text that appears at a mark."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One value with its interval, and the values to compare it with."""

    label: str
    """What the value is of."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    tone: Tone = ""
    """Verdict on it, as colour and shape of its mark."""
    inner: float = float("nan")
    """Half-width of a second interval around the value, drawn thick; NaN for none."""
    detectable: float = float("nan")
    """Smallest difference from `neutral` that is found four times in five; NaN or 0 for none."""
    neutral: float = 0.0
    """The value that favours nobody."""
    band: tuple[float, float] = (0.0, 0.0)
    """Range that random labels give; both 0 for none."""
    hover: tuple[str, ...] = ()
    """Lines shown when pointed at; its numbers by default."""

    @property
    def is_detected(self) -> bool:
        """Whether it is shown not to be neutral: an inconclusive one is not, wherever it lies."""
        return self.tone != "unsure" and (self.low > self.neutral or self.high < self.neutral)

    @property
    def tip(self) -> str:
        """Text shown when pointed at."""
        if self.hover:
            return "\n".join(map(plain, self.hover))
        interval = f"{self.value:+.4g} [{self.low:+.4g}, {self.high:+.4g}]".replace("-", "−")
        return f"{plain(self.label)}: {interval}"


@dataclass(frozen=True, kw_only=True)
class ScatterPoint:
    """One mark in the plane, with an interval along either axis where it is known."""

    mark: Mark
    """Name, and value on the vertical axis."""
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
    """Place on the horizontal axis."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    label: str = ""
    """Shown when pointed at."""


def histogram(
    shares: Mapping[str, ArrayLike], edges: ArrayLike, *, x: str, y: str = "share of pairs, %"
) -> Drawing:
    """Draw distributions over the same bins, one above the other."""
    borders = np.asarray(edges, dtype=np.float64)
    rows = []
    for name, heights in shares.items():
        bins = zip(pairwise(borders), np.asarray(heights, dtype=np.float64), strict=True)
        rows += [_bin_row(name, low, high, height) for (low, high), height in bins if height]
    across = axis(x, [float(borders[0]), float(borders[-1])], field=X)
    up = axis(y, field=Y, scale={"zero": True}, stack=None)
    is_overlaid = len(shares) > 1
    mark = {"type": "bar", "opacity": 0.55 if is_overlaid else 0.9, "strokeWidth": 1}
    colour = series(list(shares), COLOURS, legend=is_overlaid)
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
    return chart(260, [columns])


def _bin_row(name: str, low: float, high: float, height: float) -> dict[str, Any]:
    """Return the data of a histogram's bin."""
    return {
        "name": plain(name),
        X: number(low),
        "end": number(high),
        Y: number(height),
        "zero": 0,
        "tip": f"{plain(name)}, {low:.4g}–{high:.4g}: {height:.1f} %",
    }


def clouds(
    groups: Mapping[str, tuple[ArrayLike, Sequence[str]]], *, joined: bool = False
) -> Drawing:
    """Draw groups of points in the plane, each group with a colour and a shape.

    A point's label shows when pointed at; `joined` links points with the same index.
    """
    rows = []
    for name, (points, labels) in groups.items():
        coordinates = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        for index, ((x, y), label) in enumerate(zip(coordinates, labels, strict=True)):
            rows.append(
                {
                    "name": plain(name),
                    X: number(x, 4),
                    Y: number(y, 4),
                    "tip": plain(label),
                    "pair": index,
                }
            )
    across = axis("", roomy([row[X] for row in rows]), field=X, axis=None)
    up = axis("", roomy([row[Y] for row in rows]), field=Y, axis=None)
    names = list(groups)
    links = layer(
        rows if joined else [],
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
        color=series(names, COLOURS),
        shape=series(names, SHAPES),
    )
    # Without the shift key the wheel scrolls the page.
    zoom = {"type": "interval", "zoom": "wheel![event.shiftKey]"}
    marks["params"] = [{"name": "zoom", "bind": "scales", "select": zoom}]
    return chart(560, [links, marks])


def lines(
    points: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    band: float = 0.0,
    dodge: float = 0.0,
    names: Mapping[float, str] | None = None,
    domain: Sequence[float] | None = None,
) -> Drawing:
    """Draw a line for each series through points with intervals.

    `names` are labels of the axis by their x; `dodge` sets the series apart along x; a `domain`
    of y leaves the line at zero out.
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
    if names:
        cases = [f"datum.value === {at:g} ? {name!r} : " for at, name in names.items()]
        x_ticks["labelExpr"] = "".join(cases) + "''"
    across = axis(x, [ticks[0] - room, ticks[-1] + room], field=X, axis=x_ticks)
    values = chain.from_iterable((point.value, point.low, point.high) for point in all_points)
    up = axis(y, domain or reach(list(values), band), field=Y)
    titles = list(points)
    colour = series(titles, COLOURS)
    connections = layer(
        rows,
        {"type": "line", "size": 2},
        x=across,
        y=up,
        color=colour,
        strokeDash=series(titles, DASHES),
    )
    intervals = bars(rows, up, Y, size=1.5, encoding={"x": across, "color": colour})
    marks = dots(rows, 70, x=across, y=up, color=colour, shape=series(titles, SHAPES))
    zero_line = [] if domain else [zero(up, Y)]
    return chart(360, [*strip(band, up, Y), *zero_line, connections, intervals, marks])


def _point_row(name: str, point: Point, shift: float) -> dict[str, Any]:
    """Return the data of a point, moved sideways so that lines do not hide each other."""
    return {
        "name": plain(name),
        X: number(point.x + shift),
        Y: number(point.value),
        "low": number(point.low),
        "high": number(point.high),
        "tip": f"{plain(name)}, {plain(point.label)}",
    }


def curves(
    heights: Mapping[str, ArrayLike],
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    colours: Sequence[str] = COLOURS,
    zeroed: bool = False,
) -> Drawing:
    """Draw a line for each name over the ranks 1, 2, 3 …, on a logarithmic axis."""
    rows = []
    lengths = [2]
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
    level_lines = [zero(up, Y, level, dashed=True) for level in levels]
    curve_lines = layer(
        rows,
        {"type": "line", "size": 2.5},
        x=across,
        y=up,
        color=series(names, colours),
        strokeDash=series(names, DASHES),
        tooltip=_TIP,
    )
    return chart(240, [*([zero(up, Y)] if zeroed else []), *level_lines, curve_lines])


def _rank_row(name: str, rank: int, height: float) -> dict[str, Any]:
    """Return the data of a curve at a rank."""
    return {
        "name": plain(name),
        X: rank,
        Y: number(height, 4),
        "tip": f"{plain(name)}, rank {rank}: {height:.1f}",
    }


def forest(
    groups: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    margin: float = 0.0,
    sides: tuple[str, str] | None = None,
    names: Mapping[Tone, str] | None = None,
    reached: Sequence[float] = (),
) -> Drawing:
    """Draw intervals below each other, those of a group under its heading.

    The axis goes as far as `reached` too.
    """
    forest_rows = _forest_rows(groups)
    drawn = [row for row in forest_rows if row.mark is not None]
    marks = [row.mark for row in drawn if row.mark is not None]
    across = axis(x, _span(marks, margin, reached), field=X)
    if sides:
        across["title"] = [plain(x), _directions(sides)]
    labels = [row.label for row in forest_rows]
    up = row_axis(labels, [row.label for row in forest_rows if row.mark is None])
    look = tones((mark.tone for mark in marks), names)
    toned_rows = {"y": up, "color": look["color"]}
    rows = [
        _mark_row(row.label, row.mark, names)
        for row in drawn
        if row.mark is not None and np.isfinite(row.mark.value)
    ]
    has_bands = any(mark.band != (0, 0) for mark in marks)
    level = [] if has_bands else strip(margin, across)
    layers = [
        *level,
        *_forest_background(drawn, across, up),
        zero(across),
        bars(rows, across, X, encoding=toned_rows),
        bars(rows, across, X, ("from", "to"), size=6, encoding=toned_rows),
        dots(rows, 90, x=across, y=up, **look),
    ]
    return chart(_LINE_HEIGHT * len(labels) + 20, layers)


def _directions(sides: tuple[str, str]) -> str:
    """Return the line below an axis that says which side each direction favours."""
    first, second = (middle_out(side, _NAME_LETTERS) for side in sides)
    return plain(f"◀ {second}{_LABEL_GAP}{first} ▶")


def _forest_background(
    drawn: Sequence[_ForestRow], across: Drawing, up: Drawing
) -> Iterator[Drawing]:
    """Draw what could not have been detected, and where random lists lie, below the intervals."""
    undetected, random = [], []
    for row in drawn:
        mark = row.mark
        if mark is None:
            continue
        if known_size(mark.detectable) and not mark.is_detected:
            low, high = mark.neutral - mark.detectable, mark.neutral + mark.detectable
            undetected.append({"row": row.label, "low": number(low), "high": number(high)})
        if mark.band != (0, 0):
            random.append({"row": row.label, "low": mark.band[0], "high": mark.band[1]})
    grey: Drawing = {"color": LINE, "opacity": 0.7, "clip": True}
    dark: Drawing = {"color": DIM, "opacity": 0.45, "clip": True}
    yield bars(undetected, across, X, size=15, encoding={"y": up}, **grey)
    yield bars(random, across, X, size=8, encoding={"y": up}, **dark)


@dataclass(frozen=True, kw_only=True)
class _ForestRow:
    """A row of a forest, or a heading where it has no mark."""

    label: str
    """Text at the row."""
    mark: Mark | None = None
    """Its mark; None for a heading."""


def _forest_rows(groups: Mapping[str, Sequence[Mark]]) -> list[_ForestRow]:
    """Return all rows, with a heading above the marks of a named group of several."""
    rows: list[_ForestRow] = []
    for name, marks in groups.items():
        is_headed = bool(name) and len(marks) > 1
        if is_headed:
            rows.append(_ForestRow(label=middle_out(name, _LINE_LETTERS)))
        for mark in marks:
            label = _row_label(mark, "" if is_headed else name, is_headed=is_headed)
            rows.append(_ForestRow(label=label, mark=mark))
    labels = distinct_labels([row.label for row in rows])
    return [replace(row, label=label) for row, label in zip(rows, labels, strict=True)]


def _mark_row(label: str, mark: Mark, names: Mapping[Tone, str] | None) -> dict[str, Any]:
    """Return the data of a row of a forest."""
    inner = {
        "from": number(mark.value - mark.inner),
        "to": number(mark.value + mark.inner),
    }
    return {
        "row": label,
        X: number(mark.value),
        "low": number(mark.low),
        "high": number(mark.high),
        **inner,
        "tip": mark.tip,
        "tone": plain(names[mark.tone]) if names else mark.tone,
    }


def scatter(
    points: Sequence[ScatterPoint],
    *,
    x: str,
    y: str,
    margin: float,
    names: Mapping[Tone, str],
    front: Sequence[int] = (),
) -> Drawing:
    """Draw marks in the plane with intervals along both axes.

    A dotted line joins the points whose indices are in `front`.
    """
    drawn = [point for point in points if np.isfinite([point.x, point.mark.value]).all()]
    x_values = chain.from_iterable((point.x, point.low, point.high) for point in drawn)
    span = roomy([value for value in x_values if np.isfinite(value)])
    across = axis(x, span, field=X)
    up = axis(y, _span([replace(point.mark, detectable=0) for point in drawn], margin), field=Y)
    rows = [_scatter_row(point, names) for point in drawn]
    look = tones((point.mark.tone for point in drawn), names)
    front_rows = [
        {X: number(points[index].x), Y: number(points[index].mark.value), "order": index}
        for index in front
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
        *strip(margin, up, Y),
        zero(up, Y),
        front_line,
        bars(rows, across, X, ("left", "right"), size=1, encoding=sideways),
        bars(rows, up, Y, size=1.5, encoding=upwards),
        dots(rows, 110, x=across, y=up, **look),
        labels,
    ]
    return chart(380, layers)


def _scatter_row(point: ScatterPoint, names: Mapping[Tone, str]) -> dict[str, Any]:
    """Return the data of a mark in the plane."""
    mark = point.mark
    sideways = {
        X: number(point.x),
        "left": number(point.low),
        "right": number(point.high),
    }
    upwards = {
        Y: number(mark.value),
        "low": number(mark.low),
        "high": number(mark.high),
    }
    texts = {
        "tone": plain(names[mark.tone]),
        "tip": mark.tip,
        "text": middle_out(plain(mark.label), _NAME_LETTERS),
    }
    return {**sideways, **upwards, **texts}


def _point_label(*, middle: float) -> Drawing:
    """Write a label to the side of its point that has more room."""
    is_left = f"datum.x < {middle:g}"
    return {
        "type": "text",
        "color": INK,
        "baseline": "bottom",
        "dy": -4,
        "align": {"expr": f"{is_left} ? 'left' : 'right'"},
        "dx": {"expr": f"{is_left} ? 7 : -7"},
    }


def _row_label(mark: Mark, name: str, *, is_headed: bool) -> str:
    """Return the label of a row: below a heading it is set in, alone it may be longer."""
    if is_headed:
        return f"  {middle_out(mark.label, _NAME_LETTERS)}"
    return middle_out(name or mark.label, _LINE_LETTERS)


def _span(marks: Sequence[Mark], margin: float, reached: Sequence[float] = ()) -> list[float]:
    """Return a range with every interval and band in it, and what is neutral, and no more.

    What could have been detected is cut off where it reaches further.
    """
    values = [*reached, 0.0, -1.5 * margin, 1.5 * margin]
    for mark in marks:
        values += [mark.value, mark.low, mark.high, mark.neutral, *mark.band]
    known = [value for value in values if np.isfinite(value)]
    room = 0.05 * (max(known) - min(known)) or 1e-6
    farthest = max([_LARGEST_DELTA, *(1.06 * abs(mark.value) for mark in marks)])
    return [max(min(known) - room, -farthest), min(max(known) + room, farthest)]
