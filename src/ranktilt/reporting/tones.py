"""The colours of findings: each side of a comparison and each verdict has a colour and a sign.

A *tone* is the meaning of a colour, such as "favours the first side". Pages, their tables and
figures, and text all take the look of a tone from here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal["", "good", "bad", "warning", "unsure", "first", "second"]
"""The meaning of a colour: ``first`` and ``second`` are the favoured side, ``bad`` is a failure.

``good`` is level or passed, ``unsure`` is inconclusive, and an empty tone has no colour.
"""


class ToneLook(NamedTuple):
    """How a tone is shown."""

    sign: str
    """A character next to the coloured text, for readers who cannot distinguish colours."""
    colour: str
    """Variable of the page's style sheet that holds the colour."""
    symbol: str
    """Shape of the mark in a figure: a shape of Vega-Lite's, or the path of an SVG."""
    meaning: str = ""
    """Explanation in a page's legend, with braces in place of the side; empty where it has none."""


_RING = "M0,-1A1,1,0,1,1,0,1A1,1,0,1,1,0,-1ZM0,-.55A.55,.55,0,1,0,0,.55A.55,.55,0,1,0,0,-.55Z"
"""A ring, as the path of an SVG: a circle of radius 1 with a hole of radius 0.55."""
LOOKS: dict[Tone, ToneLook] = {
    "first": ToneLook("▲", "var(--first)", "triangle-up", "favours {}"),
    "second": ToneLook("▼", "var(--second)", "triangle-down", "favours {}"),
    "good": ToneLook("✓", "var(--good)", "circle", "level, or passed"),
    "unsure": ToneLook("○", "var(--unsure)", _RING, "inconclusive"),
    "bad": ToneLook("!", "var(--bad)", "diamond", "fails"),
    "warning": ToneLook("!", "var(--warning)", "square", "warning"),
    "": ToneLook("", "var(--ink)", "circle"),
}
"""The look of each tone, in the order of a legend."""
VERDICT_TONES: dict[str, Tone] = {
    "a": "first",
    "b": "second",
    "level": "good",
    "inconclusive": "unsure",
    "tilted": "bad",
    "within": "good",
    "outside": "",
}
"""The tone of each verdict: ``a`` and ``b`` are the favoured side of a comparison.

``tilted`` and ``within`` are outcomes of a gate: beyond its limit and within it. ``outside`` is a
measure over all groups that lies outside the range that random labels give.
"""
TEXT_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "✗", "unsure": "?"}
"""The sign before the outcome of a test, in text."""
