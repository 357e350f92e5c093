"""The parts of every figure: colours, axes, bands and rows, as pieces of a Vega-Lite specification.

In Vega-Lite a chart has *layers*; each draws a *mark* (a point, a line, a rectangle) for every row
of its data, and an *encoding* says which field of the data each *channel* of the mark (``x``,
``y``, ``color``) shows. A *tone* is the colour and shape of a finding, by its meaning. Values
within a *margin* of 0 count as level, and are shaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktilt.errors import escape_invisible
from ranktilt.reporting.tones import LOOKS, Tone

Floats = NDArray[np.float64]
"""Array of floating-point numbers."""
Drawing = dict[str, Any]
"""A Vega-Lite specification, or a part of one; its colours are variables of the page's style sheet.
"""

COLOURS = tuple(f"var(--{letter})" for letter in "dhfegcab")
"""Colours of the first, second … series, which the colour-blind can distinguish (Okabe and Ito).

Colours that look like a side's or a verdict's come last.
"""
SHAPES = ("circle", "diamond", "square", "cross", "stroke", "wedge", "arrow", "circle")
"""Shapes of the points of the first, second … series; triangles are kept for the two sides."""
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
"""Dashes of the line of the first, second … series: lengths of strokes and gaps in pixels."""
SMALLEST_PRINTED = 0.05
"""Smallest difference, in percent or points, that is not printed as 0.0."""
INK, DIM, LINE, SHADE, PAPER = (
    "var(--ink)",
    "var(--dim)",
    "var(--line)",
    "var(--shade)",
    "var(--paper)",
)
"""Names of the page's colours, which follow its light or dark theme."""
X, Y = "x", "y"
"""Fields of the data that hold positions on the two axes, and channels of the same names."""
_SHORT_NAME = 20
"""Most characters of names that a legend writes next to each other, instead of line by line."""
_LETTER_WIDTH = 7.0
"""Average width of a character in pixels, to estimate how wide a label is."""


def single_line(text: str) -> str:
    """Put a text on a single line, with invisible characters written as codes."""
    return escape_invisible(text).replace("\n", " ")


def finite_number(value: float, digits: int = 6) -> float | None:
    """Round to significant digits; NaN and infinity become None, which Vega-Lite does not draw."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def chart(height: float, layers: Sequence[Drawing]) -> Drawing:
    """Return a chart of layers over each other, without empty ones, as wide as its container."""
    return {
        "width": "container",
        "height": height,
        "layer": [layer for layer in layers if layer["data"]["values"]],
    }


def layer(rows: Sequence[Mapping[str, Any]], mark: Drawing | str, **encoding: Drawing) -> Drawing:
    """Return a layer that draws a mark for each row of data; `encoding` maps fields to channels."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def dots(rows: Sequence[Mapping[str, Any]], size: float, **encoding: Drawing) -> Drawing:
    """Return a layer of filled points, which show the row's ``tip`` when pointed at."""
    mark = {"type": "point", "size": size, "filled": True, "opacity": 1}
    return layer(rows, mark, tooltip={"field": "tip"}, **encoding)


def interval_lines(
    rows: Sequence[Mapping[str, Any]],
    along: Drawing,
    channel: str,
    ends: tuple[str, str] = ("low", "high"),
    *,
    size: float = 2,
    encoding: Mapping[str, Drawing],
    **look: Any,
) -> Drawing:
    """Return a layer of lines along an axis, such as the intervals of values.

    `along` is the axis and `channel` its name; `ends` are the fields of a row that hold the two
    ends of its line; a row that lacks either has no line. `encoding` has the other channels, and
    `look` further properties of the mark.
    """
    start, stop = ends
    with_ends = [row for row in rows if row[start] is not None and row[stop] is not None]
    # Vega-Lite draws a rule from x to x2, or from y to y2.
    span = {channel: {**along, "field": start}, f"{channel}2": {"field": stop}}
    return layer(with_ends, {"type": "rule", "size": size, **look}, **span, **encoding)


def axis(
    title: str, domain: Sequence[float] | None = None, *, field: str = "", **channel_options: Any
) -> Drawing:
    """Return the channel of an axis of numbers.

    `field` is the field of the data that it shows, and `domain` its range, by default that of the
    data. `channel_options` are further properties of the channel; ``scale`` and ``axis`` are added
    to those that all axes have, and ``axis=None`` hides the axis.
    """
    scale: Drawing = channel_options.pop("scale", {"zero": False}) | {"nice": False}
    scale |= {"domain": list(domain)} if domain is not None else {}
    options = channel_options.pop("axis", {})
    return {
        "field": field,
        "type": "quantitative",
        "title": single_line(title),
        "scale": scale,
        "axis": None if options is None else {"grid": True, "tickCount": 7, **options},
        **channel_options,
    }


def tone_channels(
    used: Iterable[Tone], names: Mapping[Tone, str] | None = None
) -> dict[str, Drawing]:
    """Return the channels ``color`` and ``shape`` for a field ``tone`` of the data.

    `used` are the tones that occur; `names` are their names in a legend, None for no legend.
    """
    used_tones = set(used)
    shown_tones = [tone for tone in LOOKS if tone in used_tones]  # in the order of a legend
    legend = None if names is None else {"title": None, "orient": "top"}
    domain = [tone if names is None else single_line(names[tone]) for tone in shown_tones]
    looks = {
        "color": [LOOKS[tone].colour for tone in shown_tones],
        "shape": [LOOKS[tone].symbol for tone in shown_tones],
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


def series_channel(names: Sequence[str], values: Sequence[Any], *, legend: bool = True) -> Drawing:
    """Return the channel that distinguishes series by the field ``name`` of the data.

    `values` are colours, shapes or dashes, which the names get in their order.
    """
    legend_options: Drawing = {"title": None, "orient": "top", "labelLimit": 360}
    if max(map(len, names), default=0) > _SHORT_NAME:
        legend_options["columns"] = 1
    scale = {
        "domain": [single_line(name) for name in names],
        "range": [values[index % len(values)] for index in range(len(names))],
    }
    return {
        "field": "name",
        "type": "nominal",
        "legend": legend_options if legend else None,
        "scale": scale,
    }


def is_size_known(detectable: float) -> bool:
    """Tell whether a smallest detectable difference is a number that is not printed as 0."""
    return bool(SMALLEST_PRINTED <= detectable < np.inf)


def reference_line(
    along: Drawing, channel: str = X, at: float = 0.0, *, dashed: bool = False
) -> Drawing:
    """Return a layer with a line across the chart at 0, or `at` another value of an axis.

    `along` is the axis and `channel` its name.
    """
    mark: Drawing = {"type": "rule", "color": INK, "size": 1.5}
    if dashed:
        mark["strokeDash"] = [2, 3]
    rows = [{along["field"]: finite_number(at)}] if np.isfinite(at) else []
    return layer(rows, mark, **{channel: along})


def level_band(margin: float, along: Drawing, channel: str = X) -> list[Drawing]:
    """Return the layers of the shaded band ±`margin` around 0 and its borders; none without margin.

    `along` is the axis of the values and `channel` its name.
    """
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


def range_around_zero(values: Sequence[float], margin: float) -> list[float]:
    """Return a range that holds every value, 0 and one and a half margins, with some room."""
    # One and a half margins, so that the borders of the shaded band are seen.
    covered = [0.0, -1.5 * margin, 1.5 * margin]
    covered += [value for value in values if np.isfinite(value)]
    room = (
        0.06 * (max(covered) - min(covered)) or 1e-6
    )  # an axis of one value needs some length too
    return [min(covered) - room, max(covered) + room]


def range_with_room(values: Sequence[Any]) -> list[float]:
    """Return a range from the lowest to the highest value, with some room; None is left out."""
    defined = [value for value in values if value is not None] or [0.0, 1.0]
    room = 0.05 * (max(defined) - min(defined)) or 1.0
    return [min(defined) - room, max(defined) + room]


def distinct_labels(labels: Sequence[str]) -> list[str]:
    """Append blanks to repeated labels, since an axis has one position for each distinct text."""
    return [
        single_line(label) + " " * labels[:index].count(label) for index, label in enumerate(labels)
    ]


def row_axis(labels: Sequence[str], headings: Sequence[str]) -> Drawing:
    """Return the channel of an axis of rows, with their labels to the left and headings in bold."""
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
