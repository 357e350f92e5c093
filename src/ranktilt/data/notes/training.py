"""Notes on studies of trained rankers; a *body* is the language model that they start from.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class BodyTuned(Note):
    """A body that was tuned for a task before it was trained in the study."""

    body: str
    """Name of the body."""
    tuned: str
    """The task."""


@dataclass(frozen=True, kw_only=True)
class MeanOfTrainings(Note):
    """Each trained ranker is the mean of several trainings with different seeds."""

    trainings: int


@dataclass(frozen=True, kw_only=True)
class OneTraining(Note):
    """Each ranker was trained once, which shows nothing about other trainings."""

    severity: Severity = "warning"


@dataclass(frozen=True, kw_only=True)
class FewQueriesEvaluated(Note):
    """A collection with too few queries to show much."""

    severity: Severity = "warning"
    collection: str
    queries: int
