"""How values are printed, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

_MOST_DIGITS = 6
"""Decimals up to which two numbers must differ to be printed as different ones."""


def rounded(value: float, digits: int = 1, form: str = "") -> str:
    """Print a number with so many decimals.

    The number is cut to 12 significant digits first, because machines differ in the last bits, and
    these may not decide how it is rounded.
    """
    return f"{float(f'{value:.12g}'):{form}.{digits}f}"


def digits_apart(values: Sequence[float], limits: Sequence[float], digits: int = 1) -> int:
    """Return how many decimals keep each value apart from the limits that it does not equal.

    At least `digits`. With one decimal, 5.04 would be printed as the limit 5.0 that it exceeds.
    """
    pairs = [(value, limit) for value, limit in product(values, limits) if _differ(value, limit)]
    while any(rounded(value, digits) == rounded(limit, digits) for value, limit in pairs):
        digits += 1
    return digits


def _differ(value: float, limit: float) -> bool:
    """Return whether two numbers differ in any decimal that could be printed."""
    return rounded(value, _MOST_DIGITS) != rounded(limit, _MOST_DIGITS)


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; a number that rounds to 0 has none."""
    text = rounded(value, digits, "+")
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
