"""Charts as Vega-Lite specifications, from plain arrays; colours are names that the page's style sheet resolves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
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
    dots,
    known_size,
    layer,
    number,
    plain,
    reach,
    series,
    strip,
    tones,
    zero,
)
from ranktilt.reporting.shown_names import middle_out
from ranktilt.reporting.tones import Tone

_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FEW, _ROOM = 500, 0.08
_LINE_HEIGHT, _LETTER = 24, 7.0
_APART = "\u2003" * 3
_LONGEST, _LONG = 24, 40
"""Letters of a name, and of one that stands alone in its line."""
_LABELLED = 12
_FARTHEST = 205.0
_TIP = {"field": "tip"}


@dataclass(frozen=True)
class Mark:
    """One value with its interval, and what it is to be read against."""

    label: str
    value: float
    low: float
    high: float
    tone: Tone = ""
    """What is said of it; colour and shape of its mark."""
    inner: float = float("nan")
    """Half-width of a second interval around the value, drawn thick; NaN for none."""
    detectable: float = float("nan")
    """Smallest difference from `neutral` that is found four times in five; NaN or 0 for none."""
    neutral: float = 0.0
    """The value that favours nobody."""
    band: tuple[float, float] = (0.0, 0.0)
    """What random labels give; both 0 for none."""
    hover: tuple[str, ...] = ()
    """Lines shown when pointed at; its numbers by default."""

    @property
    def is_detected(self) -> bool:
        """Whether it is shown not to be neutral: an inconclusive one is not, wherever it lies."""
        return self.tone != "unsure" and (self.low > self.neutral or self.high < self.neutral)

    @property
    def tip(self) -> str:
        interval = f"{self.value:+.4g} [{self.low:+.4g}, {self.high:+.4g}]".replace("-", "−")
        return (
            "\n".join(map(plain, self.hover)) if self.hover else f"{plain(self.label)}: {interval}"
        )


@dataclass(frozen=True)
class ScatterPoint:
    """One mark in the plane, with an interval along either axis where it is known."""

    mark: Mark
    x: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Point:
    """One point of a line, with its interval."""

    x: float
    value: float
    low: float
    high: float
    label: str = ""
    """Shown when pointed at."""


def histogram(
    shares: Mapping[str, ArrayLike], edges: ArrayLike, *, x: str, y: str = "share of pairs, %"
) -> Drawing:
    """Draw distributions over the same bins, one above the other."""
    borders = np.asarray(edges, dtype=np.float64)
    rows = [
        {
            "name": plain(name),
            X: number(low),
            "end": number(high),
            Y: number(height),
            "zero": 0,
            "tip": f"{plain(name)}, {low:.4g}–{high:.4g}: {height:.1f} %",
        }
        for name, heights in shares.items()
        for (low, high), height in zip(
            pairwise(borders), np.asarray(heights, dtype=np.float64), strict=True
        )
        if height
    ]
    across = axis(x, [float(borders[0]), float(borders[-1])], field=X)
    up = axis(y, field=Y, scale={"zero": True}, stack=None)
    mark = {"type": "bar", "opacity": 0.55 if len(shares) > 1 else 0.9, "strokeWidth": 1}
    colour = series(list(shares), COLOURS, legend=len(shares) > 1)
    return chart(
        260,
        [
            layer(
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
        ],
    )


def clouds(
    groups: Mapping[str, tuple[ArrayLike, Sequence[str]]], *, joined: bool = False
) -> Drawing:
    """Draw groups of points in the plane, each with a colour and a shape; a point's label shows when pointed at."""
    rows = [
        {"name": plain(name), X: number(x, 4), Y: number(y, 4), "tip": plain(label), "pair": place}
        for name, (places, labels) in groups.items()
        for place, ((x, y), label) in enumerate(
            zip(np.asarray(places, dtype=np.float64).reshape(-1, 2), labels, strict=True)
        )
    ]
    across, up = (
        axis("", _roomy([row[name] for row in rows]), field=name, axis=None) for name in (X, Y)
    )
    names = list(groups)
    links = layer(
        rows if joined else [],
        {"type": "line", "color": DIM, "size": 0.75, "opacity": 0.6},
        x=across,
        y=up,
        detail={"field": "pair", "type": "nominal"},
    )
    size = 60 if len(rows) < _FEW else 25
    marks = layer(
        rows,
        {"type": "point", "size": size, "strokeWidth": 1.5},
        x=across,
        y=up,
        tooltip=_TIP,
        color=series(names, COLOURS),
        shape=series(names, SHAPES),
    )
    marks["params"] = [
        {
            "name": "zoom",
            "bind": "scales",
            "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"},
        }
    ]
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
    """Draw a line a series through points with intervals; `names` stand at places of x; a `domain` leaves zero out."""
    middle = (len(points) - 1) / 2
    rows = [
        {
            "name": plain(name),
            X: number(point.x + dodge * (place - middle)),
            Y: number(point.value),
            "low": number(point.low),
            "high": number(point.high),
            "tip": f"{plain(name)}, {plain(point.label)}",
        }
        for place, (name, some) in enumerate(points.items())
        for point in some
        if np.isfinite(point.value)
    ]
    ticks = sorted({point.x for some in points.values() for point in some})
    room = _ROOM * (ticks[-1] - ticks[0] or 1.0)
    ticked: Drawing = {"values": ticks, "grid": False, "format": "~g"}
    if names:
        ticked["labelExpr"] = (
            "".join(f"datum.value === {at:g} ? {name!r} : " for at, name in names.items()) + "''"
        )
    across = axis(x, [ticks[0] - room, ticks[-1] + room], field=X, axis=ticked)
    values = [
        v
        for some in points.values()
        for point in some
        for v in (point.value, point.low, point.high)
    ]
    up = axis(y, domain or reach(values, band), field=Y)
    titles = list(points)
    colour = series(titles, COLOURS)
    return chart(
        360,
        [
            *strip(band, up, Y),
            *([] if domain else [zero(up, Y)]),
            layer(
                rows,
                {"type": "line", "size": 2},
                x=across,
                y=up,
                color=colour,
                strokeDash=series(titles, DASHES),
            ),
            bars(rows, up, Y, size=1.5, encoding={"x": across, "color": colour}),
            dots(rows, 70, x=across, y=up, color=colour, shape=series(titles, SHAPES)),
        ],
    )


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
        {
            "name": plain(name),
            X: rank,
            Y: number(height, 4),
            "tip": f"{plain(name)}, rank {rank}: {height:.1f}",
        }
        for name, some in heights.items()
        for rank, height in enumerate(np.asarray(some, dtype=np.float64), start=1)
        if np.isfinite(height)
    ]
    ranks = max((len(np.asarray(some)) for some in heights.values()), default=2)
    shown = {"values": [tick for tick in _TICKS if tick <= ranks], "grid": False}
    across = axis(x, [1, max(ranks, 2)], field=X, scale={"type": "log"}, axis=shown)
    up, titles = axis(y, field=Y), list(heights)
    return chart(
        240,
        [
            *([zero(up, Y)] if zeroed else []),
            *(zero(up, Y, level, dashed=True) for level in levels),
            layer(
                rows,
                {"type": "line", "size": 2.5},
                x=across,
                y=up,
                color=series(titles, colours),
                strokeDash=series(titles, DASHES),
                tooltip=_TIP,
            ),
        ],
    )


def forest(
    groups: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    margin: float = 0.0,
    sides: tuple[str, str] | None = None,
    names: Mapping[Tone, str] | None = None,
    reached: Sequence[float] = (),
) -> Drawing:
    """Draw intervals below each other, those of a group under its heading; the axis goes as far as `reached` too."""
    placed: list[tuple[str, Mark | None]] = []
    for name, some in groups.items():
        headed = bool(name) and len(some) > 1
        placed += [(middle_out(name, _LONG), None)] * headed
        placed += [
            (_row_label(mark, "" if headed else name, is_headed=headed), mark) for mark in some
        ]
    labels = _told_apart([label for label, _ in placed])
    drawn = [
        (label, mark) for label, (_, mark) in zip(labels, placed, strict=True) if mark is not None
    ]
    marks = [mark for _, mark in drawn]
    rows = [
        {
            "row": label,
            X: number(mark.value),
            "low": number(mark.low),
            "high": number(mark.high),
            "from": number(mark.value - mark.inner),
            "to": number(mark.value + mark.inner),
            "tip": mark.tip,
            "tone": plain(names[mark.tone]) if names else mark.tone,
        }
        for label, mark in drawn
        if np.isfinite(mark.value)
    ]
    across = axis(x, _span(marks, margin, reached), field=X)
    if sides:
        first, second = (middle_out(side, _LONGEST) for side in sides)
        across["title"] = [plain(x), plain(f"◀ {second}{_APART}{first} ▶")]
    headings = [label for label, (_, mark) in zip(labels, placed, strict=True) if mark is None]
    up = _row_axis(labels, headings)
    look = tones((mark.tone for mark in marks), names)
    of, coloured = {"y": up}, {"y": up, "color": look["color"]}
    hidden = [
        {
            "row": label,
            "low": number(mark.neutral - mark.detectable),
            "high": number(mark.neutral + mark.detectable),
        }
        for label, mark in drawn
        if known_size(mark.detectable) and not mark.is_detected
    ]
    random = [
        {"row": label, "low": m.band[0], "high": m.band[1]}
        for label, m in drawn
        if m.band != (0, 0)
    ]
    return chart(
        _LINE_HEIGHT * len(labels) + 20,
        [
            *([] if random else strip(margin, across)),
            bars(hidden, across, X, size=15, color=LINE, opacity=0.7, clip=True, encoding=of),
            bars(random, across, X, size=8, color=DIM, opacity=0.45, clip=True, encoding=of),
            zero(across),
            bars(rows, across, X, encoding=coloured),
            bars(rows, across, X, ("from", "to"), size=6, encoding=coloured),
            dots(rows, 90, x=across, y=up, **look),
        ],
    )


def scatter(
    points: Sequence[ScatterPoint],
    *,
    x: str,
    y: str,
    margin: float,
    names: Mapping[Tone, str],
    front: Sequence[int] = (),
) -> Drawing:
    """Draw marks in the plane with intervals along both axes; a dotted line joins the places of the `front`."""
    drawn = [point for point in points if np.isfinite([point.x, point.mark.value]).all()]
    span = _roomy(
        [v for point in drawn for v in (point.x, point.low, point.high) if np.isfinite(v)]
    )
    across = axis(x, span, field=X)
    up = axis(y, _span([replace(point.mark, detectable=0) for point in drawn], margin), field=Y)
    rows = [
        {
            X: number(point.x),
            "left": number(point.low),
            "right": number(point.high),
            Y: number(point.mark.value),
            "low": number(point.mark.low),
            "high": number(point.mark.high),
            "tone": plain(names[point.mark.tone]),
            "tip": point.mark.tip,
            "text": middle_out(plain(point.mark.label), _LONGEST),
        }
        for point in drawn
    ]
    look = tones((point.mark.tone for point in drawn), names)
    side = f"datum.x < {sum(span) / 2:g}"
    beside = {
        "type": "text",
        "color": INK,
        "baseline": "bottom",
        "dy": -4,
        "align": {"expr": f"{side} ? 'left' : 'right'"},
        "dx": {"expr": f"{side} ? 7 : -7"},
    }
    joined = [{X: number(points[n].x), Y: number(points[n].mark.value), "order": n} for n in front]
    return chart(
        380,
        [
            *strip(margin, up, Y),
            zero(up, Y),
            layer(
                joined,
                {"type": "line", "color": DIM, "strokeDash": [2, 3], "size": 1.5},
                x=across,
                y=up,
                order={"field": "order", "type": "quantitative"},
            ),
            bars(
                rows,
                across,
                X,
                ("left", "right"),
                size=1,
                encoding={"y": up, "color": look["color"]},
            ),
            bars(rows, up, Y, size=1.5, encoding={"x": across, "color": look["color"]}),
            dots(rows, 110, x=across, y=up, **look),
            layer(
                rows if len(rows) <= _LABELLED else [],
                beside,
                x=across,
                y=up,
                text={"field": "text"},
            ),
        ],
    )


def _row_label(mark: Mark, name: str, *, is_headed: bool) -> str:
    """Return the label of a row: below a heading it is set in, alone it may be longer."""
    if is_headed:
        return f"  {middle_out(mark.label, _LONGEST)}"
    return middle_out(name or mark.label, _LONG)


def _row_axis(labels: Sequence[str], headings: Sequence[str]) -> Drawing:
    """Labels to the left of their rows, headings in bold."""
    bold = f"indexof({json.dumps(headings)}, datum.value) >= 0"
    left = {
        "labelLimit": 300,
        "ticks": False,
        "domain": False,
        "labelAlign": "left",
        "labelPadding": 12 + round(_LETTER * max((len(label) for label in labels), default=0)),
        "labelFontWeight": {"condition": {"test": bold, "value": "bold"}, "value": "normal"},
    }
    return {
        "field": "row",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(labels)},
        "axis": left,
    }


def _span(marks: Sequence[Mark], margin: float, reached: Sequence[float] = ()) -> list[float]:
    """Return a range with every interval and band in it, and what is neutral, and no more.

    What could have been detected is cut off where it reaches further.
    """
    values = [v for mark in marks for v in (mark.value, mark.low, mark.high, *mark.band)]
    values += [mark.neutral for mark in marks]
    values += [*reached, 0.0, -1.5 * margin, 1.5 * margin]
    known = [value for value in values if np.isfinite(value)]
    room = 0.05 * (max(known) - min(known)) or 1e-6
    farthest = max([_FARTHEST, *(1.06 * abs(mark.value) for mark in marks)])
    return [max(min(known) - room, -farthest), min(max(known) + room, farthest)]


def _told_apart(labels: Sequence[str]) -> list[str]:
    """Labels as places of an axis: one that comes again is another place, which only a blank tells."""
    return [plain(label) + " " * labels[:place].count(label) for place, label in enumerate(labels)]


def _roomy(values: Sequence[Any]) -> list[float]:
    """From the lowest to the highest value, with room for marks."""
    found = [value for value in values if value is not None] or [0.0, 1.0]
    room = 0.05 * (max(found) - min(found)) or 1.0
    return [min(found) - room, max(found) + room]
