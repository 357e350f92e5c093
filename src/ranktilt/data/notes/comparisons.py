"""Notes on two results that are compared, and on logs that are replayed.

The new result is compared with the old one, side by side. A replayed log holds the calls that a
published ranker sent to its language model. Each call shows passages, which are matched with the
candidates: the documents that a first stage retrieved for each query.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranktilt.data.notes.base import GroupPair, Note, Severity
from ranktilt.data.notes.groups import FewQueries

Side = Literal["new", "old"]
"""One of two results that are compared."""
ResultKind = Literal["audit", "pairwise audit"]
"""Kind of two results that are compared; a pairwise audit is of a model that compares documents."""
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
    """Runs, measures or others that only one of two audits holds, left out."""

    part: Literal["run", "measure", "pair of groups", "question", "judge", "system"]
    """What the note counts."""
    side: Side
    """Audit that holds them."""
    number: int
    first: tuple[str, ...]
    """Names of the first few."""


@dataclass(frozen=True, kw_only=True)
class PrimaryQuestionsDiffer(Note):
    """Two audits with different primary questions; the comparison is headed by one of them."""

    severity: Severity = "warning"
    new: str
    """Notation of the new audit's question."""
    old: str
    """Notation of the old audit's question."""
    compared: str
    """Notation of the question that heads the comparison."""


@dataclass(frozen=True, kw_only=True)
class PrimaryNotCompared(Note):
    """Primary questions that cannot be compared, as not both audits hold answers by query."""

    severity: Severity = "warning"
    questions: tuple[str, ...]
    """Notation of both questions, or of one if they are the same."""
    compared: str
    """Notation of the question that heads the comparison instead."""


@dataclass(frozen=True, kw_only=True)
class RunsPaired(Note):
    """Two runs of different names that are compared."""

    new: str
    old: str


@dataclass(frozen=True, kw_only=True)
class RoundingIgnored(Note):
    """Audits that round means before they compute Relative Δ, unlike the comparison."""

    sides: tuple[Side, ...]


@dataclass(frozen=True, kw_only=True)
class TwinsInOneAudit(Note):
    """Two audits of which only one knows which documents are twins."""

    severity: Severity = "warning"
    sides: tuple[str, str]
    """The audit that compares twins, then the other one, in words: ``the new audit``."""
    can_be_alike: bool = True
    """Whether both could be audited with the same labels and judgments."""


@dataclass(frozen=True, kw_only=True)
class InputsDiffer(Note):
    """Two audits of different labels, judgments or documents."""

    part: InputPart
    sides: tuple[str, str]
    """Names of the audits, in words."""
    files: tuple[tuple[str, ...], tuple[str, ...]]
    """Names of the first few files of each audit."""


@dataclass(frozen=True, kw_only=True)
class ListDepthsDiffer(Note):
    """Two runs whose lists have different depths."""

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
    """Result that holds them."""
    number: int
    first: tuple[str, ...]
    """Ids of the first few."""


@dataclass(frozen=True, kw_only=True)
class QueriesLeftOut(Note):
    """Queries that only one of two results holds, left out."""

    result: ResultKind
    """Kind of the two results."""
    left_out: int
    queries: int
    """Queries that at least one of the results holds."""
    sides: tuple[QueriesOfOneSide, ...]
    """The left-out queries by the result that holds them."""
    pairs: str = ""
    """Kind of pairs of documents, such as ``relevant``; empty for audits of rankings."""
    keeps_medians: bool = False
    """Whether medians of random labels are still those of all queries."""


@dataclass(frozen=True, kw_only=True)
class PairKindLeftOut(Note):
    """A kind of pairs that only one of two pairwise audits holds."""

    pairs: str
    """Kind of the pairs: ``relevant`` or ``irrelevant``."""
    side: Side
    """Audit that holds it."""


@dataclass(frozen=True, kw_only=True)
class OtherPairsDrawn(Note):
    """Two models chose between different pairs of documents of the same queries."""


@dataclass(frozen=True, kw_only=True)
class ChangeUndefined(Note):
    """Queries for which a change is not defined, as an answer of one run is not."""

    groups: GroupPair | None
    """Both groups, if the change is one of Relative Δ; otherwise None."""
    question: str
    """Notation of the question, if it is another one."""
    excluded: int
    queries: int
    """All queries, including the excluded ones."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesCompared(FewQueries):
    """Few queries that both results hold."""


@dataclass(frozen=True, kw_only=True)
class ChangeResamplesDropped(Note):
    """Resamples in which both groups were 0 under one of the runs."""

    dropped: int
    """The largest number of them for any change."""
    resamples: int


@dataclass(frozen=True, kw_only=True)
class TiltsFromMedians(Note):
    """Pairs of groups that are no twins, with tilts measured from medians of random labels."""

    pairs: tuple[GroupPair, ...]


@dataclass(frozen=True, kw_only=True)
class GrowthIsNoDifference(Note):
    """The growth of a tilt has another interval than the difference of a comparison.

    The growth is how much farther from neutral a run is now, to either side.
    """


@dataclass(frozen=True, kw_only=True)
class GrowthsJudgedAlone(Note):
    """Several growths of tilts, or losses of effectiveness, each judged by its own interval."""

    comparisons: int
    """Number of growths."""
    losses: int = 0
    """Number of losses."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """The reason why a call of a log matches no query."""

    kind: MismatchKind
    query: str = ""
    """Id of the query that the call names, or whose candidates its passages should be."""
    document: str = ""
    """Id of a document that is no candidate of the query."""
    passage: int = 0
    """Number, as in ``[2]``, of a passage that is no candidate of the query."""
    announced: int = 0
    """Passages that the prompt says it shows."""
    counted: int = 0
    """Passages that the prompt does show."""
    queries: int = 0
    """Number of queries that the call matches equally well."""


@dataclass(frozen=True, kw_only=True)
class CallsUnmatched(Note):
    """Calls of a log that match no query of the candidates."""

    severity: Severity = "warning"
    unmatched: int
    calls: int
    """All calls."""
    first: int
    """Number of the first unmatched call."""
    mismatch: Mismatch
    """Reason why the first call matches no query."""
    queries_left_out: tuple[str, ...]
    """Ids of the queries that an unmatched call may be about."""


@dataclass(frozen=True, kw_only=True)
class PassagesReordered(Note):
    """Calls of a log that show passages in another order than earlier answers put them in."""

    severity: Severity = "warning"
    calls: int
