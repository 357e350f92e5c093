"""Notes on choices between two documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Count, Note, Severity
from ranktilt.data.notes.groups import FewQueries


@dataclass(frozen=True, kw_only=True)
class DocumentsInNoPair(Note):
    """Documents of neither side."""

    by: str
    documents: int
    total: int
    has_several: bool
    """Whether some of them name several groups."""


@dataclass(frozen=True, kw_only=True)
class UnaskedQueries(Note):
    """Queries without a text, or without candidates, about which nothing was asked."""

    queries: int
    has_candidates: bool
    """Whether pairs are drawn of candidates."""


@dataclass(frozen=True, kw_only=True)
class OnlyIrrelevantPairs(Note):
    """No document is judged relevant, so that there are irrelevant pairs only."""


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutSides(Note):
    """Queries without documents of one kind on both sides."""

    pairs: str
    lacking: int
    queries: int


@dataclass(frozen=True, kw_only=True)
class FewPairs(Note):
    """Queries with fewer pairs of one kind than were to be drawn."""

    pairs: str
    queries: int
    target: int
    """Pairs to draw for each query."""


@dataclass(frozen=True, kw_only=True)
class QueriesWithoutPair(Note):
    """Queries that were asked for and have no pair."""

    lacking: int
    queries: int


@dataclass(frozen=True, kw_only=True)
class ChoicesLeftOut(Note):
    """Stored choices that count for neither side."""

    file: str
    choices: int
    reason: Literal["groups", "relevance"]
    """``groups``: not between both groups; ``relevance``: of a relevant and an irrelevant document."""
    protected: str
    unprotected: str


@dataclass(frozen=True, kw_only=True)
class ChoicesUnreadable(Note):
    """Answers that name no document."""

    severity: Severity = "warning"
    answers: int
    unreadable: int
    kinds: tuple[Count, ...]
    first: str
    """The first unreadable answer; empty where it is not known."""


@dataclass(frozen=True, kw_only=True)
class PairsInOneOrder(Note):
    """Pairs that were shown in one order only."""

    pairs: int


@dataclass(frozen=True, kw_only=True)
class FewQueriesWithPairs(FewQueries):
    """Few queries with pairs of one kind."""

    pairs: str


@dataclass(frozen=True, kw_only=True)
class NothingDecided(Note):
    """No pair of one kind was decided."""

    severity: Severity = "warning"
    pairs: str
