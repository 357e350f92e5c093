"""Notes on the comparison of groups: what it leaves out, and where it stands on little."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class DocumentsUnlabelled(Note):
    """Documents without a value in the column of groups."""

    by: str
    documents: int


@dataclass(frozen=True, kw_only=True)
class DocumentsOfSeveral(Note):
    """Documents that name several groups."""

    by: str
    documents: int


@dataclass(frozen=True, kw_only=True)
class DocumentsOutsidePool(Note):
    """Documents that were not rewritten, because they are outside of the pool."""

    documents: int


@dataclass(frozen=True, kw_only=True)
class NoTilt(Note):
    """Two groups without a Relative Δ: one of them has no relevant document."""

    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class QueriesExcluded(Note):
    """Queries that do not compare two groups."""

    a: str
    b: str
    excluded: int
    queries: int
    """All queries, those excluded among them."""
    has_missing_queries: bool
    """Whether some may be excluded because a run lacks them."""


@dataclass(frozen=True, kw_only=True)
class FewQueries(Note):
    """So few queries that intervals are too narrow to rely on, or that there are none."""

    severity: Severity = "warning"
    queries: int


@dataclass(frozen=True, kw_only=True)
class FewQueriesOfPair(FewQueries):
    """Few queries that compare two groups."""

    a: str
    b: str


@dataclass(frozen=True, kw_only=True)
class FewQueriesOfGroups(FewQueries):
    """Few queries that compare the groups, whichever these are."""


@dataclass(frozen=True, kw_only=True)
class FewQueriesAnswered(Note):
    """Many queries compare two groups, and few of them retrieved a relevant document of either."""

    severity: Severity = "warning"
    run: str
    a: str
    b: str
    queries: int
    answered: tuple[Count, ...]
    """By measure, how many did."""


@dataclass(frozen=True, kw_only=True)
class ResamplesDropped(Note):
    """Resamples in which both groups were 0, so that they have no Relative Δ."""

    a: str
    b: str
    dropped: int
    resamples: int


@dataclass(frozen=True, kw_only=True)
class OnlyGroup(Note):
    """One group alone is left, so that nothing is compared."""

    by: str
    group: str
    can_name_rest: bool
    """Whether all other documents can be called something (``--rest``)."""


@dataclass(frozen=True, kw_only=True)
class ShareOfOnlyGroup(Note):
    """How much of the first ranks the only group holds."""

    run: str
    group: str
    share: float
    """In [0, 1], the mean of the queries; NaN without any."""
    depth: int
    queries: int


@dataclass(frozen=True, kw_only=True)
class NotTwins(Note):
    """Two groups that mostly are twins, but not all, and so are not held to be."""

    a: str
    b: str
    alone: int
    judgments: int
    """Relevance judgments of both groups, and those of a document without a twin."""
    unlabelled: int
    """Documents without a label."""


@dataclass(frozen=True, kw_only=True)
class TwinsNeeded(Note):
    """Questions of the card that need twins, where no document has one."""

    by: str
    labels: str
    """The file of labels that lacks a column of origins; empty where two sources or groups lack
    documents of one origin."""
