"""Read ids and numbers from the cells of tables and the values of JSON, whatever their types.

A value that cannot be read is null here; the caller decides whether that is an error, and names the
line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.data.formats.ids import NUMBER, id_texts, plain_float, text_series

_MINUS_INFINITY = ("-inf", "-infinity")
"""How programs print minus infinity, the logarithm of zero, as a score below all others."""
_INT32_END = 2**31
"""Smallest number that does not fit into 32 bits."""
_NUMBER_TYPES = (int, float)
"""Types of numbers in JSON."""


@dataclass(frozen=True, kw_only=True)
class NumberColumn:
    """A column of numbers as a file has it."""

    raw: Sequence[Any] | pl.Series
    """The column as it is in the file."""
    values: pl.Series
    """The numbers (Float64); null for a cell that is no number."""

    @property
    def is_given(self) -> bool:
        """Whether the file has this column: any cell with a value, a number or not."""
        if isinstance(self.raw, pl.Series):
            return self.raw.null_count() < len(self.raw)
        return any(value is not None for value in self.raw)

    @property
    def whole_numbers(self) -> pl.Series:
        """The whole numbers of 32 bits; null for every other cell."""
        frame = self.values.alias("number").to_frame()
        number = pl.col("number")
        is_whole = (number == number.round()) & (number.abs() < _INT32_END)
        return frame.select(pl.when(is_whole).then(number).cast(pl.Int64))["number"]

    @classmethod
    def none(cls, count: int) -> NumberColumn:
        """Return a column without values, for a file that does not have this column."""
        nothing = pl.repeat(None, count, dtype=pl.Float64, eager=True)
        return cls(raw=nothing, values=nothing)

    @classmethod
    def from_texts(cls, texts: pl.Series, *, has_decimal_commas: bool = False) -> NumberColumn:
        """Read numbers that are written as texts; null for empty texts.

        With `has_decimal_commas`, ``0,5`` is 0.5.
        """
        stripped = texts.str.strip_chars()
        raw = stripped.set(stripped == "", None)
        with_points = raw.str.replace(",", ".", literal=True) if has_decimal_commas else raw
        text = pl.col("text")
        number_text = pl.when(text.str.contains(f"^(?:{NUMBER})$")).then(text)
        is_minus_infinity = text.str.to_lowercase().is_in(_MINUS_INFINITY)
        number = pl.coalesce(
            number_text.cast(pl.Float64, strict=False),
            pl.when(is_minus_infinity).then(float("-inf")),
        )
        table = with_points.alias("text").to_frame().select(number=number)
        return cls(raw=raw, values=table["number"])

    @classmethod
    def from_json(cls, values: list[Any]) -> NumberColumn:
        """Read numbers of JSON, and texts that are numbers; null for any other value."""
        types = set(map(type, values))
        if types <= {int, float} and not _has_huge_integer(values, types):
            return cls(raw=values, values=pl.Series(values, dtype=pl.Float64, strict=False))
        numbers = [_json_number(value) for value in values]
        return cls(raw=values, values=pl.Series(numbers, dtype=pl.Float64))

    @classmethod
    def from_series(cls, values: pl.Series) -> NumberColumn:
        """Read a column of Parquet: numbers, or texts that are numbers."""
        if values.dtype == pl.String:
            return cls.from_texts(values)
        if values.dtype.is_numeric():
            return cls(raw=values, values=values.cast(pl.Float64))
        nothing = pl.repeat(None, len(values), dtype=pl.Float64, eager=True)
        return cls(raw=values, values=nothing)


def _has_huge_integer(values: list[Any], types: set[type]) -> bool:
    """Tell whether a column of these types has a whole number of more than 64 bits."""
    return int in types and any(abs(value) > 2**63 - 1 for value in values if type(value) is int)


def _json_number(value: Any) -> float | None:
    """Return a number, or one that is written as text; None for anything else."""
    if type(value) in _NUMBER_TYPES:
        try:
            return float(value)
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    if value.strip().lower() in _MINUS_INFINITY:
        return float("-inf")
    try:
        return plain_float(value)
    except ValueError:
        return None


def json_ids(values: list[Any], noun: str) -> pl.Series:
    """Return ids of JSON as strings, null for missing and empty ones.

    `UserError` for a value that cannot be an id; `noun` names the values in it.
    """
    if set(map(type, values)) <= {str}:
        ids = text_series(values, noun)
    else:
        ids = id_texts(pl.Series(values, dtype=pl.Object), noun)
    return ids.set(ids == "", None)


def text_ids(texts: pl.Series) -> pl.Series:
    """Return ids that are written as texts, without blanks around them; null for empty ones."""
    ids = texts.str.strip_chars(" \t\r\n")
    return ids.set(ids == "", None)
