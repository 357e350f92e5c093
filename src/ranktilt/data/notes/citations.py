"""Notes on answers of an engine, and the pages that they cite.

In these notes, `of_all` is the number of all citations, answers or queries; the field before it
counts those among them that the note is about.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Note, Severity


@dataclass(frozen=True, kw_only=True)
class AnswersReadAs(Note):
    """How a file of answers was read."""

    layout: str
    """Description of the layout that the file was read as."""
    exact_urls: bool
    """Whether addresses are compared character by character."""


@dataclass(frozen=True, kw_only=True)
class UnitFound(Note):
    """The unit of an audit: what errors are computed over, and labels exchanged between."""

    unit: str
    """``domain``, ``page`` or a column of the labels."""
    units: int
    """Number of units of the labelled pages."""
    mixed: int
    """Of the domains with several pages, those that hold more than one group.

    If the user chose a unit, the same of that unit.
    """
    of_several: int
    """Number of domains, or of units that the user chose, with several pages."""
    is_chosen: bool
    """Whether the user chose the unit."""
    of_documents: bool = False
    """Whether pages are documents of a collection, which have no domains."""


@dataclass(frozen=True, kw_only=True)
class UnlabelledCitations(Note):
    """Citations of pages without a label, which count for no group."""

    severity: Severity = "warning"
    citations: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class AnswersWithoutCitations(Note):
    """Answers that cite no page, and so do not say which pages are selected."""

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
    """So few queries that intervals are a little too narrow."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class NoPool(Note):
    """What could have been cited is unknown, so that shares have no neutral value."""

    severity: Severity = "warning"


@dataclass(frozen=True, kw_only=True)
class RanksAsLabelled(Note):
    """Rates by rank are not corrected for label errors, while other answers are."""


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
