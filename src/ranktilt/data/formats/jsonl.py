"""Read files of JSON lines as tables of documents or queries, and write such files.

A file is read a chunk of lines at a time. Every line is checked, and fields of any name are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.files import decode_lines, line_chunks, nth_line
from ranktilt.data.formats.json_values import parse_with_null, require_single_keys_in_lines
from ranktilt.data.formats.tables.columns import json_series
from ranktilt.data.texts import LARGE_BYTES, mapped_texts
from ranktilt.errors import DataError, shorten

_ID = "_id"
"""Field of a document's id."""
SWAPPED_NAMES = {"id": _ID, _ID: "id"}
"""Names of two columns by the names of their fields, and the other way round.

BEIR's field ``_id`` is our column ``id``. A file may also have a field ``id``, which is kept as
column ``_id``.
"""
_FIRST_COLUMNS = ("id", "title", "text", "source", "origin")
"""Columns whose fields come first in a written line."""
STRINGS = ("title", "source", "origin")
"""Fields of documents that must hold texts."""


def read_jsonl(path: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a BEIR corpus or query file, one JSON object per line.

    Columns are ``id`` and ``text``, then every other field in the order of appearance (a field
    ``id`` as column ``_id``), with the types of `json_series`; null if a line lacks the field, or
    has null, NaN or an infinity. Fields in `strings` must be strings. Texts of a large file are
    mapped into memory from a file.
    """
    if path.is_file() and path.stat().st_size >= LARGE_BYTES:
        frames_without_texts = list[pl.DataFrame]()
        text = mapped_texts(lambda: _texts_of(path, strings, frames_without_texts))["text"]
        frame = stack(frames_without_texts).with_columns(text)
        frame = frame.select("id", "text", pl.exclude("id", "text"))
    else:
        frame = stack(list(_frames(path, strings)))
    # Without a repeated id, the first row has the maximum; `n_unique` tells the two cases apart.
    repeated = frame["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and frame["id"].n_unique() < frame.height:
        message = f"_id {frame['id'][repeated]!r} occurs twice; ids must be unique"
        raise DataError(path, message, line=nth_line(path, repeated))
    return frame


def _frames(path: Path, strings: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file as tables, some lines at a time."""
    for first_line, lines in line_chunks(path, reported=True):
        try:
            rows = [parse_with_null(line) for line in lines if line and not line.isspace()]
        except orjson.JSONDecodeError:
            raise _first_fault(path, first_line, lines, strings) from None
        if not all(isinstance(row, dict) for row in rows):
            raise _first_fault(path, first_line, lines, strings)
        require_single_keys_in_lines(path, lines, rows, first_line=first_line)
        frame = _frame(rows, strings)
        if frame is None:
            raise _first_fault(path, first_line, lines, strings)
        yield frame


def _texts_of(
    path: Path, strings: tuple[str, ...], frames_without_texts: list[pl.DataFrame]
) -> Iterator[dict[str, pl.Series]]:
    """Yield the texts of a file chunk by chunk, and append its other fields to a list."""
    frames_without_texts.clear()
    for frame in _frames(path, strings):
        frames_without_texts.append(frame.drop("text"))
        yield {"text": frame["text"]}


def _frame(rows: list[dict[str, Any]], strings: tuple[str, ...]) -> pl.DataFrame | None:
    """Make a table of a chunk's objects; None if one of them has a fault.

    Most of the time of loading is spent here. Whole columns are therefore checked at once, and
    `_first_fault` looks for the line afterwards. Id and text are removed from the objects.
    """
    ids = [row.pop(_ID, None) for row in rows]
    texts = [row.pop("text", None) for row in rows]
    kinds = set(map(type, ids))
    if not kinds <= {str, int} or "" in ids or not set(map(type, texts)) <= {str}:
        return None
    if int in kinds:
        ids = [str(id) for id in ids]
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {"id": pl.Series(ids, dtype=pl.String), "text": pl.Series(texts, dtype=pl.String)}
    for name in names:
        values = [row.get(name) for row in rows]
        if name in strings and not set(map(type, values)) <= {str, type(None)}:
            return None
        try:
            columns[SWAPPED_NAMES.get(name, name)] = _column(values)
        except orjson.JSONEncodeError:  # nested too deeply
            return None
    return pl.DataFrame(columns)


def _column(values: list[Any]) -> pl.Series:
    """Return values as a column; raw JSON where their type is not clear."""
    if {type(value) for value in values} - {type(None)} == {int, float}:
        # Raw JSON, so that the type of a column does not depend on where chunks end.
        documents = [None if value is None else orjson.dumps(value) for value in values]
        return pl.Series(documents, dtype=pl.Binary)
    return json_series("", values)


def stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the rows of all tables below each other, by the names of their columns.

    A value is null if its table lacks the column. A column that has several types becomes raw JSON:
    each value is the bytes of its JSON.
    """
    types_of_columns: dict[str, set[pl.DataType]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            types_of_columns.setdefault(name, set()).add(dtype)
    common_types = {
        name: _common_type(types - {pl.Null()}) for name, types in types_of_columns.items()
    }
    converted = list[pl.DataFrame]()
    for frame in frames:
        columns = [_with_type(frame[name], common_types[name]) for name in frame.columns]
        converted.append(frame.with_columns(columns))
    return pl.concat(converted, how="diagonal", rechunk=False)


def _common_type(types: set[pl.DataType]) -> pl.DataType:
    """Return the type of a column that has these types: the only one, or bytes of raw JSON."""
    return pl.Binary() if len(types) > 1 else next(iter(types), pl.String())


def _with_type(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Return a column in its common type: as it is, or as bytes of raw JSON."""
    if series.dtype in (dtype, pl.Null()):
        return series.cast(dtype)
    documents = [None if value is None else orjson.dumps(value) for value in series]
    return pl.Series(series.name, documents, dtype=pl.Binary)


def _first_fault(
    path: Path, first_line: int, lines: list[bytes], strings: tuple[str, ...]
) -> DataError:
    """Return the error for a chunk with a fault, which is read line by line to name the line."""
    for number, line in enumerate(lines, start=first_line):
        if not line or line.isspace():
            continue
        text = decode_lines(path, number, [line])
        message = _fault(json_object(path, number, line), strings)
        if message:
            return DataError(path, f"{message}: {shorten(text)}", line=number)
    return DataError(path, "cannot be read as JSON objects with _id and text")


def _fault(row: dict[str, Any], strings: tuple[str, ...]) -> str:
    """Describe the fault of a line; empty if it has none."""
    for name in (_ID, "text"):
        if row.get(name) is None:
            return f"expected the fields _id and text; {name} is missing"
    if type(row[_ID]) not in (str, int) or row[_ID] == "":
        return "expected _id to be a string that is not empty"
    for name in ("text", *strings):
        if not isinstance(row.get(name), str | None):
            return f"expected {name} to be a string, got {type(row[name]).__name__}"
    return ""


def json_objects(path: Path, *, reported: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank.

    `reported` says whether a progress bar is shown.
    """
    for first_line, lines in line_chunks(path, reported=reported):
        for number, line in enumerate(lines, start=first_line):
            if line and not line.isspace():
                yield number, json_object(path, number, line)


def json_object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Parse the line with this number; `DataError` if it is anything but one object."""
    try:
        row = parse_with_null(line)
        came = type(row).__name__
    except orjson.JSONDecodeError as error:
        row, came = None, f"broken JSON ({error})"
    if isinstance(row, dict):
        require_single_keys_in_lines(path, [line], [row], first_line=number)
        return row
    text = shorten(line[:200].decode(errors="replace"))
    raise DataError(path, f"expected one JSON object, got {came}: {text}", line=number)


def to_jsonl(frame: pl.DataFrame) -> bytes:
    """Write a table as JSON lines, the inverse of `read_jsonl`.

    Fields always have the same order, and nulls are left out.
    """
    first_columns = [name for name in _FIRST_COLUMNS if name in frame.columns]
    further_columns = sorted(set(frame.columns) - set(_FIRST_COLUMNS))
    frame = frame.select(*first_columns, *further_columns)
    names = [SWAPPED_NAMES.get(name, name) for name in frame.columns]
    columns = [_json_values(column) for column in frame.iter_columns()]
    lines = list[bytes]()
    for row in zip(*columns, strict=True):
        fields = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        lines.append(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _json_values(column: pl.Series) -> list[Any]:
    """Return values for orjson to write; Binary is JSON already."""
    if column.dtype != pl.Binary:
        return column.to_list()
    return [None if value is None else orjson.Fragment(value) for value in column]
