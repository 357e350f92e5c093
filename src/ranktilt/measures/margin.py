"""Margins: how far from level still counts as level, in the unit of the estimand."""

from __future__ import annotations

import math
import re

from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand

Margin = float | str
"""Points (of percent), or a number with the unit of an estimand that has none: ``"0.5 ranks"``."""
DEFAULT_MARGIN = 5.0
_NUMBER = re.compile(r"\s*(?P<number>\d*\.?\d+(?:e-?\d+)?)\s*(?P<unit>.*?)\s*", re.IGNORECASE)
_POINTS = ("", "%", "point", "points")


def read_margin(text: Margin, option: str = "") -> Margin:
    """Read a margin: a number of points, also ``"5 points"``, or one with another unit; `UserError` otherwise."""
    match = _NUMBER.fullmatch(str(text))
    number = math.nan if match is None else float(match["number"])
    if match is None or not math.isfinite(number):
        front = f"{option}: " if option else ""
        raise UserError(
            f"{front}expected a margin of at least 0, such as 5 (points) or '0.5 ranks'; got {text}"
        )
    return number if match["unit"] in _POINTS else f"{number:g} {match['unit']}"


def unit_of(of: Estimand) -> str:
    """Name what a margin of the estimand is counted in."""
    return "points" if of.point == of.point else of.suffix.strip() or of.name


def half_width(of: Estimand, margin: Margin) -> float:
    """Turn a margin into the estimand's own values; NaN where it is in another unit, so that nothing is within it."""
    number, _, unit = str(margin).partition(" ")
    own = unit_of(of)
    if (unit or "points") != own:
        return math.nan
    return float(number) * (of.point if own == "points" else 1 / of.scale)


def margin_words(margin: Margin) -> str:
    """Print a margin with its unit: ``±5 points``."""
    return (
        f"±{margin}"
        if isinstance(margin, str)
        else f"±{margin:g} point{'' if margin == 1 else 's'}"
    )


def require_unit(of: Estimand, margin: Margin, option: str) -> None:
    """Refuse a margin in another unit than the estimand's."""
    if half_width(of, margin) != half_width(of, margin):
        shown = margin if isinstance(margin, str) else f"{margin:g}"
        unit = unit_of(of)
        typed = "5" if unit == "points" else f"'0.5 {unit}'"
        raise UserError(
            f"{option} {shown}: {of!r} is counted in {unit}; say how many: {option} {typed}"
        )
