"""Words of the notes on the comparison of groups."""

from __future__ import annotations

from ranktilt.auditing.effects import FEW_QUERIES, FEWEST
from ranktilt.data.notes.groups import (
    DocumentsOfSeveral,
    DocumentsOutsidePool,
    DocumentsUnlabelled,
    FewQueriesAnswered,
    FewQueriesOfGroups,
    FewQueriesOfPair,
    NoTilt,
    NotTwins,
    OnlyGroup,
    QueriesExcluded,
    ResamplesDropped,
    ShareOfOnlyGroup,
    TwinsNeeded,
)
from ranktilt.errors import counted
from ranktilt.reporting.sentences.notes.base import note_words
from ranktilt.statistics.bootstrap import FEWEST_ROWS


@note_words.register
def _documents_unlabelled(note: DocumentsUnlabelled) -> str:
    documents = counted(note.documents, "document", "documents")
    return f"{documents} without {note.by}, so in no group"


@note_words.register
def _documents_of_several(note: DocumentsOfSeveral) -> str:
    documents = counted(note.documents, "document names", "documents name")
    return (
        f"{documents} several groups of {note.by}: they count in equal parts where all groups are "
        "compared together, and not at all where two are compared"
    )


@note_words.register
def _documents_outside_pool(note: DocumentsOutsidePool) -> str:
    documents = counted(note.documents, "document", "documents")
    return (
        f"{documents} outside the pool, so in no group: they have no twin by design; ΔNDSR (who "
        "fills the page) covers only the pool, not a full rewrite"
    )


@note_words.register
def _no_tilt(note: NoTilt) -> str:
    return f"{note.a} and {note.b} have no Relative Δ: one of them has no relevant document"


@note_words.register
def _queries_excluded(note: QueriesExcluded) -> str:
    missing = ", or not in the run" if note.has_missing_queries else ""
    return (
        f"{note.excluded} of {counted(note.queries, 'query', 'queries')} excluded: no relevant "
        f"documents from both {note.a} and {note.b}{missing}"
    )


@note_words.register
def _few_queries_of_pair(note: FewQueriesOfPair) -> str:
    queries = counted(note.queries, "query compares", "queries compare")
    return too_narrow(f"{queries} {note.a} and {note.b}", note.queries)


@note_words.register
def _few_queries_of_groups(note: FewQueriesOfGroups) -> str:
    queries = counted(note.queries, "query compares", "queries compare")
    return too_narrow(f"{queries} the groups", note.queries)


def too_narrow(few: str, queries: int) -> str:
    """Warn of intervals from few queries, which `few` counts; of so few that there are none."""
    if queries < FEWEST_ROWS:
        only = "only " if queries else ""
        return f"{only}{few}; an interval needs {FEWEST_ROWS} queries, and a test needs {FEWEST}"
    return f"only {few}; intervals from fewer than {FEW_QUERIES} are too narrow to rely on"


@note_words.register
def _few_queries_answered(note: FewQueriesAnswered) -> str:
    answered = ", ".join(f"{count.name} ({count.number})" for count in note.answered)
    return (
        f"{note.run}: few of {note.queries:,} queries retrieved a relevant document from {note.a} "
        f"or {note.b} on {answered}; intervals from fewer than {FEW_QUERIES} such queries are too "
        "narrow to rely on"
    )


@note_words.register
def _resamples_dropped(note: ResamplesDropped) -> str:
    return (
        f"up to {note.dropped:,} of {note.resamples:,} resamples dropped for {note.a} and "
        f"{note.b}: both sides were 0"
    )


@note_words.register
def _only_group(note: OnlyGroup) -> str:
    hint = "; name all other documents with --rest LABEL" if note.can_name_rest else ""
    return f"only {note.by} {note.group!r} is left, so there is nothing to compare{hint}"


@note_words.register
def _share_of_only_group(note: ShareOfOnlyGroup) -> str:
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.run}: {note.group} holds {100 * note.share:.1f} % of the first {note.depth} ranks "
        f"(mean of {queries})"
    )


@note_words.register
def _not_twins(note: NotTwins) -> str:
    judgments = counted(note.judgments, "relevance judgment", "relevance judgments")
    verb = "is for a document" if note.alone == 1 else "are for documents"
    unlabelled = ""
    if note.unlabelled:
        documents = counted(note.unlabelled, "document has", "documents have")
        unlabelled = f" ({documents} no label)"
    return (
        f"{note.a} and {note.b} are not twins: {note.alone:,} of {judgments} {verb} without a "
        f"twin on the other side{unlabelled}, so the neutral value is the median of random labels, "
        "not 0"
    )


@note_words.register
def _twins_needed(note: TwinsNeeded) -> str:
    groups = "sources" if note.by == "source" else "groups"
    remedy = f"give the same origin to documents of two {groups}"
    if note.labels:
        remedy = f"name the column that links versions: {note.labels}:…,origin=COLUMN"
    return f"three more questions compare versions of one text. To ask them, {remedy}"
