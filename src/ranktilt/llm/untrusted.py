"""Clean values of a server's JSON, or of a journal, so that they can be stored and printed.

A server may send anything. So each function takes any value, and returns one of a known type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ranktilt.errors import shorten

LARGEST_COUNT = 2**53
"""Largest number that is the same in every server's JSON, and fits into a column of a table."""
_NAME_LENGTH = 200
"""Most characters of a name."""
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, marks of the direction of writing, and halves of characters.

They become ``?``. If they were removed, the parts on both sides could together be a server's key,
which was not recognised before.
"""


def whole_number(value: object) -> int | None:
    """Return a count such as 5 or 5.0; None for anything else, such as −1 or infinity."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST_COUNT else None


def plain_line(value: object, width: int = _NAME_LENGTH) -> str:
    """Return a name or a message as one line of visible characters; empty for other values.

    `width` is the most characters of the line.
    """
    if not isinstance(value, str):
        return ""
    line = _UNSEEN.sub("?", " ".join(value.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def whole_characters(text: str) -> str:
    """Return a text that can be written to a file: half of a character of UTF-16 becomes ``?``."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def log_probabilities(values: object) -> tuple[float, ...] | None:
    """Return the log-probabilities of all tokens, also infinite ones; None if any is no number."""
    if not isinstance(values, list | tuple):
        return None
    numbers = [_number(value) for value in values]
    return None if any(math.isnan(number) for number in numbers) else tuple(numbers)


def token_texts(values: object) -> tuple[str, ...] | None:
    """Return the texts of all tokens; None if any has no text."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(whole_characters(value) for value in values)


def fields_of(value: object) -> dict[str, Any]:
    """Return a JSON object as it is; an empty object for anything else."""
    return value if isinstance(value, dict) else {}


def elements_of(value: object) -> Sequence[Any]:
    """Return a JSON list as it is; an empty list for anything else."""
    return value if isinstance(value, list) else []


def message_text(value: object) -> str:
    """Return the text of an error, which some servers give as a list or an object."""
    if isinstance(value, str):
        return value
    return shorten(value, 2 * _NAME_LENGTH) if value else ""


def _number(value: object) -> float:
    """Return a number as a float; NaN for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.nan
