"""Notes on two results that are compared, and on logs that are replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import GroupPair, Note, Severity
from ranktilt.data.notes.groups import FewQueries

Side = Literal["new", "old"]
ResultKind = Literal["audit", "pairwise audit"]
InputPart = Literal["labels", "judgments", "documents"]
"""A part of an audit's inputs."""
MismatchKind = Literal[
    "unknown query",
    "unknown document",
    "unknown passage",
    "no known passage",
    "too few ids",
    "too few passages",
    "other passage count",
    "repeated document",
    "other query",
    "several queries",
    "equal texts reordered",
]
"""Reasons why a logged call fits no query of its candidates."""


@dataclass(frozen=True, kw_only=True)
class OnlyInOneAudit(Note):
    """What only one of two audits holds, and is left out."""

    part: Literal["run", "measure", "pair of groups", "question", "judge", "system"]
    side: Side
    number: int
    first: tuple[str, ...]
    """Names of the first few."""


@dataclass(frozen=True, kw_only=True)
class PrimaryQuestionsDiffer(Note):
    """Two audits with different primary questions, of which a comparison answers one first."""

    severity: Severity = "warning"
    new: str
    old: str
    compared: str
    """Notation of the question that is answered first."""


@dataclass(frozen=True, kw_only=True)
class PrimaryNotCompared(Note):
    """Primary questions that cannot be compared, because not both audits hold them by query."""

    severity: Severity = "warning"
    questions: tuple[str, ...]
    """Their notation; one where both audits have the same."""
    compared: str
    """Notation of the question that is answered first instead."""


@dataclass(frozen=True, kw_only=True)
class RunsPaired(Note):
    """Two runs of different names that are compared."""

    new: str
    old: str


@dataclass(frozen=True, kw_only=True)
class RoundingIgnored(Note):
    """Audits that round means before Relative Δ, which a comparison does not."""

    sides: tuple[Side, ...]


@dataclass(frozen=True, kw_only=True)
class TwinsInOneAudit(Note):
    """Two audits of which only one knows which documents are twins."""

    severity: Severity = "warning"
    sides: tuple[str, str]
    """The audit that compares twins, and the other one: ``the new audit``."""
    can_be_alike: bool = True
    """Whether both could be audited with the same labels and judgments."""


@dataclass(frozen=True, kw_only=True)
class InputsDiffer(Note):
    """Two audits with other labels, judgments or documents."""

    part: InputPart
    sides: tuple[str, str]
    """Names of the audits."""
    files: tuple[tuple[str, ...], tuple[str, ...]]
    """Names of the first few files of each."""


@dataclass(frozen=True, kw_only=True)
class ListDepthsDiffer(Note):
    """Two runs whose lists have other depths."""

    run: str
    old_run: str
    depth: int
    """Length of the longest list of the new run."""
    old_depth: int
    """Length of the longest list of the old run."""


@dataclass(frozen=True, kw_only=True)
class QueriesOfOneSide:
    """Queries that one of two results holds."""

    side: Side
    number: int
    first: tuple[str, ...]
    """Ids of the first few."""


@dataclass(frozen=True, kw_only=True)
class QueriesLeftOut(Note):
    """Queries that only one of two results holds, left out."""

    result: ResultKind
    left_out: int
    queries: int
    """Queries of either result."""
    sides: tuple[QueriesOfOneSide, ...]
    pairs: str = ""
    """Kind of the pairs of documents that it is about: ``relevant``; empty for none."""
    keeps_medians: bool = False
    """Whether medians of random labels are those of all queries."""


@dataclass(frozen=True, kw_only=True)
class PairKindLeftOut(Note):
    """A kind of pairs that only one of two pairwise audits holds."""

    pairs: str
    side: Side


@dataclass(frozen=True, kw_only=True)
class OtherPairsDrawn(Note):
    """Two models chose between other pairs of the same queries."""


@dataclass(frozen=True, kw_only=True)
class ChangeUndefined(Note):
    """Queries in which a change is not defined under both runs."""

    groups: GroupPair | None
    """Both groups of a tilt; None where it is another question."""
    question: str
    """The question, where it is no tilt."""
    excluded: int
    queries: int
    """All queries, those excluded among them."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesCompared(FewQueries):
    """Few queries that both results hold."""


@dataclass(frozen=True, kw_only=True)
class ChangeResamplesDropped(Note):
    """Resamples in which both groups were 0 under one of the runs."""

    dropped: int
    resamples: int


@dataclass(frozen=True, kw_only=True)
class TiltsFromMedians(Note):
    """Groups that are not twins, whose tilts are measured from medians of random labels."""

    pairs: tuple[GroupPair, ...]


@dataclass(frozen=True, kw_only=True)
class GrowthIsNoDifference(Note):
    """Growths whose intervals are not those of the differences that a comparison shows."""


@dataclass(frozen=True, kw_only=True)
class GrowthsJudgedAlone(Note):
    """Several growths, each judged by its own interval."""

    comparisons: int


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """The reason why a logged call fits no query of its candidates."""

    kind: MismatchKind
    query: str = ""
    """Id of the query that the call names, or whose candidates its passages should be."""
    document: str = ""
    """Id of a document that is no candidate of the query."""
    passage: int = 0
    """Number of a passage that is no candidate of the query, as in ``[2]``."""
    announced: int = 0
    """Passages that the prompt says it shows."""
    counted: int = 0
    """Passages that the prompt does show."""
    queries: int = 0
    """Queries that the call fits equally well."""


@dataclass(frozen=True, kw_only=True)
class CallsUnmatched(Note):
    """Calls of a log that cannot be matched with the candidates."""

    severity: Severity = "warning"
    unmatched: int
    calls: int
    first: int
    """Number of the first one."""
    mismatch: Mismatch
    """Reason why the first one cannot be matched."""
    queries_left_out: tuple[str, ...]
    """Queries that an unmatched call can be about."""


@dataclass(frozen=True, kw_only=True)
class PassagesReordered(Note):
    """Calls of a log whose passages stand in another order than the calls before leave them."""

    severity: Severity = "warning"
    calls: int
