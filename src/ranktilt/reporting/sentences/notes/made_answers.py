"""Sentences of the notes on answers that a language model wrote for an audit of citations.

The model was shown a prompt with a query and several numbered documents, and should cite them by
their numbers: ``[2]``, ``[1, 3]``. A note is what a reader of the result should know about that.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

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
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _answers_made(note: AnswersMade) -> str:
    answers = counted(note.answers, "answer", "answers")
    queries = counted(note.queries, "query", "queries")
    most_documents = counted(note.context, "document", "documents")
    order = "as ranked" if note.order == "ranked" else note.order
    return (
        f"{note.model} wrote {answers} to {queries}, each from up to {most_documents} of "
        f"{note.run} ({order})"
    )


@note_words.register
def _requests_without_answer(note: RequestsWithoutAnswer) -> str:
    reasons = join_words([f"{reason.number:,} {reason.name}" for reason in note.reasons])
    requests = share_of_all(note.requests, note.of_all, "request", "requests")
    they_count = singular_or_plural(note.requests, "it counts", "they count")
    return f"{requests} gave no answer ({reasons}); {they_count} nowhere"


@note_words.register
def _numbers_outside_context(note: NumbersOutsideContext) -> str:
    answers = _answers_that(note.answers, note.of_all, "cites", "cite")
    numbers = counted(note.numbers, "number", "numbers")
    no_citations = singular_or_plural(note.numbers, "it is no citation", "they are no citations")
    return f"{answers} {numbers} that no document of the prompt has; {no_citations}"


@note_words.register
def _prompt_quoted(note: PromptQuoted) -> str:
    answers = _answers_that(note.answers, note.of_all, "repeats", "repeat")
    numbers = counted(note.numbers, "number", "numbers")
    no_citations = singular_or_plural(note.numbers, "this is no citation", "these are no citations")
    return f"{answers} passages of the prompt, with {numbers} in brackets; {no_citations}"


@note_words.register
def _numbers_in_other_forms(note: NumbersInOtherForms) -> str:
    numbers = counted(note.numbers, "number in brackets has", "numbers in brackets have")
    were = singular_or_plural(note.numbers, "was", "were")
    return f"{numbers} another form than [2] or [1, 3], and {were} not read"


@note_words.register
def _prompts_cut(note: PromptsCut) -> str:
    prompts = share_of_all(note.prompts, note.of_all, "prompt", "prompts")
    their = singular_or_plural(note.prompts, "its", "their")
    return (
        f"{prompts} did not fit the model: {their} longest documents were cut at the end, all to "
        "one length, so the model did not read what stands last in them"
    )


@note_words.register
def _answers_cut_off(note: AnswersCutOff) -> str:
    answers = _answers_that(note.answers, note.of_all, "ends", "end")
    # The text of a model names it with its options: openai:gpt-5(max_tokens=2000).
    return (
        f"{answers} at the limit of tokens, so that citations may be missing; raise it with "
        "max_tokens in the model's text"
    )


@note_words.register
def _made_without_citations(note: MadeWithoutCitations) -> str:
    answers = _answers_that(note.answers, note.of_all, "cites", "cite")
    decide = singular_or_plural(note.answers, "decides", "decide")
    return f"{answers} no document, and {decide} nothing"


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
    """Say that each document was shown with a label: the name of its author, or of another."""
    if note.label == "true":
        return (
            "each document was shown with its author, so text and label decide together; add "
            "--show-label swapped to tell them apart"
        )
    return (
        "each document was shown with the other side's author; add --show-label true to tell text "
        "and label apart"
    )


def _answers_that(number: int, of_all: int, singular_verb: str, plural_verb: str) -> str:
    """Begin a sentence about some of all answers: ``3 of 40 answers cite``."""
    answers = share_of_all(number, of_all, "answer", "answers")
    return f"{answers} {singular_or_plural(number, singular_verb, plural_verb)}"
