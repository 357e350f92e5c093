"""How names stand in sentences: long ones are shortened, and right-to-left ones keep to themselves.

A name in Hebrew or Arabic would turn the numbers after it around. On a page it stands in a mark of
its own (``<bdi>``), in print between U+2068 and U+2069.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

LONGEST_NAME = 40
"""Letters of a name that a page shows whole."""
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
"""Letters that are written from right to left, as a part of a pattern."""
_LETTERS = r"[^\s,;:()\[\]|]"
"""A sign within a word."""
_WORD = rf"{_LETTERS}*[{_RIGHT_TO_LEFT}](?:{_LETTERS}*[^\s,;:()\[\]|.])?"
"""A word with a letter that is written from right to left."""
_STRETCH = re.compile(rf"({_WORD}(?:[ \u00a0]+{_WORD})*)")
"""Words of this kind, and the blanks between them."""
_RIGHT_TO_LEFT_LETTER = re.compile(f"[{_RIGHT_TO_LEFT}]")
"""Looked for first: `_STRETCH` takes a second for a word of 10,000 other letters."""
_ISOLATE = "\u2068"
"""Unicode's first strong isolate: text up to `_END` does not affect the direction around it."""
_END = "\u2069"
"""Unicode's pop directional isolate, which ends it."""


def direction_parts(text: str) -> list[tuple[str, bool]]:
    """Split a text into parts, each with whether it is words from right to left."""
    if not _RIGHT_TO_LEFT_LETTER.search(text):
        return [(text, False)] if text else []
    parts = _STRETCH.split(text)
    return [(part, bool(_STRETCH.fullmatch(part))) for part in parts if part]


def isolated(text: str) -> str:
    """Put words from right to left between the marks that keep what follows in its place."""
    if not _RIGHT_TO_LEFT_LETTER.search(text):
        return text
    return _STRETCH.sub(rf"{_ISOLATE}\1{_END}", text)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the long ones among names with what is shown of each; no two are shown alike.

    The middle is left out: names of files begin alike and differ at their ends. Where that does not
    tell two names apart, both are shown whole.
    """
    long_names = [name for name in dict.fromkeys(names) if len(name) > LONGEST_NAME]
    shortened = {name: middle_out(name, LONGEST_NAME) for name in long_names}
    counts = Counter(shortened.values())
    return {name: short for name, short in shortened.items() if counts[short] == 1}


def middle_out(text: str, most: int) -> str:
    """Leave out the middle of a long text, so that `most` letters remain."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"
