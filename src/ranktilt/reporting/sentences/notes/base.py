"""The table of notes' words, by their kinds."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ranktilt.data.notes.base import Count, Note, Remark
from ranktilt.errors import join_words
from ranktilt.statistics.variation import Variation

MOST_NAMES = 4
"""Names that are listed before the others are counted."""


@singledispatch
def note_words(note: Note) -> str:
    """Say what a note holds, without its severity and scope."""
    raise LookupError(f"no words are registered for notes of the kind {note.kind}")


@note_words.register
def _remark(note: Remark) -> str:
    return note.text


def variation_of(total: int, fixed: tuple[Count, ...]) -> Variation:
    """Return the variation that a note holds as counts."""
    reasons: Any = {count.name: count.number for count in fixed}
    return Variation(total=total, fixed=reasons)


def few_names(names: list[str] | tuple[str, ...] | str) -> str:
    """Name a few runs, and count the others."""
    more = len(names) - MOST_NAMES
    if more <= 1:  # the one that is left is named as soon as counted
        return join_words(list(names))
    return f"{', '.join(names[:MOST_NAMES])} and {more:,} others"


def first_names(names: tuple[str, ...], number: int) -> str:
    """List the first few of many names."""
    return ", ".join(map(repr, names)) + (", …" if number > len(names) else "")
