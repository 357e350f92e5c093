"""Notes on studies of trained rankers."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class BodyTuned(Note):
    """A model that was tuned before it was trained here."""

    body: str
    tuned: str
    """Task that it was tuned for."""


@dataclass(frozen=True, kw_only=True)
class MeanOfTrainings(Note):
    """Each trained ranker is the mean of several trainings with different seeds."""

    trainings: int


@dataclass(frozen=True, kw_only=True)
class OneTraining(Note):
    """Each ranker was trained once, which says nothing about other trainings."""

    severity: Severity = "warning"


@dataclass(frozen=True, kw_only=True)
class FewQueriesEvaluated(Note):
    """A collection with too few queries to show much."""

    severity: Severity = "warning"
    collection: str
    queries: int
