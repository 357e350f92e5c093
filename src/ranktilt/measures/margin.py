"""Margins: how far from neutral still counts as level, in the unit of the estimand."""

from __future__ import annotations

import math

from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.sizes import POINTS, parse_size

Margin = float | str
"""Points (of percent), or for an estimand without percent a number with its unit: ``"0.5 ranks"``.
"""
DEFAULT_MARGIN = 5.0
"""Margin of verdicts whose caller sets none, in points."""


def read_margin(text: Margin, option: str = "") -> Margin:
    """Read a margin: a number of points, also ``"5 points"``, or a number with another unit.

    Raises
    ------
    UserError
        For anything else; `option` is named in front of the message.
    """
    size = parse_size(text)
    if size is None:
        front = f"{option}: " if option else ""
        raise UserError(
            f"{front}expected a margin of at least 0, such as 5 or 5% (points) or '0.5 ranks'; "
            f"got {text}"
        )
    return size.number if size.unit == POINTS else f"{size.number:g} {size.unit}"


def unit_of(estimand: Estimand) -> str:
    """Name the unit of the estimand's margins."""
    has_points = not math.isnan(estimand.point)
    return POINTS if has_points else estimand.suffix.strip() or estimand.name


def half_width(estimand: Estimand, margin: Margin) -> float:
    """Return the half-width of a margin in the estimand's values.

    NaN if the margin is in another unit, so that nothing lies within it.
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
    return f"±{margin:g} point{'' if margin == 1 else 's'}"


def require_unit(estimand: Estimand, margin: Margin, option: str) -> None:
    """Refuse a margin in another unit than the estimand's."""
    if math.isnan(half_width(estimand, margin)):
        value = margin if isinstance(margin, str) else f"{margin:g}"
        unit = unit_of(estimand)
        example = "5" if unit == POINTS else f"'0.5 {unit}'"
        raise UserError(
            f"{option} {value}: {estimand!r} is counted in {unit}; say how many: {option} {example}"
        )
