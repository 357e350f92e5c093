"""Sentences of notes, one function for each kind of note.

A note is what a reader of a result should know besides its numbers; its kind is its class.
`base.note_words` is the table: a function registers with the kind that its first parameter is
annotated with. Each file has the kinds of the file of the same name in `ranktilt/data/notes`, and
is imported when one of them is said. A package registers its own kinds the same way:
``note_words.register``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ranktilt.data.notes.base import Note, Scope
from ranktilt.reporting.sentences.notes.base import note_words


def note_sentence(note: Note) -> str:
    """Return a note in words: its severity, what it is about, and what it says."""
    room, _, file = type(note).__module__.rpartition(".")
    if room == "ranktilt.data.notes":
        import_module(f"ranktilt.reporting.sentences.notes.{file}")
    severity = "warning: " if note.warns else ""
    scopes = "".join(f"{_scope_name(scope)}: " for scope in note.scopes)
    return f"{severity}{scopes}{note_words(note)}"


def note_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return notes in words."""
    return tuple(map(note_sentence, notes))


def derived_words(note: Note) -> dict[str, str]:
    """Return the note's sentence, which a file holds besides its fields."""
    return {"sentence": note_sentence(note)}


def _scope_name(scope: Scope) -> str:
    """Name the part of a result that a note is about."""
    if scope.kind == "judge":
        return f"tilts under {scope.name}"
    if scope.kind == "documents":
        return f"{scope.name} documents alone"
    return scope.name
