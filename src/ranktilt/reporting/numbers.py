"""How numbers are printed: a function a kind of number, and a dash where it is undefined."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.errors import counted
from ranktilt.measures.printing import rounded
from ranktilt.measures.printing import signed as with_sign
from ranktilt.reporting.document import Cell, Emphasis

DASH = "–"
"""Stands for a number that is not known."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
"""Units of bytes."""
_DAY = 86_400
"""Seconds of a day."""


def number(value: float, show: Callable[[Any], str], **look: Any) -> Cell:
    """Make a cell of a number as it is printed."""
    return Cell(show(value), value, **look)


def estimate(effect: Any, show: Callable[[float], str], mark: str = "", **look: Any) -> Cell:
    """Make a cell of a value and its interval (low, high), printed alike."""
    ends_text = (show(effect.low), show(effect.high))
    return Cell(show(effect.value) + mark, effect.value, ends=ends_text, **look)


def number_of(field: str, show: Callable[[Any], str], *, scale: float = 1) -> Callable[[Any], Cell]:
    """Return what makes the cells of a column of numbers: ``number_of("queries", count)``."""
    value_of = attrgetter(field)

    def cell(row: Any) -> Cell:
        return number(scale * value_of(row), show)

    return cell


def estimate_of(field: str, show: Callable[[float], str]) -> Callable[[Any], Cell]:
    """Return what makes the cells of a column of values with their intervals."""
    estimate_in = attrgetter(field)

    def cell(row: Any) -> Cell:
        return estimate(estimate_in(row), show)

    return cell


def moved(change: Change, none: Emphasis = "") -> Cell:
    """Make a cell of a difference: starred if significant, strong if shown."""
    star = "*" if change.p_corrected < ALPHA else ""
    return estimate(
        change,
        partial(change.amount, sign=True),
        star,
        emphasis="strong" if change.is_shown else none,
    )


def decimal(value: float, digits: int = 1) -> str:
    """Print a number with so many decimals: ``1,234.5``."""
    return DASH if value != value else rounded(value, digits, ",").replace("-", "−")


def short_decimal(value: float, digits: int = 2) -> str:
    """Print a number with so many decimals, or with its first digit: ``0.004``."""
    text = decimal(value, digits)
    is_zero = not text.strip("−0.")
    return f"{value:.1g}".replace("-", "−") if value and is_zero else text


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign; what rounds to nothing has none."""
    return DASH if value != value else with_sign(value, digits)


def fixed(value: float, digits: int = 2, undefined: str = DASH) -> str:
    """Print a number with so many decimals and nothing between its thousands: ``1234.50``."""
    return undefined if value != value else rounded(value, digits).replace("-", "−")


def always_signed(value: float, digits: int = 2) -> str:
    """Print a number with its sign, also where it rounds to nothing: ``+0.00``."""
    return DASH if value != value else rounded(value, digits, "+").replace("-", "−")


def percent(mean: float) -> str:
    """Print a mean of 0 to 1 in percent, with one decimal and without the sign of percent."""
    return decimal(100 * mean)


def count(number: int) -> str:
    """Print a number of things: ``1,234``."""
    return f"{number:,}"


def ends(low: float, high: float, digits: int = 1) -> tuple[str, str]:
    """Print both ends of an interval."""
    return signed(low, digits), signed(high, digits)


def interval(low: float, high: float, digits: int = 1) -> str:
    """Print an interval in brackets; a dash where it is undefined."""
    return DASH if low != low or high != high else f"[{', '.join(ends(low, high, digits))}]"


def probability(p: float) -> str:
    """Print a p-value with a relation sign."""
    if math.isnan(p):
        return "undefined"
    return "< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".", 1)


def p_value(p: float) -> str:
    """Print a p-value without its relation sign, but for what is below."""
    return DASH if p != p else probability(p).removeprefix("= ")


def size(size: float) -> str:
    """Print bytes with three digits: ``11.3 MB``."""
    for unit in _UNITS:
        if size < 999.5 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"


def ago(then: float) -> str:
    """Say how long ago a time is, in days."""
    days = int((time.time() - then) // _DAY)
    return "today" if days < 1 else f"{counted(days, 'day', 'days')} ago"
