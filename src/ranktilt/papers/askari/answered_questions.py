"""Questions with answers of two sides, such as HC3: people's and a language model's, as JSON lines."""

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


def read_answered(
    files: Sequence[str | Path], fields: QuestionFields | None = None
) -> AnsweredQuestions:
    """Read questions with their answers (a text or a list) from JSON lines; blank answers are left out and counted."""
    fields = fields or QuestionFields()
    paths = [Path(file) for file in files]
    refuse_twice([str(path.absolute()) for path in paths], "file")
    questions, empty, lost = list[AnsweredQuestion](), Counter[str](), list[str]()
    for path in paths:
        found = [
            (line, *_question(path, line, row, fields))
            for line, row in json_objects(path, reported=True)
        ]
        empty.update(blank for *_, blanks in found for blank in blanks)
        lost += [f"{path}:{line}" for line, asked, _ in found if not (asked.human or asked.llm)]
        questions += [asked for _, asked, _ in found if asked.human or asked.llm]
        for side, name, option in (
            ("human", fields.human, "--human-answers"),
            ("llm", fields.llm, "--llm-answers"),
        ):
            if not any(getattr(asked, side) for _, asked, _ in found):
                raise DataError(
                    path,
                    f"no question has an answer in the field {name!r}; choose another with {option}",
                )
    if lost:
        many = counted(len(lost), "question has", "questions have")
        message = f"{many} no answer with any text in it, and will be left out (first: {lost[0]})"
        warnings.warn(message, DataWarning, 2)
    return AnsweredQuestions(tuple(questions), tuple(paths), fields, dict(empty), len(lost))


def _question(
    path: Path, line: int, row: Mapping[str, Any], fields: QuestionFields
) -> tuple[AnsweredQuestion, list[str]]:
    """A question, and the side of each of its blank answers."""

    def fault(expected: str, name: str | None) -> DataError:
        message = f"expected {expected} in the field {name!r}, got {shorten(row.get(name or ''))}"
        return DataError(path, message, line=line)

    text = row.get(fields.question)
    if not isinstance(text, str) or not text.strip():
        raise fault("a question", fields.question)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    domain = stem if fields.domain is None else row.get(fields.domain)
    if not isinstance(domain, str) or not domain.strip() or _BREAKS.search(domain):
        raise fault("a name in one line", fields.domain)
    sides = dict[str, tuple[str, ...]]()
    blanks = list[str]()
    for side, name in (("human", fields.human), ("llm", fields.llm)):
        value = row.get(name) or []
        answers = [value] if isinstance(value, str) else value
        if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
            raise fault("an answer or a list of answers", name)
        sides[side] = tuple(one.strip() for one in answers if one.strip())
        blanks += [side] * (len(answers) - len(sides[side]))
    return AnsweredQuestion(text.strip(), domain.strip(), **sides), blanks
