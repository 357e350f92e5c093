"""Notes on texts: probes, checks of a collection, attribution, and factors of versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import Count, Note, Severity

Part = Literal["effectiveness", "similarity", "instrument"]
"""Part of a check that an option asks for."""


@dataclass(frozen=True, kw_only=True)
class ProbeNeedsEncoder(Note):
    """A probe that was left out, because no encoder was given."""

    probe: str


@dataclass(frozen=True, kw_only=True)
class ProbeLeftOut(Note):
    """A probe that could not measure."""

    probe: str
    error: str
    """Message of the failure."""


@dataclass(frozen=True, kw_only=True)
class SourceWithoutTwins(Note):
    """A source without twins in the reference, whose texts cannot be compared."""

    source: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class SourceWithoutOrigins(Note):
    """A source without a document of the same origin as one of the reference."""

    source: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class TwinsIdentical(Note):
    """Twins that are the same text, in which no property can differ."""

    source: str
    reference: str
    twins: int


@dataclass(frozen=True, kw_only=True)
class PartLeftOut(Note):
    """A part of a check that was asked for but left out."""

    part: Part
    reason: Literal["no twins", "one side", "nothing relevant"]


@dataclass(frozen=True, kw_only=True)
class EffectivenessOfPairs(Note):
    """Effectiveness of each side is that of a search among its twins only."""

    source: str
    reference: str
    pairs: int
    left_out: int
    """Documents without a twin, on neither side."""


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneSideExcluded(Note):
    """Queries without a relevant document on both sides."""

    excluded: int
    """Number of these queries, in the comparison with most of them."""
    queries: int
    """All queries, with the excluded ones."""
    are_alike: bool
    """Whether the number is the same in every comparison."""


@dataclass(frozen=True, kw_only=True)
class EffectivenessNotTested(Note):
    """No query has a relevant document on both sides."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesTested(Note):
    """Too few queries for reliable t tests."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class VoidingFault:
    """A fault of texts, pairs or judgments beyond its limit."""

    name: str
    source: str
    """Source that is compared with the reference."""
    value: str
    """Share or ratio with its unit."""
    limit: str
    """Values that would not void the comparison, in words."""


@dataclass(frozen=True, kw_only=True)
class CheckFailed(Note):
    """A collection whose check ends with Void, so that a tilt may be due to its faults."""

    severity: Severity = "warning"
    folder: str
    faults: tuple[VoidingFault, ...]


@dataclass(frozen=True, kw_only=True)
class InteractionsLeftOut(Note):
    """A design that cannot tell interactions from main effects."""


@dataclass(frozen=True, kw_only=True)
class InteractionsAliased(Note):
    """Interactions that change together, so that one number is their sum."""

    interactions: tuple[str, ...]
    """Names, with a minus if they change in opposite directions."""


@dataclass(frozen=True, kw_only=True)
class FactorsNotReported(Note):
    """Factors whose checks failed."""

    factors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VersionsNotJudged(Note):
    """A collection of versions without judgments."""


@dataclass(frozen=True, kw_only=True)
class NoFactorCouldMove(Note):
    """A run with lists in most of which no factor could move a document."""

    severity: Severity = "warning"
    run: str
    total: int
    fixed: tuple[Count, ...]
    """Number of lists that could not vary, by reason (`ranktilt.statistics.variation.Reason`)."""


@dataclass(frozen=True, kw_only=True)
class DocumentsNotRetrieved(Note):
    """Relevant documents without a retrieved version, counted for each query."""

    run: str
    left_out: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class VersionsNotRetrieved(Note):
    """Versions that are not retrieved; they are below all retrieved versions."""

    run: str
    share: float
    """Share of the versions of documents with a retrieved version, in [0, 1]."""
    is_cut: bool
    """Whether the run is cut at a rank, and a deeper ranking would hold more of them."""


@dataclass(frozen=True, kw_only=True)
class NoScoreGap(Note):
    """A run without a score gap."""

    run: str


@dataclass(frozen=True, kw_only=True)
class FewToTest(Note):
    """Too few queries and documents for a test."""

    run: str
    queries: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class FileHasOtherReadings(Note):
    """Other kinds that a file could be."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileNotReadable(Note):
    """Reason why a file cannot be read as it is."""

    error: str
