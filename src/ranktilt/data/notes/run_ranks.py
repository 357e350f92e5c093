"""Notes on runs that are ranked."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class RunsNotRanked(Note):
    """Runs without an answer to a question, which have no rank on it."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    question: str
    """The question, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class FewerQueriesRanked(Note):
    """Queries that count for some runs, and not for all, left out of an order."""

    question: str
    """The question, as it is printed."""
    excluded: int
    queries: int
    """Queries that count for any run."""
    fewest_run: str
    """Run for which the fewest queries count."""
    fewest: int
    """Queries that count for this run."""


@dataclass(frozen=True, kw_only=True)
class RunsAnswerAlike(Note):
    """Runs with the same answer in each query, which share their ranks."""

    runs: tuple[str, ...]
    question: str
    """The question, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class QueriesNotInAllAudits(Note):
    """Queries that not all of several audits hold, left out."""

    left_out: int
    queries: int
    """Queries of any audit."""
    first: tuple[str, ...]
    """Ids of the first few."""


@dataclass(frozen=True, kw_only=True)
class RankedQuestionsDiffer(Note):
    """Audits whose primary question is not the one by which their runs are ranked."""

    severity: Severity = "warning"
    questions: tuple[str, ...]
    """Notation of the audits' primary questions."""
    ranked: str
    """Notation of the question by which runs are ranked."""
