"""Sentences of the notes on choices between two documents.

A language model is asked which of two documents, one of each side, answers a query better. Both
documents of a pair are relevant, or both are irrelevant: these are the two kinds of pairs. A note
is what a reader of the result should know about that.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.data.notes.pairwise import (
    ChoicesLeftOut,
    ChoicesUnreadable,
    DocumentsInNoPair,
    FewPairs,
    FewQueriesWithPairs,
    NothingDecided,
    OnlyIrrelevantPairs,
    PairsInOneOrder,
    QueriesWithoutPair,
    QueriesWithoutSides,
    UnaskedQueries,
)
from ranktilt.errors import counted, shorten
from ranktilt.reporting.sentences.grammar import share_of_all
from ranktilt.reporting.sentences.notes.base import note_words
from ranktilt.reporting.sentences.notes.groups import too_narrow
from ranktilt.reporting.sentences.notes.runs import unread_reasons_of


@note_words.register
def _documents_in_no_pair(note: DocumentsInNoPair) -> str:
    documents = share_of_all(note.documents, note.total, "document", "documents")
    several = " or of several" if note.has_several else ""
    return f"{documents} without {note.by}{several}, so in no pair"


@note_words.register
def _unasked_queries(note: UnaskedQueries) -> str:
    candidates = " or candidates" if note.has_candidates else ""
    queries = counted(note.queries, "query", "queries")
    return f"{queries} without a text{candidates}, so not asked"


@note_words.register
def _only_irrelevant_pairs(note: OnlyIrrelevantPairs) -> str:
    return "no document is judged relevant, so all pairs are irrelevant"


@note_words.register
def _queries_without_sides(note: QueriesWithoutSides) -> str:
    queries = share_of_all(note.lacking, note.queries, "query", "queries")
    return f"{queries} without {note.pairs} documents on both sides"


@note_words.register
def _few_pairs(note: FewPairs) -> str:
    queries = counted(note.queries, "query has", "queries have")
    pairs_to_draw = note.target
    return f"{queries} fewer than {pairs_to_draw} {note.pairs} pairs; all of them were used"


@note_words.register
def _queries_without_pair(note: QueriesWithoutPair) -> str:
    queries = counted(note.queries, "query", "queries")
    return f"{note.lacking:,} of the {queries} you asked for without a pair"


@note_words.register
def _choices_left_out(note: ChoicesLeftOut) -> str:
    reason = "between a relevant and an irrelevant document"
    if note.reason == "groups":
        reason = f"not between {note.protected} and {note.unprotected}"
    return f"{note.file}: {counted(note.choices, 'choice', 'choices')} {reason}, left out"


@note_words.register
def _choices_unreadable(note: ChoicesUnreadable) -> str:
    example = f" (first: {shorten(note.first, 100)})" if note.first else ""
    share = f"{note.unreadable / note.answers:.0%}"
    return f"{share} of the answers name no document{unread_reasons_of(note.kinds)}{example}"


@note_words.register
def _pairs_in_one_order(note: PairsInOneOrder) -> str:
    pairs = counted(note.pairs, "pair", "pairs")
    return f"{pairs} shown in one order only, so whether both orders agree is unknown"


@note_words.register
def _few_queries_with_pairs(note: FewQueriesWithPairs) -> str:
    queries = counted(note.queries, "query", "queries")
    return too_narrow(f"{queries} with {note.pairs} pairs", note.queries)


@note_words.register
def _nothing_decided(note: NothingDecided) -> str:
    return f"no {note.pairs} pair was decided"
