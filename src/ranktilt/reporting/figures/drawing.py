"""What every figure is made of: colours, axes, bands and rows, as a Vega-Lite specification."""

from __future__ import annotations

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
"""Told apart by the colour-blind (after Okabe and Ito), in a light and a dark tone each; last those that look like a
side's or a verdict's. Triangles are for sides."""
SHAPES = ("circle", "diamond", "square", "cross", "stroke", "wedge", "arrow", "circle")
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
LEAST = 0.05
"""Percent or points below which a difference is printed as 0.0."""
INK, DIM, LINE, SHADE, PAPER = (
    "var(--ink)",
    "var(--dim)",
    "var(--line)",
    "var(--shade)",
    "var(--paper)",
)
X, Y = "x", "y"
_SHORT = 20
"""Letters of names that stand beside each other in a legend."""


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
    """Draw a filled mark for each row, which says what its ``tip`` holds when pointed at."""
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
    """An axis of numbers: its title, from where to where it goes, and of which field it is."""
    scale: Drawing = more.pop("scale", {"zero": False}) | {"nice": False}
    scale |= {"domain": list(domain)} if domain is not None else {}
    shown = more.pop("axis", {})
    return {
        "field": field,
        "type": "quantitative",
        "title": plain(title),
        "scale": scale,
        "axis": None if shown is None else {"grid": True, "tickCount": 7, **shown},
        **more,
    }


def tones(used: Iterable[Tone], names: Mapping[Tone, str] | None = None) -> dict[str, Drawing]:
    """Colour and shape of each tone that is used; where they have names, these are the values, in a legend."""
    held = set(used)
    known = [tone for tone in LOOKS if tone in held]
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
    """One colour, shape or dash a name, in their order."""
    long = {"columns": 1} if max(map(len, names), default=0) > _SHORT else {}
    shown = {"title": None, "orient": "top", "labelLimit": 360, **long} if legend else None
    domain = [plain(name) for name in names]
    scale = {
        "domain": domain,
        "range": [values[place % len(values)] for place in range(len(domain))],
    }
    return {"field": "name", "type": "nominal", "legend": shown, "scale": scale}


def known_size(detectable: float) -> bool:
    """Tell whether a smallest detectable difference says anything."""
    return bool(LEAST <= detectable < np.inf)


def zero(along: Drawing, channel: str = X, at: float = 0.0, *, dashed: bool = False) -> Drawing:
    """The line of no difference, or of another value."""
    mark = {"type": "rule", "color": INK, "size": 1.5, **({"strokeDash": [2, 3]} if dashed else {})}
    return layer(
        [{along["field"]: number(at)}] if np.isfinite(at) else [], mark, **{channel: along}
    )


def strip(margin: float, along: Drawing, channel: str = X) -> list[Drawing]:
    """The shaded band around 0 and its borders."""
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
    known = [0.0, -1.5 * margin, 1.5 * margin, *(v for v in values if np.isfinite(v))]
    room = 0.06 * (max(known) - min(known)) or 1e-6
    return [min(known) - room, max(known) + room]
