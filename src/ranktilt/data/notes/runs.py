"""Notes on rankings: what a run lacks, and why it may say little.

A run is the ranked lists of one ranker, and an entry is a document in one of them. A run is level
if it is shown to favour no group of documents by more than a margin.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class RunReadAs(Note):
    """How a file of results was read, where there was a choice."""

    file: str
    """Name of the file, or of the run."""
    format: str
    """Description of the layout that it was read as."""


@dataclass(frozen=True, kw_only=True)
class QueriesMissing(Note):
    """Queries of the collection that a run lacks."""

    run: str
    queries: int
    are_judged: bool
    """Whether these are the judged queries; without judgments, they are all queries."""
    count_as_zero: bool
    """Whether they count as lists without a relevant document; otherwise not at all."""


@dataclass(frozen=True, kw_only=True)
class QueriesFailed(Note):
    """Queries that an engine failed to answer, which do not count."""

    run: str
    queries: int
    are_judged: bool
    """Whether these are the judged queries; without judgments, they are all queries."""


@dataclass(frozen=True, kw_only=True)
class EntriesUnknown(Note):
    """Entries of a run with documents that the collection does not hold."""

    run: str
    entries: int
    documents: int
    """Number of different documents in these entries."""
    first: str
    """Id of the first of these documents."""
    has_labels_only: bool
    """Whether a file of labels stands for the collection, without its texts."""


@dataclass(frozen=True, kw_only=True)
class OwnDocumentsLeftOut(Note):
    """Queries that are documents themselves, which are left out of their own lists."""

    run: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class AnswersRead(Note):
    """Kinds of answers that a language model gave."""

    stage: str
    """Stage of the ranker, or model, that was asked."""
    kinds: tuple[Count, ...]
    """Number of answers of each kind."""
    tokens_read: int | None = None
    """Tokens of the prompts; None if unknown."""
    tokens_written: int | None = None
    """Tokens of the answers; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class AnswersUnreadable(Note):
    """Answers of a language model from which no order of their passages could be read."""

    severity: Severity = "warning"
    stage: str
    """Stage of the ranker, or model, that was asked."""
    answers: int
    unreadable: int
    kinds: tuple[Count, ...]
    """Number of answers of each kind, including readable ones."""
    first: str
    """The first unreadable answer."""


@dataclass(frozen=True, kw_only=True)
class LittleVariation(Note):
    """Runs that cannot be called level, because most lists could not have come out otherwise."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    """Measures for which this holds; empty if it holds for all."""
    total: int
    """Number of lists, of pairs of documents, or of queries of a judge."""
    fixed: tuple[Count, ...]
    """Number of those that could not vary, by reason (`statistics.variation.Reason`)."""


@dataclass(frozen=True, kw_only=True)
class RunsIdentical(Note):
    """Runs with different names that give every query the same list."""

    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ListsTied(Note):
    """Queries for which all documents of a run have one score, so that nothing was ranked."""

    run: str
    queries: int
    total: int
    """Number of queries with any document."""


@dataclass(frozen=True, kw_only=True)
class ListsCutInTies(Note):
    """Lists that were cut between documents of equal scores, before RankTilt read them."""

    run: str
    lists: int
    total: int
    """Number of all lists."""
    documents: int
    """Number of documents of such a list with its last score, the median of these lists."""


@dataclass(frozen=True, kw_only=True)
class QueriesRepeated(Note):
    """Queries that repeat others: they have the same text, or the same list and judgments."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    queries: int
    first: str
    """Id of the first query that repeats another one."""
    repeats: str
    """Id of the query that it repeats."""


@dataclass(frozen=True, kw_only=True)
class FittedQueriesLeftOut(Note):
    """Queries that a stage of some ranker learned from, left out for all runs."""

    queries: int
    files: tuple[str, ...]
    """Files of what was learned."""
    keeps_medians: bool = False
    """Whether medians of random labels still include these queries."""


@dataclass(frozen=True, kw_only=True)
class VerdictWithinNoise(Note):
    """A verdict that could change if scores changed by less than their precision."""

    severity: Severity = "warning"
    run: str
    a: str
    b: str
    measure: str
    resolution: str
    """Precision of scores, as it is printed."""
    points: float
    """Largest change of Relative Δ to either side, in points."""


@dataclass(frozen=True, kw_only=True)
class SavedRunNotControlled(Note):
    """A saved run, to which most controls do not apply.

    They change the texts and rank them again, which a saved run cannot do.
    """

    run: str
