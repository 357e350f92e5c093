"""Sentences of the notes on collections, labels and judgments.

A note is what a reader of a result should know besides its numbers. The documents of a collection
name a source, or a file of labels gives each a value in a column, by which documents are grouped. A
remedy is what the user can do, where there is something to do.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.auditing.groups import ALL
from ranktilt.data.labels.label_remarks import parts_words
from ranktilt.data.labels.stated_sources import no_source_words
from ranktilt.data.notes.inputs import (
    GradesAreFractions,
    JudgmentsReadAs,
    JudgmentsUnknown,
    LabelIsWord,
    LabelNote,
    LabelsAlike,
    LabelsReadAs,
    NoSource,
    NumberLabels,
    PropertyLabels,
    SourcesChosen,
    SourcesMixed,
    TextsNotExamined,
)
from ranktilt.data.text.label_values import AlikeLabels
from ranktilt.errors import counted
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _judgments_read_as(note: JudgmentsReadAs) -> str:
    return f"judgments: read as {note.format}"


@note_words.register
def _labels_read_as(note: LabelsReadAs) -> str:
    return f"labels: {note.format}"


@note_words.register
def _sources_chosen(note: SourcesChosen) -> str:
    return f"sources ranked together: {', '.join(note.ranked)}, without {', '.join(note.left_out)}"


@note_words.register
def _sources_mixed(note: SourcesMixed) -> str:
    return (
        f"mixed: {note.sources} sources are ranked together, so each also competes with sources of "
        "other pairs"
    )


@note_words.register
def _no_source(note: NoSource) -> str:
    return no_source_words(note)


@note_words.register
def _texts_not_examined(note: TextsNotExamined) -> str:
    return "texts are not checked: no document names its source"


@note_words.register
def _labels_alike(note: LabelsAlike) -> str:
    alike = AlikeLabels(labels=note.labels, difference=note.difference)
    words = f"{note.by} {alike.joined} differ only in {note.difference}, and are separate groups"
    return _with_remedy(note, words, f"to merge them: {alike.options}")


@note_words.register
def _label_is_word(note: LabelIsWord) -> str:
    documents = counted(note.documents, "document has", "documents have")
    words = f"{note.by} {note.label!r} is read as a group: {documents} it"
    return _with_remedy(note, words, "if it means that there is no label, leave it empty")


@note_words.register
def _number_labels(note: NumberLabels) -> str:
    words = f"{note.by}: each of {note.values:,} values is a group"
    return _with_remedy(note, words, parts_words(note.by, note))


@note_words.register
def _property_labels(note: PropertyLabels) -> str:
    words = f"{note.by} is read as a property, not as groups"
    return _with_remedy(note, words, parts_words(note.by, note))


def _with_remedy(note: LabelNote, words: str, remedy: str) -> str:
    """Add the remedy where the note has one."""
    return f"{words}; {remedy}" if note.has_remedy else words


@note_words.register
def _judgments_unknown(note: JudgmentsUnknown) -> str:
    documents = "documents without a label" if note.has_labels_only else "unknown documents"
    counts = {documents: note.documents, "unknown queries": note.queries}
    parts = [
        f"{counted(number, 'judgment', 'judgments')} for {objects}"
        for objects, number in counts.items()
        if number
    ]
    count = singular_or_plural(note.documents + note.queries, "counts", "count")
    return f"{' and '.join(parts)} {count} only in the row {ALL!r}, in no group"


@note_words.register
def _grades_are_fractions(note: GradesAreFractions) -> str:
    grades = counted(note.grades, "grade is a fraction", "grades are fractions")
    return (
        f"{grades} (first: {note.first:g}): nDCG uses grades as gains; AP, P, R and RR count "
        "grades of at least 1, or of the measure's rel"
    )
