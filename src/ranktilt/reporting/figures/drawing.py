"""What every figure is made of: colours, axes, bands and numbers, as plain JSON for plotly.js."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranktilt.reporting.glossary.glossary import visible

Floats = NDArray[np.float64]
Drawing = dict[str, Any]
"""``data`` and ``layout`` as plotly.js reads them; colours are names that the page's style sheet resolves."""

COLOURS = tuple(f"var(--{letter})" for letter in "dhfegcab")
"""Told apart by the colour-blind (after Okabe and Ito), in a light and a dark tone each; last those that look like a
side's or a verdict's. Triangles are for sides."""
SYMBOLS = ("circle", "diamond", "square", "cross", "x", "star", "hexagon", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
LEAST = 0.05
"""Percent or points below which a difference is printed as 0.0."""
INK, DIM, LINE, SHADE, PAPER = "var(--ink)", "var(--dim)", "var(--line)", "var(--shade)", "var(--paper)"


class Spread(Protocol):
    """A value with the ends of its interval."""

    @property
    def value(self) -> float:
        raise NotImplementedError

    @property
    def low(self) -> float:
        raise NotImplementedError

    @property
    def high(self) -> float:
        raise NotImplementedError


def plain(text: str) -> str:
    """Make a text that plotly.js shows as it is: it reads tags and entities in what it is given."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("\n", " ")


def numbers(values: ArrayLike, digits: int = 6) -> list[float | None]:
    """Round to significant digits; what is not finite becomes None, which is not drawn."""
    found = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in found.tolist()]


def frame(height: int, *, x: str = "", y: str = "", legend: bool = False) -> Drawing:
    """Make a layout with two axes that are not zoomed."""
    axis = {
        "color": DIM, "gridcolor": SHADE, "linecolor": LINE, "zeroline": False, "automargin": True,
        "fixedrange": True, "ticks": "outside", "tickcolor": LINE,
    }  # fmt: skip
    return {
        "height": height,
        "autosize": True,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK},
        "hoverlabel": {"bgcolor": PAPER, "bordercolor": LINE, "namelength": 40},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": DIM, "activecolor": INK},
        "margin": {"l": 48, "r": 16, "t": 40 if legend else 12, "b": 48},
        "showlegend": legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "xaxis": {**axis, "title": {"text": plain(x), "standoff": 12}},
        "yaxis": {**axis, "title": {"text": plain(y), "standoff": 8}},
        "dragmode": False,
    }


def known_size(detectable: float) -> bool:
    """Tell whether a smallest detectable difference says anything."""
    return bool(LEAST <= detectable < np.inf)


def whiskers(rows: Sequence[Spread], colour: str, *, horizontal: bool) -> Drawing:
    """Make the bars of intervals; a bar without both ends is not drawn."""
    return {
        "type": "data",
        "symmetric": False,
        "array": numbers([row.high - row.value for row in rows]),
        "arrayminus": numbers([row.value - row.low for row in rows]),
        "color": colour,
        "thickness": 1.5,
        "width": 0 if horizontal else 4,
    }


def mark_zero(axis: Drawing) -> None:
    """Let an axis mark its zero; a shape there would lie below the grid."""
    axis |= {"zeroline": True, "zerolinecolor": INK, "zerolinewidth": 1.5}


def strip(margin: float, along: str, across: str) -> list[Drawing]:
    """Make the shaded band around 0 and its borders."""
    if not margin:
        return []
    whole = {f"{across}ref": "paper", f"{across}0": 0, f"{across}1": 1, "layer": "below"}
    edge = {"color": DIM, "width": 1, "dash": "dot"}
    inside = {f"{along}0": -margin, f"{along}1": margin, "fillcolor": SHADE, "line": {"width": 0}}
    sides = [{**whole, "type": "line", f"{along}0": at, f"{along}1": at, "line": edge} for at in (-margin, margin)]
    return [{**whole, "type": "rect", **inside}, *sides]


def reach(values: Sequence[float], margin: float) -> list[float]:
    """Return a symmetric range that holds every value and the band, with some room."""
    found = [abs(value) for value in values if np.isfinite(value)]
    most = 1.12 * max([*found, 1.5 * margin, 1e-6])
    return [-most, most]
