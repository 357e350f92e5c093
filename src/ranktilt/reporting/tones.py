"""One colour and mark a side and a verdict: on pages, in their tables and figures, and in text."""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal["", "good", "bad", "warning", "unsure", "first", "second"]
"""The meaning of a colour: ``first`` and ``second`` are the favoured side, ``bad`` is a failure."""


class ToneLook(NamedTuple):
    """How a tone is shown."""

    sign: str
    """What stands beside a colour, for those who do not see it."""
    colour: str
    """Its name in the page's style sheet."""
    symbol: str
    """Its mark in a figure: a name of Vega's, or a path."""
    meaning: str = ""
    """In a page's legend; the braces stand for the side."""


_RING = "M0,-1A1,1,0,1,1,0,1A1,1,0,1,1,0,-1ZM0,-.55A.55,.55,0,1,0,0,.55A.55,.55,0,1,0,0,-.55Z"
"""A ring, as a path."""
LOOKS: dict[Tone, ToneLook] = {
    "first": ToneLook("▲", "var(--first)", "triangle-up", "favours {}"),
    "second": ToneLook("▼", "var(--second)", "triangle-down", "favours {}"),
    "good": ToneLook("✓", "var(--good)", "circle", "level, or passed"),
    "unsure": ToneLook("○", "var(--unsure)", _RING, "inconclusive"),
    "bad": ToneLook("!", "var(--bad)", "diamond", "fails"),
    "warning": ToneLook("!", "var(--warning)", "square", "warning"),
    "": ToneLook("", "var(--ink)", "circle"),
}
"""In the order of a legend."""
VERDICT_TONES: dict[str, Tone] = {
    "a": "first",
    "b": "second",
    "level": "good",
    "inconclusive": "unsure",
    "tilted": "bad",
    "within": "good",
    "outside": "",
}
"""Of what a comparison is judged to be: its favoured side, or how it stands beside a limit."""
TEXT_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "✗", "unsure": "?"}
"""What begins the outcome of a test in text."""
