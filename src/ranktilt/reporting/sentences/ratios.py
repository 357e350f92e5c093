"""Ratios in plain words: "about half as often as" for 0.483."""

from __future__ import annotations

import math

from ranktilt.measures.printing import rounded

_WORDS = {
    1 / 5: "a fifth as often",
    1 / 4: "a quarter as often",
    1 / 3: "a third as often",
    1 / 2: "half as often",
    2 / 3: "two thirds as often",
    1.0: "as often",
    2.0: "twice as often",
    3.0: "three times as often",
}
"""Words for some ratios; all others are printed as numbers."""
_NEAR_WORD = 0.05
"""Largest relative distance at which a ratio is called by the word of another: 5 %."""
_FEW_DECIMALS_FROM = 1.0
"""Ratio from which on two decimals are printed; smaller ones have three."""


def often_words(ratio: float) -> str:
    """Compare how often two things happen, by the ratio of their rates: ``about half as often as``.

    A ratio below 1 that has no word is given in percent.
    """
    if not math.isfinite(ratio):
        return f"{'–' if math.isnan(ratio) else '∞'} times as often as"
    near = [word for value, word in _WORDS.items() if abs(ratio / value - 1) <= _NEAR_WORD]
    if near:
        return f"about {near[0]} as"
    if ratio >= 1:
        return f"{rounded(ratio, 1)} times as often as"
    # Without a decimal, 0.2 % and 0.4 % would both be printed as 0 %.
    return f"{rounded(100 * ratio, 1 if ratio < 0.1 else 0)} % as often as"


def ratio_words(value: float) -> str:
    """Print a ratio with the digits that tell small ones apart."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return rounded(value, 2 if value >= _FEW_DECIMALS_FROM else 3)
