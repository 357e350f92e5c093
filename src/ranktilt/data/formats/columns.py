"""Columns of a table: values read from JSON, and grades."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl

_BREAKS = r"[\t\r\n\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]+"
SCALARS: dict[type, type[pl.DataType]] = {
    str: pl.String,
    bool: pl.Boolean,
    int: pl.Int64,
    float: pl.Float64,
}


def whole_or_fractions(grades: pl.Series) -> pl.Series:
    """Grades as Int32 where all are whole numbers, else as Float64; null where one is neither, or beyond 32 bits."""
    numbers = grades.cast(pl.Float64, strict=False)
    whole = numbers.cast(pl.Int32, strict=False)
    if (whole == numbers).all() and whole.null_count() == 0:
        return whole
    inside = numbers.is_finite() & numbers.is_between(-(2**31), 2**31 - 1)
    return (
        numbers.to_frame("grade").select(pl.when(inside).then("grade"))["grade"].alias(grades.name)
    )


def json_series(name: str, values: list[Any]) -> pl.Series:
    """Make a column of values read from JSON: strings, numbers or truth values if all are; else raw JSON (Binary)."""
    kinds = {type(v) for v in values} - {type(None)}
    if not kinds:
        return pl.Series(name, values, dtype=pl.Null)
    if kinds == {int, float}:
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64)
    kind = kinds.pop() if len(kinds) == 1 else None
    whole = kind is not int or all(v is None or -(2**63) <= v < 2**63 for v in values)
    if kind in SCALARS and whole:
        return pl.Series(name, values, dtype=SCALARS[kind])
    return pl.Series(
        name, [None if v is None else orjson.dumps(v) for v in values], dtype=pl.Binary
    )


def one_line(texts: pl.Series) -> pl.Series:
    """Return texts without tabs and line ends, as a tab-separated file needs them."""
    return texts.str.replace_all(_BREAKS, " ")
