"""Margins: how far from neutral still counts as level, in the unit of the estimand."""

from __future__ import annotations

import math
import re

from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand

Margin = float | str
"""Points (of percent), or for an estimand without percent a number with its unit: ``"0.5 ranks"``.
"""
DEFAULT_MARGIN = 5.0
"""Margin of verdicts whose caller sets none, in points."""
_NUMBER = re.compile(r"\s*(?P<number>\d*\.?\d+(?:e-?\d+)?)\s*(?P<unit>.*?)\s*", re.IGNORECASE)
_POINTS = ("", "%", "point", "points")
"""Ways to write the unit of a margin in points."""


def read_margin(text: Margin, option: str = "") -> Margin:
    """Read a margin: a number of points, also ``"5 points"``, or a number with another unit.

    Raises
    ------
    UserError
        For anything else; `option` is named in front of the message.
    """
    match = _NUMBER.fullmatch(str(text))
    number = math.nan if match is None else float(match["number"])
    if match is None or not math.isfinite(number):
        front = f"{option}: " if option else ""
        raise UserError(
            f"{front}expected a margin of at least 0, such as 5 (points) or '0.5 ranks'; got {text}"
        )
    return number if match["unit"] in _POINTS else f"{number:g} {match['unit']}"


def unit_of(estimand: Estimand) -> str:
    """Name the unit of the estimand's margins."""
    has_points = not math.isnan(estimand.point)
    return "points" if has_points else estimand.suffix.strip() or estimand.name


def half_width(estimand: Estimand, margin: Margin) -> float:
    """Return the half-width of a margin in the estimand's values.

    NaN if the margin is in another unit, so that nothing lies within it.
    """
    number, _, margin_unit = str(margin).partition(" ")
    unit = unit_of(estimand)
    if (margin_unit or "points") != unit:
        return math.nan
    return float(number) * (estimand.point if unit == "points" else 1 / estimand.scale)


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
        example = "5" if unit == "points" else f"'0.5 {unit}'"
        raise UserError(
            f"{option} {value}: {estimand!r} is counted in {unit}; say how many: {option} {example}"
        )
