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
"""The scale of UMBRELA and of TREC's passage tracks, from "has nothing to do with the query" on."""
UNREADABLE, FILTERED = "unreadable", "filtered"
"""Flags of answers without a grade of the scale, and of those that a content filter held back."""

_SCORE = re.compile(r"final score\s*(?:\(O\))?\W{0,4}[:=]([^\n]*)", re.IGNORECASE)
"""Line of UMBRELA's prompt with the grade."""
_OBJECT = re.compile(r"\{[^{}]*\}")
"""A JSON object without others inside."""
_KEYS = ("o", "score", "grade")
"""Keys of an object that may have the grade."""
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
    for text in dict.fromkeys((cleaned.plain, cleaned.text)):
        for readings in (_scores(text), _objects(text), _last_line(text, cut_off)):
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
                value = fields[key]
                yield None if isinstance(value, bool | float) else _on_scale(str(value))
                break


def _last_line(text: str, cut_off: bool) -> Iterator[int | None]:
    """Read the last line, and earlier lines that are only a number too."""
    lines = [_BARE.fullmatch(line.strip(_DECORATION)) for line in text.splitlines()]
    if lines and lines[-1] and (len(lines) == 1 or not cut_off):
        for number in lines:
            if number is not None:
                yield _on_scale(number[1])


def _on_scale(number: str) -> int | None:
    """Return a number if it is a grade of the scale, else None."""
    return int(number) if number in {str(grade) for grade in GRADES} else None


def _flags(grade: int | None, finish: str | None) -> list[str]:
    """Return the flags of an answer."""
    if grade is not None:
        return []
    return [FILTERED if finish == "content_filter" else UNREADABLE]


def check_grade(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers of a judge: ``text`` is the grade, and an answer without one has a flag."""
    grades = [
        parse_grade(answer, cut_off=end == "length")
        for answer, end in zip(raw, finish, strict=True)
    ]
    flags = [_flags(grade, end) for grade, end in zip(grades, finish, strict=True)]
    nothing = [None] * len(grades)
    columns = {"text": grades, "opening": nothing, "closing": nothing, "flags": flags}
    types = {
        "text": pl.Int64(),
        "opening": pl.String(),
        "closing": pl.String(),
        "flags": pl.List(pl.String()),
    }
    return pl.DataFrame(columns, schema=types).with_columns(pl.col("text").cast(pl.String))
