"""Check ids, scores and tables from files and Python objects, and convert them to our types.

All runs, judgments, labels and collections pass through here. pandas turns whole numbers into
floats if a value is missing, so the id 1.0 is read as ``1``. Truth values, dates, fractions and
missing values are no ids. In all functions, `noun` names the checked values in an error, such as
``qrels: column 'doc_id'``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import UserError, shorten

_INEXACT_FROM = 2**53
"""Number from which on two whole numbers may have the same float, so that an id would be lost."""
NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*"
"""Pattern of a number as files write it."""
_NUMBER = re.compile(rf"\s*{NUMBER}")
"""A number at the start of a text, after blanks."""


def require_frame(frame: Any, columns: Iterable[str], noun: str) -> pl.DataFrame:
    """Return a polars frame if it has these columns; `UserError` for anything else."""
    if not isinstance(frame, pl.DataFrame):
        hint = ": pl.from_pandas(…) makes one" if _is_pandas(frame) else ""
        raise UserError(f"{noun}: expected a polars frame, got {kind_of(frame)}{hint}")
    needed = list(columns)
    missing = [name for name in needed if name not in frame.columns]
    if missing and not frame.width:
        raise UserError(f"{noun}: expected columns {', '.join(needed)}, got an empty frame")
    if missing:
        present = ", ".join(frame.columns) or "none"
        raise UserError(
            f"{noun}: expected columns {', '.join(needed)}; missing: {', '.join(missing)} "
            f"(it has {shorten(present)})"
        )
    return frame


def require_mapping(value: Any, shape: str, noun: str) -> Mapping[Any, Any]:
    """Return a value if it is a mapping; `UserError` for anything else.

    `shape` describes the mapping for the message, such as ``{query: {document: score}}``.
    """
    if not isinstance(value, Mapping):
        raise UserError(f"{noun}: expected {shape}, got {kind_of(value)}: {shorten(value)}")
    return value


def require_text(value: Any, noun: str) -> str:
    """Return a value if it is a string; `UserError` for anything else."""
    if not isinstance(value, str):
        raise UserError(f"{noun}: expected a string, got {kind_of(value)}: {shorten(value)}")
    return value


def pandas_columns(frame: Any, names: Mapping[int, str]) -> pl.DataFrame:
    """Return columns of a pandas frame as a polars frame.

    `names` has the new name of each column by its position. Values that polars cannot read stay
    Python objects.
    """
    columns = [
        _pandas_column(frame.iloc[:, position]).alias(name) for position, name in names.items()
    ]
    return pl.DataFrame(columns)


def require_pandas(frame: Any, noun: str) -> list[str]:
    """Return the names of a pandas frame's columns; `UserError` for anything but a frame."""
    if not _is_pandas(frame) or not hasattr(frame, "columns"):
        hint = ": Run.from_frame takes it" if isinstance(frame, pl.DataFrame) else ""
        raise UserError(f"{noun}: expected a pandas frame, got {kind_of(frame)}{hint}")
    return list(map(str, frame.columns))


def _is_pandas(frame: Any) -> bool:
    """Tell whether a value is a table of pandas, without importing pandas."""
    library = sys.modules.get("pandas")
    return library is not None and isinstance(frame, library.DataFrame)


def _pandas_column(column: Any) -> pl.Series:
    """Return a column of pandas as one of polars, or of Python objects if polars refuses it."""
    try:
        return pl.Series(pl.from_pandas(column))
    except Exception:
        return pl.Series(column.tolist(), dtype=pl.Object)


def kind_of(value: Any) -> str:
    """Return the name of a value's type."""
    return "nothing" if value is None else type(value).__name__


def ids_of(values: Any, noun: str) -> pl.Series:
    """Return ids as strings; `UserError` if one is missing, empty, or cannot be an id.

    The values may be strings or whole numbers.
    """
    ids = id_texts(values if isinstance(values, pl.Series) else _series(values, noun), noun)
    if ids.null_count():
        raise UserError(f"{noun} has no value in row {ids.is_null().arg_max()}")
    # Without an empty id, the first row has the maximum.
    empty_row = (ids == "").arg_max()
    if empty_row is not None and ids[empty_row] == "":
        raise UserError(f"{noun} is empty in row {empty_row}")
    return ids


def _series(values: Any, noun: str) -> pl.Series:
    """Return a list of ids as a column; `UserError` for anything that is no list."""
    if (
        isinstance(values, str | bytes | Mapping)
        or _is_pandas(values)
        or not isinstance(values, Iterable)
    ):
        raise UserError(f"{noun}: expected a list of ids, got {kind_of(values)}: {shorten(values)}")
    elements = list(values)
    if set(map(type, elements)) <= {str}:
        return text_series(elements, noun)
    return pl.Series(elements, dtype=pl.Object)


def text_series(texts: list[Any], noun: str) -> pl.Series:
    """Return texts as a column; `UserError` for a lone surrogate, half of a character.

    JSON can write one as an escape.
    """
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise UserError(
            f"{noun}: {shorten(error.object)} is not text: it ends in half a character"
        ) from error


def id_texts(values: pl.Series, noun: str) -> pl.Series:
    """Return ids as strings, as `ids_of` does; missing ids are null and empty ones stay."""
    kind = values.dtype
    if kind == pl.String:
        return values
    if kind == pl.Object:
        return text_series([_id_text(value, noun) for value in values], noun).alias(values.name)
    if kind.is_integer() or kind == pl.Null or isinstance(kind, pl.Categorical | pl.Enum):
        return values.cast(pl.String)
    if kind.is_float():
        numbers = values.fill_nan(None)
        is_id = (numbers == numbers.round()) & (numbers.abs() < _INEXACT_FROM)
        wrong_numbers = numbers.filter(~is_id).drop_nulls()
        if not len(wrong_numbers):
            return numbers.cast(pl.Int64).cast(pl.String)
        raise _no_id(wrong_numbers[0], noun)
    if kind == pl.Binary:
        try:
            return values.cast(pl.String)
        except pl.exceptions.PolarsError as error:
            raise UserError(
                f"{noun}: expected ids as strings, got bytes that are not UTF-8"
            ) from error
    raise _no_id(values[0] if len(values) else kind, noun)


def _id_text(value: Any, noun: str) -> str | None:
    """Return an id as text; None where it is missing."""
    match value:
        case None:
            return None
        case str():
            return str(value)
        case bool() | np.bool_():
            raise _no_id(value, noun)
        case int() | np.integer():
            return str(int(value))
        case float() | np.floating():
            return _whole_text(float(value), noun)
    if kind_of(value) == "NAType":  # pandas.NA
        return None
    raise _no_id(value, noun)


def _whole_text(number: float, noun: str) -> str | None:
    """Return a float that is a whole number as text; None for NaN, which is a missing value."""
    if np.isnan(number):
        return None
    if not number.is_integer() or abs(number) >= _INEXACT_FROM:
        raise _no_id(number, noun)
    return str(int(number))


def _no_id(value: Any, noun: str) -> UserError:
    """Return the error for a value that is no id."""
    return UserError(
        f"{noun}: expected ids as strings or whole numbers, got {kind_of(value)}: {shorten(value)}"
    )


def texts_of(values: pl.Series, noun: str) -> pl.Series:
    """Return a column as texts, with numbers and dates written out."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise UserError(f"{noun}: expected strings, got {values.dtype}") from error


def scores_of(values: pl.Series) -> npt.NDArray[np.float64]:
    """Return scores as floats; NaN for dates, truth values and texts, even texts of numbers."""
    if values.dtype == pl.Object:
        return np.array([_score(score) for score in values], dtype=np.float64)
    if values.dtype.is_numeric() or values.dtype == pl.Null:
        return values.cast(pl.Float64).to_numpy()
    return np.full(len(values), np.nan)


def score_series(scores: list[Any]) -> pl.Series:
    """Return scores from Python objects as a column, which `scores_of` checks."""
    if set(map(type, scores)) <= {float}:
        return pl.Series(scores, dtype=pl.Float64)
    return pl.Series(scores, dtype=pl.Object)


def _score(score: Any) -> float:
    """Return a score as a number; NaN for anything else."""
    if isinstance(score, str | bytes | bool | np.bool_ | np.datetime64 | np.timedelta64):
        return np.nan
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def ranks_of(values: pl.Series, noun: str) -> npt.NDArray[np.float64]:
    """Return ranks as floats, NaN for missing ones; refuse a column of anything but numbers."""
    if not values.dtype.is_numeric() and values.dtype != pl.Null:
        raise UserError(f"{noun}: expected whole numbers in column 'rank', got {values.dtype}")
    ranks = values.cast(pl.Float64).to_numpy()
    if np.isinf(ranks).any():
        raise UserError(f"{noun}: expected whole numbers in column 'rank', got infinity")
    return ranks


def plain_float(text: str) -> float:
    """Read a number as files write it; `ValueError` for anything else.

    Python's `float` would also read ``1_0``, ``٣`` and ``infinity``.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"expected a number, got {text!r}")
    return float(text)
