"""Grammar of sentences: words that agree with a number, and ratios in words.

A *ratio* says how often one event happens for each time that another does.
"""

from __future__ import annotations

import math

from ranktilt.errors import counted
from ranktilt.measures.printing import rounded

_RATIO_WORDS = {
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


def singular_or_plural(number: int, singular: str, plural: str) -> str:
    """Return the words that go with a number: the singular for 1, and the plural for all others.

    `counted` also writes the number, and is for words that follow it directly.
    """
    return singular if number == 1 else plural


def share_of_all(number: int, of_all: int, singular: str, plural: str) -> str:
    """Write how many of all: ``3 of 40 citations``. A verb after it agrees with `number`."""
    return f"{number:,} of {counted(of_all, singular, plural)}"


def first_ranks_words(depth: int) -> str:
    """Name the ranks down to a depth: ``first 10 ranks``, or ``first rank`` for 1."""
    return singular_or_plural(depth, "first rank", f"first {depth} ranks")


def often_words(ratio: float) -> str:
    """Compare how often two things happen, by the ratio of their rates: ``about half as often as``.

    A ratio below 1 that has no word is given in percent.
    """
    if not math.isfinite(ratio):
        return f"{ratio_words(ratio)} times as often as"
    near = [word for value, word in _RATIO_WORDS.items() if abs(ratio / value - 1) <= _NEAR_WORD]
    if near:
        return f"about {near[0]} as"
    if ratio >= 1:
        return f"{rounded(ratio, 1)} times as often as"
    # Without a decimal, 0.2 % and 0.4 % would both be printed as 0 %.
    return f"{rounded(100 * ratio, 1 if ratio < 0.1 else 0)} % as often as"


def ratio_words(value: float, digits: int = 0) -> str:
    """Print a ratio with the digits that tell small ones apart, and with at least `digits`."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return rounded(value, max(digits, 2 if value >= _FEW_DECIMALS_FROM else 3))
