"""Sentences of the notes on the comparison of groups of documents.

A note is what a reader of a result should know: what was left out, and why a number may be
uncertain. Relative Δ is how much higher the relevant documents of one group rank than those of the
other. Twins are versions of one text, one in each group.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

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
from ranktilt.reporting.sentences.grammar import first_ranks_words, share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words
from ranktilt.statistics.bootstrap import FEWEST_ROWS


@note_words.register
def _documents_unlabelled(note: DocumentsUnlabelled) -> str:
    documents = counted(note.documents, "document", "documents")
    return f"{documents} without {note.by}, so in no group"


@note_words.register
def _documents_of_several(note: DocumentsOfSeveral) -> str:
    documents = counted(note.documents, "document names", "documents name")
    they_count = singular_or_plural(note.documents, "it counts", "they count")
    return (
        f"{documents} several groups of {note.by}: {they_count} in equal parts where all groups "
        "are compared together, and not at all where two are compared"
    )


@note_words.register
def _documents_outside_pool(note: DocumentsOutsidePool) -> str:
    """Say that documents outside of the pool, the ones that were to be rewritten, have no group."""
    documents = counted(note.documents, "document", "documents")
    they_have = singular_or_plural(note.documents, "it has", "they have")
    return (
        f"{documents} outside the pool, so in no group: {they_have} no twin by design; ΔNDSR (who "
        "fills the page) covers only the pool, not a full rewrite"
    )


@note_words.register
def _no_tilt(note: NoTilt) -> str:
    return f"{note.a} and {note.b} have no Relative Δ: one of them has no relevant document"


@note_words.register
def _queries_excluded(note: QueriesExcluded) -> str:
    missing = ", or not in the run" if note.has_missing_queries else ""
    queries = share_of_all(note.excluded, note.queries, "query", "queries")
    return f"{queries} excluded: no relevant documents from both {note.a} and {note.b}{missing}"


@note_words.register
def _few_queries_of_pair(note: FewQueriesOfPair) -> str:
    queries = counted(note.queries, "query compares", "queries compare")
    return too_narrow(f"{queries} {note.a} and {note.b}", note.queries)


@note_words.register
def _few_queries_of_groups(note: FewQueriesOfGroups) -> str:
    queries = counted(note.queries, "query compares", "queries compare")
    return too_narrow(f"{queries} the groups", note.queries)


def too_narrow(few_queries: str, queries: int) -> str:
    """Warn that intervals from few queries are too narrow, or that there are none from so few.

    Parameters
    ----------
    few_queries : str
        Begins the sentence, with the number: ``2 queries compare human and llm``.
    queries : int
        The same number.
    """
    if queries < FEWEST_ROWS:
        only = "only " if queries else ""
        return (
            f"{only}{few_queries}; an interval needs {FEWEST_ROWS} queries, and a test needs "
            f"{FEWEST}"
        )
    return f"only {few_queries}; intervals from fewer than {FEW_QUERIES} are too narrow to rely on"


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
    # Each run and measure drops its own resamples; the note has the largest number.
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
        f"{note.run}: {note.group} holds {100 * note.share:.1f} % of the "
        f"{first_ranks_words(note.depth)} (mean of {queries})"
    )


@note_words.register
def _not_twins(note: NotTwins) -> str:
    judgments = share_of_all(
        note.alone, note.judgments, "relevance judgment", "relevance judgments"
    )
    are_for = singular_or_plural(note.alone, "is for a document", "are for documents")
    unlabelled = ""
    if note.unlabelled:
        documents = counted(note.unlabelled, "document has", "documents have")
        unlabelled = f" ({documents} no label)"
    return (
        f"{note.a} and {note.b} are not twins: {judgments} {are_for} without a twin on the other "
        f"side{unlabelled}, so the neutral value is the median of random labels, not 0"
    )


@note_words.register
def _twins_needed(note: TwinsNeeded) -> str:
    """Say how to ask the questions about twins: HeadToHead, RankGap and ScoreGap."""
    groups = "sources" if note.by == "source" else "groups"
    remedy = f"give the same origin to documents of two {groups}"
    if note.labels:
        remedy = f"name the column that links versions: {note.labels}:…,origin=COLUMN"
    return f"three more questions compare versions of one text. To ask them, {remedy}"
