"""Notes on studies of trained rankers."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class BodyTuned(Note):
    """A model that was tuned before it was trained here."""

    body: str
    tuned: str
    """What it was tuned for."""


@dataclass(frozen=True, kw_only=True)
class MeanOfTrainings(Note):
    """Each trained ranker is the mean of trainings that differ in the seed."""

    trainings: int


@dataclass(frozen=True, kw_only=True)
class OneTraining(Note):
    """One training of each ranker, which tells nothing of others."""

    severity: Severity = "warning"


@dataclass(frozen=True, kw_only=True)
class FewQueriesEvaluated(Note):
    """A collection of so few queries that they show little."""

    severity: Severity = "warning"
    collection: str
    queries: int
