"""Words of the notes on answers that a language model wrote for an audit of citations."""

from __future__ import annotations

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
from ranktilt.errors import counted, join_words
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _answers_made(note: AnswersMade) -> str:
    answers = counted(note.answers, "answer", "answers")
    queries = counted(note.queries, "query", "queries")
    documents = counted(note.context, "document", "documents")
    order = "shuffled" if note.order == "shuffled" else "as ranked"
    return (
        f"{note.model} wrote {answers} to {queries}, each from up to {documents} of {note.run} "
        f"({order})"
    )


@note_words.register
def _requests_without_answer(note: RequestsWithoutAnswer) -> str:
    reasons = join_words([f"{reason.number:,} {reason.name}" for reason in note.reasons])
    requests = counted(note.of_all, "request", "requests")
    return f"{note.requests:,} of {requests} gave no answer ({reasons}); they count nowhere"


@note_words.register
def _numbers_outside_context(note: NumbersOutsideContext) -> str:
    numbers = counted(note.numbers, "number", "numbers")
    return (
        f"{_of_answers(note.answers, note.of_all)} {_verb(note.answers, 'cite')} {numbers} that "
        "no document of the prompt has; they are no citations"
    )


@note_words.register
def _prompt_quoted(note: PromptQuoted) -> str:
    numbers = counted(note.numbers, "number", "numbers")
    return (
        f"{_of_answers(note.answers, note.of_all)} {_verb(note.answers, 'repeat')} passages of "
        f"the prompt, with {numbers} in brackets; these are no citations"
    )


@note_words.register
def _numbers_in_other_forms(note: NumbersInOtherForms) -> str:
    numbers = counted(note.numbers, "number", "numbers")
    return f"{numbers} in brackets have another form than [2] or [1, 3], and were not read"


@note_words.register
def _prompts_cut(note: PromptsCut) -> str:
    return (
        f"{note.prompts:,} of {counted(note.of_all, 'prompt', 'prompts')} did not fit the model: "
        "their longest documents were cut at the end, all to one length, so the model did not "
        "read what stands last in them"
    )


@note_words.register
def _answers_cut_off(note: AnswersCutOff) -> str:
    return (
        f"{_of_answers(note.answers, note.of_all)} {_verb(note.answers, 'end')} at the limit of "
        "tokens, so that citations may be missing; raise it with max_tokens in the model's text"
    )


@note_words.register
def _made_without_citations(note: MadeWithoutCitations) -> str:
    answers = _of_answers(note.answers, note.of_all)
    return f"{answers} {_verb(note.answers, 'cite')} no document, and decide nothing"


@note_words.register
def _unshown_run_parts(note: UnshownRunParts) -> str:
    parts = []
    if note.without_text:
        queries = counted(note.without_text, "query has", "queries have")
        parts.append(f"{queries} no text in the collection")
    if note.without_documents:
        queries = counted(note.without_documents, "query has", "queries have")
        parts.append(f"{queries} no document to show")
    if note.unknown_documents:
        documents = counted(note.unknown_documents, "ranked document is", "ranked documents are")
        parts.append(f"{documents} not in the collection")
    return f"left out: {join_words(parts)}"


@note_words.register
def _labels_shown(note: LabelsShown) -> str:
    if note.label == "true":
        return (
            "each document was shown with its author, so text and label decide together; add "
            "--show-label swapped to tell them apart"
        )
    return (
        "each document was shown with the other side's author; add --show-label true to tell text "
        "and label apart"
    )


def _of_answers(number: int, of_all: int) -> str:
    """Print a number of answers, and of how many."""
    return f"{number:,} of {counted(of_all, 'answer', 'answers')}"


def _verb(number: int, plural: str) -> str:
    """Return a verb in the number of its answers."""
    return f"{plural}s" if number == 1 else plural
