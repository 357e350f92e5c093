"""The parts of every figure: colours, axes, bands and rows, as a Vega-Lite specification."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktilt.errors import visible
from ranktilt.reporting.tones import LOOKS, Tone

Floats = NDArray[np.float64]
Drawing = dict[str, Any]
"""A specification as Vega-Lite reads it; colours are names that the page's style sheet resolves."""

COLOURS = tuple(f"var(--{letter})" for letter in "dhfegcab")
"""Colours that the colour-blind can distinguish (after Okabe and Ito), light and dark alike.

Colours that look like a side's or a verdict's come last. Triangles are for sides.
"""
SHAPES = ("circle", "diamond", "square", "cross", "stroke", "wedge", "arrow", "circle")
"""Shapes of points, one series after another."""
DASHES: tuple[list[int], ...] = (
    [1, 0],
    [8, 4],
    [2, 3],
    [8, 3, 2, 3],
    [12, 4],
    [12, 3, 2, 3],
    [1, 0],
    [8, 4],
)
"""Dashes of lines, one series after another."""
LEAST = 0.05
"""Percent or points below which a difference is printed as 0.0."""
INK, DIM, LINE, SHADE, PAPER = (
    "var(--ink)",
    "var(--dim)",
    "var(--line)",
    "var(--shade)",
    "var(--paper)",
)
"""Names of the page's colours, which follow its light or dark theme."""
X, Y = "x", "y"
"""Fields of the data for the two axes."""
_SHORT_NAME = 20
"""Letters of names that stand beside each other in a legend."""
_LETTER_WIDTH = 7.0
"""Pixels of a letter, about."""


def plain(text: str) -> str:
    """Make one line of a text, with what cannot be seen written out."""
    return visible(text).replace("\n", " ")


def number(value: float, digits: int = 6) -> float | None:
    """Round to significant digits; what is not finite becomes None, which is not drawn."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def chart(height: float, layers: Sequence[Drawing]) -> Drawing:
    """Lay layers over each other; as wide as the page has room."""
    return {
        "width": "container",
        "height": height,
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }


def layer(rows: Sequence[Mapping[str, Any]], mark: Drawing | str, **encoding: Drawing) -> Drawing:
    """Draw a mark for each row."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def dots(rows: Sequence[Mapping[str, Any]], size: float, **encoding: Drawing) -> Drawing:
    """Draw a filled mark for each row, which shows its ``tip`` when pointed at."""
    mark = {"type": "point", "size": size, "filled": True, "opacity": 1}
    return layer(rows, mark, tooltip={"field": "tip"}, **encoding)


def bars(
    rows: Sequence[Mapping[str, Any]],
    along: Drawing,
    channel: str,
    ends: tuple[str, str] = ("low", "high"),
    *,
    size: float = 2,
    encoding: Mapping[str, Drawing],
    **look: Any,
) -> Drawing:
    """Draw a line from one end to the other along a channel for each row that has both."""
    known = [row for row in rows if row[ends[0]] is not None and row[ends[1]] is not None]
    spans = {channel: {**along, "field": ends[0]}, f"{channel}2": {"field": ends[1]}}
    return layer(known, {"type": "rule", "size": size, **look}, **spans, **encoding)


def axis(
    title: str, domain: Sequence[float] | None = None, *, field: str = "", **more: Any
) -> Drawing:
    """Return an axis of numbers; `field` names the values on it, `domain` is its range."""
    scale: Drawing = more.pop("scale", {"zero": False}) | {"nice": False}
    scale |= {"domain": list(domain)} if domain is not None else {}
    options = more.pop("axis", {})
    return {
        "field": field,
        "type": "quantitative",
        "title": plain(title),
        "scale": scale,
        "axis": None if options is None else {"grid": True, "tickCount": 7, **options},
        **more,
    }


def tones(used: Iterable[Tone], names: Mapping[Tone, str] | None = None) -> dict[str, Drawing]:
    """Return colour and shape of each tone that is used; tones with names have a legend."""
    used_tones = set(used)
    known = [tone for tone in LOOKS if tone in used_tones]
    legend = None if names is None else {"title": None, "orient": "top"}
    domain = [tone if names is None else plain(names[tone]) for tone in known]
    looks = {
        "color": [LOOKS[tone].colour for tone in known],
        "shape": [LOOKS[tone].symbol for tone in known],
    }
    return {
        channel: {
            "field": "tone",
            "type": "nominal",
            "legend": legend,
            "scale": {"domain": domain, "range": values},
        }
        for channel, values in looks.items()
    }


def series(names: Sequence[str], values: Sequence[Any], *, legend: bool = True) -> Drawing:
    """Give each name a colour, shape or dash, in their order."""
    legend_options: Drawing = {"title": None, "orient": "top", "labelLimit": 360}
    if max(map(len, names), default=0) > _SHORT_NAME:
        legend_options["columns"] = 1
    scale = {
        "domain": [plain(name) for name in names],
        "range": [values[index % len(values)] for index in range(len(names))],
    }
    return {
        "field": "name",
        "type": "nominal",
        "legend": legend_options if legend else None,
        "scale": scale,
    }


def known_size(detectable: float) -> bool:
    """Tell whether a smallest detectable difference says anything."""
    return bool(LEAST <= detectable < np.inf)


def zero(along: Drawing, channel: str = X, at: float = 0.0, *, dashed: bool = False) -> Drawing:
    """Draw the line of no difference, or of another value."""
    mark: Drawing = {"type": "rule", "color": INK, "size": 1.5}
    if dashed:
        mark["strokeDash"] = [2, 3]
    rows = [{along["field"]: number(at)}] if np.isfinite(at) else []
    return layer(rows, mark, **{channel: along})


def strip(margin: float, along: Drawing, channel: str = X) -> list[Drawing]:
    """Draw the shaded band around 0 and its borders."""
    if not margin:
        return []
    field = along["field"]
    edge = {"type": "rule", "color": DIM, "strokeDash": [2, 3]}
    inside = layer(
        [{field: -margin, "end": margin}],
        {"type": "rect", "color": SHADE},
        **{channel: along, f"{channel}2": {"field": "end"}},
    )
    return [inside, layer([{field: -margin}, {field: margin}], edge, **{channel: along})]


def reach(values: Sequence[float], margin: float) -> list[float]:
    """Return a range that holds every value, 0 and the band, with some room."""
    known = [0.0, -1.5 * margin, 1.5 * margin]
    known += [value for value in values if np.isfinite(value)]
    room = 0.06 * (max(known) - min(known)) or 1e-6
    return [min(known) - room, max(known) + room]


def roomy(values: Sequence[Any]) -> list[float]:
    """Return the range from the lowest to the highest value that is known, with room for marks."""
    known = [value for value in values if value is not None] or [0.0, 1.0]
    room = 0.05 * (max(known) - min(known)) or 1.0
    return [min(known) - room, max(known) + room]


def distinct_labels(labels: Sequence[str]) -> list[str]:
    """Make labels distinct by blanks at their ends: an axis has one position for each text."""
    return [plain(label) + " " * labels[:index].count(label) for index, label in enumerate(labels)]


def row_axis(labels: Sequence[str], headings: Sequence[str]) -> Drawing:
    """Return an axis of rows with their labels to the left, headings in bold."""
    bold = f"indexof({json.dumps(headings)}, datum.value) >= 0"
    left = {
        "labelLimit": 300,
        "ticks": False,
        "domain": False,
        "labelAlign": "left",
        "labelPadding": 12
        + round(_LETTER_WIDTH * max((len(label) for label in labels), default=0)),
        "labelFontWeight": {"condition": {"test": bold, "value": "bold"}, "value": "normal"},
    }
    return {
        "field": "row",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(labels)},
        "axis": left,
    }
