"""Markdown: text that means what it says, and lines of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ranktilt.errors import visible


def markdown(text: str) -> str:
    """Escape what Markdown would read as its own signs; the line below a table's header stays as it is."""
    if re.fullmatch(r"-+:?", text):
        return text
    return re.sub(r"([|*_`<>\\])", r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """Make one line of a text, in which what cannot be seen is shown as signs."""
    return " ".join(visible(text).splitlines())


def markdown_line(cells: Sequence[str]) -> str:
    """Make one line of a table."""
    return "| " + " | ".join(map(markdown, cells)) + " |"
