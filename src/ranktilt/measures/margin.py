"""Margins: how far from the neutral value still counts as level.

The *neutral value* of an estimand (a question with a number for an answer) favours neither of two
groups. An answer is called *level* if its whole interval lies within the margin of it. A margin is
in points: a point is one percent. Estimands that are not in percent, such as rank gaps, have
margins in their own unit.
"""

from __future__ import annotations

import math

from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.base import Estimand
from ranktilt.sizes import POINTS, parse_size

Margin = float | str
"""A number of points, or a text of a number and another unit: ``"0.5 ranks"``."""
DEFAULT_MARGIN = 5.0
"""Margin of verdicts whose caller sets none, in points."""


def read_margin(text: Margin, option: str = "") -> Margin:
    """Read a margin: a number of points, such as 5 or ``"5 points"``, or ``"0.5 ranks"``.

    Raises
    ------
    UserError
        For anything else. The message begins with `option`, the name of the option that was typed.
    """
    size = parse_size(text)
    if size is None:
        prefix = f"{option}: " if option else ""
        raise UserError(
            f"{prefix}expected a margin of at least 0, such as 5 or 5% (points) or '0.5 ranks'; "
            f"got {text}"
        )
    return size.number if size.unit == POINTS else f"{size.number:g} {size.unit}"


def check_margin(margin: float) -> None:
    """Refuse a margin that is no number, or below 0."""
    if not is_number(margin) or margin < 0:
        raise UserError(f"expected a margin of at least 0, got {printed(margin)}")


def unit_of(estimand: Estimand) -> str:
    """Name the unit of the estimand's margins."""
    has_points = not math.isnan(estimand.point)
    return POINTS if has_points else estimand.suffix.strip() or estimand.name


def half_width(estimand: Estimand, margin: Margin) -> float:
    """Return a margin in the estimand's values: level is from neutral − this to neutral + this.

    NaN if the margin is in another unit than the estimand. Comparisons with NaN are false, so no
    value is within it.
    """
    number, _, margin_unit = str(margin).partition(" ")
    unit = unit_of(estimand)
    if (margin_unit or POINTS) != unit:
        return math.nan
    return float(number) * (estimand.point if unit == POINTS else 1 / estimand.scale)


def margin_words(margin: Margin) -> str:
    """Print a margin with its unit: ``±5 points``."""
    if isinstance(margin, str):
        return f"±{margin}"
    return f"±{points_words(margin)}"


def points_words(number: float) -> str:
    """Print a number of points: ``1 point``."""
    return f"{number:g} {'point' if number == 1 else 'points'}"


def require_unit(estimand: Estimand, margin: Margin, option: str) -> None:
    """Refuse a margin in another unit than the estimand's; `option` names it in the message."""
    if math.isnan(half_width(estimand, margin)):
        value = margin if isinstance(margin, str) else f"{margin:g}"
        unit = unit_of(estimand)
        example = "5" if unit == POINTS else f"'0.5 {unit}'"
        raise UserError(
            f"{option} {value}: {estimand!r} is counted in {unit}; say how many: {option} {example}"
        )
