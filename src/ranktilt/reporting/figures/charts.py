"""Figures as plain JSON for plotly.js, from plain arrays; colours are names that the page's style sheet resolves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ranktilt.reporting.figures.drawing import (
    COLOURS,
    DASHES,
    DIM,
    INK,
    LINE,
    SYMBOLS,
    Drawing,
    Floats,
    frame,
    mark_zero,
    numbers,
    plain,
    reach,
    strip,
    whiskers,
)
from ranktilt.reporting.tones import LOOKS, Tone

GROUP_COLOURS = (LOOKS["first"].colour, LOOKS["second"].colour, *COLOURS[:6])
"""Of groups in the order of a comparison: those of both sides first."""
_CURVES, _NAME = 290, 24
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
PATTERNS = ("", "/", "x", ".", "\\", "+", "-", "|")
_ROW = 58
_FEW = 500
_ROOM = 0.08


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
    """Draw distributions over the same bins, one above the other: filled with a colour and a pattern each."""
    borders = np.asarray(edges, dtype=np.float64)
    middles, widths = (borders[1:] + borders[:-1]) / 2, np.diff(borders)
    data = []
    for number, (name, heights) in enumerate(shares.items()):
        colour = COLOURS[number % len(COLOURS)]
        shape = PATTERNS[number % len(PATTERNS)]
        data.append(
            {
                "type": "bar",
                "name": plain(name),
                "x": numbers(middles),
                "y": [height or None for height in numbers(heights)],
                "width": numbers(widths),
                "opacity": 0.75 if len(shares) > 1 else 0.9,
                "marker": {
                    "color": colour,
                    "line": {"color": colour, "width": 1},
                    "pattern": {"shape": shape, "fillmode": "replace", "size": 6, "solidity": 0.45},
                },
                "customdata": [[f"{a:.4g}", f"{b:.4g}"] for a, b in pairwise(borders)],
                "hovertemplate": "%{customdata[0]}–%{customdata[1]}: %{y:.1f} %<extra>%{fullData.name}</extra>",
            }
        )
    layout = frame(320, x=x, y=y, legend=len(shares) > 1)
    layout["barmode"] = "overlay"
    layout["xaxis"]["range"] = [float(borders[0]), float(borders[-1])]
    layout["yaxis"]["rangemode"] = "tozero"
    return {"data": data, "layout": layout}


def clouds(groups: Mapping[str, tuple[ArrayLike, Sequence[str]]], *, joined: bool = False) -> Drawing:
    """Draw groups of points in the plane, each with a colour and a shape; a point's label shows when pointed at."""
    planes = [np.asarray(places, dtype=np.float64).reshape(-1, 2) for places, _ in groups.values()]
    data = [_links(planes)] if joined else []
    few = sum(map(len, planes)) < _FEW
    for number, (name, (_, labels)) in enumerate(groups.items()):
        colour, symbol = COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)]
        mark: Drawing = {"symbol": symbol, "size": 6 if few else 4}
        if not number:
            mark = {"symbol": f"{symbol}-open", "size": 11 if few else 8, "line": {"width": 1.5}}
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plain(name),
                "x": numbers(planes[number][:, 0], 4),
                "y": numbers(planes[number][:, 1], 4),
                "text": [plain(label) for label in labels],
                "marker": {"color": colour, **mark},
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
            }
        )
    layout = frame(600, legend=True)
    layout["hovermode"] = "closest"
    layout["dragmode"] = "pan"
    layout["margin"] |= {"l": 8, "b": 8}
    layout["legend"]["itemsizing"] = "constant"
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"visible": False, "fixedrange": False}
    layout["yaxis"]["scaleanchor"] = "x"
    return {"data": data, "layout": layout}


def forest(
    rows: Sequence[ForestRow], *, x: str, margin: float, unit: str = "", reached: Sequence[float] = ()
) -> Drawing:
    """Draw intervals below each other, with the zero line and a shaded margin around it.

    The axis goes as far as the rows, and as the values `reached`, so that several figures can have one scale.
    """
    places = [-float(number) for number in range(len(rows))]
    data = []
    for row, place in zip(rows, places, strict=True):
        _, colour, symbol, _ = LOOKS[row.tone]
        thick = replace(row, low=row.value - row.inner, high=row.value + row.inner)
        for interval, thickness in ((row, 2), (thick, 6)):
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": plain(row.label),
                    "x": numbers([row.value]),
                    "y": [place],
                    "error_x": whiskers([interval], colour, horizontal=True) | {"thickness": thickness},
                    "marker": {"color": colour, "symbol": symbol, "size": 13, "line": {"color": colour, "width": 2}},
                    "showlegend": False,
                    "hovertemplate": f"{_ends(row, unit)}<extra></extra>",
                }
            )
    layout = frame(96 + _ROW * len(rows), x=x)
    layout["shapes"] = strip(margin, "x", "y")
    mark_zero(layout["xaxis"])
    layout["annotations"] = [_named(row.label, place) for row, place in zip(rows, places, strict=True)]
    layout["yaxis"] |= {"visible": False, "range": [-len(rows) + 0.45, 0.75]}
    layout["xaxis"]["range"] = reach([*reached, *(v for row in rows for v in (row.value, row.low, row.high))], margin)
    layout["margin"]["l"] = 12
    return {"data": data, "layout": layout}


def lines(
    series: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    band: float = 0.0,
    dodge: float = 0.0,
    names: Mapping[float, str] | None = None,
) -> Drawing:
    """Draw a line a series through points with intervals, the zero line, and a shaded band around it.

    `names` stand at the places along x where these are no numbers to be read.
    """
    data = []
    middle = (len(series) - 1) / 2
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(name),
                "x": numbers([point.x + dodge * (number - middle) for point in points]),
                "y": numbers([point.value for point in points]),
                "text": [plain(point.label) for point in points],
                "error_y": whiskers(points, colour, horizontal=False),
                "line": {"color": colour, "width": 2, "dash": DASHES[number % len(DASHES)]},
                "marker": {"color": colour, "symbol": SYMBOLS[number % len(SYMBOLS)], "size": 9},
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
            }
        )
    layout = frame(440, x=x, y=y, legend=True)
    layout["shapes"] = strip(band, "y", "x")
    mark_zero(layout["yaxis"])
    values = [v for points in series.values() for point in points for v in (point.value, point.low, point.high)]
    layout["yaxis"]["range"] = reach(values, band)
    ticks = sorted({point.x for points in series.values() for point in points})
    room = _ROOM * (ticks[-1] - ticks[0] or 1.0)
    layout["xaxis"]["range"] = [ticks[0] - room, ticks[-1] + room]
    layout["xaxis"] |= {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [(names or {}).get(t, f"{t:g}") for t in ticks],
    }
    return {"data": data, "layout": layout}


def stairs(steps: Sequence[Point], *, x: str, y: str) -> Drawing:
    """Draw a value over buckets that begin where the one before ends, with its interval as a band, and the zero line.

    A point's x is where its bucket ends; the first begins at 0.
    """
    places = [0.0, *(step.x for step in steps[:-1] for _ in range(2)), steps[-1].x]
    ends = [(step.low, step.value, step.high) for step in steps for _ in range(2)]
    low, value, high = map(list, zip(*ends, strict=True))
    look = {"type": "scatter", "mode": "lines"}
    data = [
        {**look, "name": "95 % band", "x": numbers([*places, *places[::-1]]), "y": numbers([*low, *high[::-1]]),
         "fill": "toself", "fillcolor": LINE, "line": {"width": 0}, "hoverinfo": "skip"},
        {**look, "name": plain(y), "x": numbers(places), "y": numbers(value), "line": {"color": INK, "width": 2.5},
         "hovertemplate": "%{y:+.2f}<extra></extra>"},
    ]  # fmt: skip
    layout = frame(260, x=x, y=y)
    line = {"color": INK, "width": 1.5, "dash": "dot"}  # as a shape, for the band hides an axis's own line
    layout["shapes"] = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": line}]
    layout["xaxis"]["range"] = [0.0, places[-1]]
    layout["yaxis"]["range"] = reach([*low, *high, *value], 0.0)
    return {"data": data, "layout": layout}


def curves(
    series: Mapping[str, ArrayLike],
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    colours: Sequence[str] = COLOURS,
    zero: bool = False,
) -> Drawing:
    """Draw one line a name over the ranks 1, 2, 3 …, on a logarithmic axis."""
    found = {name: np.asarray(heights, dtype=np.float64) for name, heights in series.items()}
    ranks = max((len(heights) for heights in found.values()), default=1)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plain(name),
            "x": list(range(1, len(heights) + 1)),
            "y": numbers(heights, 4),
            "line": {"color": colours[number % len(colours)], "width": 2.5, "dash": DASHES[number % len(DASHES)]},
            "hovertemplate": "rank %{x}: %{y:.1f}<extra>%{fullData.name}</extra>",
        }
        for number, (name, heights) in enumerate(found.items())
    ]
    drawing = frame(_CURVES + _NAME * len(found), x=x, y=y, legend=True)
    line = {"color": DIM, "width": 1.5, "dash": "dot"}
    drawing["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "line": line}
        for level in levels
        if np.isfinite(level)
    ]
    if zero:
        mark_zero(drawing["yaxis"])
    shown = [tick for tick in _TICKS if tick <= ranks]
    drawing["xaxis"] |= {"type": "log", "tickmode": "array", "tickvals": shown, "ticktext": [f"{t:,}" for t in shown]}
    drawing["xaxis"]["range"] = [-0.03, float(np.log10(max(ranks, 2))) + 0.03]
    return {"data": data, "layout": drawing}


def _links(planes: Sequence[Floats]) -> Drawing:
    """One broken line through the points of each position."""
    gap = np.full((len(planes[0]), 1, 2), np.nan)
    path = np.concatenate([np.stack(planes, axis=1), gap], axis=1).reshape(-1, 2)
    return {
        "type": "scatter", "mode": "lines", "x": numbers(path[:, 0], 4), "y": numbers(path[:, 1], 4),
        "line": {"color": DIM, "width": 0.75}, "opacity": 0.6, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _named(label: str, place: float) -> Drawing:
    return {
        "x": 0, "xref": "paper", "xanchor": "left", "y": place + 0.34, "yref": "y", "yanchor": "middle",
        "text": plain(label), "showarrow": False, "align": "left", "font": {"color": INK},
    }  # fmt: skip


def _ends(row: ForestRow, unit: str) -> str:
    return f"{row.value:+.4g}{unit} [{row.low:+.4g}, {row.high:+.4g}]".replace("-", "−")
