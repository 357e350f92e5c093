"""Notes on rankings: what they lack, and why they may say little."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class RunReadAs(Note):
    """How a file of results was read, where there was a choice."""

    file: str
    """The file, or the run's name."""
    format: str
    """Description of the layout that it was read as."""


@dataclass(frozen=True, kw_only=True)
class QueriesMissing(Note):
    """Queries that a run lacks."""

    run: str
    queries: int
    are_judged: bool
    """Whether the collection has judgments, so that these queries are judged ones."""
    count_as_zero: bool
    """Whether each counts as a list without a relevant document; otherwise it does not count."""


@dataclass(frozen=True, kw_only=True)
class QueriesFailed(Note):
    """Queries that an engine failed to answer, which do not count."""

    run: str
    queries: int
    are_judged: bool
    """Whether the collection has judgments, so that these queries are judged ones."""


@dataclass(frozen=True, kw_only=True)
class EntriesUnknown(Note):
    """Entries of a run whose documents the collection does not hold."""

    run: str
    entries: int
    documents: int
    """Number of distinct documents of these entries."""
    first: str
    """Id of the first of them."""
    has_labels_only: bool
    """Whether labels stand for a collection, without its texts."""


@dataclass(frozen=True, kw_only=True)
class OwnDocumentsLeftOut(Note):
    """Queries that are documents themselves, whose own documents are left out."""

    run: str
    queries: int


@dataclass(frozen=True, kw_only=True)
class AnswersRead(Note):
    """Kinds of answers that a language model gave."""

    stage: str
    """The stage of the pipeline, or the model, that was asked."""
    kinds: tuple[Count, ...]
    """Number of answers of each kind."""
    tokens_read: int | None = None
    """Tokens of the prompts; None if unknown."""
    tokens_written: int | None = None
    """Tokens of the answers; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class AnswersUnreadable(Note):
    """Answers of a language model that decide nothing about their passages."""

    severity: Severity = "warning"
    stage: str
    """Stage of the pipeline, or model, that was asked."""
    answers: int
    unreadable: int
    kinds: tuple[Count, ...]
    """Number of answers of each kind, readable ones included."""
    first: str
    """The first unreadable answer."""


@dataclass(frozen=True, kw_only=True)
class LittleVariation(Note):
    """Runs that cannot be called level, because most lists could not have come out otherwise."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    """Measures that this holds for; empty if it holds for all."""
    total: int
    """Lists, pairs of documents, or queries of a judge."""
    fixed: tuple[Count, ...]
    """Number of those that could not vary, by reason (`ranktilt.statistics.variation.Reason`)."""


@dataclass(frozen=True, kw_only=True)
class RunsIdentical(Note):
    """Runs that are the same ranking under several names."""

    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ListsTied(Note):
    """Queries whose documents all have one score, so that nothing was ranked."""

    run: str
    queries: int
    total: int
    """Queries with any document."""


@dataclass(frozen=True, kw_only=True)
class ListsCutInTies(Note):
    """Lists that were cut between documents of equal scores, not by RankTilt."""

    run: str
    lists: int
    total: int
    documents: int
    """Median number of documents of such a list that share its last score."""


@dataclass(frozen=True, kw_only=True)
class QueriesRepeated(Note):
    """Queries that repeat others, by text or by ranking and judgments."""

    severity: Severity = "warning"
    runs: tuple[str, ...]
    queries: int
    first: str
    """Id of the first query that repeats another."""
    repeats: str
    """The query that the first one repeats."""


@dataclass(frozen=True, kw_only=True)
class FittedQueriesLeftOut(Note):
    """Queries that a stage of a run learned from, left out for all runs."""

    queries: int
    files: tuple[str, ...]
    keeps_medians: bool = False
    """Whether medians of random labels still include these queries."""


@dataclass(frozen=True, kw_only=True)
class VerdictWithinNoise(Note):
    """A verdict that could change if scores moved within their resolution."""

    severity: Severity = "warning"
    run: str
    a: str
    b: str
    measure: str
    resolution: str
    """Resolution to which scores are known."""
    points: float
    """How far the answer may move to either side."""


@dataclass(frozen=True, kw_only=True)
class SavedRunNotControlled(Note):
    """A saved run. It cannot be ranked again, so that only one control applies to it."""

    run: str
