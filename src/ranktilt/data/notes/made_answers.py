"""Notes on answers that a language model wrote for an audit of citations."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.data.notes.base import Count, Note, Severity


@dataclass(frozen=True, kw_only=True)
class AnswersMade(Note):
    """Who answered, from what."""

    model: str
    answers: int
    queries: int
    context: int
    """Documents that a request shows."""
    run: str
    order: str


@dataclass(frozen=True, kw_only=True)
class RequestsWithoutAnswer(Note):
    """Requests that gave no answer, by reason."""

    severity: Severity = "warning"
    requests: int
    of_all: int
    reasons: tuple[Count, ...]


@dataclass(frozen=True, kw_only=True)
class NumbersOutsideContext(Note):
    """Cited numbers that no document of the context has."""

    severity: Severity = "warning"
    numbers: int
    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class PromptQuoted(Note):
    """Numbers in passages that repeat the prompt."""

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
    """Prompts that did not fit the model until their longest documents were cut."""

    severity: Severity = "warning"
    prompts: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class AnswersCutOff(Note):
    """Answers that end at the limit of tokens, whose last citations may be missing."""

    severity: Severity = "warning"
    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class MadeWithoutCitations(Note):
    """Answers of an experiment that cite no document: they decide nothing."""

    answers: int
    of_all: int


@dataclass(frozen=True, kw_only=True)
class UnshownRunParts(Note):
    """Queries of the run that were not asked, or documents that were not shown."""

    without_text: int
    without_documents: int
    unknown_documents: int


@dataclass(frozen=True, kw_only=True)
class LabelsShown(Note):
    """Documents were shown with an author, which may decide as much as the text."""

    severity: Severity = "warning"
    label: str
    """``true`` or ``swapped``."""
