"""Sentences of the notes on two results that are compared, and on replayed logs.

A note is what a reader of a result should know besides its numbers. A replayed log holds the calls
that a published ranker sent to its language model; each is matched with the query whose candidate
documents it shows as passages.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.auditing.replay_log.rankings import UnmatchedCall
from ranktilt.data.notes.base import GroupPair
from ranktilt.data.notes.comparisons import (
    CallsUnmatched,
    ChangeResamplesDropped,
    ChangeUndefined,
    FewQueriesCompared,
    GrowthIsNoDifference,
    GrowthsJudgedAlone,
    InputsDiffer,
    ListDepthsDiffer,
    Mismatch,
    MismatchKind,
    OnlyInOneAudit,
    OtherPairsDrawn,
    PairKindLeftOut,
    PassagesReordered,
    PrimaryNotCompared,
    PrimaryQuestionsDiffer,
    QueriesLeftOut,
    RoundingIgnored,
    RunsPaired,
    TiltsFromMedians,
    TwinsInOneAudit,
)
from ranktilt.errors import counted, join_words, shorten
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import first_names, note_words
from ranktilt.reporting.sentences.notes.groups import too_narrow

_PLURALS = {
    "run": "runs",
    "measure": "measures",
    "pair of groups": "pairs of groups",
    "question": "questions",
    "judge": "judges",
    "system": "systems",
}
"""Plurals of what is compared."""
_MOST_QUERIES = 3
"""Most queries that a note names."""
_MISMATCHES: dict[MismatchKind, str] = {
    "no known passage": "shows passages that are not candidates",
    # A log shows passages by the ids of their documents, or as numbered texts.
    "too few ids": "shows fewer than two passages",
    "too few passages": "shows fewer than two passages [1], [2], …",
    "repeated document": "shows one document twice",
    "other query": "asks a different query from its passages",
    "equal texts reordered": (
        "shows passages of equal text in another order than earlier calls left them"
    ),
}
"""Reasons why a call matches no query, where the words need no number or name."""


@note_words.register
def _only_in_one_audit(note: OnlyInOneAudit) -> str:
    number = counted(note.number, note.part, _PLURALS[note.part])
    names = first_names(note.first, note.number)
    return f"left out: {number} only in the {note.side} audit ({names})"


@note_words.register
def _primary_questions_differ(note: PrimaryQuestionsDiffer) -> str:
    return (
        f"the audits' primary questions differ: {note.new} (new) and {note.old} (old); the "
        f"headline is about {note.compared}. Audit both with the same --primary to compare what "
        "each of them says first"
    )


@note_words.register
def _primary_not_compared(note: PrimaryNotCompared) -> str:
    number = len(note.questions)
    questions = singular_or_plural(number, "question", "questions")
    are = singular_or_plural(number, "is", "are")
    return (
        f"the primary {questions} of the audits, {join_words(list(note.questions))}, {are} not in "
        f"both of them query by query; the headline is about {note.compared}. Audit both with the "
        "same --primary"
    )


@note_words.register
def _runs_paired(note: RunsPaired) -> str:
    return f"{note.new} is compared with {note.old}"


@note_words.register
def _rounding_ignored(note: RoundingIgnored) -> str:
    audits = "both audits round"
    if len(note.sides) == 1:
        audits = f"the {note.sides[0]} audit rounds"
    return f"{audits} means before Relative Δ; this comparison uses unrounded means"


@note_words.register
def _twins_in_one_audit(note: TwinsInOneAudit) -> str:
    audit_of_twins, other_audit = note.sides
    hint = ". Audit both with the same labels and judgments" if note.can_be_alike else ""
    return (
        f"only {audit_of_twins} compares twins; {other_audit} compares any documents of two "
        f"groups, so a difference of tilts can come from that alone{hint}"
    )


@note_words.register
def _inputs_differ(note: InputsDiffer) -> str:
    named_files = []
    for side, files in zip(note.sides, note.files, strict=True):
        named_files.append(f"{side}: {', '.join(files)}")
    return (
        f"the {note.part} are in different files ({'; '.join(named_files)}): unless these say the "
        "same, a difference can come from them. To compare the runs alone, audit both with the "
        f"same {note.part}"
    )


@note_words.register
def _list_depths_differ(note: ListDepthsDiffer) -> str:
    if note.run == note.old_run:
        lists = f"the lists of {note.run} are {note.depth:,} deep, and were {note.old_depth:,}"
    else:
        lists = (
            f"the lists of {note.run} are {note.depth:,} deep, those of {note.old_run} "
            f"{note.old_depth:,}"
        )
    return f"{lists}: a document below the shorter ones counts as not found"


@note_words.register
def _queries_left_out(note: QueriesLeftOut) -> str:
    queries = counted(note.queries, "query", "queries")
    left_out = f"{note.left_out} of {queries} ({100 * note.left_out / note.queries:.1f} %)"
    sides = ", ".join(
        f"{counted(side.number, 'query', 'queries')} only in the {side.side} {note.result} "
        f"({first_names(side.first, side.number)})"
        for side in note.sides
    )
    front = f"{note.pairs} pairs: " if note.pairs else ""
    medians = "; medians of random labels still use all queries" if note.keeps_medians else ""
    return f"{front}left out: {left_out}: {sides}{medians}"


@note_words.register
def _pair_kind_left_out(note: PairKindLeftOut) -> str:
    return f"left out: {note.pairs} pairs, which only the {note.side} pairwise audit has"


@note_words.register
def _other_pairs_drawn(note: OtherPairsDrawn) -> str:
    return (
        "the models chose between different pairs of the same queries; the intervals include the "
        "variation from drawing pairs"
    )


@note_words.register
def _change_undefined(note: ChangeUndefined) -> str:
    subject = f"{note.question} is not"
    if note.groups is not None:
        subject = f"not both {_pair(note.groups)} are"
    queries = share_of_all(note.excluded, note.queries, "query", "queries")
    return f"{queries} excluded: {subject} defined under both runs"


@note_words.register
def _few_queries_compared(note: FewQueriesCompared) -> str:
    queries = counted(note.queries, "query is", "queries are")
    return too_narrow(f"{queries} compared", note.queries)


@note_words.register
def _change_resamples_dropped(note: ChangeResamplesDropped) -> str:
    return (
        f"up to {note.dropped:,} of {note.resamples:,} resamples dropped: both groups were 0 "
        "under one of the runs"
    )


@note_words.register
def _tilts_from_medians(note: TiltsFromMedians) -> str:
    pairs = ", ".join(map(_pair, note.pairs))
    return (
        f"{pairs} are not twins: a tilt is the distance from the median of each run's random "
        "labels, and intervals treat this median as known"
    )


def _pair(pair: GroupPair) -> str:
    """Name both groups of a pair."""
    return f"{pair.a} and {pair.b}"


@note_words.register
def _growth_is_no_difference(note: GrowthIsNoDifference) -> str:
    return (
        "growth is |tilt now| − |tilt before|, both from neutral; ranktilt compare also shows the "
        "difference, now − before, which has another interval here"
    )


@note_words.register
def _growths_judged_alone(note: GrowthsJudgedAlone) -> str:
    changes = [
        counted(number, singular, plural)
        for number, singular, plural in (
            (note.comparisons, "growth", "growths"),
            (note.losses, "loss", "losses"),
        )
        if number
    ]
    return (
        f"each of the {join_words(changes)} has its own 95 % interval; the more there are, the "
        "more likely one stands out by chance"
    )


@note_words.register
def _calls_unmatched(note: CallsUnmatched) -> str:
    calls = counted(note.unmatched, "call", "calls")
    queries = ""
    if note.queries_left_out:
        count = counted(len(note.queries_left_out), "query", "queries")
        more = ", …" if len(note.queries_left_out) > _MOST_QUERIES else ""
        names = ", ".join(note.queries_left_out[:_MOST_QUERIES])
        queries = f"; {count} left out entirely: {names}{more}"
    return (
        f"{calls} of {note.calls:,} cannot be matched, counted as failed "
        f"(first: call {note.first} {mismatch_words(note.mismatch)}){queries}"
    )


def mismatch_words(mismatch: Mismatch) -> str:
    """Say why a call fits no query, beginning with its verb: ``shows one document twice``."""
    match mismatch.kind:
        case "unknown query":
            return f"query {shorten(mismatch.query)} is not a query of the candidates"
        case "unknown document":
            return f"document {shorten(mismatch.document)} is not a candidate of its query"
        case "unknown passage":
            return f"passage [{mismatch.passage}] is not a candidate of query {mismatch.query!r}"
        case "other passage count":
            announced = counted(mismatch.announced, "passage", "passages")
            return f"announces {announced} and shows {mismatch.counted}"
        case "several queries":
            return f"fits {counted(mismatch.queries, 'query', 'queries')} with equal passages"
        case kind:
            return _MISMATCHES[kind]


def derived_unmatched_words(call: UnmatchedCall) -> dict[str, str]:
    """Return why a call cannot be matched, in words, which a file holds besides its fields."""
    return {"reason": mismatch_words(call.mismatch)}


@note_words.register
def _passages_reordered(note: PassagesReordered) -> str:
    calls = counted(note.calls, "call shows", "calls show")
    return (
        f"{calls} passages in a different order than the published parser left them in; the log is "
        "incomplete or comes from another parser, so the run named published may not be the one "
        "that was published"
    )
