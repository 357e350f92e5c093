"""Notes on texts: probes, checks of a collection, attribution, and factors of versions.

Twins are versions of one text by different sources; the reference is the source that others are
compared with. A factor is a property of texts, such as length, that designed versions differ in.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

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
    """A probe that was left out, because it failed."""

    probe: str
    error: str
    """Message of the failure."""


@dataclass(frozen=True, kw_only=True)
class SourceWithoutTwins(Note):
    """A source without twins in the reference, so that texts cannot be compared."""

    source: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class SourceWithoutOrigins(Note):
    """A source without a document of the same origin as any of the reference."""

    source: str
    reference: str


@dataclass(frozen=True, kw_only=True)
class TwinsIdentical(Note):
    """Twins with the same text, in which no property can differ."""

    source: str
    reference: str
    twins: int


@dataclass(frozen=True, kw_only=True)
class PartLeftOut(Note):
    """A part of a check that was asked for, but left out."""

    part: Part
    reason: Literal["no twins", "one side", "nothing relevant"]


@dataclass(frozen=True, kw_only=True)
class EffectivenessOfPairs(Note):
    """Effectiveness of each side is that of a search among its twins alone."""

    source: str
    reference: str
    pairs: int
    left_out: int
    """Number of documents without a twin, which are on neither side."""


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneSideExcluded(Note):
    """Queries without relevant documents on both sides, which cannot compare them."""

    excluded: int
    """Number of these queries, the largest of all comparisons."""
    queries: int
    """All queries, including the excluded ones."""
    are_alike: bool
    """Whether the number is the same in every comparison."""


@dataclass(frozen=True, kw_only=True)
class EffectivenessNotTested(Note):
    """No query has relevant documents on both sides, so that nothing is tested."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesTested(Note):
    """Too few queries for reliable t tests."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class VoidingFault:
    """A fault of texts, pairs or judgments that makes a comparison void."""

    name: str
    source: str
    """Source that is compared with the reference."""
    value: str
    """Share of texts or pairs with the fault, or ratio, with its unit."""
    limit: str
    """Values that would be allowed, in words."""


@dataclass(frozen=True, kw_only=True)
class CheckFailed(Note):
    """A collection that a check finds void, so that its faults may cause a tilt."""

    severity: Severity = "warning"
    folder: str
    """Folder of the collection."""
    faults: tuple[VoidingFault, ...]


@dataclass(frozen=True, kw_only=True)
class InteractionsLeftOut(Note):
    """A design of versions that cannot separate interactions from main effects."""


@dataclass(frozen=True, kw_only=True)
class InteractionsAliased(Note):
    """Interactions that a design cannot separate, so that one number is their sum."""

    interactions: tuple[str, ...]
    """Names of the interactions, with a minus if they are subtracted."""


@dataclass(frozen=True, kw_only=True)
class FactorsNotReported(Note):
    """Factors whose versions did not pass their checks."""

    factors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VersionsNotJudged(Note):
    """A collection of versions without judgments."""


@dataclass(frozen=True, kw_only=True)
class NoFactorCouldMove(Note):
    """A run in which, for most lists, no factor could move a document."""

    severity: Severity = "warning"
    run: str
    total: int
    """Number of lists."""
    fixed: tuple[Count, ...]
    """Number of lists that could not vary, by reason (`statistics.variation.Reason`)."""


@dataclass(frozen=True, kw_only=True)
class DocumentsNotRetrieved(Note):
    """Relevant documents of which a run retrieved no version."""

    run: str
    left_out: int
    """Number of these documents, counted once for each query."""
    documents: int
    """All relevant documents, counted likewise."""


@dataclass(frozen=True, kw_only=True)
class VersionsNotRetrieved(Note):
    """Versions that a run did not retrieve, which rank below all that it did."""

    run: str
    share: float
    """Their share, in [0, 1], of the versions of documents with a retrieved one."""
    is_cut: bool
    """Whether the run is cut at a rank, so that a deeper one would hold more of them."""


@dataclass(frozen=True, kw_only=True)
class NoScoreGap(Note):
    """A run without a score gap: it has no scores, or no document with all versions retrieved."""

    run: str


@dataclass(frozen=True, kw_only=True)
class FewToTest(Note):
    """Too few queries and documents to test a run."""

    run: str
    queries: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class FileHasOtherReadings(Note):
    """Other kinds of files that a file could be."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileNotReadable(Note):
    """A file that cannot be read as it is."""

    error: str
    """Message of the failure."""
