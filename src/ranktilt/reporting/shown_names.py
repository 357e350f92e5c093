"""How names are shown in sentences: long ones are shortened, right-to-left ones are isolated.

A name in Hebrew or Arabic would reverse the order of the numbers after it. To isolate it, a page
puts it into a ``<bdi>`` element, and text puts it between the characters U+2068 and U+2069.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

LONGEST_NAME = 40
"""Most characters of a name that a page does not shorten."""
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
"""Ranges of letters that are written from right to left, for a character class of a pattern."""
_WORD_CHARACTER = r"[^\s,;:()\[\]|]"
"""A character within a word."""
_WORD = rf"{_WORD_CHARACTER}*[{_RIGHT_TO_LEFT}](?:{_WORD_CHARACTER}*[^\s,;:()\[\]|.])?"
"""A word that has a letter written from right to left; it does not end with a full stop."""
_PHRASE = re.compile(rf"({_WORD}(?:[ \u00a0]+{_WORD})*)")
"""Words of this kind, with the blanks between them: their order is reversed together."""
_RIGHT_TO_LEFT_LETTER = re.compile(f"[{_RIGHT_TO_LEFT}]")
"""Searched first, because `_PHRASE` takes a second for a word of 10,000 other letters."""
_ISOLATE = "\u2068"
"""Unicode's first strong isolate: text up to `_END` does not affect the direction around it."""
_END = "\u2069"
"""Unicode's pop directional isolate, which ends it."""


def direction_parts(text: str) -> list[tuple[str, bool]]:
    """Split a text into parts, and tell of each whether it is written from right to left."""
    if not _RIGHT_TO_LEFT_LETTER.search(text):
        return [(text, False)] if text else []
    parts = _PHRASE.split(text)
    return [(part, bool(_PHRASE.fullmatch(part))) for part in parts if part]


def isolated(text: str) -> str:
    """Put words from right to left between the characters that isolate their direction."""
    if not _RIGHT_TO_LEFT_LETTER.search(text):
        return text
    return _PHRASE.sub(rf"{_ISOLATE}\1{_END}", text)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the long names among `names` with their shortened forms, which are all different.

    The middle is left out, because names of files begin alike and differ at their ends. Names that
    would have the same shortened form are missing, so that they are shown in full.
    """
    long_names = [name for name in dict.fromkeys(names) if len(name) > LONGEST_NAME]
    shortened = {name: middle_out(name, LONGEST_NAME) for name in long_names}
    counts = Counter(shortened.values())
    return {name: short for name, short in shortened.items() if counts[short] == 1}


def middle_out(text: str, most: int) -> str:
    """Leave out the middle of a long text, so that `most` letters remain."""
    if len(text) <= most:
        return text
    head = most // 3  # the rest goes to the end, in which names differ
    return f"{text[:head]}…{text[head + 1 - most :]}"
