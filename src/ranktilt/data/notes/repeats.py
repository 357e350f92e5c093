"""Notes on repeats: rankings of the same queries by an engine that ranks differently each time.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note


@dataclass(frozen=True, kw_only=True)
class RepeatsIdentical(Note):
    """Repeats of one run that give every query the same list."""

    run: str
    identical: int
    """Number of repeats that equal another one."""
    repeats: int
    """Number of all repeats."""


@dataclass(frozen=True, kw_only=True)
class RepeatDepthsDiffer(Note):
    """Repeats of one run whose lists are cut at different depths."""

    run: str
    shallowest: int
    """Length of the longest list of the repeat with the shortest lists."""
    deepest: int
    """Length of the longest list of all repeats."""


@dataclass(frozen=True, kw_only=True)
class RepeatsDiffer(Note):
    """Repeats of a run whose answers differ in all queries alike.

    The differences are larger than those between answers to single queries explain.
    """

    run: str
    question: str
    """Notation of the question on which they differ."""
    p: float
    """p of an F test of the repeats, corrected for the number of runs."""


@dataclass(frozen=True, kw_only=True)
class RepeatCountsDiffer(Note):
    """Two runs with different numbers of repeats that are compared."""

    run: str
    """Name of the new run."""
    old_run: str
    """Name of the old run."""
    new_repeats: int
    old_repeats: int
