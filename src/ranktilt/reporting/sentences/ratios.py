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
"""Ratios that have words of their own."""
_NEAR = 0.05
"""Largest relative distance of a ratio from one in `_WORDS` whose words it gets."""


def often_words(ratio: float) -> str:
    """Say how often something happens against something else: ``about half as often as``.

    A ratio below 1 that has no word is given in percent.
    """
    if not math.isfinite(ratio):
        return f"{'–' if math.isnan(ratio) else '∞'} times as often as"
    near = [word for value, word in _WORDS.items() if abs(ratio / value - 1) <= _NEAR]
    if near:
        return f"about {near[0]} as"
    if ratio >= 1:
        return f"{rounded(ratio, 1)} times as often as"
    # Small percentages have a decimal, so that different ratios look different.
    return f"{rounded(100 * ratio, 1 if ratio < 0.1 else 0)} % as often as"
