"""Charts as Vega-Lite specifications, from plain arrays; colours are names that the page's style sheet resolves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranktilt.reporting.figures.drawing import (
    COLOURS,
    DASHES,
    DIM,
    SHAPES,
    Drawing,
    X,
    Y,
    axis,
    bars,
    chart,
    dots,
    layer,
    number,
    plain,
    reach,
    series,
    strip,
    tones,
    zero,
)
from ranktilt.reporting.tones import Tone

_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_ROW, _FEW, _ROOM = 34, 500, 0.08
_TIP = {"field": "tip"}


@dataclass(frozen=True)
class ForestRow:
    """One row of a forest plot."""

    label: str
    value: float
    low: float
    high: float
    inner: float = float("nan")
    """Half-width of a second interval around the value, drawn thick; NaN for none."""
    tone: Tone = ""
    """Colour and shape of its mark."""


@dataclass(frozen=True)
class Point:
    """One point of a line, with its interval."""

    x: float
    value: float
    low: float
    high: float
    label: str = ""
    """Shown when pointed at."""


def histogram(shares: Mapping[str, ArrayLike], edges: ArrayLike, *, x: str, y: str = "share of pairs, %") -> Drawing:
    """Draw distributions over the same bins, one above the other."""
    borders = np.asarray(edges, dtype=np.float64)
    rows = [
        {"name": plain(name), X: number(low), "end": number(high), Y: number(height), "zero": 0,
         "tip": f"{plain(name)}, {low:.4g}–{high:.4g}: {height:.1f} %"}
        for name, heights in shares.items()
        for (low, high), height in zip(pairwise(borders), np.asarray(heights, dtype=np.float64), strict=True)
        if height
    ]  # fmt: skip
    across = axis(x, [float(borders[0]), float(borders[-1])], field=X)
    up = axis(y, field=Y, scale={"zero": True}, stack=None)
    mark = {"type": "bar", "opacity": 0.55 if len(shares) > 1 else 0.9, "strokeWidth": 1}
    colour = series(list(shares), COLOURS, legend=len(shares) > 1)
    return chart(260, [layer(rows, mark, x=across, x2={"field": "end"}, y=up, y2={"field": "zero"}, color=colour,
                             stroke=colour, tooltip=_TIP)])  # fmt: skip


def clouds(groups: Mapping[str, tuple[ArrayLike, Sequence[str]]], *, joined: bool = False) -> Drawing:
    """Draw groups of points in the plane, each with a colour and a shape; a point's label shows when pointed at."""
    rows = [
        {"name": plain(name), X: number(x, 4), Y: number(y, 4), "tip": plain(label), "pair": place}
        for name, (places, labels) in groups.items()
        for place, ((x, y), label) in enumerate(
            zip(np.asarray(places, dtype=np.float64).reshape(-1, 2), labels, strict=True)
        )
    ]  # fmt: skip
    across, up = (axis("", _roomy([row[name] for row in rows]), field=name, axis=None) for name in (X, Y))
    names = list(groups)
    links = layer(rows if joined else [], {"type": "line", "color": DIM, "size": 0.75, "opacity": 0.6}, x=across, y=up,
                  detail={"field": "pair", "type": "nominal"})  # fmt: skip
    size = 60 if len(rows) < _FEW else 25
    marks = layer(rows, {"type": "point", "size": size, "strokeWidth": 1.5}, x=across, y=up, tooltip=_TIP,
                  color=series(names, COLOURS), shape=series(names, SHAPES))  # fmt: skip
    marks["params"] = [
        {"name": "zoom", "bind": "scales", "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"}}
    ]
    return chart(560, [links, marks])


def forest(
    rows: Sequence[ForestRow], *, x: str, margin: float, unit: str = "", reached: Sequence[float] = ()
) -> Drawing:
    """Draw intervals below each other, with the zero line and a shaded margin around it.

    The axis goes as far as the rows, and as the values `reached`, so that several figures can have one scale.
    """
    labels = told_apart([row.label for row in rows])
    drawn = [
        {"row": label, X: number(row.value), "low": number(row.low), "high": number(row.high),
         "from": number(row.value - row.inner), "to": number(row.value + row.inner), "tone": row.tone,
         "tip": _ends(row, unit)}
        for label, row in zip(labels, rows, strict=True)
        if np.isfinite(row.value)
    ]  # fmt: skip
    span = reach([*reached, *(v for row in rows for v in (row.value, row.low, row.high))], margin)
    across = axis(x, span, field=X)
    up = {"field": "row", "type": "nominal", "title": None, "scale": {"domain": labels},
          "axis": {"labelLimit": 300, "ticks": False, "domain": False}}  # fmt: skip
    look = tones(row.tone for row in rows)
    ruled = {"y": up, "color": look["color"]}
    return chart(70 + _ROW * len(rows), [
        *strip(margin, across),
        zero(across),
        bars(drawn, across, X, encoding=ruled),
        bars(drawn, across, X, ("from", "to"), size=6, encoding=ruled),
        dots(drawn, 110, x=across, y=up, **look),
    ])  # fmt: skip


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
    """Draw a line a series through points with intervals, the zero line, and a shaded band around it.

    `names` stand at the places along x where these are no numbers to be read; with a `domain` of y there is no zero.
    """
    middle = (len(points) - 1) / 2
    rows = [
        {"name": plain(name), X: number(point.x + dodge * (place - middle)), Y: number(point.value),
         "low": number(point.low), "high": number(point.high), "tip": f"{plain(name)}, {plain(point.label)}"}
        for place, (name, some) in enumerate(points.items())
        for point in some
        if np.isfinite(point.value)
    ]  # fmt: skip
    ticks = sorted({point.x for some in points.values() for point in some})
    room = _ROOM * (ticks[-1] - ticks[0] or 1.0)
    ticked: Drawing = {"values": ticks, "grid": False, "format": "~g"}
    if names:
        ticked["labelExpr"] = "".join(f"datum.value === {at:g} ? {name!r} : " for at, name in names.items()) + "''"
    across = axis(x, [ticks[0] - room, ticks[-1] + room], field=X, axis=ticked)
    values = [v for some in points.values() for point in some for v in (point.value, point.low, point.high)]
    up = axis(y, domain or reach(values, band), field=Y)
    titles = list(points)
    colour = series(titles, COLOURS)
    return chart(360, [
        *strip(band, up, Y),
        *([] if domain else [zero(up, Y)]),
        layer(rows, {"type": "line", "size": 2}, x=across, y=up, color=colour, strokeDash=series(titles, DASHES)),
        bars(rows, up, Y, size=1.5, encoding={"x": across, "color": colour}),
        dots(rows, 70, x=across, y=up, color=colour, shape=series(titles, SHAPES)),
    ])  # fmt: skip


def curves(
    heights: Mapping[str, ArrayLike],
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    colours: Sequence[str] = COLOURS,
    zeroed: bool = False,
) -> Drawing:
    """Draw one line a name over the ranks 1, 2, 3 …, on a logarithmic axis."""
    rows = [
        {"name": plain(name), X: rank, Y: number(height, 4), "tip": f"{plain(name)}, rank {rank}: {height:.1f}"}
        for name, some in heights.items()
        for rank, height in enumerate(np.asarray(some, dtype=np.float64), start=1)
        if np.isfinite(height)
    ]
    ranks = max((len(np.asarray(some)) for some in heights.values()), default=2)
    shown = {"values": [tick for tick in _TICKS if tick <= ranks], "grid": False}
    across = axis(x, [1, max(ranks, 2)], field=X, scale={"type": "log"}, axis=shown)
    up, titles = axis(y, field=Y), list(heights)
    return chart(240, [
        *([zero(up, Y)] if zeroed else []),
        *(zero(up, Y, level, dashed=True) for level in levels),
        layer(rows, {"type": "line", "size": 2.5}, x=across, y=up, color=series(titles, colours),
              strokeDash=series(titles, DASHES), tooltip=_TIP),
    ])  # fmt: skip


def _roomy(values: Sequence[Any]) -> list[float]:
    """From the lowest to the highest value, with room for marks."""
    found = [value for value in values if value is not None] or [0.0, 1.0]
    room = 0.05 * (max(found) - min(found)) or 1.0
    return [min(found) - room, max(found) + room]


def told_apart(labels: Sequence[str]) -> list[str]:
    """Labels as places of an axis: one that comes again is another place, which only a blank tells."""
    return [plain(label) + " " * labels[:place].count(label) for place, label in enumerate(labels)]


def _ends(row: ForestRow, unit: str) -> str:
    return f"{plain(row.label)}: {row.value:+.4g}{unit} [{row.low:+.4g}, {row.high:+.4g}]".replace("-", "−")
