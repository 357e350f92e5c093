"""Text that others wrote, made safe to stand in a table of Markdown or LaTeX."""

from __future__ import annotations

import re
import unicodedata

from ranktilt.errors import visible
from ranktilt.reporting.render.markdown import escaped

_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn")
_SIGNS = re.compile(r"([\[\]&~$#])")
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "[": "{[}", "]": "{]}", "*": "{*}", "−": "$-$", "–": "--",
    "±": r"$\pm$", "Δ": r"$\Delta$", "≤": r"$\leq$", "≥": r"$\geq$", "…": r"\ldots{}", "`": "{`}",
}  # fmt: skip
"""Brackets and stars too: behind a line's end LaTeX would read them as its options."""
_NUMBER = re.compile(r"-(?=[\d.])")


def clean(text: str) -> str:
    """Make one line of a text: runs of blanks and line ends are one blank, control characters are shown as signs."""
    seen = visible(" ".join(text.split()))
    return " ".join("".join(c for c in seen if c.isspace() or unicodedata.category(c) not in _DROPPED).split())


def tex(text: str) -> str:
    """Escape a text for LaTeX; nothing in it is a command, and none of it ends a line or a cell."""
    return "".join(_TEX.get(c, c) for c in clean(text))


def tex_number(text: str) -> str:
    """Print a number in LaTeX, with a minus sign that is one."""
    return tex(_NUMBER.sub("−", text))


def tex_comment(text: str) -> str:
    """Make a comment of one line, whatever the text holds."""
    return f"% {clean(text)}"


def markdown(text: str) -> str:
    """Escape a text for a cell or a line of Markdown: nothing in it is a link, a sign or the end of a cell."""
    return _SIGNS.sub(r"\\\1", escaped(clean(text)))


def markdown_number(text: str) -> str:
    """Print a number in Markdown, with a minus sign that is one."""
    return markdown(_NUMBER.sub("−", text))
