"""Markdown: text that means what it says, and lines of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence


def markdown(text: str) -> str:
    """Escape what Markdown would read as its own signs; the line below a table's header stays as it is."""
    return re.sub(r"([|*_`<>\\])", r"\\\1", text) if not re.fullmatch(r"-+:?", text) else text


def markdown_line(cells: Sequence[str]) -> str:
    """Make one line of a table."""
    return "| " + " | ".join(map(markdown, cells)) + " |"
