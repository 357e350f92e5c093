"""Read a grade from the answer of a judge, a language model.

Reading is strict: an answer that leaves doubt about its grade has none, and never counts as 0.
"""

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
"""A JSON object that contains no other object."""
_KEYS = ("o", "score", "grade")
"""Keys of an object that may have the grade, by precedence; ``o`` is UMBRELA's final score."""
_CONFIDENCE = "confidence"
"""Key of an object that may say how sure the judge is."""
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

    A grade is looked for in this order: the text after ``##final score:``; ``"O"``, ``"score"`` or
    ``"grade"`` of a JSON object; a digit that is the complete answer, or its complete last line. A
    last line does not count if the answer was cut off there (`cut_off`), by the limit of tokens.
    Reasoning does not count. Wrappers around an answer, such as a code fence, are removed if
    nothing can be read with them.
    """
    cleaned = clean_answer(answer)
    # `plain` still has its wrappers, `text` has none. JSON counts as a wrapper too, so that it must
    # be looked for first where it is still there.
    for text in dict.fromkeys((cleaned.plain, cleaned.text)):
        for readings in (_scores(text), _objects(text), _bare_numbers(text, cut_off)):
            grades = set(readings)
            if grades:
                return grades.pop() if len(grades) == 1 else None
    return None


def parse_confidence(answer: str) -> float | None:
    """Read how sure a judge says it is: ``"confidence"`` of a JSON object.

    None if the answer does not say; NaN if it is no number from 0 to 1, or there are several.
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
    """Yield the fields of each JSON object, with their keys in lower case."""
    for json_object in _OBJECT.finditer(text):
        try:
            content = json.loads(json_object[0])
        except ValueError:
            continue
        yield {str(key).lower(): value for key, value in content.items()}


def _scores(text: str) -> Iterator[int | None]:
    """Yield each grade after ``final score``; None for a text that is no grade of the scale."""
    for score in _SCORE.finditer(text):
        number = _GRADE.fullmatch(score[1].strip(_DECORATION))
        yield None if number is None else _on_scale(number[1])


def _objects(text: str) -> Iterator[int | None]:
    """Yield the grade in each JSON object; None for a value that is no grade of the scale."""
    for fields in _fields(text):
        for key in _KEYS:
            if key in fields:
                # By the text of the value 2 and "2" are grades, but 2.0 and true are none.
                yield _on_scale(str(fields[key]))
                break


def _bare_numbers(text: str, cut_off: bool) -> Iterator[int | None]:
    """Yield the grades on lines that are only a number; nothing if the last line is not one.

    Earlier lines count too, so that an answer with two different numbers has no grade. `cut_off`
    says whether the limit of tokens ended the answer.
    """
    matches = [_BARE.fullmatch(line.strip(_DECORATION)) for line in text.splitlines()]
    if not matches or matches[-1] is None:
        return
    # A last line that was cut off, such as "2", may have been going to say "2 or 3". But the limit
    # of tokens may also be so low that there is only room for a digit: the complete answer.
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
    """Return the grade of each answer of a judge, and a flag if it has none.

    All checks of answers have the same parameters and columns (those of
    `ranktilt.generation.batched_requests.Check`), so that some are of no use here.

    Parameters
    ----------
    source : polars.Series
        Texts of the documents, on which a grade does not depend.
    raw : polars.Series
        Answers of the model.
    finish : polars.Series
        The server's reason why each answer ended, such as ``length`` or ``content_filter``.

    Returns
    -------
    polars.DataFrame
        ``text``, the grade (null without one), ``flags``, which say why there is none, and
        ``opening`` and ``closing``, which a grade has not.
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
