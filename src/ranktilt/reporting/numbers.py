"""How numbers are printed: one function for each kind of number, and a dash where it is undefined.

Functions that return a `str` print a number (`percent`, `signed`); those that end in ``_cell``
make a cell of a table, and those that end in ``_cells`` return the function that makes the cells
of a column. An *estimate* is a value with the two ends of its 95 % interval. A *change* is the
difference of two values, such as those of a new and an old run. Minus is the sign −, not a hyphen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.errors import counted
from ranktilt.measures.printing import digits_apart, ends_apart, rounded
from ranktilt.measures.printing import signed as with_sign
from ranktilt.reporting.document import Cell, Emphasis

DASH = "–"
"""Printed in place of a number that is undefined or not known."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
"""Units of bytes."""
_DAY = 86_400
"""Seconds of a day."""


def number_cell(value: float, show: Callable[[Any], str], **look: Any) -> Cell:
    """Make a cell of a number, which `show` prints; `look` are further fields of the cell."""
    return Cell(show(value), value, **look)


def estimate_cell(
    estimate: Any,
    show: Callable[..., str],
    mark: str = "",
    *,
    neutral: float = math.nan,
    **look: Any,
) -> Cell:
    """Make a cell of a value with its interval.

    Parameters
    ----------
    estimate : object
        Has the fields ``value``, ``low`` and ``high``.
    show : function
        Prints each of them; with a `neutral` value, it takes the number of decimals as ``digits``.
    mark : str, optional
        What follows the value, such as a star.
    neutral : float, optional
        Value that favours nobody: the ends get decimals enough to be told from it.
    **look
        Further fields of the cell.
    """
    ends_text = ends_apart((estimate.low, estimate.high), neutral, show)
    return Cell(show(estimate.value) + mark, estimate.value, ends=ends_text, **look)


def number_cells(
    field: str, show: Callable[[Any], str], *, scale: float = 1
) -> Callable[[Any], Cell]:
    """Return the function that makes the cells of a column of numbers.

    ``number_cells("queries", with_commas)`` takes a record and prints its field ``queries``, times
    `scale`; a field may be a path, such as ``effect.p``.
    """
    value_of = attrgetter(field)

    def make_cell(record: Any) -> Cell:
        return number_cell(scale * value_of(record), show)

    return make_cell


def estimate_cells(field: str, show: Callable[[float], str]) -> Callable[[Any], Cell]:
    """Return the function that makes the cells of a column of values with intervals.

    It takes a record and prints the estimate in its `field`, as `estimate_cell` does.
    """
    estimate_of = attrgetter(field)

    def make_cell(record: Any) -> Cell:
        return estimate_cell(estimate_of(record), show)

    return make_cell


def change_cell(change: Change, unshown: Emphasis = "") -> Cell:
    """Make a cell of a difference, with a star where its corrected p is below .05.

    The interval is not corrected for several tests, so the two may disagree. Only a difference that
    both show (`Change.is_shown`) is printed strong; any other has the emphasis `unshown`.
    """
    star = "*" if change.p_corrected < ALPHA else ""
    return estimate_cell(
        change,
        partial(change.amount, sign=True),
        star,
        neutral=change.neutral,
        emphasis="strong" if change.is_shown else unshown,
    )


def decimal(value: float, digits: int = 1) -> str:
    """Print a number with this number of decimals and commas between thousands: ``1,234.5``.

    A number that rounds to 0 has no sign.
    """
    return DASH if math.isnan(value) else rounded(value, digits, "z,").replace("-", "−")


def short_decimal(value: float, digits: int = 2) -> str:
    """Print a number with this number of decimals.

    One that would be printed as 0 has its first significant digit instead: ``0.004``.
    """
    text = decimal(value, digits)
    is_zero = not text.strip("−0.")
    return f"{value:.1g}".replace("-", "−") if value and is_zero else text


def signed(value: float, digits: int = 1) -> str:
    """Print a number with its sign: ``+1.5``, but ``0.0`` where it rounds to 0."""
    return DASH if math.isnan(value) else with_sign(value, digits)


def fixed(value: float, digits: int = 2, undefined: str = DASH) -> str:
    """Print a number with this number of decimals and no commas: ``1234.50``."""
    return undefined if math.isnan(value) else rounded(value, digits, "z").replace("-", "−")


def always_signed(value: float, digits: int = 2) -> str:
    """Print a number with its sign, also where it rounds to 0: ``+0.00``."""
    return DASH if math.isnan(value) else rounded(value, digits, "+").replace("-", "−")


def percent(mean: float) -> str:
    """Print a mean of 0 to 1 in percent, with one decimal and no percent sign: ``12.3``."""
    return decimal(100 * mean)


def with_commas(number: int) -> str:
    """Print a count with commas between thousands: ``1,234``."""
    return f"{number:,}"


def ends(low: float, high: float, digits: int = 1) -> tuple[str, str]:
    """Print both ends of an interval, each with its sign, and decimals enough to tell it from 0."""
    return ends_apart((low, high), 0.0, partial(signed, digits=digits))


def interval(low: float, high: float, digits: int = 1) -> str:
    """Print an interval in brackets; a dash where it is undefined."""
    if math.isnan(low) or math.isnan(high):
        return DASH
    return f"[{', '.join(ends(low, high, digits))}]"


def probability(p: float) -> str:
    """Print a p-value with its relation sign: ``= .012`` or ``< .001``.

    It has decimals enough to tell it from .05, below which a star stands: ``= .0496``.
    """
    if math.isnan(p):
        return "undefined"
    digits = digits_apart([p], [ALPHA], 3)
    return "< .001" if p < 0.001 else f"= {rounded(p, digits)}".replace("0.", ".", 1)


def p_value(p: float) -> str:
    """Print a p-value for a table: ``.012``, and ``< .001`` for what is smaller."""
    return DASH if math.isnan(p) else probability(p).removeprefix("= ")


def size(size: float) -> str:
    """Print a number of bytes with two or three digits: ``11.3 MB``."""
    for unit in _UNITS:
        if size < 999.5 or unit == _UNITS[-1]:  # 999.5 would be printed as 1000
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"


def ago(then: float) -> str:
    """Say how many days ago a time is, in seconds since 1970."""
    days = int((time.time() - then) // _DAY)
    return "today" if days < 1 else f"{counted(days, 'day', 'days')} ago"
