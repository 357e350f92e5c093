"""JSON lines to a table: every line checked, unknown fields kept, memory bounded by a chunk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.files import decode_lines, line_chunks, nth_line
from ranktilt.data.formats.columns import json_series
from ranktilt.data.formats.json_text import parse_json, require_single_keys_in_lines
from ranktilt.data.texts import LARGE, aside
from ranktilt.errors import DataError, shorten

_ID = "_id"
SWAP = {"id": _ID, _ID: "id"}
"""A further column called as the field of the id is kept under the other name."""
_FIRST = ("id", "title", "text", "source", "origin")
STRINGS = ("title", "source", "origin")


def read_jsonl(path: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a BEIR corpus or query file, one JSON object a line; fields in `strings` must be strings where given.

    ``id`` and ``text`` first, then every other field in order of appearance (one named ``id`` as
    column ``_id``), see `json_series`; null where a line lacks it or gives null, NaN or an
    infinity. Texts of a large file are mapped.
    """
    if path.is_file() and path.stat().st_size >= LARGE:
        rest = list[pl.DataFrame]()
        text = aside(lambda: _texts_of(path, strings, rest))["text"]
        frame = stack(rest).with_columns(text).select("id", "text", pl.exclude("id", "text"))
    else:
        frame = stack(list(_frames(path, strings)))
    repeated = frame["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and frame["id"].n_unique() < frame.height:
        name = frame["id"][repeated]
        raise DataError(
            path, f"_id {name!r} occurs twice; ids must be unique", line=nth_line(path, repeated)
        )
    return frame


def _frames(path: Path, strings: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    for first_line, lines in line_chunks(path, reported=True):
        try:
            rows = [parse_json(line) for line in lines if line and not line.isspace()]
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
    path: Path, strings: tuple[str, ...], rest: list[pl.DataFrame]
) -> Iterator[dict[str, pl.Series]]:
    """Texts of a file chunk by chunk; what else it holds goes into `rest`."""
    rest.clear()
    for frame in _frames(path, strings):
        rest.append(frame.drop("text"))
        yield {"text": frame["text"]}


def _frame(rows: list[dict[str, Any]], strings: tuple[str, ...]) -> pl.DataFrame | None:
    """Table of a chunk's objects, or None where one is not what it should be."""
    ids = [row.pop(_ID, None) for row in rows]
    texts = [row.pop("text", None) for row in rows]
    kinds = set(map(type, ids))
    known = all(
        row[name] is None or type(row[name]) is str
        for name in strings
        for row in rows
        if name in row
    )
    if not (kinds <= {str, int} and set(map(type, texts)) <= {str} and known and "" not in ids):
        return None
    if int in kinds:
        ids = [str(i) for i in ids]
    extras = dict.fromkeys(name for row in rows for name in row)
    try:
        columns = {
            SWAP.get(name, name): _column([row.get(name) for row in rows]) for name in extras
        }
    except orjson.JSONEncodeError:  # nested too deeply
        return None
    return pl.DataFrame(
        {
            "id": pl.Series(ids, dtype=pl.String),
            "text": pl.Series(texts, dtype=pl.String),
            **columns,
        }
    )


def _column(values: list[Any]) -> pl.Series:
    if {type(v) for v in values} - {type(None)} == {
        int,
        float,
    }:  # raw, so that nothing depends on the chunks
        return pl.Series([None if v is None else orjson.dumps(v) for v in values], dtype=pl.Binary)
    return json_series("", values)


def stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Stack tables by column name, null where one lacks a column; columns of several types become raw JSON."""
    kinds: dict[str, set[pl.DataType]] = {}
    for frame in frames:
        for name, kind in frame.schema.items():
            kinds.setdefault(name, set()).add(kind)
    targets = {name: _common(types - {pl.Null()}) for name, types in kinds.items()}
    aligned = [
        frame.with_columns(_as(frame[name], targets[name]) for name in frame.columns)
        for frame in frames
    ]
    return pl.concat(aligned, how="diagonal", rechunk=False)


def _common(kinds: set[pl.DataType]) -> pl.DataType:
    return pl.Binary() if len(kinds) > 1 else next(iter(kinds), pl.String())


def _as(series: pl.Series, kind: pl.DataType) -> pl.Series:
    if series.dtype in (kind, pl.Null()):
        return series.cast(kind)
    return pl.Series(
        series.name, [None if v is None else orjson.dumps(v) for v in series], dtype=pl.Binary
    )


def _first_fault(
    path: Path, first_line: int, lines: list[bytes], strings: tuple[str, ...]
) -> DataError:
    """Read a chunk that failed line by line, to name the line."""
    for number, line in enumerate(lines, start=first_line):
        if not line or line.isspace():
            continue
        text = decode_lines(path, number, [line])
        if message := _fault(json_object(path, number, line), strings):
            return DataError(path, f"{message}: {shorten(text)}", line=number)
    return DataError(path, "cannot be read as JSON objects with _id and text")


def _fault(row: dict[str, Any], strings: tuple[str, ...]) -> str:
    """Say what is wrong with a line; empty where nothing is."""
    for name in (_ID, "text"):
        if row.get(name) is None:
            return f"expected the fields _id and text, {name} is missing"
    if type(row[_ID]) not in (str, int) or row[_ID] == "":
        return "expected _id to be a string that is not empty"
    strange = next(
        (name for name in ("text", *strings) if not isinstance(row.get(name), str | None)), None
    )
    return (
        ""
        if strange is None
        else f"expected {strange} to be a string, got {type(row[strange]).__name__}"
    )


def json_objects(path: Path, *, reported: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a file of one JSON object a line: its number, and the object; blank lines hold none."""
    for first_line, lines in line_chunks(path, reported=reported):
        for number, line in enumerate(lines, start=first_line):
            if line and not line.isspace():
                yield number, json_object(path, number, line)


def json_object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Parse a line that holds an object; `DataError` says what it holds instead."""
    try:
        row = parse_json(line)
        got = type(row).__name__
    except orjson.JSONDecodeError as error:
        row, got = None, f"broken JSON ({error})"
    if isinstance(row, dict):
        require_single_keys_in_lines(path, [line], [row], first_line=number)
        return row
    text = shorten(line[:200].decode(errors="replace"))
    raise DataError(path, f"expected one JSON object, got {got}: {text}", line=number)


def to_jsonl(frame: pl.DataFrame) -> bytes:
    """Write a table as JSON lines, the inverse of `read_jsonl`; fields have one order, and nulls are left out."""
    rest = sorted(set(frame.columns) - set(_FIRST))
    frame = frame.select(*(name for name in _FIRST if name in frame.columns), *rest)
    names = [SWAP.get(name, name) for name in frame.columns]
    columns = [
        [None if v is None else orjson.Fragment(v) for v in s]
        if s.dtype == pl.Binary
        else s.to_list()
        for s in frame.iter_columns()
    ]
    out = []
    for row in zip(*columns, strict=True):
        item = {n: v for n, v in zip(names, row, strict=True) if v is not None}
        out.append(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(out)
