"""Values of a server's JSON, or of a journal that holds them, as they may be kept and shown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ranktilt.errors import shorten

LARGEST_COUNT = 2**53
"""Whole numbers up to here are the same in every server's JSON, and fit into a column of a table."""
_NAME_WIDTH = 200
# Controls, marks of the direction of writing, and halves of characters. They become a sign instead
# of nothing: what stands on both sides of one could together be a key that was not recognised.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def whole_number(value: object) -> int | None:
    """Return a count such as 5 or 5.0; None for anything else, a negative or an endless number too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT
    )
    return value if is_count else None  # type: ignore[return-value]


def plain_line(value: object, width: int = _NAME_WIDTH) -> str:
    """Return a name or a message in one line of visible characters; empty where the value is no text."""
    if not isinstance(value, str):
        return ""
    line = _UNSEEN.sub("?", " ".join(value.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def whole_characters(text: str) -> str:
    """Return a text that a file can hold: half a character, of which there are two in UTF-16, becomes ``?``."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def log_probabilities(values: object) -> tuple[float, ...] | None:
    """Return the log-probabilities of all tokens, infinite ones too; None where one of them is no number."""
    if not isinstance(values, list | tuple):
        return None
    numbers = [_number(value) for value in values]
    return None if any(math.isnan(number) for number in numbers) else tuple(numbers)


def token_texts(values: object) -> tuple[str, ...] | None:
    """Return the texts of all tokens; None where one of them has none."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        return None
    return tuple(whole_characters(value) for value in values)


def fields_of(value: object) -> dict[str, Any]:
    """Return a JSON object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def elements_of(value: object) -> Sequence[Any]:
    """Return a JSON list as it is; an empty one for anything else."""
    return value if isinstance(value, list) else []


def message_text(value: object) -> str:
    """Return the words of an error, which some servers give as a list or an object."""
    return value if isinstance(value, str) else shorten(value, 2 * _NAME_WIDTH) if value else ""


def _number(value: object) -> float:
    try:
        return (
            float(value)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else math.nan
        )
    except OverflowError:  # a whole number of hundreds of digits
        return math.nan
