"""Questions with answers of two sides, such as HC3: people's and a language model's, as JSON lines."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten
from ranktilt.io.files import line_chunks
from ranktilt.io.jsonl import parse_line

_BREAKS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True)
class QuestionFields:
    """What the fields of a line are called; `domain` None takes the file's name."""

    question: str = "question"
    human: str = "human_answers"
    llm: str = "chatgpt_answers"
    domain: str | None = None


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question with its answers; a side may have none, never both."""

    text: str
    domain: str
    human: tuple[str, ...]
    llm: tuple[str, ...]

    @property
    def key(self) -> str:
        """The question after folding: what two askings of one question share."""
        return fold_question(self.text)


@dataclass(frozen=True)
class AnsweredQuestions:
    """The questions of some files in their order, and what was left out."""

    questions: tuple[AnsweredQuestion, ...]
    files: tuple[Path, ...]
    fields: QuestionFields = QuestionFields()
    empty_answers: Mapping[str, int] = field(default_factory=dict)
    """By side, ``human`` and ``llm``: answers of nothing but blanks, which are left out."""
    unanswered: int = 0
    """Questions without any answer, which are left out."""


def fold_question(text: str) -> str:
    """Fold a question: compatible characters, case, blanks and closing marks make no difference."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.rstrip(".?! ") or folded


def read_answered(files: Sequence[str | Path], fields: QuestionFields | None = None) -> AnsweredQuestions:
    """Read questions with their answers, JSON lines, plain or gzip; an answer is a text or a list of texts.

    Blank answers are left out and counted; so is, with a warning, a question with no other. `DataError` names file and
    line of a fault, or a file without any answer of one side.
    """
    fields = fields or QuestionFields()
    paths = [Path(file) for file in files]
    twice = next((path for path, n in Counter(path.absolute() for path in paths).items() if n > 1), None)
    if twice is not None:
        raise UserError(f"{twice.name}: this file is named twice")
    questions, empty, lost = list[AnsweredQuestion](), Counter[str](), list[str]()
    for path in paths:
        here = 0
        for line, row in _rows(path):
            asked, blanks = _question(path, line, row, fields)
            empty.update(blanks)
            if asked.human or asked.llm:
                questions.append(asked)
                here += 1
            else:
                lost.append(f"{path}:{line}")
        _require_both(path, questions[len(questions) - here :], fields)
    if lost:
        many = counted(len(lost), "question has", "questions have")
        message = f"{lost[0]}: {many} no answer with any text in it, and will be left out"
        warnings.warn(message if len(lost) == 1 else message.replace(": ", ": the first; ", 1), DataWarning, 2)
    return AnsweredQuestions(tuple(questions), tuple(paths), fields, dict(empty), len(lost))


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    for first, lines in line_chunks(path, reported=True):
        for number, line in enumerate(lines, start=first):
            if not line or line.isspace():
                continue
            try:
                yield number, parse_line(line)
            except orjson.JSONDecodeError as error:
                shown = shorten(line[:200].decode(errors="replace"))
                message = f"expected one JSON object, got broken JSON ({error}): {shown}"
                raise DataError(path, message, line=number) from error


def _question(path: Path, line: int, row: Any, fields: QuestionFields) -> tuple[AnsweredQuestion, Counter[str]]:
    if not isinstance(row, dict):
        raise DataError(path, f"expected one JSON object, got {type(row).__name__}: {shorten(row)}", line=line)
    text = row.get(fields.question)
    if not isinstance(text, str) or not text.strip():
        raise DataError(path, f"expected a question in the field {fields.question!r}, got {shorten(text)}", line=line)
    domain = _stem(path) if fields.domain is None else row.get(fields.domain)
    if not isinstance(domain, str) or not domain.strip():
        raise DataError(path, f"expected a name in the field {fields.domain!r}, got {shorten(domain)}", line=line)
    if _BREAKS.search(domain):
        message = f"domain {domain!r} has a tab or line end in it, which tab-separated files cannot hold"
        raise DataError(path, message, line=line)
    human, llm = (_answers(path, line, row, name) for name in (fields.human, fields.llm))
    kept = [tuple(one.strip() for one in side if one.strip()) for side in (human, llm)]
    blanks = Counter({"human": len(human) - len(kept[0]), "llm": len(llm) - len(kept[1])})
    return AnsweredQuestion(text.strip(), domain.strip(), kept[0], kept[1]), blanks


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")


def _answers(path: Path, line: int, row: Mapping[str, Any], name: str) -> list[str]:
    value = row.get(name)
    answers = [value] if isinstance(value, str) else value or []
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        message = f"expected an answer or a list of answers in the field {name!r}, got {shorten(value)}"
        raise DataError(path, message, line=line)
    return answers


def _require_both(path: Path, questions: Sequence[AnsweredQuestion], fields: QuestionFields) -> None:
    """Refuse a file that lacks the answers of a side."""
    for side, name, option in (("human", fields.human, "--human-answers"), ("llm", fields.llm, "--llm-answers")):
        if not any(getattr(one, side) for one in questions):
            raise DataError(path, f"no question has an answer in the field {name!r}; {option} names another field")
