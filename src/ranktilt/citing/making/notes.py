"""Notes on answers that a language model wrote, and the refusal of answers without citations.

A model cites a document by its number in brackets, ``[2]``. Numbers that no document has, numbers
that are copied from the prompt, and other forms such as ``[1-3]`` are no citations.
"""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.citing.making.session import AnswerSession, SessionCounts
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.made_answers import (
    AnswersCutOff,
    AnswersMade,
    LabelsShown,
    MadeWithoutCitations,
    NumbersInOtherForms,
    NumbersOutsideContext,
    PromptQuoted,
    PromptsCut,
    RequestsWithoutAnswer,
    UnshownRunParts,
)
from ranktilt.errors import UserError, counted, join_words


def require_citations(session: AnswerSession) -> None:
    """Refuse answers none of which cites a document; the error says which numbers they have."""
    counts = session.counts
    if not counts.answers:
        reasons = [f"{number:,} {reason}" for reason, number in counts.rejected.items()]
        message = f"; the server said: {session.messages[0]}" if session.messages else ""
        requests = counted(counts.requests, "request", "requests")
        raise UserError(f"no answer to {requests} ({join_words(reasons)}){message}")
    if counts.without_citations < counts.answers:
        return
    instead = {
        "numbers that no document has": counts.outside,
        "numbers in passages repeated from the prompt": counts.quoted,
        "numbers in another form than [2] or [1, 3]": counts.other_form,
    }
    present = [f"{number:,} {noun}" for noun, number in instead.items() if number]
    answers = counted(counts.answers, "answer cites", "answers cite")
    raise UserError(
        f"{session.model}: none of {answers} a document by its number in brackets "
        f"({join_words(present) if present else 'they have none'}); look at them with "
        "--save-answers FILE, and try another prompt or model"
    )


def session_notes(session: AnswerSession) -> Iterator[Note]:
    """Yield the notes on how answers were made, and on numbers in them that are no citations."""
    counts, making = session.counts, session.making
    lost = counts.requests - counts.answers
    if lost:
        reasons = counts_of(counts.rejected)
        yield RequestsWithoutAnswer(requests=lost, of_all=counts.requests, reasons=reasons)
    if counts.outside:
        yield NumbersOutsideContext(
            numbers=counts.outside, answers=counts.answers_outside, of_all=counts.answers
        )
    if counts.quoted:
        yield PromptQuoted(
            numbers=counts.quoted, answers=counts.answers_quoting, of_all=counts.answers
        )
    if counts.other_form:
        yield NumbersInOtherForms(numbers=counts.other_form)
    yield from _cut_notes(counts)
    if making.is_experiment and counts.without_citations:
        yield MadeWithoutCitations(answers=counts.without_citations, of_all=counts.answers)
    if not making.compares_labels:
        for label in making.shown_labels:
            if label != "none":
                yield LabelsShown(label=label)
    left_out = counts.left_out
    if left_out.without_text or left_out.without_documents or left_out.unknown_documents:
        yield UnshownRunParts(
            without_text=left_out.without_text,
            without_documents=left_out.without_documents,
            unknown_documents=left_out.unknown_documents,
        )
    yield AnswersMade(
        model=session.model,
        answers=counts.answers,
        queries=counts.queries,
        context=making.context,
        run=session.run.name,
        order=making.order,
    )


def _cut_notes(counts: SessionCounts) -> Iterator[Note]:
    """Yield notes on prompts that were shortened to fit, and on answers that end at the limit."""
    if counts.cut_prompts:
        yield PromptsCut(prompts=counts.cut_prompts, of_all=counts.answers)
    if counts.cut_off:
        yield AnswersCutOff(answers=counts.cut_off, of_all=counts.answers)
