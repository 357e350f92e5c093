"""Read a grade from a judge's answer, strictly: what cannot be read never counts as 0."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from ranktilt.llm.cleaning import clean_answer

GRADES = (0, 1, 2, 3)
"""The scale of UMBRELA and of TREC's passage tracks: 0 is "has nothing to do with the query"."""
UNREADABLE = "unreadable"
"""Flag of an answer without a grade of the scale."""
FILTERED = "filtered"
"""Flag of an answer that a content filter held back."""

_SCORE = re.compile(r"final score\s*(?:\(O\))?\W{0,4}[:=]([^\n]*)", re.IGNORECASE)
"""The line of an answer that UMBRELA's prompt asks for; the prompt calls the final score O."""
_OBJECT = re.compile(r"\{[^{}]*\}")
"""A JSON object without others inside."""
_KEYS = ("o", "score", "grade")
"""Keys of an object that may have the grade, by precedence; ``o`` is UMBRELA's final score."""
_CONFIDENCE = "confidence"
"""Key of an object that may tell how sure the judge is."""
_DECORATION = " \t*_`\"'#()[]"
"""Characters around a grade."""
_GRADE = re.compile(r"([0-9]+)(?:[\s,.;:(*\])][^0-9]*)?")
"""A number, perhaps with a remark without another number.

"2 or 3", "2/3" and "2.5" are no grades.
"""
_BARE = re.compile(r"(?:(?:relevance )?(?:category|score|grade)\W{0,3})?([0-9]+)\.?", re.IGNORECASE)
"""A line that is only a grade."""


def parse_grade(answer: str, *, cut_off: bool = False) -> int | None:
    """Read the grade of an answer; None if it has no grade of the scale, or several.

    In this order: the text after ``##final score:``; ``"O"``, ``"score"`` or ``"grade"`` of a JSON
    object; a digit that is the complete answer, or its complete last line unless the answer was cut
    off there. Reasoning does not count. Wrappers around an answer are removed if nothing can be
    read with them.
    """
    cleaned = clean_answer(answer)
    # First with the wrappers (`plain`): JSON and fences are wrappers too.
    for text in dict.fromkeys((cleaned.plain, cleaned.text)):
        for readings in (_scores(text), _objects(text), _bare_numbers(text, cut_off)):
            grades = set(readings)
            if grades:
                return grades.pop() if len(grades) == 1 else None
    return None


def parse_confidence(answer: str) -> float | None:
    """Read how sure a judge says it is: ``"confidence"`` of a JSON object with its grade.

    None where the answer tells none; NaN where it is no number from 0 to 1, or there are several.
    """
    cleaned = clean_answer(answer)
    for text in dict.fromkeys((cleaned.plain, cleaned.text)):
        values = {str(fields[_CONFIDENCE]) for fields in _fields(text) if _CONFIDENCE in fields}
        if values:
            return _probability(values.pop()) if len(values) == 1 else math.nan
    return None


def _probability(text: str) -> float:
    """Return a number from 0 to 1; NaN for anything else."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if 0 <= number <= 1 else math.nan


def _fields(text: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each JSON object, under names in small letters."""
    for json_object in _OBJECT.finditer(text):
        try:
            content = json.loads(json_object[0])
        except ValueError:
            continue
        yield {str(key).lower(): value for key, value in content.items()}


def _scores(text: str) -> Iterator[int | None]:
    """Yield the grades after ``final score``; None for one that is not of the scale."""
    for score in _SCORE.finditer(text):
        number = _GRADE.fullmatch(score[1].strip(_DECORATION))
        yield None if number is None else _on_scale(number[1])


def _objects(text: str) -> Iterator[int | None]:
    """Yield the grades in JSON objects; None for one that is not of the scale."""
    for fields in _fields(text):
        for key in _KEYS:
            if key in fields:
                # 2 and "2" are grades; 2.0 and true are none.
                yield _on_scale(str(fields[key]))
                break


def _bare_numbers(text: str, cut_off: bool) -> Iterator[int | None]:
    """Yield the grades on lines that are only a number, if the last line is one of them.

    Earlier lines count too, so that two different numbers are no grade.
    """
    matches = [_BARE.fullmatch(line.strip(_DECORATION)) for line in text.splitlines()]
    if not matches or matches[-1] is None:
        return
    # The limit of tokens may have cut the last line short of what would make it no number. It may
    # also be so low that it leaves room for a digit alone, which is then the complete answer.
    if cut_off and len(matches) > 1:
        return
    for match in matches:
        if match is not None:
            yield _on_scale(match[1])


def _on_scale(number: str) -> int | None:
    """Return a number if it is a grade of the scale, else None."""
    # Compared as texts: "03" is no grade, and `int` refuses thousands of digits.
    return int(number) if number in {str(grade) for grade in GRADES} else None


def _flags(grade: int | None, finish: str | None) -> list[str]:
    """Return the flags of an answer; `finish` is the server's reason why it ended."""
    if grade is not None:
        return []
    return [FILTERED if finish == "content_filter" else UNREADABLE]


def check_grade(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers of a judge: ``text`` is the grade, and an answer without one has a flag.

    This is a `ranktilt.generation.batched_requests.Check`, whose arguments and columns are the same
    for all tasks: a grade does not depend on its `source`, and has no ``opening`` or ``closing``.
    """
    grades = [
        parse_grade(answer, cut_off=reason == "length")
        for answer, reason in zip(raw, finish, strict=True)
    ]
    flags = [_flags(grade, reason) for grade, reason in zip(grades, finish, strict=True)]
    nulls = [None] * len(grades)
    columns = {"text": grades, "opening": nulls, "closing": nulls, "flags": flags}
    types = {
        "text": pl.Int64(),
        "opening": pl.String(),
        "closing": pl.String(),
        "flags": pl.List(pl.String()),
    }
    return pl.DataFrame(columns, schema=types).with_columns(pl.col("text").cast(pl.String))
