"""Read questions with answers by people and by a language model, as JSON lines, such as HC3.

People and the language model are the two *sides*. A *domain* is the subject of a question, such as
``medicine``. A question that is asked several times has several *askings*.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranktilt.data.formats.jsonl import json_objects
from ranktilt.errors import DataError, DataWarning, counted, refuse_twice, shorten

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""A control character, such as a line break, which a domain's name must not have."""


@dataclass(frozen=True, kw_only=True)
class QuestionFields:
    """Names of a line's fields; the file's name is the domain if `domain` is None."""

    question: str = "question"
    """Field of the question."""
    human: str = "human_answers"
    """Field of people's answers."""
    llm: str = "chatgpt_answers"
    """Field of the language model's answers."""
    domain: str | None = None
    """Field of the domain; with None the file's name is the domain."""


@dataclass(frozen=True, kw_only=True)
class AnsweredQuestion:
    """A question with its answers by both sides, people and a language model.

    One side may have no answer. If a question occurs twice, in one file or in two, there are two of
    these objects, which are called *askings* of one question.
    """

    text: str
    """The question, as it is in the file."""
    domain: str
    """The subject that it belongs to, such as ``medicine``."""
    human: tuple[str, ...]
    """People's answers, without blank ones."""
    llm: tuple[str, ...]
    """The language model's answers, without blank ones."""

    @property
    def key(self) -> str:
        """The question after `fold_question`, which two askings of one question share."""
        return fold_question(self.text)

    @property
    def has_answer(self) -> bool:
        """Whether anybody answered the question."""
        return bool(self.human or self.llm)


@dataclass(frozen=True, kw_only=True)
class AnsweredQuestions:
    """Questions of several files in their order, and numbers of what was left out."""

    questions: tuple[AnsweredQuestion, ...]
    """All questions with an answer."""
    files: tuple[Path, ...]
    """Files that they were read from."""
    fields: QuestionFields = QuestionFields()
    """Names of the fields that they were read from."""
    empty_answers: Mapping[str, int] = field(default_factory=dict)
    """Number of blank answers by side, ``human`` and ``llm``; they are left out."""
    unanswered: int = 0
    """Number of questions without any answer; they are left out."""


def fold_question(text: str) -> str:
    """Return a form of a question that is the same for slightly different spellings.

    Case, blanks, and punctuation at the end make no difference, nor do characters that Unicode
    calls compatible (NFKC), such as a letter of double width. A question that is only punctuation
    stays as it is.
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return plain.rstrip(".?! ") or plain


def read_answered(
    files: Sequence[str | Path], fields: QuestionFields | None = None
) -> AnsweredQuestions:
    """Read questions with their answers from JSON lines.

    The answers of a side are a text or a list of texts. Blank answers are left out and counted, and
    so are questions that have no other answer.
    """
    fields = fields or QuestionFields()
    paths = [Path(file) for file in files]
    refuse_twice([str(path.absolute()) for path in paths], "file")
    questions, empty_answers, unanswered = list[AnsweredQuestion](), Counter[str](), list[str]()
    for path in paths:
        questions_of_file = list[AnsweredQuestion]()
        for number, row in json_objects(path, reported=True):
            line = _QuestionLine(path=path, number=number, row=row, fields=fields)
            question = line.question()
            empty_answers["human"] += line.blank_answers(fields.human)
            empty_answers["llm"] += line.blank_answers(fields.llm)
            if question.has_answer:
                questions_of_file.append(question)
            else:
                unanswered.append(f"{path}:{number}")
        _require_both_sides(path, questions_of_file, fields)
        questions += questions_of_file
    if unanswered:
        subject = counted(len(unanswered), "question has", "questions have")
        message = (
            f"{subject} no answer with any text in it, and will be left out "
            f"(first: {unanswered[0]})"
        )
        warnings.warn(message, DataWarning, 2)
    return AnsweredQuestions(
        questions=tuple(questions),
        files=tuple(paths),
        fields=fields,
        empty_answers=dict(+empty_answers),  # sides without any are left out
        unanswered=len(unanswered),
    )


def _require_both_sides(
    path: Path, questions: Sequence[AnsweredQuestion], fields: QuestionFields
) -> None:
    """Refuse a file in which one side has no answer: its field probably has another name."""
    if not any(question.human for question in questions):
        name, option = fields.human, "--human-answers"
    elif not any(question.llm for question in questions):
        name, option = fields.llm, "--llm-answers"
    else:
        return
    message = f"no question has an answer in the field {name!r}; choose another with {option}"
    raise DataError(path, message)


@dataclass(frozen=True, kw_only=True)
class _QuestionLine:
    """A line of a file of questions, which is read field by field."""

    path: Path
    """File of the line."""
    number: int
    """Number of the line, from 1."""
    row: Mapping[str, Any]
    """Fields of the line by name."""
    fields: QuestionFields
    """Names of the fields to read."""

    def question(self) -> AnsweredQuestion:
        """Return the question with its answers that are not blank."""
        text = self.row.get(self.fields.question)
        if not isinstance(text, str) or not text.strip():
            raise self._fault("a question", self.fields.question)
        return AnsweredQuestion(
            text=text.strip(),
            domain=self._domain(),
            human=self._stripped_answers(self.fields.human),
            llm=self._stripped_answers(self.fields.llm),
        )

    def blank_answers(self, name: str) -> int:
        """Return the number of blank answers in a field."""
        return len(self._answers(name)) - len(self._stripped_answers(name))

    def _domain(self) -> str:
        """Return the domain, from its field or from the file's name."""
        name = self.fields.domain
        file_name = self.path.name.removesuffix(".gz")
        stem = file_name.removesuffix(".jsonl").removesuffix(".json")
        domain = stem if name is None else self.row.get(name)
        if not isinstance(domain, str) or not domain.strip() or _CONTROL.search(domain):
            raise self._fault("a name in one line", name)
        return domain.strip()

    def _stripped_answers(self, name: str) -> tuple[str, ...]:
        """Return the answers in a field that are not blank."""
        return tuple(answer.strip() for answer in self._answers(name) if answer.strip())

    def _answers(self, name: str) -> list[str]:
        """Return the answers in a field, which may be a list or a single answer."""
        value = self.row.get(name) or []
        answers = [value] if isinstance(value, str) else value
        if not isinstance(answers, list) or not all(map(_is_text, answers)):
            raise self._fault("an answer or a list of answers", name)
        return answers

    def _fault(self, expected: str, name: str | None) -> DataError:
        """Return the error for a field that has another value than `expected`."""
        value = shorten(self.row.get(name or ""))
        message = f"expected {expected} in the field {name!r}, got {value}"
        return DataError(self.path, message, line=self.number)


def _is_text(value: object) -> bool:
    """Tell whether a value is a text."""
    return isinstance(value, str)
