"""Read whole numbers, and sizes in points, that a user types.

Shares, means of measures such as nDCG, and Relative Δ (the difference between the means of two
groups, in percent of their average) are all printed in percent. A *point* is one such percent: from
40 % to 45 % are 5 points. All options of the command line and keys of ranktilt.toml are read here,
so that ``5``, ``5%`` and ``5 points`` are the same size everywhere.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ranktilt.errors import UserError

POINTS = "points"
"""Name of the unit."""
_POINT_WORDS = ("", "%", "point", POINTS, "percent")
"""Ways to write the unit of a number of points."""
_SIZE = re.compile(r"\s*(?P<number>\d*\.?\d+(?:e[+-]?\d+)?)\s*(?P<unit>.*?)\s*", re.IGNORECASE)
"""A number, and its unit."""
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
"""A whole number that fits into 64 bits."""


def read_whole_number(text: str) -> int | None:
    """Read a whole number of at most 18 digits; None for any other text.

    Numbers of more digits do not fit into arrays, and Python's ``int`` refuses thousands of digits.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


@dataclass(frozen=True, kw_only=True)
class Size:
    """A number with its unit."""

    number: float
    """The number, at least 0."""
    unit: str
    """``points``, or any other unit, such as ``ranks``."""


def parse_size(value: str | float) -> Size | None:
    """Read a size of at least 0; None for any other text."""
    match = _SIZE.fullmatch(str(value))
    number = math.nan if match is None else float(match["number"])
    if match is None or not math.isfinite(number):
        return None
    unit = match["unit"]
    return Size(number=number, unit=POINTS if unit in _POINT_WORDS else unit)


def read_points(
    value: str | float, subject: str = "", *, most: float = math.inf, example: float = 5
) -> float:
    """Read a size in points.

    Parameters
    ----------
    value : str or float
        The size as the user writes it.
    subject : str, optional
        Name of the option, at the beginning of the message.
    most : float, optional
        Largest size.
    example : float, optional
        Size that the message has as an example.

    Raises
    ------
    UserError
        If the value is no size in points from 0 to `most`.
    """
    size = parse_size(value)
    if size is not None and size.unit == POINTS and size.number <= most:
        return size.number
    prefix = f"{subject}: " if subject else ""
    bounds = "of at least 0" if math.isinf(most) else f"from 0 to {most:g}"
    raise UserError(
        f"{prefix}expected points {bounds}, such as {example:g} or {example:g}%; got {value}"
    )
