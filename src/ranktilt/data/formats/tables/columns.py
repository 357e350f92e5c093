"""Make columns of a table from values of JSON, and from grades.

A column has one type. JSON may mix several in a field, which is then kept as raw JSON.
"""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl

_LINE_BREAKS = r"[\t\r\n\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]+"
"""Tabs, and characters that some programs read as the end of a line."""
SCALARS: dict[type, type[pl.DataType]] = {
    str: pl.String,
    bool: pl.Boolean,
    int: pl.Int64,
    float: pl.Float64,
}
"""Column type of the values of a Python type."""


def whole_or_fractions(grades: pl.Series) -> pl.Series:
    """Return grades as Int32 if all are whole numbers, else as Float64.

    Null for a grade that is no finite number, or does not fit into 32 bits.
    """
    numbers = grades.cast(pl.Float64, strict=False)
    integers = numbers.cast(pl.Int32, strict=False)
    if (integers == numbers).all() and integers.null_count() == 0:
        return integers
    is_in_range = numbers.is_finite() & numbers.is_between(-(2**31), 2**31 - 1)
    table = numbers.to_frame("grade").select(pl.when(is_in_range).then("grade"))
    return table["grade"].alias(grades.name)


def json_series(name: str, values: list[Any]) -> pl.Series:
    """Make a column of values of JSON.

    Its type is that of the values if all are strings, numbers or truth values; else it is Binary
    and holds raw JSON.
    """
    types = {type(value) for value in values} - {type(None)}
    if not types:
        return pl.Series(name, values, dtype=pl.Null)
    if types == {int, float}:
        numbers = [None if value is None else float(value) for value in values]
        return pl.Series(name, numbers, dtype=pl.Float64)
    only_type = types.pop() if len(types) == 1 else None
    fits = only_type is not int or all(
        value is None or -(2**63) <= value < 2**63 for value in values
    )
    if only_type in SCALARS and fits:
        return pl.Series(name, values, dtype=SCALARS[only_type])
    documents = [None if value is None else orjson.dumps(value) for value in values]
    return pl.Series(name, documents, dtype=pl.Binary)


def one_line(texts: pl.Series) -> pl.Series:
    """Return texts without tabs and line ends, as a tab-separated file needs them."""
    return texts.str.replace_all(_LINE_BREAKS, " ")
