"""Sentences of the notes on texts: probes, checks, attribution, factors and files.

A note is what a reader of a result should know besides its numbers. Twins are versions of one text
by different sources; the reference is the source that others are compared with. A factor is a
property of texts, such as length, that designed versions of a document differ in.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

import shlex

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.data.notes.texts import (
    CheckFailed,
    DocumentsNotRetrieved,
    EffectivenessNotTested,
    EffectivenessOfPairs,
    FactorsNotReported,
    FewQueriesTested,
    FewToTest,
    FileHasOtherReadings,
    FileNotReadable,
    InteractionsAliased,
    InteractionsLeftOut,
    NoFactorCouldMove,
    NoScoreGap,
    PartLeftOut,
    ProbeLeftOut,
    ProbeNeedsEncoder,
    QueriesOfOneSideExcluded,
    SourceWithoutOrigins,
    SourceWithoutTwins,
    TwinsIdentical,
    VersionsNotJudged,
    VersionsNotRetrieved,
)
from ranktilt.errors import counted, join_words
from ranktilt.reporting.sentences.findings import variation_words
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words, variation_of

_PARTS = {"instrument": "the instrument"}
"""Words for parts of a check; a part that is not here is called by its own name."""
_REASONS = {
    "no twins": "no source has twins in the reference",
    "one side": "there are no two sides to compare",
    "nothing relevant": "no document is judged relevant",
}
"""Words for why a part is left out."""


@note_words.register
def _probe_needs_encoder(note: ProbeNeedsEncoder) -> str:
    return f"{note.probe} is left out: it needs an encoder, such as --encoder dense:minilm"


@note_words.register
def _probe_left_out(note: ProbeLeftOut) -> str:
    return f"{note.probe} is left out: {note.error}"


@note_words.register
def _source_without_twins(note: SourceWithoutTwins) -> str:
    return f"{note.source} has no twins in {note.reference}, so it cannot be compared"


@note_words.register
def _check_failed(note: CheckFailed) -> str:
    faults = [
        f"{fault.name} of {fault.source} ({fault.value}; limit {fault.limit})"
        for fault in note.faults
    ]
    command = shlex.join(["ranktilt", "check", note.folder])
    return f"{command} ends with Void: {join_words(faults)}; this alone may cause a tilt"


@note_words.register
def _source_without_origins(note: SourceWithoutOrigins) -> str:
    return (
        f"{note.source} shares no origin with a document of {note.reference}, so it cannot be "
        "compared"
    )


@note_words.register
def _twins_identical(note: TwinsIdentical) -> str:
    twins = counted(note.twins, "twin is", "twins are")
    return f"{note.source}: {twins} identical to the one in {note.reference}"


@note_words.register
def _part_left_out(note: PartLeftOut) -> str:
    return f"{_PARTS.get(note.part, note.part)} is left out: {_REASONS[note.reason]}"


@note_words.register
def _effectiveness_of_pairs(note: EffectivenessOfPairs) -> str:
    pairs = counted(note.pairs, "pair", "pairs")
    documents = counted(note.left_out, "document without a twin is", "documents without a twin are")
    return (
        f"effectiveness of {note.reference} and {note.source} comes from a search among {pairs} "
        f"only; {documents} on neither side"
    )


@note_words.register
def _queries_of_one_side_excluded(note: QueriesOfOneSideExcluded) -> str:
    # `excluded` is the largest number of all comparisons, unless it is the same in each.
    most = "" if note.are_alike else "up to "
    queries = counted(note.queries, "query", "queries")
    return f"{most}{note.excluded} of {queries} excluded: no relevant documents on both sides"


@note_words.register
def _effectiveness_not_tested(note: EffectivenessNotTested) -> str:
    return "effectiveness is not tested: no query has relevant documents on both sides"


@note_words.register
def _few_queries_tested(note: FewQueriesTested) -> str:
    queries = counted(note.queries, "query is", "queries are")
    return f"only {queries} compared; t tests of fewer than {FEW_QUERIES} are unreliable"


@note_words.register
def _interactions_left_out(note: InteractionsLeftOut) -> str:
    return (
        "Interactions are left out. This design cannot separate them from main effects, which are "
        "read as if there were none of two factors."
    )


@note_words.register
def _interactions_aliased(note: InteractionsAliased) -> str:
    interactions = join_words(note.interactions)
    return f"This design cannot separate {interactions}. One number is their sum."


@note_words.register
def _factors_not_reported(note: FactorsNotReported) -> str:
    return (
        f"Not reported, because their checks failed: {join_words(note.factors)}. They stay in the "
        "regression."
    )


@note_words.register
def _versions_not_judged(note: VersionsNotJudged) -> str:
    return (
        "Nothing is judged, so all documents with a retrieved version are compared, and there is "
        "no nDCG."
    )


@note_words.register
def _no_factor_could_move(note: NoFactorCouldMove) -> str:
    words = variation_words(variation_of(note.total, note.fixed))
    return f"{note.run}: {words}, so no factor could move a document there"


@note_words.register
def _documents_not_retrieved(note: DocumentsNotRetrieved) -> str:
    documents = share_of_all(
        note.left_out, note.documents, "relevant document", "relevant documents"
    )
    have = singular_or_plural(note.left_out, "has", "have")
    say = singular_or_plural(note.left_out, "says", "say")
    return (
        f"{note.run}: {documents}, counted per query, {have} no retrieved version and {say} "
        "nothing about the factors."
    )


@note_words.register
def _versions_not_retrieved(note: VersionsNotRetrieved) -> str:
    hint = "; rank deeper (@k)" if note.is_cut else ""
    return (
        f"{note.run}: {100 * note.share:.0f} % of these versions are not retrieved, and rank below "
        f"all that are{hint}."
    )


@note_words.register
def _no_score_gap(note: NoScoreGap) -> str:
    return (
        f"{note.run}: no score gap. Its scores give only an order, or no document has all versions "
        "retrieved."
    )


@note_words.register
def _few_to_test(note: FewToTest) -> str:
    queries = counted(note.queries, "query", "queries")
    documents = counted(note.documents, "document", "documents")
    return f"{note.run}: {queries} and {documents} are too few to test."


@note_words.register
def _file_has_other_readings(note: FileHasOtherReadings) -> str:
    kinds = " or ".join(note.kinds)
    return f"it could also be {kinds}; the option you pass it to decides"


@note_words.register
def _file_not_readable(note: FileNotReadable) -> str:
    return f"cannot be read yet: {note.error}"
