"""What results ask of reporting: see `ranktilt.presenter`."""

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
    """Return what a result says first, in one sentence."""
    return view(result).headline


def sentences(result: Any) -> str:
    """Return a result's verdicts in words, one a line, or else what it says first."""
    document = view(result)
    lines = [line.text for line in document.lines(notes=False)]
    return "\n".join(lines or [document.headline])
