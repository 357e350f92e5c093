"""Group documents by numbers: by bins of them, or by the two ends of a property.

``year:3`` makes three bins of about the same size, ``score:.5`` two groups below and above a value,
and ``length:3`` bins of the number of words. A *property* is a column of many numbers, such as
popularity, age or price. Its two *ends* take the place of groups: documents above its mean, and all
others that have a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import bare_labels
from ranktilt.data.labels.label_file import LENGTH
from ranktilt.data.labels.label_remarks import MOST_VALUES, parts_of_numbers, short_number
from ranktilt.data.notes.inputs import LabelNote, PropertyLabels
from ranktilt.data.text.label_values import as_numbers, known_labels
from ranktilt.data.text.quality import words
from ranktilt.errors import UserError, unknown_name
from ranktilt.sizes import read_whole_number

_UNGROUPED_COLUMNS = ("id", "text", "title", "origin")
"""Columns that make no groups, because nearly every document has a different value."""
_BINS = range(2, 11)
"""Numbers of bins that a column may be divided into."""
_THRESHOLD = re.compile(r"-?(?:\d+\.\d*|\.\d+)|-\d+")
"""Number that divides a column in two; a whole number is a number of bins instead."""
_HALF_NAMES = ("below {}", "{} and above")
"""Names of the two groups that a threshold makes."""
_DIGITS = (4, 8, 17)
"""Numbers of digits in the names of bins, tried in this order; 17 distinguish any two floats."""


def grouping_columns(collection: Collection) -> list[str]:
    """Return the columns that documents may be grouped by."""
    return [column for column in collection.docs.columns if column not in _UNGROUPED_COLUMNS]


# ---- ends of a property -------------------------------------------------------------------------


def property_sides(by: str) -> Pair:
    """Return the names of a property's two ends: above its mean, and not above it."""
    return f"high-{by}", f"low-{by}"


def is_property(collection: Collection, by: str | None) -> bool:
    """Return whether a column is a property: holds more than `MOST_VALUES` different numbers."""
    if by is None or by == "source":
        return False
    if by not in grouping_columns(collection) or collection.docs[by].dtype == pl.Binary:
        return False
    numbers = as_numbers(known_labels(collection.docs[by]))
    return numbers.dtype.is_numeric() and numbers.drop_nulls().n_unique() > MOST_VALUES


def property_groups(collection: Collection, by: str) -> Groups:
    """Return the two ends of a property as groups; `Groups.values` has the numbers."""
    column = known_labels(collection.docs[by])
    values = as_numbers(column).cast(pl.Float64).fill_null(np.nan).to_numpy()
    values = np.where(np.isfinite(values), values, np.nan)
    mean = float(np.nanmean(values))
    code = np.where(values > mean, 0, 1)
    code[np.isnan(values)] = -1
    remarks: tuple[LabelNote, ...] = ()
    parts = parts_of_numbers(column)
    if parts:
        remark = PropertyLabels(by=by, low=parts.low, high=parts.high, parted_at=parts.parted_at)
        remarks = (remark,)
    return Groups(by=by, names=property_sides(by), code=code, remarks=remarks, values=values)


# ---- bins ---------------------------------------------------------------------------------------


def number_groups(collection: Collection, by: str, columns: Sequence[str]) -> Groups:
    """Group documents by a column's numbers, or by the number of words of their texts.

    `by` is ``COLUMN:N`` for N bins, or ``COLUMN:VALUE`` for two groups below and above a value.
    Bins hold nearly the same number of documents; equal numbers are in one bin. `columns` are those
    that may be grouped by.
    """
    column = by.rpartition(":")[0]
    values = _numbers(collection, column, columns)
    return divided_numbers(by, values, is_length=column not in columns)


def divided_numbers(by: str, values: pl.Series, *, is_length: bool) -> Groups:
    """Group documents or queries by their numbers.

    Parameters
    ----------
    by : str
        ``COLUMN:N`` for N bins, or ``COLUMN:VALUE`` for two groups below and above a value.
    values : polars.Series
        The numbers; null for a document or query without one.
    is_length : bool
        Whether they are numbers of words. Then the groups' names say so (``3 to 9 words``), and
        need no name of a column.
    """
    column, _, number = by.rpartition(":")
    if _THRESHOLD.fullmatch(number):
        groups = _halves(by, column, values, float(number), unit=" words" if is_length else "")
        return groups if is_length else _with_column(groups, column)
    bin_count = read_whole_number(number)
    if bin_count is None or bin_count not in _BINS:
        raise UserError(
            f"{by}: expected {_BINS[0]} to {_BINS[-1]} bins, such as {column}:3, or a value with a "
            f"decimal point to split at, such as {column}:.5; got {number!r}"
        )
    known = values.drop_nulls().to_numpy()
    edges = _upper_edges(known, bin_count)
    if len(edges) < bin_count:
        raise UserError(
            f"{by}: too few distinct values of {column} for {number} bins: {len(np.unique(known))}"
        )
    known_code = np.searchsorted(edges, known)
    lowest = [known[known_code == index].min() for index in range(len(edges))]
    names = _bin_names(list(zip(lowest, edges, strict=True)))
    if is_length:
        names = [f"{name} {'word' if name == '1' else 'words'}" for name in names]
    code = np.full(len(values), -1)
    code[values.is_not_null().to_numpy()] = known_code
    groups = Groups(by=column, names=tuple(names), code=code)
    return groups if is_length else _with_column(groups, column)


def _with_column(groups: Groups, column: str) -> Groups:
    """Put the name of the column before the name of each group: ``year 2010 to 2014``."""
    return replace(groups, names=tuple(f"{column} {name}" for name in groups.names))


def _numbers(collection: Collection, column: str, columns: Sequence[str]) -> pl.Series:
    """Return the numbers of a column, even if written as text.

    For ``length``, these are the numbers of words, unless a column has this name.
    """
    if column in columns:
        values = as_numbers(known_labels(bare_labels(collection.docs[column])))
        if values.dtype.is_numeric():
            return values
    elif column == LENGTH:
        values = collection.memo("words", lambda: words(collection.docs["text"]))
        return values.set(values == 0, None)
    numeric_columns = [
        name
        for name in columns
        if as_numbers(known_labels(bare_labels(collection.docs[name]))).dtype.is_numeric()
    ]
    # Each once, since a column may itself be called length.
    choices = dict.fromkeys([*numeric_columns, LENGTH])
    raise unknown_name("column of numbers to group by", column, choices)


def _halves(by: str, column: str, values: pl.Series, threshold: float, *, unit: str) -> Groups:
    """Divide numbers in two: those below a threshold, and those equal to it or above.

    `by` begins messages, and `unit` follows the threshold in the names of the groups.
    """
    is_above = values >= threshold
    count_above = int(is_above.sum())
    known_count = len(values) - values.null_count()
    if not known_count:
        raise UserError(
            f"{by}: no value of {column} is known; expected values on both sides of "
            f"{short_number(threshold)}"
        )
    if count_above in (0, known_count):
        if count_above:
            position, end, value = "at or above", "lowest", values.min()
        else:
            position, end, value = "below", "highest", values.max()
        extreme = f"{end}: {short_number(float(value))}"  # type: ignore[arg-type]
        raise UserError(
            f"{by}: every {column} is {position} {short_number(threshold)} ({extreme}); "
            "expected values on both sides"
        )
    threshold_text = f"{short_number(threshold)}{unit}"
    names = tuple(name_format.format(threshold_text) for name_format in _HALF_NAMES)
    code = is_above.cast(pl.Int64).fill_null(-1).to_numpy()
    return Groups(by=column, names=names, code=code)


def _upper_edges(values: npt.NDArray[Any], bin_count: int) -> npt.NDArray[Any]:
    """Return the highest value of each bin, if `bin_count` bins hold equally many values.

    There are fewer bins if so many values are equal that they fill a bin, and the next one is
    empty.
    """
    if not len(values):
        return values
    last_position = np.ceil(np.arange(1, bin_count + 1) * len(values) / bin_count) - 1
    return np.unique(np.sort(values)[last_position.astype(np.int64)])


def _bin_names(bounds: Sequence[tuple[Any, Any]]) -> list[str]:
    """Name each bin by its lowest and highest value, with enough digits that the names differ."""
    names: list[str] = []
    for digits in _DIGITS:
        names = [_bin_name(low, high, digits) for low, high in bounds]
        if len(set(names)) == len(names):
            break
    return names


def _bin_name(low: Any, high: Any, digits: int) -> str:
    """Return the name of a bin: its lowest and its highest value."""
    low_text, high_text = _number_text(low, digits), _number_text(high, digits)
    return low_text if low_text == high_text else f"{low_text} to {high_text}"


def _number_text(value: Any, digits: int) -> str:
    """Format a number with up to `digits` significant digits, but all digits before the point."""
    if isinstance(value, np.integer):
        return str(value)
    if np.isinf(value):
        return f"{value:g}"
    digits = max(digits, len(str(int(abs(value)))))
    return np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="-"
    )
