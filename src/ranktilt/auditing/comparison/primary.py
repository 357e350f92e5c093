"""The question that a comparison answers first: the primary question of its audits.

An audit's *primary question* was chosen before the data were seen, and gives its verdict. A
question is written in its notation, such as ``nDCG@10``, which stands for Relative Δ of that
measure, or ``Share@10``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.auditing.effects import Change
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.result import Audit
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import PrimaryNotCompared, PrimaryQuestionsDiffer


@dataclass(frozen=True, kw_only=True)
class PrimaryQuestion:
    """The question that a comparison answers first."""

    compared: str | None
    """Notation of the question; None where nothing is compared."""
    notes: tuple[Note, ...] = ()
    """Notes that say why it is not the primary question of both audits."""


def primary_question(new: Audit, old: Audit, changes: Sequence[Change]) -> PrimaryQuestion:
    """Return the question that a comparison answers first.

    It is the new audit's primary question, else that of the old audit, if the changes answer it.
    Else it is the usual primary question among those that the changes answer.
    """
    new_question, old_question = primary_notation(new), primary_notation(old)
    answered = {change.measure for change in changes}
    candidates = [question for question in (new_question, old_question) if question in answered]
    if not candidates:
        # Changes of Relative Δ can be left out: the effectiveness on the same measure is compared
        # too, and has the same notation.
        estimands = [change.estimand for change in changes if not change.of_tilt]
        usual = usual_primary(estimands)
        first = None if usual is None else repr(usual)
        notes = _not_compared((new_question, old_question), first)
        return PrimaryQuestion(compared=first, notes=notes)
    if new_question == old_question:
        return PrimaryQuestion(compared=candidates[0])
    note = PrimaryQuestionsDiffer(new=new_question, old=old_question, compared=candidates[0])
    return PrimaryQuestion(compared=candidates[0], notes=(note,))


def primary_notation(audit: Audit) -> str:
    """Return the notation of an audit's primary question, or of the measure that is printed first.

    Empty if it has neither.
    """
    if audit.primary is not None:
        return repr(audit.primary)
    return repr(audit.primary_measure) if audit.measures else ""


def _not_compared(questions: tuple[str, str], first: str | None) -> tuple[Note, ...]:
    """Note that no primary question is compared, and which question comes first instead."""
    names = tuple(dict.fromkeys(question for question in questions if question))
    if not names or first is None:
        return ()
    return (PrimaryNotCompared(questions=names, compared=first),)
