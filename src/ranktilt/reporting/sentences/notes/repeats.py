"""Sentences of the notes on repeats: the same queries that an engine ranked several times.

A note is what a reader of the result should know besides its numbers.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.data.notes.repeats import (
    RepeatCountsDiffer,
    RepeatDepthsDiffer,
    RepeatsDiffer,
    RepeatsIdentical,
)
from ranktilt.errors import counted
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _repeats_identical(note: RepeatsIdentical) -> str:
    repeats = f"its {note.repeats} repeats"
    if note.identical < note.repeats:
        repeats = f"{note.identical} of {repeats}"
    return (
        f"{note.run}: {repeats} are identical, so either the engine is deterministic or a file was "
        "copied; identical repeats say nothing about the engine's own noise"
    )


@note_words.register
def _repeat_depths_differ(note: RepeatDepthsDiffer) -> str:
    return (
        f"{note.run}: its repeats have different depths, from {note.shallowest:,} to "
        f"{note.deepest:,} documents a query; below rank {note.shallowest:,} they cannot be "
        "compared"
    )


@note_words.register
def _repeats_differ(note: RepeatsDiffer) -> str:
    return (
        f"{note.run}: its repeats differ as wholes (on {note.question}, F test: "
        f"p {probability(note.p)}), as if the engine changed between them; intervals leave that out"
    )


@note_words.register
def _repeat_counts_differ(note: RepeatCountsDiffer) -> str:
    runs = note.run if note.run == note.old_run else f"{note.run} and {note.old_run}"
    return (
        f"{runs}: {counted(note.new_repeats, 'repeat', 'repeats')} of the new run and "
        f"{note.old_repeats:,} of the old one; the interval includes the noise of both"
    )
