"""Notes on repeats of an engine: what about them is odd."""

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


@dataclass(frozen=True, kw_only=True)
class RepeatDepthsDiffer(Note):
    """Repeats of one run whose lists are cut at different depths."""

    run: str
    shallowest: int
    """Length of the longest list of the repeat whose lists are shortest."""
    deepest: int
    """Length of the longest list of all repeats."""


@dataclass(frozen=True, kw_only=True)
class RepeatsDiffer(Note):
    """Repeats that differ in all queries alike, more than answers to single queries do."""

    run: str
    question: str
    """Notation of the question on which they differ."""
    p: float
    """The p of an F test, corrected for the number of runs."""


@dataclass(frozen=True, kw_only=True)
class RepeatCountsDiffer(Note):
    """Two runs that are compared, with different numbers of repeats."""

    run: str
    """Name of the new run."""
    old_run: str
    new_repeats: int
    old_repeats: int
