"""The sentence of a note: its severity, what it is about, and its words."""

from __future__ import annotations

from collections.abc import Iterable

from ranktilt.data.notes.base import Note, Scope
from ranktilt.reporting.sentences.notes import (
    comparisons,
    groups,
    inputs,
    judges,
    pairwise,
    probes,
    runs,
    sources,
    texts,
    training,
)
from ranktilt.reporting.sentences.notes.base import note_words

FILES = (comparisons, groups, inputs, judges, pairwise, probes, runs, sources, texts, training)
"""Where words are registered."""


def note_sentence(note: Note) -> str:
    """Return a note in words."""
    front = "warning: " if note.warns else ""
    scopes = "".join(f"{_scope(scope)}: " for scope in note.scopes)
    return f"{front}{scopes}{note_words(note)}"


def note_sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return notes in words."""
    return tuple(map(note_sentence, notes))


def derived(note: Note) -> dict[str, str]:
    """Return what a file says of a note in words."""
    return {"sentence": note_sentence(note)}


def _scope(scope: Scope) -> str:
    if scope.kind == "judge":
        return f"tilts under {scope.name}"
    if scope.kind == "documents":
        return f"{scope.name} documents alone"
    return scope.name
