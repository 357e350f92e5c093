"""Cells of files: ids and numbers as files write them, whatever their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.data.formats.ids import NUMBER, id_texts, plain_float, text_series

_BEYOND = ("-inf", "-infinity")
"""How programs print minus infinity, the logarithm of zero, as a score below all others."""
_WHOLE = 2**31
"""Smallest number that does not fit into 32 bits."""
_NUMBERS = (int, float)
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
        is_whole = (number == number.round()) & (number.abs() < _WHOLE)
        return frame.select(pl.when(is_whole).then(number).cast(pl.Int64))["number"]

    @classmethod
    def none(cls, count: int) -> NumberColumn:
        """Return a column without values, for a file that does not have this column."""
        nothing = pl.repeat(None, count, dtype=pl.Float64, eager=True)
        return cls(raw=nothing, values=nothing)

    @classmethod
    def from_texts(cls, texts: pl.Series, *, has_decimal_commas: bool = False) -> NumberColumn:
        """Read numbers that are written as texts; empty ones are null."""
        stripped = texts.str.strip_chars()
        filled = stripped.set(stripped == "", None)
        plain = filled.str.replace(",", ".", literal=True) if has_decimal_commas else filled
        frame = plain.alias("text").to_frame()
        text = pl.col("text")
        number = pl.when(text.str.contains(f"^(?:{NUMBER})$")).then(text)
        below = pl.when(text.str.to_lowercase().is_in(_BEYOND)).then(float("-inf"))
        values = frame.select(number=pl.coalesce(number.cast(pl.Float64, strict=False), below))[
            "number"
        ]
        return cls(raw=filled, values=values)

    @classmethod
    def from_json(cls, values: list[Any]) -> NumberColumn:
        """Read numbers of JSON, and texts that are numbers."""
        kinds = set(map(type, values))
        if kinds <= {int, float} and not _has_huge(values, kinds):
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


def _has_huge(values: list[Any], kinds: set[type]) -> bool:
    """Tell whether a column has a whole number of more than 64 bits."""
    return int in kinds and any(abs(value) > 2**63 - 1 for value in values if type(value) is int)


def _json_number(value: Any) -> float | None:
    """Return a number, or one that is written as text; None for anything else."""
    if type(value) in _NUMBERS:
        try:
            return float(value)
        except OverflowError:
            return None
    if not isinstance(value, str):
        return None
    if value.strip().lower() in _BEYOND:
        return float("-inf")
    try:
        return plain_float(value)
    except ValueError:
        return None


def json_ids(values: list[Any], noun: str) -> pl.Series:
    """Return ids of JSON as strings, null where there is none; `UserError` for what is no id."""
    if set(map(type, values)) <= {str}:
        ids = text_series(values, noun)
    else:
        ids = id_texts(pl.Series(values, dtype=pl.Object), noun)
    return ids.set(ids == "", None)


def text_ids(texts: pl.Series) -> pl.Series:
    """Return ids that are written as texts, null where there is none."""
    ids = texts.str.strip_chars(" \t\r\n")
    return ids.set(ids == "", None)
