"""Note labels that are probably the same, words for a missing value, and columns of numbers.

A *label* is the value of a column by which documents are grouped. Labels such as ``AI`` and ``ai``
may be meant to be one group; ``unknown`` may be meant to be none; and a column of many different
numbers, such as a detector's probabilities, has to be divided before it gives groups. RankTilt
changes nothing by itself, but tells the user.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from ranktilt.data.notes.inputs import (
    LabelIsWord,
    LabelNote,
    LabelsAlike,
    NumberLabels,
    PropertyLabels,
)
from ranktilt.data.text.label_values import alike_labels, as_numbers, null_words
from ranktilt.errors import DataWarning

MOST_PAIRED = 12
"""Most groups whose pairs are all compared.

Twelve groups have 66 pairs. Each p is corrected for the number of tests, so that with more of them
hardly anything would be shown.
"""
MOST_VALUES = 10
"""Most different numbers that count as groups; a column with more is a property of documents."""
_HALF = 0.5
"""Number at which a column is divided if it has values on both sides, as shares have."""
_FEWEST_NUMBERS = 3
"""Fewest different numbers that are divided into parts; two numbers are two groups."""


def label_remarks(by: str, labels: pl.Series) -> Iterator[LabelNote]:
    """Yield notes on labels that are alike, words for a missing value, and numbers to divide.

    `by` is the column of the labels.
    """
    counts = dict(labels.drop_nulls().cast(pl.String).value_counts(sort=True).rows())
    for alike in alike_labels(counts):
        yield LabelsAlike(by=by, labels=alike.labels, difference=alike.difference)
    for word in null_words(counts):
        yield LabelIsWord(by=by, label=word, documents=counts[word])
    if len(counts) >= _FEWEST_NUMBERS and (parts := parts_of_numbers(labels)):
        yield NumberLabels(
            by=by, values=len(counts), low=parts.low, high=parts.high, parted_at=parts.parted_at
        )


def warn_of_labels(notes: Iterable[LabelNote]) -> None:
    """Give the notes on labels as Python warnings, for a result that has no notes."""
    for note in notes:
        words = note.sentence.removeprefix("warning: ")
        warnings.warn(words, DataWarning, stacklevel=3)


@dataclass(frozen=True, kw_only=True)
class NumberParts:
    """The range of a column of numbers, and a number that divides it in two."""

    low: float
    """Smallest number."""
    high: float
    """Largest number."""
    parted_at: float
    """Number at which the column is divided."""


def parts_of_numbers(labels: pl.Series) -> NumberParts | None:
    """Return how to divide a column of numbers; None if its values are groups, or no numbers.

    A column is divided if it has fractions, or more than `MOST_VALUES` different numbers. It is
    divided at .5 if it has values on both sides, else at its median.
    """
    numbers = as_numbers(labels).drop_nulls()
    if not numbers.dtype.is_numeric() or not len(numbers):
        return None
    if not numbers.dtype.is_float() and numbers.n_unique() <= MOST_VALUES:
        return None
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    middle = _HALF if low < _HALF <= high else float(numbers.median())  # type: ignore[arg-type]
    return NumberParts(low=low, high=high, parted_at=middle)


def parts_words(by: str, parts: NumberParts | NumberLabels | PropertyLabels) -> str:
    """Say which options divide the column `by` of numbers."""
    value = short_number(parts.parted_at)
    # ``--by COLUMN:2`` makes two bins, and ``--by COLUMN:2.`` divides the column at 2.
    value = value if "." in value else f"{value}."
    span = f"numbers from {short_number(parts.low)} to {short_number(parts.high)}"
    return f"{span}; --by {by}:2 makes two bins, --by {by}:{value} splits them there"


def short_number(value: float) -> str:
    """Format a number without a zero before its point: ``.5``."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:g}")
