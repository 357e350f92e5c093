"""Figures of an audit: tilts of rankers below each other, and tilt beside effectiveness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranktilt.reporting.figures.drawing import (
    DIM,
    INK,
    LINE,
    PAPER,
    Drawing,
    frame,
    known_size,
    mark_zero,
    numbers,
    plain,
    strip,
    whiskers,
)
from ranktilt.reporting.tones import LOOKS, Tone, ToneLook

_LINE_HEIGHT = 25
_HEADING = 1.25
_GAP = 0.35
_LETTER = 8.0
_LONGEST = 24
_LABELLED = 12
_FARTHEST = 205.0
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


@dataclass(frozen=True)
class _Bar:
    value: float
    low: float
    high: float


def tilts(
    groups: Mapping[str, Sequence[Mark]], *, x: str, sides: tuple[str, str], margin: float, names: Mapping[Tone, str]
) -> Drawing:
    """Draw values with intervals below each other, in groups under a heading, over what could have been detected."""
    placed = list(_placed(groups))
    marks = [mark for mark, _ in placed]
    data = [*_spans(placed), *_kinds(placed, names)]
    bottom = sum(_HEADING + len(some) + _GAP for some in groups.values()) - 1
    drawing = frame(round(_LINE_HEIGHT * (bottom + _GAP)) + 150, x=x, legend=True)
    drawing["shapes"] = strip(margin, "x", "y")[:1] if all(mark.band == (0, 0) for mark in marks) else []
    for band in drawing["shapes"]:
        edge = {"color": DIM, "width": 1, "dash": "dot"}  # tells its swatch from that of the bars
        band |= {"showlegend": True, "name": f"level: ±{margin:g}", "line": edge}
    mark_zero(drawing["xaxis"])
    drawing["xaxis"]["range"] = _span(marks, margin)
    drawing["xaxis"]["title"]["standoff"] = 34
    longest = max((len(_cut(mark.label)) for some in groups.values() if len(some) > 1 for mark in some), default=0)
    room = round(_LETTER * longest) + 14
    drawing["margin"] |= {"l": room, "b": 84, "t": 56}
    drawing["yaxis"] |= {"visible": False, "automargin": False, "range": [-bottom - _GAP, 0.25]}
    drawing["annotations"] = [*_headings(groups, room), *_labels(placed, groups, room), *_ends(sides)]
    drawing["barmode"] = "overlay"
    return {"data": data, "layout": drawing}


def scatter(points: Sequence[ScatterPoint], *, x: str, y: str, margin: float, names: Mapping[Tone, str]) -> Drawing:
    """Draw marks in the plane with intervals along both axes; names stand beside them where there are few."""
    drawn = [point for point in points if point.x == point.x and point.mark.value == point.mark.value]
    data = []
    for tone, look in LOOKS.items():
        of = [point for point in drawn if point.mark.tone == tone]
        if of:
            along = whiskers([_Bar(point.x, point.low, point.high) for point in of], look.colour, horizontal=True)
            data.append(
                {
                    **_dots([point.mark for point in of], names[tone], look),
                    "x": numbers([point.x for point in of]),
                    "y": numbers([point.mark.value for point in of]),
                    "error_y": whiskers([point.mark for point in of], look.colour, horizontal=False) | {"width": 0},
                    "error_x": along | {"thickness": 1},
                }
            )
    drawing = frame(460, x=x, y=y, legend=True)
    drawing["shapes"] = strip(margin, "y", "x")
    mark_zero(drawing["yaxis"])
    drawing["xaxis"]["range"] = across = _padded_range([v for point in drawn for v in (point.x, point.low, point.high)])
    drawing["yaxis"]["range"] = up = _span([point.mark for point in drawn], margin, detectable=False)
    drawing["annotations"] = _beside(drawn, across, up) if len(drawn) <= _LABELLED else []
    drawing["hovermode"], drawing["meta"] = "closest", "free names"
    return {"data": data, "layout": drawing}


def _placed(groups: Mapping[str, Sequence[Mark]]) -> Iterator[tuple[Mark, float]]:
    """Every mark with its height: a heading, then a line each."""
    at = 0.0
    for some in groups.values():
        at += _HEADING
        for mark in some:
            yield mark, -at
            at += 1
        at += _GAP


def _kinds(placed: Sequence[tuple[Mark, float]], names: Mapping[Tone, str]) -> Iterator[Drawing]:
    """One trace a tone: marks with their intervals."""
    for tone, look in LOOKS.items():
        of = [(mark, place) for mark, place in placed if mark.tone == tone]
        if of:
            marks = [mark for mark, _ in of]
            yield {
                **_dots(marks, names[tone], look),
                "x": numbers([mark.value for mark in marks]),
                "y": numbers([place for _, place in of]),
                "error_x": whiskers(marks, look.colour, horizontal=True) | {"thickness": 2},
            }


def _dots(marks: Sequence[Mark], name: str, look: ToneLook) -> Drawing:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "text": ["<br>".join(plain(line) for line in mark.hover) for mark in marks],
        "marker": {"color": look.colour, "symbol": look.symbol, "size": 11, "line": {"color": look.colour, "width": 2}},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _spans(placed: Sequence[tuple[Mark, float]]) -> Iterator[Drawing]:
    """What could be detected, and what random labels give, as bars behind the marks."""
    seen = [(mark, place) for mark, place in placed if known_size(mark.detectable)]
    if seen:
        ends = [(mark.level - mark.detectable, mark.level + mark.detectable, place) for mark, place in seen]
        yield _behind(ends, "too small to detect with so many queries", {"color": LINE}, width=0.62)
    random = [(*mark.band, place) for mark, place in placed if mark.band != (0, 0)]
    if random:
        look = {"color": DIM, "pattern": {"shape": "/", "fillmode": "overlay", "size": 5, "solidity": 0.3}}
        yield _behind(random, "random labels", look, width=0.3)


def _behind(ends: Sequence[tuple[float, float, float]], name: str, look: Drawing, *, width: float) -> Drawing:
    return {
        "type": "bar", "orientation": "h", "name": name, "hoverinfo": "skip",
        "base": numbers([low for low, _, _ in ends]), "x": numbers([high - low for low, high, _ in ends]),
        "y": numbers([place for _, _, place in ends]), "width": width, "opacity": 0.7, "marker": look,
    }  # fmt: skip


def _headings(groups: Mapping[str, Sequence[Mark]], room: int) -> Iterator[Drawing]:
    at = 0.0
    for name, some in groups.items():
        yield _text(f"<b>{plain(_cut(name, 40))}</b>", -at - 0.3, room) | {"bgcolor": PAPER}
        at += _HEADING + len(some) + _GAP


def _labels(placed: Sequence[tuple[Mark, float]], groups: Mapping[str, Sequence[Mark]], room: int) -> Iterator[Drawing]:
    alone = {id(some[0]) for some in groups.values() if len(some) == 1}
    for mark, place in placed:
        if id(mark) not in alone:
            yield _text(plain(_cut(mark.label)), place, room) | {"font": {"color": DIM}}


def _text(text: str, place: float, room: int) -> Drawing:
    return {
        "x": 0, "xref": "paper", "xanchor": "left", "xshift": 2 - room, "y": place, "yref": "y", "yanchor": "middle",
        "text": text, "showarrow": False, "align": "left", "font": {"color": INK},
    }  # fmt: skip


def _ends(sides: tuple[str, str]) -> Iterator[Drawing]:
    """Which side either end of the axis speaks for, below its numbers."""
    first, second = (plain(_cut(side)) for side in sides)
    for text, x, anchor in ((f"◀ {second}", 0, "left"), (f"{first} ▶", 1, "right")):
        yield {
            "x": x, "xref": "paper", "xanchor": anchor, "y": 0, "yref": "paper", "yanchor": "top", "yshift": -28,
            "text": text, "showarrow": False, "font": {"color": INK},
        }  # fmt: skip


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


def _beside(points: Sequence[ScatterPoint], across: Sequence[float], up: Sequence[float]) -> list[Drawing]:
    """Names beside their marks, each in that corner of its cross where it hides the least; long names choose first."""
    taken = [box for point in points for box in _crosses(point, across, up)]
    notes = []
    for point in sorted(points, key=lambda point: -max(map(len, _rows(point)))):
        rows, at = _rows(point), _crosses(point, across, up)[0]
        wide, high = _LETTER * max(map(len, rows)) / 2, 10.0 * len(rows)
        corners = [(right, above) for above in (1, -1) for right in ((1, -1) if at.x < _WIDE / 2 else (-1, 1))]
        boxes = [_Box(at.x + right * (wide + 10), at.y + above * (high + 4), wide, high) for right, above in corners]
        best = min(range(len(boxes)), key=lambda place: boxes[place].cost(taken))
        taken.append(boxes[best])
        notes.append(_note(point, rows, *corners[best]))
    return notes


def _rows(point: ScatterPoint) -> list[str]:
    """A name on a line a stage."""
    return [_cut(row) for row in point.mark.label.replace(">>", "\n>>").split("\n")]


def _crosses(point: ScatterPoint, across: Sequence[float], up: Sequence[float]) -> tuple[_Box, ...]:
    """A mark, and its intervals along both axes where they are known."""
    places = ((point.x, point.low, point.high), (point.mark.value, point.mark.low, point.mark.high))
    (x, left, right), (y, low, high) = (
        [size * (v - start) / (end - start) for v in some]
        for some, size, (start, end) in zip(places, (_WIDE, _HIGH), (across, up), strict=True)
    )
    lines = _Box((left + right) / 2, y, (right - left) / 2, 1), _Box(x, (low + high) / 2, 1, (high - low) / 2)
    return _Box(x, y, 8, 8), *(box for box in lines if np.isfinite([box.x, box.y]).all())


def _note(point: ScatterPoint, rows: Sequence[str], right: int, above: int) -> Drawing:
    return {
        "x": numbers([point.x])[0], "y": numbers([point.mark.value])[0], "showarrow": False, "align": "left",
        "xanchor": "left" if right > 0 else "right", "xshift": 6 * right, "yshift": 4 * above,
        "yanchor": "bottom" if above > 0 else "top", "text": "<br>".join(map(plain, rows)), "font": {"color": INK},
        "bgcolor": PAPER, "borderpad": 0,
    }  # fmt: skip


@dataclass(frozen=True)
class _Box:
    """A place in a drawing of `_WIDE` times `_HIGH` points: its middle, and half its sides."""

    x: float
    y: float
    wide: float
    high: float

    def cost(self, others: Sequence[_Box]) -> float:
        """How much it hides, and how far it sticks out."""
        hidden = sum(
            max(0.0, self.wide + o.wide - abs(self.x - o.x)) * max(0.0, self.high + o.high - abs(self.y - o.y))
            for o in others
        )
        out = max(0.0, self.wide - self.x) + max(0.0, self.x + self.wide - _WIDE)
        return hidden + 100 * out + 100 * (max(0.0, self.high - self.y) + max(0.0, self.y + self.high - _HIGH))


def _cut(text: str, most: int = _LONGEST) -> str:
    """Leave out the middle of a long name: names of files begin alike and differ at their ends."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"
