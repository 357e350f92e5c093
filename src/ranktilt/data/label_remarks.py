"""What is said of how labels are written: which are most likely one, and which may be none."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ranktilt.data.text.label_values import alike_labels, as_numbers, null_words
from ranktilt.errors import DataWarning, counted

MOST_PAIRED = 12
"""Groups of which every pair is compared; the tests of more would be too many to show anything, and take long."""
MOST_VALUES = 10
"""Different numbers up to which each is a group; a column of more is a property that documents have more or less of."""
_HALF = 0.5
_FEWEST_NUMBERS = 3
"""Different numbers that can be parted; two are groups already."""


class LabelRemark(NamedTuple):
    """Something about how labels are written."""

    text: str
    remedy: str
    """What to do about it on the command line of an audit."""

    @property
    def sentence(self) -> str:
        return f"{self.text}; {self.remedy}"

    def warn(self) -> None:
        """Warn of it where a result has no place for notes."""
        warnings.warn(self.text.removeprefix("warning: "), DataWarning, stacklevel=3)


def label_remarks(by: str, labels: pl.Series) -> Iterator[LabelRemark]:
    """Say which labels are most likely one, which may stand for a missing value, and that numbers can be parted."""
    counts = dict(labels.drop_nulls().cast(pl.String).value_counts(sort=True).rows())
    for alike in alike_labels(counts):
        text = f"warning: {by} {alike.joined} differ in {alike.difference} only, and are groups of their own"
        yield LabelRemark(text, f"to make them one: {alike.options}")
    for word in null_words(counts):
        documents = counted(counts[word], "document has", "documents have")
        yield LabelRemark(
            f"warning: {by} {word!r} is a word, and so a group: {documents} it",
            "leave the label empty where there is none",
        )
    if len(counts) >= _FEWEST_NUMBERS and (parts := parts_of_numbers(by, labels)):
        yield LabelRemark(f"{by}: each of {len(counts):,} values is a group", parts)


def parts_of_numbers(by: str, labels: pl.Series) -> str:
    """Say how a column that holds fractions, or more numbers than can be compared, can be parted; empty elsewhere."""
    numbers = as_numbers(labels).drop_nulls()
    if not numbers.dtype.is_numeric() or not len(numbers):
        return ""
    if not numbers.dtype.is_float() and numbers.n_unique() <= MOST_VALUES:
        return ""
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    middle = _HALF if low < _HALF <= high else float(numbers.median())  # type: ignore[arg-type]
    value = short_number(middle)
    value = value if "." in value else f"{value}."
    span = f"numbers from {short_number(low)} to {short_number(high)}"
    return f"{span}: --by {by}:2 makes bins, --by {by}:{value} parts them there"


def short_number(value: float) -> str:
    """Print a number without a zero before its point: ``.5``."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:g}")
