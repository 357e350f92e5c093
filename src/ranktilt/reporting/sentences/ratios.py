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
"""Words of ratios that have some."""
_NEAR_WORD = 0.05
"""Relative distance within which a ratio is called by its word."""
_SMALL = 1.0
"""Ratios below it are printed with three decimals."""


def often_words(ratio: float) -> str:
    """Say how often something happens against something else: ``about half as often as``.

    A ratio below 1 that has no word is given in percent.
    """
    if not math.isfinite(ratio):
        return f"{'–' if math.isnan(ratio) else '∞'} times as often as"
    near = [word for value, word in _WORDS.items() if abs(ratio / value - 1) <= _NEAR_WORD]
    if near:
        return f"about {near[0]} as"
    if ratio >= 1:
        return f"{rounded(ratio, 1)} times as often as"
    # A decimal tells small ratios apart.
    return f"{rounded(100 * ratio, 1 if ratio < 0.1 else 0)} % as often as"


def ratio_words(value: float) -> str:
    """Print a ratio with the digits that tell small ones apart."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return rounded(value, 3 if value < _SMALL else 2)
