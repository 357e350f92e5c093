"""Notes on the comparison of groups: what it leaves out, and which numbers rest on few data.

`a` and `b` are the two groups of documents that are compared. Twins are versions of one text, with
the same origin, one in each group. Relative Δ compares how high their relevant documents rank.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class DocumentsUnlabelled(Note):
    """Documents without a group: they have no value in the column of groups."""

    by: str
    """Name of the column."""
    documents: int


@dataclass(frozen=True, kw_only=True)
class DocumentsOfSeveral(Note):
    """Documents with several groups in the column of groups."""

    by: str
    """Name of the column."""
    documents: int


@dataclass(frozen=True, kw_only=True)
class DocumentsOutsidePool(Note):
    """Documents that were not rewritten, because they are outside of the pool.

    The pool holds the documents to rewrite: those that are judged, or that a ranker returns first.
    """

    documents: int


@dataclass(frozen=True, kw_only=True)
class NoTilt(Note):
    """Two groups without a Relative Δ, because one of them has no relevant document."""

    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class QueriesExcluded(Note):
    """Queries without relevant documents of both groups, which cannot compare them."""

    a: str
    b: str
    excluded: int
    queries: int
    """All queries, including the excluded ones."""
    has_missing_queries: bool
    """Whether some may be excluded because a run lacks them."""


@dataclass(frozen=True, kw_only=True)
class FewQueries(Note):
    """So few queries that intervals are too narrow to rely on, or that there are none."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class FewQueriesOfPair(FewQueries):
    """Few queries that compare two groups, named in the note."""

    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class FewQueriesOfGroups(FewQueries):
    """Few queries that compare groups which the note does not name: all together, or any two."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesAnswered(Note):
    """Few queries for which a run retrieved a relevant document of either group.

    Many queries compare the groups, but most of them say nothing about this run.
    """

    severity: Severity = "warning"
    run: str
    a: str
    b: str
    queries: int
    """Queries that compare the groups."""
    answered: tuple[Count, ...]
    """Number of queries with such a document within the cutoff, by measure."""


@dataclass(frozen=True, kw_only=True)
class ResamplesDropped(Note):
    """Resamples in which a measure was 0 for both groups, so that Relative Δ is undefined."""

    a: str
    b: str
    dropped: int
    """The largest number of them for any run and measure."""
    resamples: int


@dataclass(frozen=True, kw_only=True)
class OnlyGroup(Note):
    """Only one group is left, so that nothing is compared."""

    by: str
    """Name of the column of groups."""
    group: str
    can_name_rest: bool
    """Whether an option can name all other documents as a group (``--rest``)."""


@dataclass(frozen=True, kw_only=True)
class ShareOfOnlyGroup(Note):
    """How much of the first ranks of a run the only group holds."""

    run: str
    group: str
    share: float
    """Mean share over queries, in [0, 1]; NaN without any."""
    depth: int
    """Number of first ranks."""
    queries: int


@dataclass(frozen=True, kw_only=True)
class NotTwins(Note):
    """Two groups in which most documents have a twin, but not all, so that they are no twins."""

    a: str
    b: str
    alone: int
    """Relevance judgments of documents without a twin in the other group."""
    judgments: int
    """Relevance judgments of all documents of both groups."""
    unlabelled: int
    """Documents without a label."""


@dataclass(frozen=True, kw_only=True)
class TwinsNeeded(Note):
    """Questions about twins that were not asked, because no document has a twin."""

    by: str
    """Column of groups, or ``source``."""
    labels: str
    """File of labels without a column of origins.

    Empty if the documents name origins, but two sources or groups have none in common.
    """
