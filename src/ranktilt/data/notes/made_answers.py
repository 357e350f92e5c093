"""Notes on answers that a language model wrote for an audit of citations.

The model was shown a prompt with a query and several numbered documents, and should cite them by
their numbers. In these notes, `of_all` is the number of all requests, answers or prompts; the field
before it counts those that the note is about.

Each class is a kind of note, and its fields are what is known. The sentence is made in the file of
the same name in `ranktilt.reporting.sentences.notes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class AnswersMade(Note):
    """Which model answered, and what its prompts showed."""

    model: str
    answers: int
    queries: int
    context: int
    """Most documents that a prompt shows."""
    run: str
    """Run whose lists the documents are taken from."""
    order: str
    """Order of the documents in a prompt: ``shuffled``, or ``ranked`` as in the run."""


@dataclass(frozen=True, kw_only=True)
class RequestsWithoutAnswer(Note):
    """Requests to the model that gave no answer."""

    severity: Severity = "warning"
    requests: int
    of_all: int
    reasons: tuple[Count, ...]
    """Number of these requests by reason."""


@dataclass(frozen=True, kw_only=True)
class NumbersOutsideContext(Note):
    """Cited numbers that no document of the prompt has, and the answers with them."""

    severity: Severity = "warning"
    numbers: int
    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class PromptQuoted(Note):
    """Numbers in brackets in passages that answers repeat from the prompt."""

    severity: Severity = "warning"
    numbers: int
    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class NumbersInOtherForms(Note):
    """Numbers in brackets that are not read, such as ``[1-3]``."""

    severity: Severity = "warning"
    numbers: int


@dataclass(frozen=True, kw_only=True)
class PromptsCut(Note):
    """Prompts that did not fit the model until their longest documents were cut at the end."""

    severity: Severity = "warning"
    prompts: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class AnswersCutOff(Note):
    """Answers that end at the limit of tokens, so that citations may be missing at the end."""

    severity: Severity = "warning"
    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class MadeWithoutCitations(Note):
    """Answers that cite no document, and so cannot tell two versions apart."""

    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class UnshownRunParts(Note):
    """Queries that were not asked, and documents that were not shown."""

    without_text: int
    """Queries of the run without a text in the collection."""
    without_documents: int
    """Queries of the run without a document to show."""
    unknown_documents: int
    """Ranked documents that the collection does not hold."""


@dataclass(frozen=True, kw_only=True)
class LabelsShown(Note):
    """Each document was shown with an author, a label that may decide as much as the text."""

    severity: Severity = "warning"
    label: str
    """``true`` for its own author, or ``swapped`` for that of the other side."""
