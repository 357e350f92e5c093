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
    """The message of what went wrong."""


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
    """Twins that are one text, in which no property can differ."""

    source: str
    reference: str
    twins: int


@dataclass(frozen=True, kw_only=True)
class PartLeftOut(Note):
    """A part of a check that was asked for and left out."""

    part: Part
    reason: Literal["no twins", "one side", "nothing relevant"]


@dataclass(frozen=True, kw_only=True)
class EffectivenessOfPairs(Note):
    """Effectiveness of two sides is that of a search among twins alone."""

    source: str
    reference: str
    pairs: int
    left_out: int
    """Documents without a twin, on neither side."""


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneSideExcluded(Note):
    """Queries without a relevant document on both sides."""

    excluded: int
    """Of the comparison with the most."""
    queries: int
    """All queries, those excluded among them."""
    are_alike: bool
    """Whether it is the same number in every comparison."""


@dataclass(frozen=True, kw_only=True)
class EffectivenessNotTested(Note):
    """No query has a relevant document on both sides."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesTested(Note):
    """So few queries that their t tests are not to rely on."""

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
    """A collection whose check ends with Void, so that a tilt may come of its faults."""

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
    """With a minus where they change in opposite directions."""


@dataclass(frozen=True, kw_only=True)
class FactorsNotReported(Note):
    """Factors whose checks failed."""

    factors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VersionsNotJudged(Note):
    """A collection of versions without judgments."""


@dataclass(frozen=True, kw_only=True)
class NoFactorCouldMove(Note):
    """A run in most of whose lists no factor could move a document."""

    severity: Severity = "warning"
    run: str
    total: int
    fixed: tuple[Count, ...]
    """How many lists could not vary, by the reason (`ranktilt.statistics.variation.Reason`)."""


@dataclass(frozen=True, kw_only=True)
class DocumentsNotRetrieved(Note):
    """Relevant documents of which no version is retrieved, counted query by query."""

    run: str
    left_out: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class VersionsNotRetrieved(Note):
    """Versions that are not retrieved, and stand below all that are."""

    run: str
    share: float
    """In [0, 1], of the versions of documents of which one is retrieved."""
    is_cut: bool
    """Whether the run is cut at a rank, and would hold more if it were ranked deeper."""


@dataclass(frozen=True, kw_only=True)
class NoScoreGap(Note):
    """A run without a score gap."""

    run: str


@dataclass(frozen=True, kw_only=True)
class FewToTest(Note):
    """Queries and documents that are too few to test."""

    run: str
    queries: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class FileHasOtherReadings(Note):
    """What a file could be as well."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileNotReadable(Note):
    """Why a file cannot be read as it is."""

    error: str
