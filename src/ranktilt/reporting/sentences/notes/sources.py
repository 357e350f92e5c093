"""Sentences of the notes on several sources, each compared with the reference alone.

A note is what a reader of the result should know besides its numbers. A source is who wrote
documents; each source rewrote originals of the reference. A series is the sources of one model that
differ in temperature, over which a trend is tested.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.auditing.sources.temperature_trend import FEWEST_TEMPERATURES
from ranktilt.data.notes.sources import (
    FewTemperatures,
    NoCommonDocuments,
    OnlyCommonDocuments,
    SeriesApart,
    SeveralTemperatures,
    TemperaturesFromNames,
    TemperaturesUnknown,
    UnevenCoverage,
)
from ranktilt.errors import counted
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _no_common_documents(note: NoCommonDocuments) -> str:
    cause = "no document was rewritten by every source"
    if note.without_rewrites:
        sources = " and ".join(note.without_rewrites)
        cause = f"{sources}: no document rewrites one of the reference"
    return (
        f"{cause}; all documents of each source are compared, so rows of different sources cover "
        "different documents. Choose sources that share some (--source)"
    )


@note_words.register
def _uneven_coverage(note: UnevenCoverage) -> str:
    common = share_of_all(note.common, note.rewritten, "rewritten document", "rewritten documents")
    are = singular_or_plural(note.common, "is", "are")
    these_are = singular_or_plural(note.common, "this one is", "these are")
    their = singular_or_plural(note.common, "its", "their")
    lacking = ", ".join(f"{count.name} lacks {count.number:,}" for count in note.lacking)
    return (
        f"the sources cover different documents: {common} {are} common to all ({lacking}); only "
        f"{these_are} compared, and only {their} judgments count"
    )


@note_words.register
def _only_common_documents(note: OnlyCommonDocuments) -> str:
    documents = counted(note.documents, "document", "documents")
    are = singular_or_plural(note.documents, "is", "are")
    their = singular_or_plural(note.documents, "its", "their")
    return (
        f"only the {documents} that every source rewrote {are} compared, and only {their} "
        "judgments count; other originals are ranked as unjudged"
    )


@note_words.register
def _several_temperatures(note: SeveralTemperatures) -> str:
    return (
        f"source {note.source!r} has documents of {note.temperatures} temperatures, "
        f"{note.low:g} to {note.high:g}, so it is in no trend; give each temperature its own source"
    )


@note_words.register
def _temperatures_from_names(note: TemperaturesFromNames) -> str:
    sources = ", ".join(f"{source.source} ({source.temperature:g})" for source in note.sources)
    return f"no column of temperatures, so they come from the names of sources: {sources}"


@note_words.register
def _few_temperatures(note: FewTemperatures) -> str:
    return (
        f"no trend of {note.series}: {note.temperatures} temperatures; a trend needs "
        f"{FEWEST_TEMPERATURES}"
    )


@note_words.register
def _temperatures_unknown(note: TemperaturesUnknown) -> str:
    return f"no temperature is known for {', '.join(note.sources)}, so in no trend"


@note_words.register
def _series_apart(note: SeriesApart) -> str:
    return (
        f"no trend: each of {note.temperatures} temperatures is a separate series; put sources of "
        "one model together with a column 'model'"
    )
