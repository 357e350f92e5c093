"""How values are printed, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

_MOST_DIGITS = 6
"""Digits within which two numbers are the same when printed exactly."""


def rounded(value: float, digits: int = 1, form: str = "") -> str:
    """Print a number with so many decimals.

    Its last bits, in which machines differ, decide nothing.
    """
    return f"{float(f'{value:.12g}'):{form}.{digits}f}"


def digits_apart(values: Sequence[float], limits: Sequence[float], digits: int = 1) -> int:
    """Return the decimals, at least `digits`, at which no value is printed as a limit it is not."""
    pairs = [(value, limit) for value, limit in product(values, limits) if _differ(value, limit)]
    while any(rounded(value, digits) == rounded(limit, digits) for value, limit in pairs):
        digits += 1
    return digits


def _differ(value: float, limit: float) -> bool:
    return rounded(value, _MOST_DIGITS) != rounded(limit, _MOST_DIGITS)


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; a number that rounds to 0 has none."""
    text = rounded(value, digits, "+")
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
