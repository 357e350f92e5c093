"""Figures of an audit: tilts of rankers below each other, and tilt beside effectiveness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktilt.reporting.figures.charts import told_apart
from ranktilt.reporting.figures.drawing import (
    DIM,
    INK,
    LINE,
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
    strip,
    tones,
    zero,
)
from ranktilt.reporting.tones import Tone

_LINE_HEIGHT = 24
_LETTER = 7.0
_APART = "\u2003" * 3
_LONGEST = 24
_LABELLED = 12
_FARTHEST = 205.0
_Box = tuple[float, float, float, float]
"""A place in a plane: its middle, and half its sides."""
_WIDE, _HIGH = 240.0, 300.0
"""Points of a plane of marks in a small window, where names find their places."""


@dataclass(frozen=True)
class Mark:
    """One value with its interval, and what it is to be read against."""

    label: str
    value: float
    low: float
    high: float
    tone: Tone
    """What is said of it; colour and shape of its mark."""
    detectable: float = float("nan")
    """Smallest difference from `level` that could have been seen; NaN or 0 for none."""
    level: float = 0.0
    """The value that favours nobody."""
    band: tuple[float, float] = (0.0, 0.0)
    """What random labels give; both 0 for none."""
    hover: tuple[str, ...] = ()
    """Lines shown when pointed at."""


@dataclass(frozen=True)
class ScatterPoint:
    """One mark in the plane, with an interval along either axis."""

    mark: Mark
    x: float
    low: float
    high: float


def tilts(
    groups: Mapping[str, Sequence[Mark]], *, x: str, sides: tuple[str, str], margin: float, names: Mapping[Tone, str]
) -> Drawing:
    """Draw values with intervals below each other, in groups under a heading, over what could have been detected."""
    placed: list[tuple[str, Mark | None]] = []
    for name, some in groups.items():
        several = len(some) > 1
        placed += [(_cut(name, 40), None)] * several
        placed += [(f"  {_cut(mark.label)}" if several else _cut(name, 40), mark) for mark in some]
    labels = told_apart([label for label, _ in placed])
    headings = [label for label, (_, mark) in zip(labels, placed, strict=True) if mark is None]
    drawn = [(label, mark) for label, (_, mark) in zip(labels, placed, strict=True) if mark is not None]
    marks = [mark for _, mark in drawn]
    rows = [
        {"row": label, **_place(mark), "tone": plain(names[mark.tone]), "tip": "\n".join(map(plain, mark.hover))}
        for label, mark in drawn
        if np.isfinite(mark.value)
    ]
    across = axis(x, _span(marks, margin), field=X)
    across["title"] = [plain(x), plain(f"◀ {_cut(sides[1])}{_APART}{_cut(sides[0])} ▶")]
    bold = f"indexof({json.dumps(headings)}, datum.value) >= 0"
    left: Drawing = {
        "labelLimit": 300, "ticks": False, "domain": False, "labelAlign": "left",
        "labelPadding": 12 + round(_LETTER * max((len(label) for label in labels), default=0)),
        "labelFontWeight": {"condition": {"test": bold, "value": "bold"}, "value": "normal"},
    }  # fmt: skip
    up = {"field": "row", "type": "nominal", "title": None, "scale": {"domain": labels}, "axis": left}
    look = tones((mark.tone for mark in marks), names)
    of: dict[str, Drawing] = {"y": up}
    random = [{"row": label, "low": m.band[0], "high": m.band[1]} for label, m in drawn if m.band != (0, 0)]
    return chart(_LINE_HEIGHT * len(labels) + 20, [
        *([] if random else strip(margin, across)),
        bars(_detectable(drawn), across, X, size=15, color=LINE, opacity=0.7, clip=True, encoding=of),
        bars(random, across, X, size=8, color=DIM, opacity=0.45, clip=True, encoding=of),
        zero(across),
        bars(rows, across, X, encoding={**of, "color": look["color"]}),
        dots(rows, 90, x=across, y=up, **look),
    ])  # fmt: skip


def scatter(
    points: Sequence[ScatterPoint],
    *,
    x: str,
    y: str,
    margin: float,
    names: Mapping[Tone, str],
    front: Sequence[int] = (),
) -> Drawing:
    """Draw marks in the plane with intervals along both axes; names stand beside them where there are few.

    `front` are the places of points that a dotted line joins, in its order.
    """
    drawn = [point for point in points if np.isfinite([point.x, point.mark.value]).all()]
    span_x = _padded_range([v for point in drawn for v in (point.x, point.low, point.high)])
    span_y = _span([point.mark for point in drawn], margin, detectable=False)
    across, up = axis(x, span_x, field=X), axis(y, span_y, field=Y)
    rows = [
        {X: number(point.x), "left": number(point.low), "right": number(point.high), Y: number(point.mark.value),
         "low": number(point.mark.low), "high": number(point.mark.high), "tone": plain(names[point.mark.tone]),
         "tip": "\n".join(map(plain, point.mark.hover))}
        for point in drawn
    ]  # fmt: skip
    look = tones((point.mark.tone for point in drawn), names)
    text = {
        "type": "text",
        "color": INK,
        **{key: {"expr": f"datum.{key}"} for key in ("align", "baseline", "dx", "dy")},
    }
    notes = _beside(drawn, span_x, span_y) if len(drawn) <= _LABELLED else []
    joined = [{X: number(points[n].x), Y: number(points[n].mark.value), "order": n} for n in front]
    return chart(380, [
        *strip(margin, up, Y),
        zero(up, Y),
        layer(joined, {"type": "line", "color": DIM, "strokeDash": [2, 3], "size": 1.5}, x=across, y=up,
              order={"field": "order", "type": "quantitative"}),
        bars(rows, across, X, ("left", "right"), size=1, encoding={"y": up, "color": look["color"]}),
        bars(rows, up, Y, size=1.5, encoding={"x": across, "color": look["color"]}),
        dots(rows, 110, x=across, y=up, **look),
        layer(notes, text, x=across, y=up, text={"field": "text"}),
    ])  # fmt: skip


def _place(mark: Mark) -> dict[str, float | None]:
    return {X: number(mark.value), "low": number(mark.low), "high": number(mark.high)}


def _detectable(drawn: Sequence[tuple[str, Mark]]) -> list[dict[str, Any]]:
    """What could not have been detected, a bar behind each mark."""
    return [
        {"row": label, "low": number(mark.level - mark.detectable), "high": number(mark.level + mark.detectable)}
        for label, mark in drawn
        if known_size(mark.detectable)
    ]


def _span(marks: Sequence[Mark], margin: float, *, detectable: bool = True) -> list[float]:
    """A range, symmetric around 0, with all intervals and bands in it."""
    found = [abs(v) for mark in marks for v in (mark.value, mark.low, mark.high, *mark.band) if np.isfinite(v)]
    if detectable:
        found += [abs(mark.level) + mark.detectable for mark in marks if np.isfinite(mark.detectable)]
    most = min(1.06 * max([*found, 1.5 * margin, 1e-6]), max([_FARTHEST, *(1.06 * abs(mark.value) for mark in marks)]))
    return [-most, most]


def _padded_range(values: Sequence[float]) -> list[float]:
    """A range that holds all values, with room on either side for names."""
    found = [value for value in values if np.isfinite(value)]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    room = 0.12 * (high - low) or 1.0
    return [low - room, high + room]


def _beside(points: Sequence[ScatterPoint], across: Sequence[float], up: Sequence[float]) -> list[dict[str, Any]]:
    """Names beside their marks, each in that corner of its cross where it hides the least; long names choose first."""
    taken = [box for point in points for box in _crosses(point, across, up)]
    named = {point: [_cut(row) for row in point.mark.label.replace(">>", "\n>>").split("\n")] for point in points}
    notes = []
    for point in sorted(points, key=lambda point: -max(map(len, named[point]))):
        x, y, *_ = _crosses(point, across, up)[0]
        wide, high = _LETTER * max(map(len, named[point])) / 2, 10.0 * len(named[point])
        corners = [(right, above) for above in (1, -1) for right in ((1, -1) if x < _WIDE / 2 else (-1, 1))]
        boxes = {(r, a): (x + r * (wide + 10), y + a * (high + 4), wide, high) for r, a in corners}
        right, above = min(boxes, key=lambda corner: _hidden(boxes[corner], taken))
        taken.append(boxes[right, above])
        notes.append({
            X: number(point.x), Y: number(point.mark.value), "text": "\n".join(map(plain, named[point])),
            "align": "left" if right > 0 else "right", "baseline": "bottom" if above > 0 else "top",
            "dx": 7 * right, "dy": -5 * above,
        })  # fmt: skip
    return notes


def _crosses(point: ScatterPoint, across: Sequence[float], up: Sequence[float]) -> list[_Box]:
    """A mark, and its intervals along both axes where they are known."""
    places = ((point.x, point.low, point.high), (point.mark.value, point.mark.low, point.mark.high))
    (x, left, right), (y, low, high) = (
        [size * (v - start) / (end - start) for v in some]
        for some, size, (start, end) in zip(places, (_WIDE, _HIGH), (across, up), strict=True)
    )
    lines = ((left + right) / 2, y, (right - left) / 2, 1.0), (x, (low + high) / 2, 1.0, (high - low) / 2)
    return [(x, y, 8.0, 8.0), *(box for box in lines if np.isfinite(box).all())]


def _hidden(box: _Box, others: Sequence[_Box]) -> float:
    """How much of others a box hides, and how far it sticks out."""
    x, y, wide, high = box
    hidden = sum(max(0.0, wide + w - abs(x - a)) * max(0.0, high + h - abs(y - b)) for a, b, w, h in others)
    out = (max(0.0, wide - x), max(0.0, x + wide - _WIDE), max(0.0, high - y), max(0.0, y + high - _HIGH))
    return hidden + 100 * sum(out)


def _cut(text: str, most: int = _LONGEST) -> str:
    """Leave out the middle of a long name: names of files begin alike and differ at their ends."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"
