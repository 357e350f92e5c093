"""How values are printed, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_DIGITS = 6


def rounded(value: float, digits: int = 1, form: str = "") -> str:
    """Print a number with so many decimals; its last bits, in which machines differ, decide nothing."""
    return f"{float(f'{value:.12g}'):{form}.{digits}f}"


def digits_apart(values: Sequence[float], limits: Sequence[float], digits: int = 1) -> int:
    """Return so many decimals, at least `digits`, that no value beside a limit is printed as if it were at it."""
    beside = [
        (v, limit)
        for v in values
        for limit in limits
        if rounded(v, _MOST_DIGITS) != rounded(limit, _MOST_DIGITS)
    ]
    while any(rounded(value, digits) == rounded(limit, digits) for value, limit in beside):
        digits += 1
    return digits


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; what rounds to nothing has none."""
    text = rounded(value, digits, "+")
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
