"""A terminal of any width, and what a reader of it sees."""

import io
import re
from typing import Any

import pytest

from ranktilt.reporting.output import show, table

CODE = re.compile(r"\x1b\[([\d;]*)m")
BLUE, ORANGE, BOLD = "38;5;27", "38;5;208", "1"


class Terminal(io.StringIO):
    """A terminal, as far as the code can tell."""

    def isatty(self) -> bool:
        return True


def screen(result: Any, monkeypatch: pytest.MonkeyPatch, *, columns: int = 120, notes: bool = True) -> str:
    """What a terminal receives."""
    for name, value in {"COLUMNS": str(columns), "LINES": "50", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    show(result, stream, notes=notes)
    return stream.getvalue()


def plain(text: str) -> str:
    """The same without colours."""
    return CODE.sub("", text)


def style(text: str, cell: str) -> set[str]:
    """Return the style in force where a cell's text begins, as a set of colour and weight."""
    code = CODE.findall(text[: text.index(cell)])[-1]
    return {found for found in (BLUE, ORANGE) if found in code} | ({BOLD} if code.startswith("1") else set())


def html(result: Any) -> str:
    """The page of a result."""
    return table(result, "html")
