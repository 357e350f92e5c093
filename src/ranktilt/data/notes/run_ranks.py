"""Notes on runs that are ordered by their answer to a question.

A question is a measure of effectiveness, or of whom a run favours.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class RunsNotRanked(Note):
    """Runs without an answer to a question, which have no rank by it."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    question: str
    """The question, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class FewerQueriesRanked(Note):
    """Queries that do not count for all runs, left out of an order."""

    question: str
    """The question, as it is printed."""
    excluded: int
    queries: int
    """Queries that count for at least one run."""
    fewest_run: str
    """Run for which the fewest queries count."""
    fewest: int
    """Number of queries that count for this run."""


@dataclass(frozen=True, kw_only=True)
class RunsAnswerAlike(Note):
    """Runs with the same answer for each query, which share their ranks."""

    runs: tuple[str, ...]
    question: str
    """The question, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class QueriesNotInAllAudits(Note):
    """Queries that are not in all of several audits, left out."""

    left_out: int
    queries: int
    """Queries that are in at least one audit."""
    first: tuple[str, ...]
    """Ids of the first few."""


@dataclass(frozen=True, kw_only=True)
class RankedQuestionsDiffer(Note):
    """Audits with another primary question than the one by which their runs are ranked."""

    severity: Severity = "warning"
    questions: tuple[str, ...]
    """Notation of the audits' primary questions."""
    ranked: str
    """Notation of the question by which runs are ranked."""
