"""Notes on choices between two documents.

A language model is asked which of two documents, one of each side, answers a query better. `pairs`
is the kind of such pairs: both documents are ``relevant``, or both are ``irrelevant``.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Count, Note, Severity
from ranktilt.data.notes.groups import FewQueries


@dataclass(frozen=True, kw_only=True)
class DocumentsInNoPair(Note):
    """Documents that belong to no side, and so to no pair."""

    by: str
    """Name of the column of groups."""
    documents: int
    total: int
    """All documents."""
    has_several: bool
    """Whether some of them belong to several groups."""


@dataclass(frozen=True, kw_only=True)
class UnaskedQueries(Note):
    """Queries about which nothing was asked, because they have no text or no candidates."""

    queries: int
    has_candidates: bool
    """Whether pairs are drawn from candidates, the results of a first stage."""


@dataclass(frozen=True, kw_only=True)
class OnlyIrrelevantPairs(Note):
    """No document is judged relevant, so that all pairs are irrelevant."""


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutSides(Note):
    """Queries without documents on both sides for one kind of pairs."""

    pairs: str
    lacking: int
    """Number of these queries."""
    queries: int
    """All queries."""


@dataclass(frozen=True, kw_only=True)
class FewPairs(Note):
    """Queries with fewer pairs of one kind than should be drawn."""

    pairs: str
    queries: int
    target: int
    """Pairs to draw for each query."""


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutPair(Note):
    """Queries that the user asked for, but that have no pair."""

    lacking: int
    """Number of these queries."""
    queries: int
    """All queries that the user asked for."""


@dataclass(frozen=True, kw_only=True)
class ChoicesLeftOut(Note):
    """Stored choices between two documents that make no pair, left out."""

    file: str
    choices: int
    reason: Literal["groups", "relevance"]
    """``groups``: not between both groups; ``relevance``: only one document is relevant."""
    protected: str
    """One of the groups."""
    unprotected: str
    """The other group."""


@dataclass(frozen=True, kw_only=True)
class ChoicesUnreadable(Note):
    """Answers that name no document."""

    severity: Severity = "warning"
    answers: int
    unreadable: int
    kinds: tuple[Count, ...]
    """Number of answers of each kind, including readable ones."""
    first: str
    """The first unreadable answer; empty if it is not known."""


@dataclass(frozen=True, kw_only=True)
class PairsInOneOrder(Note):
    """Pairs that were shown in one order only.

    A choice may then depend on the position of a document, and nobody can tell.
    """

    pairs: int
    """Number of these pairs."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesWithPairs(FewQueries):
    """Few queries with pairs of one kind."""

    pairs: str


@dataclass(frozen=True, kw_only=True)
class NothingDecided(Note):
    """No pair of one kind was decided: answers were unreadable, or depend on the order."""

    severity: Severity = "warning"
    pairs: str
