"""Sentences of the notes on wrong labels: answers corrected for them, and errors that would matter.

A note is what a reader of a result should know besides its numbers. Labels say which group a
document belongs to, and some are wrong.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.data.notes.label_errors import (
    AnswerAsLabelled,
    ErrorsThatExplain,
    LabelsCorrected,
    ObservedLevel,
    RatesOfPart,
)
from ranktilt.errors import counted
from ranktilt.measures.base import estimand
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.grammar import first_ranks_words
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _labels_corrected(note: LabelsCorrected) -> str:
    rates = "; ".join(_rate_words(rates) for rates in note.rates)
    return f"answers are corrected for label errors ({note.label_errors}): {rates}"


def _rate_words(rates: RatesOfPart) -> str:
    """Say how much of a gap labels keep, with the standard error if that is estimated.

    A gap between two groups that is measured by wrong labels is J times the true gap, where J is
    sensitivity + specificity − 1 (`rates.information`).
    """
    part = f"{rates.part}: " if rates.part else ""
    words = f"{part}labels keep {decimal(100 * rates.information)} % of a gap"
    if rates.information_error == 0:
        return words
    documents = counted(rates.checked, "checked document", "checked documents")
    return f"{words} (± {decimal(100 * rates.information_error)} by {documents})"


@note_words.register
def _observed_level(note: ObservedLevel) -> str:
    return (
        f"{note.run}, {note.measure}: by the labels as they are, {note.a} and {note.b} would be "
        f"level within {note.margin}; corrected, they are within {note.wider_margin}"
    )


@note_words.register
def _errors_that_explain(note: ErrorsThatExplain) -> str:
    # The two kinds of errors: a document of a is labelled b, and a document of b is labelled a.
    return (
        f"{note.run}: label errors could explain that it favours {note.a}, if labels err "
        f"{_points(note.one_kind)} more often in the {first_ranks_words(note.cutoff)} than in the "
        f"list, or {_points(note.both_kinds)} if both kinds of errors do so"
    )


def _points(difference: float) -> str:
    """Print a difference of two rates, from -1 to 1, in percentage points."""
    return f"{decimal(100 * difference)} points"


@note_words.register
def _answer_as_labelled(note: AnswerAsLabelled) -> str:
    compared = f" minus {note.old_run}" if note.old_run else ""
    printed_value = estimand(note.measure).answer(note.value)
    return (
        f"{note.run}{compared}, {note.measure}, {note.a} | {note.b}: {printed_value} by the labels "
        "as they are"
    )
