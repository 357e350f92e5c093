"""Words of the notes on rankings."""

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
from ranktilt.reporting.sentences.notes.base import few_names, note_words, variation_of
from ranktilt.reporting.sentences.variation import variation_words


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
    return (
        f"{note.run}: {entries} for {documents} {lacking} (first: {note.first!r}); they keep "
        "their ranks, in no group"
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
        tokens = f"; {note.tokens_read:,} tokens read, {note.tokens_written:,} written"
    return f"{note.stage}: {answers}: {kinds}{tokens}"


@note_words.register
def _answers_unreadable(note: AnswersUnreadable) -> str:
    effect = "they blur the result"
    if 2 * note.unreadable > note.answers:
        effect = "the result mostly measures that, not the model"
    share = f"{note.unreadable / note.answers:.0%}"
    return (
        f"{note.stage}: {share} of the answers decide nothing about their "
        f"passages{reasons(note.kinds)}, which get a random order; {effect} (first: "
        f"{shorten(note.first, 100)})"
    )


def reasons(kinds: tuple[Count, ...]) -> str:
    """Say in brackets how many answers could not be read for a reason that one can act on."""
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
    scores = "all its scores" if note.queries == 1 else "all their scores"
    return (
        f"{note.run}: {queries} ({share}): {scores} are equal, so nothing was ranked; their "
        "documents still count, tied: remove such queries from the run to leave them out"
    )


@note_words.register
def _lists_cut_in_ties(note: ListsCutInTies) -> str:
    lists = counted(note.lists, "list", "lists")
    verb = "ends" if note.lists == 1 else "end"
    share = f"{100 * note.lists / note.total:.1f} %"
    return (
        f"{note.run}: {lists} ({share}) {verb} inside a tie ({note.documents:,} documents share "
        "the last score, in the median): which of them were kept was up to the engine"
    )


@note_words.register
def _queries_repeated(note: QueriesRepeated) -> str:
    verb = "repeats" if note.queries == 1 else "repeat"
    return (
        f"{', '.join(note.runs)}: {counted(note.queries, 'query', 'queries')} {verb} others, by "
        f"text or by ranking and judgments (first: {note.first!r} as {note.repeats!r}); they are "
        "resampled and tested as one"
    )


@note_words.register
def _fitted_queries_left_out(note: FittedQueriesLeftOut) -> str:
    queries = counted(note.queries, "query", "queries")
    medians = "; medians of random labels are those of all queries" if note.keeps_medians else ""
    files = " and ".join(note.files)
    return f"{queries} left out for all runs, because {files} learned from them{medians}"


@note_words.register
def _verdict_within_noise(note: VerdictWithinNoise) -> str:
    return (
        f"{note.run}: the verdict on {note.a} and {note.b} depends on numerical noise; scores are "
        f"precise to {note.resolution}, and so Relative Δ on {note.measure} to "
        f"±{note.points:.1f} points"
    )


@note_words.register
def _saved_run_not_controlled(note: SavedRunNotControlled) -> str:
    return f"{note.run}: a saved run cannot be ranked again; only near-identical applies to it"
