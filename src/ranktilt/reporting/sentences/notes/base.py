"""The table of sentences of notes by their class, and how they name several runs.

A note is what a reader of a result should know besides its numbers. Its class is its kind, and has
one function here that makes the sentence (`functools.singledispatch` finds it).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from ranktilt.data.notes.base import Count, Note, Remark
from ranktilt.errors import join_words
from ranktilt.statistics.variation import Variation

MOST_NAMES = 4
"""Names that are listed before the others are counted."""


@singledispatch
def note_words(note: Note) -> str:
    """Say what a note holds, without its severity and scope.

    Register a function for each class of notes: ``note_words.register``.
    """
    raise LookupError(f"no words are registered for notes of the kind {note.kind}")


@note_words.register
def _remark(note: Remark) -> str:
    """Return the text of a note that is written in words already."""
    return note.text


def variation_of(total: int, fixed: tuple[Count, ...]) -> Variation:
    """Return how many lists could not come out otherwise, which a note holds as counts.

    `fixed` are the numbers of these lists by reason, of `total` lists.
    """
    reasons: Any = {count.name: count.number for count in fixed}
    return Variation(total=total, fixed=reasons)


def few_names(names: Sequence[str]) -> str:
    """Name a few runs, and count the others."""
    others = len(names) - MOST_NAMES
    if others <= 1:  # a fifth name is as short as "1 other"
        return join_words(list(names))
    return f"{', '.join(names[:MOST_NAMES])} and {others:,} others"


def first_names(names: Sequence[str], number: int) -> str:
    """Quote the first few of `number` names: ``'q1', 'q2', …``."""
    return ", ".join(map(repr, names)) + (", …" if number > len(names) else "")
