"""Sentences of the notes on rankings: what a run lacks, and why it may say little.

A note is what a reader of a result should know besides its numbers. A run is the ranked lists of
one ranker. A tilt is how much it favours one group of documents, and it is level if it favours
none.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.data.notes.base import Count
from ranktilt.data.notes.runs import (
    AnswersRead,
    AnswersUnreadable,
    EntriesUnknown,
    FittedQueriesLeftOut,
    ListsCutInTies,
    ListsTied,
    LittleVariation,
    OwnDocumentsLeftOut,
    QueriesFailed,
    QueriesMissing,
    QueriesRepeated,
    RunReadAs,
    RunsIdentical,
    SavedRunNotControlled,
    VerdictWithinNoise,
)
from ranktilt.errors import counted, shorten
from ranktilt.rankers.llm.answers import unread_reasons
from ranktilt.reporting.sentences.findings import variation_words
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.notes.base import few_names, note_words, variation_of


@note_words.register
def _run_read_as(note: RunReadAs) -> str:
    return f"{note.file}: read as {note.format}"


@note_words.register
def _queries_missing(note: QueriesMissing) -> str:
    queries = _queries(note.queries, are_judged=note.are_judged)
    effect = ", counted as 0" if note.count_as_zero else ", not counted"
    return f"{note.run}: {queries} not in the run{effect if note.are_judged else ''}"


@note_words.register
def _queries_failed(note: QueriesFailed) -> str:
    queries = _queries(note.queries, are_judged=note.are_judged)
    return f"{note.run}: the engine failed on {queries}, not counted"


def _queries(number: int, *, are_judged: bool) -> str:
    """Print a number of queries, or of judged queries."""
    if are_judged:
        return counted(number, "judged query", "judged queries")
    return counted(number, "query", "queries")


@note_words.register
def _entries_unknown(note: EntriesUnknown) -> str:
    entries = counted(note.entries, "entry", "entries")
    documents = counted(note.documents, "document", "documents")
    lacking = "without a label" if note.has_labels_only else "not in the collection"
    keep = singular_or_plural(note.entries, "it keeps its rank", "they keep their ranks")
    return (
        f"{note.run}: {entries} for {documents} {lacking} (first: {note.first!r}); {keep}, in no "
        "group"
    )


@note_words.register
def _own_documents_left_out(note: OwnDocumentsLeftOut) -> str:
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.run}: the document that is the query itself left out for {queries} "
        "(exclude_self=false keeps it)"
    )


@note_words.register
def _answers_read(note: AnswersRead) -> str:
    answers = counted(sum(count.number for count in note.kinds), "answer", "answers")
    kinds = ", ".join(f"{count.number:,} {count.name}" for count in note.kinds)
    tokens = ""
    if note.tokens_read is not None and note.tokens_written is not None:
        read = counted(note.tokens_read, "token", "tokens")
        tokens = f"; {read} read, {note.tokens_written:,} written"
    return f"{note.stage}: {answers}: {kinds}{tokens}"


@note_words.register
def _answers_unreadable(note: AnswersUnreadable) -> str:
    is_most = 2 * note.unreadable > note.answers
    effect = "they blur the result"
    if is_most:
        effect = "the result mostly measures that, not the model"
    share = f"{note.unreadable / note.answers:.0%}"
    return (
        f"{note.stage}: {share} of the answers decide nothing about their "
        f"passages{unread_reasons_of(note.kinds)}, which get a random order; {effect} (first: "
        f"{shorten(note.first, 100)})"
    )


def unread_reasons_of(kinds: tuple[Count, ...]) -> str:
    """Say why answers could not be read, in brackets, where the user can do something about it.

    `kinds` are the numbers of answers of each kind. Empty where no reason is known.
    """
    return unread_reasons({count.name: count.number for count in kinds})


@note_words.register
def _little_variation(note: LittleVariation) -> str:
    measures = f" on {', '.join(note.measures)}" if note.measures else ""
    words = variation_words(variation_of(note.total, note.fixed))
    return f"{few_names(note.runs)}{measures}: {words}; this cannot show that a ranker is level"


@note_words.register
def _runs_identical(note: RunsIdentical) -> str:
    return f"{few_names(note.runs)} are identical: they give every query the same list"


@note_words.register
def _lists_tied(note: ListsTied) -> str:
    queries = counted(note.queries, "query", "queries")
    share = f"{100 * note.queries / note.total:.1f} %"
    their = singular_or_plural(note.queries, "its", "their")
    return (
        f"{note.run}: {queries} ({share}): all {their} scores are equal, so nothing was ranked; "
        f"{their} documents still count, tied: remove such queries from the run to leave them out"
    )


@note_words.register
def _lists_cut_in_ties(note: ListsCutInTies) -> str:
    lists = counted(note.lists, "list", "lists")
    end = singular_or_plural(note.lists, "ends", "end")
    share = f"{100 * note.lists / note.total:.1f} %"
    return (
        f"{note.run}: {lists} ({share}) {end} inside a tie ({note.documents:,} documents share "
        "the last score, in the median): which of them were kept was up to the engine"
    )


@note_words.register
def _queries_repeated(note: QueriesRepeated) -> str:
    queries = counted(note.queries, "query repeats", "queries repeat")
    return (
        f"{', '.join(note.runs)}: {queries} others, by text or by ranking and judgments (first: "
        f"{note.first!r} as {note.repeats!r}); they are resampled and tested as one"
    )


@note_words.register
def _fitted_queries_left_out(note: FittedQueriesLeftOut) -> str:
    queries = counted(note.queries, "query", "queries")
    medians = "; medians of random labels are those of all queries" if note.keeps_medians else ""
    files = " and ".join(note.files)
    them = singular_or_plural(note.queries, "it", "them")
    return f"{queries} left out for all runs, because {files} learned from {them}{medians}"


@note_words.register
def _verdict_within_noise(note: VerdictWithinNoise) -> str:
    return (
        f"{note.run}: the verdict on {note.a} and {note.b} depends on numerical noise; scores are "
        f"precise to {note.resolution}, and so Relative Δ on {note.measure} to "
        f"±{note.points:.1f} points"
    )


@note_words.register
def _saved_run_not_controlled(note: SavedRunNotControlled) -> str:
    # Other controls change texts and rank them again; near-identical leaves pairs of twins out.
    return f"{note.run}: a saved run cannot be ranked again; only near-identical applies to it"
