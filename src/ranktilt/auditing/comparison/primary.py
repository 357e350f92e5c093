"""The question that a comparison answers first: the primary one of its audits."""

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
    """Its notation; None where nothing is compared."""
    notes: tuple[Note, ...] = ()
    """Why it is not the primary question of both audits."""


def primary_question(new: Audit, old: Audit, changes: Sequence[Change]) -> PrimaryQuestion:
    """Choose the question that a comparison answers first.

    It is the new audit's primary question, or else the old one's, if the changes have it.
    """
    questions = (primary_notation(new), primary_notation(old))
    compared = {change.measure for change in changes}
    known = [question for question in questions if question in compared]
    if not known:
        # Relative Δ stands for its measure, whose effectiveness is compared too.
        estimands = [change.estimand for change in changes if not change.of_tilt]
        usual = usual_primary(estimands)
        first = None if usual is None else repr(usual)
        return PrimaryQuestion(compared=first, notes=_unknown(questions, first))
    if questions[0] == questions[1]:
        return PrimaryQuestion(compared=known[0])
    note = PrimaryQuestionsDiffer(new=questions[0], old=questions[1], compared=known[0])
    return PrimaryQuestion(compared=known[0], notes=(note,))


def primary_notation(audit: Audit) -> str:
    """Return the notation of an audit's primary question, or of its first measure."""
    if audit.primary is not None:
        return repr(audit.primary)
    return repr(audit.primary_measure) if audit.measures else ""


def _unknown(questions: tuple[str, str], first: str | None) -> tuple[Note, ...]:
    names = tuple(dict.fromkeys(question for question in questions if question))
    if not names or first is None:
        return ()
    return (PrimaryNotCompared(questions=names, compared=first),)
