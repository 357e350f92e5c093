"""JSON lines to a table: every line checked, unknown fields kept, memory bounded by a chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.errors import DataError, shorten
from ranktilt.files import bad_utf8, line_chunks, not_utf8
from ranktilt.progress import report

_ID = "_id"
_SCALARS: dict[type, type[pl.DataType]] = {str: pl.String, bool: pl.Boolean, int: pl.Int64, float: pl.Float64}
_KNOWN = ("title", "source", "origin")


def read_jsonl(path: Path) -> pl.DataFrame:
    """Read a BEIR corpus or query file.

    Parameters
    ----------
    path : Path
        One JSON object a line with ``_id`` and ``text``; plain or gzip.

    Returns
    -------
    polars.DataFrame
        ``id`` and ``text`` first, then every other field in order of appearance. A field is a column of
        its own type where all its values are strings, whole numbers, numbers or truth values, and a
        Binary column of raw JSON otherwise. A field that a line lacks, or gives as null, is null.

    Raises
    ------
    DataError
        Naming the line: broken JSON, no object, ``_id`` or ``text`` missing or of another type,
        invalid UTF-8, or an id that came before.
    """
    size = path.stat().st_size if path.is_file() else 0
    frames = []
    for first_line, offset, lines in line_chunks(path):
        frames.append(_frame(path, first_line, offset, lines))
        report(f"reading {path.name}", min(offset, size), size)
    report(f"reading {path.name}", size, size)
    frame = stack(frames)
    repeated = frame["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and frame["id"].n_unique() < frame.height:
        name = frame["id"][repeated]
        raise DataError(path, f"_id {name!r} came before; ids must be unique", line=_nth_line(path, repeated))
    return frame


def _frame(path: Path, first_line: int, offset: int, lines: list[bytes]) -> pl.DataFrame:
    try:
        rows = [orjson.loads(line) for line in lines if line and not line.isspace()]
        ids = [row.pop(_ID, None) for row in rows]
        texts = [row.pop("text", None) for row in rows]
    except (orjson.JSONDecodeError, AttributeError, TypeError) as error:
        raise _first_fault(path, first_line, offset, lines) from error
    kinds = set(map(type, ids))
    known = all(row[name] is None or type(row[name]) is str for name in _KNOWN for row in rows if name in row)
    if not (kinds <= {str, int} and set(map(type, texts)) <= {str} and known and "" not in ids):
        raise _first_fault(path, first_line, offset, lines)
    if int in kinds:
        ids = [str(i) for i in ids]
    extras = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _series([row.get(name) for row in rows]) for name in extras}
    base = {"id": pl.Series(ids, dtype=pl.String), "text": pl.Series(texts, dtype=pl.String)}
    return pl.DataFrame({**base, **columns})


def _series(values: list[Any]) -> pl.Series:
    kinds = {type(v) for v in values} - {type(None)}
    if not kinds:
        return pl.Series(values, dtype=pl.Null)
    if kinds == {int, float}:
        return pl.Series(values, dtype=pl.Float64)
    kind = kinds.pop() if len(kinds) == 1 else None
    whole = kind is not int or all(v is None or -(2**63) <= v < 2**63 for v in values)
    if kind in _SCALARS and whole:
        return pl.Series(values, dtype=_SCALARS[kind])
    return pl.Series([None if v is None else orjson.dumps(v) for v in values], dtype=pl.Binary)


def stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Stack tables by column name; where a column's type differs, all take the type that holds them all.

    Parameters
    ----------
    frames : list of polars.DataFrame
        As `read_jsonl` makes them.

    Returns
    -------
    polars.DataFrame
        Whole and fractional numbers become fractional ones; any other mixture becomes raw JSON.
    """
    kinds: dict[str, set[pl.DataType]] = {}
    for frame in frames:
        for name, kind in frame.schema.items():
            kinds.setdefault(name, set()).add(kind)
    targets = {name: _common(types - {pl.Null()}) for name, types in kinds.items()}
    aligned = [
        frame.with_columns(_as(frame[name], targets[name]) for name in frame.columns if name in targets)
        for frame in frames
    ]
    return pl.concat(aligned, how="diagonal", rechunk=False)


def _common(kinds: set[pl.DataType]) -> pl.DataType:
    if len(kinds) <= 1:
        return next(iter(kinds), pl.String())
    return pl.Float64() if kinds == {pl.Int64(), pl.Float64()} else pl.Binary()


def _as(series: pl.Series, kind: pl.DataType) -> pl.Series:
    if series.dtype == kind:
        return series
    if kind == pl.Binary() and series.dtype != pl.Null():
        raw = [None if v is None else orjson.dumps(v) for v in series]
        return pl.Series(series.name, raw, dtype=pl.Binary)
    return series.cast(kind)


def _first_fault(path: Path, first_line: int, offset: int, lines: list[bytes]) -> DataError:
    """Read a chunk that failed line by line, to name the line."""
    for number, line in enumerate(lines, start=first_line):
        if not line or line.isspace():
            continue
        before = lines[: number - first_line]
        index, column = bad_utf8([line])
        if index == 0:
            return not_utf8(path, number, offset, before, column)
        try:
            message = _fault(orjson.loads(line), line.decode())
        except orjson.JSONDecodeError as error:
            message = f"expected one JSON object, got broken JSON ({error}): {shorten(line.decode())}"
        if message:
            return DataError(path, message, line=number)
    return DataError(path, "expected JSON objects with _id and text")


def _fault(row: Any, line: str) -> str | None:
    if not isinstance(row, dict):
        return f"expected one JSON object, got {type(row).__name__}: {shorten(line)}"
    for name in (_ID, "text"):
        if row.get(name) is None:
            return f"expected the fields _id and text, {name} is missing: {shorten(line)}"
    if type(row[_ID]) not in (str, int) or row[_ID] == "":
        return f"expected _id to be a string that is not empty, got {shorten(repr(row[_ID]))}"
    for name in ("text", *_KNOWN):
        value = row.get(name)
        if value is not None and type(value) is not str:
            return f"expected {name} to be a string, got {type(value).__name__}: {shorten(line)}"
    return None


def _nth_line(path: Path, row: int) -> int:
    """1-based line number of the n-th line (from 0) that is not blank."""
    seen = 0
    for first, _, lines in line_chunks(path):
        for number, line in enumerate(lines, start=first):
            if line and not line.isspace():
                if seen == row:
                    return number
                seen += 1
    return seen


def to_jsonl(frame: pl.DataFrame, *, always: tuple[str, ...] = ()) -> bytes:
    """Write a table as JSON lines, the inverse of `read_jsonl`.

    Parameters
    ----------
    frame : polars.DataFrame
        With ``id`` and ``text``; Binary columns hold raw JSON.
    always : tuple of str
        Columns to write even where they are empty strings.

    Returns
    -------
    bytes
        One object a line; nulls are left out.
    """
    names = [_ID if name == "id" else name for name in frame.columns]
    columns = [
        [None if v is None else orjson.Fragment(v) for v in s] if s.dtype == pl.Binary else s.to_list()
        for s in frame.iter_columns()
    ]
    keep = [name in always for name in names]
    out = []
    for row in zip(*columns, strict=True):
        item = {n: v for n, v, k in zip(names, row, keep, strict=True) if k or v is not None}
        out.append(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(out)
