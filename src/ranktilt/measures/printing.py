"""How values are printed, the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

_MOST_DIGITS = 6
"""Most decimals that `digits_apart` uses; numbers that are equal to this many count as equal."""


def rounded(value: float, digits: int = 1, form: str = "") -> str:
    """Print a number with this many decimals; `form` is a format such as ``+``.

    The number is rounded to 12 significant digits first. Machines differ in the last bits, and
    these may not decide whether .05 is rounded up or down.
    """
    return f"{float(f'{value:.12g}'):{form}.{digits}f}"


def digits_apart(values: Sequence[float], limits: Sequence[float], digits: int = 1) -> int:
    """Return how many decimals are needed to print values differently from limits they differ from.

    It is at least `digits`. With one decimal, a value of 5.04 would be printed as 5.0, like the
    limit of 5 that it exceeds; two decimals keep them apart.
    """
    pairs = [(value, limit) for value, limit in product(values, limits) if _differ(value, limit)]
    while any(rounded(value, digits) == rounded(limit, digits) for value, limit in pairs):
        digits += 1
    return digits


def _differ(value: float, limit: float) -> bool:
    """Return whether two numbers differ in any decimal that could be printed."""
    return rounded(value, _MOST_DIGITS) != rounded(limit, _MOST_DIGITS)


def ends_apart(
    ends: tuple[float, float], neutral: float, show: Callable[..., str]
) -> tuple[str, str]:
    """Print both ends of an interval, with decimals enough to tell them from the neutral value.

    Otherwise an interval that excludes 0 could be printed as one that touches it, beside a star.

    Parameters
    ----------
    ends : (float, float)
        The ends; NaN where there is no interval.
    neutral : float
        The neutral value; NaN if there is none.
    show : function
        Prints a number, with as many decimals as its argument ``digits`` says if that is given.
    """
    is_known = not any(map(math.isnan, (*ends, neutral)))
    apart = [end for end in ends if is_known and _differ(end, neutral)]
    digits, show_more = 0, show
    while digits < _MOST_DIGITS and any(show_more(end) == show_more(neutral) for end in apart):
        digits += 1
        show_more = partial(show, digits=digits)
    low, high = ends
    return show_more(low), show_more(high)


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; a number that rounds to 0 has none."""
    text = rounded(value, digits, "+")
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
