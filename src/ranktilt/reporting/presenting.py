"""The functions by which results present themselves, such as `Result.frame` and notebooks.

Results cannot import this room, because it imports them. They find this module through
`ranktilt.presenter`, whose class `Presenter` lists the functions.
"""

from __future__ import annotations

from typing import Any

from ranktilt.reporting.frames import frame
from ranktilt.reporting.layouts.figures import result_figure
from ranktilt.reporting.output import notebook, table
from ranktilt.reporting.sentences.derived import derived, sentence
from ranktilt.reporting.views import view

__all__ = [
    "derived",
    "frame",
    "headline",
    "notebook",
    "result_figure",
    "sentence",
    "sentences",
    "table",
]


def headline(result: Any) -> str:
    """Return the headline of a result: its leading finding in one sentence."""
    return view(result).headline


def sentences(result: Any) -> str:
    """Return a result's findings in words, one on each line; its headline where it has none."""
    document = view(result)
    lines = [line.text for line in document.lines(notes=False)]
    return "\n".join(lines or [document.headline])
