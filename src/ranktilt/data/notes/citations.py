"""Notes on answers and what they cite."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class AnswersReadAs(Note):
    """In which layout answers were found."""

    layout: str
    exact_urls: bool


@dataclass(frozen=True, kw_only=True)
class UnitFound(Note):
    """The unit at which labels are constant, which errors and exchanged labels go by."""

    unit: str
    units: int
    mixed: int
    """Units with several pages that hold more than one group."""
    of_several: int
    is_chosen: bool
    of_documents: bool = False
    """Whether pages are documents of a collection, without domains."""


@dataclass(frozen=True, kw_only=True)
class UnlabelledCitations(Note):
    """Citations of pages without a label, which count for no group."""

    severity: Severity = "warning"
    citations: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class AnswersWithoutCitations(Note):
    """Answers that cite no page: they say nothing of selection."""

    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class CitedWithoutConsulting(Note):
    """Cited pages that the same answer did not consult; they are not in its citation rate."""

    severity: Severity = "warning"
    citations: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutList(Note):
    """Queries with answers for which the run has no list."""

    severity: Severity = "warning"
    queries: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class FewQuestions(Note):
    """So few queries that intervals are too narrow."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class NoPool(Note):
    """Nothing tells what could have been cited, so that shares have no neutral value."""

    severity: Severity = "warning"


@dataclass(frozen=True, kw_only=True)
class RanksAsLabelled(Note):
    """Rates by rank, which are by the labels as they are where other answers are corrected."""


@dataclass(frozen=True, kw_only=True)
class FewerThanErrors(Note):
    """A group with no more citations than wrong labels alone would give it."""

    group: str


@dataclass(frozen=True, kw_only=True)
class AnswersWithoutConsulted(Note):
    """Answers that do not list what they consulted, in a file in which others do."""

    severity: Severity = "warning"
    answers: int
    of_all: int
