"""Sizes that a user types: in points, wherever they stand.

One point is one percent of a share, of an effectiveness, or of a Relative Δ. Options of the command
line and keys of ranktilt.toml are read here alone, so that ``5``, ``5%`` and ``5 points`` are one
size in all of them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ranktilt.errors import UserError

POINTS = "points"
_POINT_WORDS = ("", "%", "point", POINTS, "percent")
"""Ways to write the unit of a number of points."""
_SIZE = re.compile(r"\s*(?P<number>\d*\.?\d+(?:e[+-]?\d+)?)\s*(?P<unit>.*?)\s*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Size:
    """A number with its unit."""

    number: float
    unit: str
    """``points``, or the unit of a question that has no points, such as ``ranks``."""


def parse_size(value: str | float) -> Size | None:
    """Read a size of at least 0; None where it is not one."""
    match = _SIZE.fullmatch(str(value))
    number = math.nan if match is None else float(match["number"])
    if match is None or not math.isfinite(number):
        return None
    unit = match["unit"]
    return Size(number=number, unit=POINTS if unit in _POINT_WORDS else unit)


def read_points(
    value: str | float, subject: str = "", *, most: float = math.inf, example: float = 5
) -> float:
    """Read a size in points, from 0 to `most`.

    Raises
    ------
    UserError
        For anything else; `subject` is named in front of the message.
    """
    size = parse_size(value)
    if size is not None and size.unit == POINTS and size.number <= most:
        return size.number
    front = f"{subject}: " if subject else ""
    bounds = "of at least 0" if math.isinf(most) else f"from 0 to {most:g}"
    raise UserError(
        f"{front}expected points {bounds}, such as {example:g} or {example:g}%; got {value}"
    )
