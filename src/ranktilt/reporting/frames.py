"""A result's rows as data frames, with every number as the result's JSON file holds it.

The frames are made from the file's content, so that no kind of result needs code of its own here.
The file of a result is a JSON object. Each of its keys that holds a list of objects is a *part*,
and the objects are the part's rows. Objects nested in a row become columns of the row; lists of
objects nested in a row become another part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.errors import unknown_name

_NO_ROWS = (
    "spec",
    "limits",
    "notes",
    "findings",
    "top_results",
    "repeated",
    "verdicts",
    "next_steps",
    "effects",
    "audits",
)
"""Keys of a file that are no parts: options and notes, ranked lists, and what other keys repeat."""

_BEHIND_WORDS = (
    "asked_limit",
    "checked_tilt",
    "checked_change",
    "is_on_common_queries",
    "control_change",
)
"""Keys of a row that are left out, because a column says the same in words."""
_QUARTILES = ("quartile_1", "median", "quartile_3")
"""Columns of the key ``quartiles``, the only list of numbers that becomes columns."""


def frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return every part of a result by its name.

    A nested part is named after the part above it too (``judges.orders``), a nested column after
    its key (``share_low``). What is not known is null.
    """
    if isinstance(result, SourceAudits):
        return _frames_of_sources(result)
    return _frames_of_file(result)


def _frames_of_sources(result: SourceAudits) -> dict[str, pl.DataFrame]:
    """Return the parts of all audits, with each row's source, and those of the result itself.

    A source is who wrote the documents that one of the audits compares with the reference, such as
    human text.
    """
    frames_of: dict[str, list[pl.DataFrame]] = {}
    for source, audit in zip(result.sources, result.audits, strict=True):
        for part, rows in _frames_of_file(audit).items():
            with_source = rows.with_columns(compared_source=pl.lit(source.source))
            frames_of.setdefault(part, []).append(with_source)
    of_audits = {
        part: pl.concat(part_frames, how="diagonal_relaxed")
        for part, part_frames in frames_of.items()
    }
    return of_audits | _frames_of_file(result)


def _frames_of_file(result: Any) -> dict[str, pl.DataFrame]:
    """Return the parts of a result's file and, of an audit, its means by group."""
    frames_of: dict[str, pl.DataFrame] = {}
    if hasattr(result, "by_group"):
        frames_of["means"] = result.by_group().fill_nan(None)
    for part, rows in _parts(orjson.loads(result.to_json())):
        frames_of[part] = pl.DataFrame(rows, infer_schema_length=None)
    return frames_of


def frame(result: Any, part: str = "") -> pl.DataFrame:
    """Return one part; by default all parts below each other, with a column ``part``."""
    parts = frames(result)
    if part and part not in parts:
        raise unknown_name("part of the result", part, parts)
    if part:
        return parts[part]
    if not parts:
        return pl.DataFrame()
    return pl.concat(
        [rows.select(pl.lit(name).alias("part"), pl.all()) for name, rows in parts.items()],
        how="diagonal_relaxed",
    )


def _parts(
    content: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name and the rows of every part; `prefix` has the names of the parts above."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if key in _NO_ROWS:
            continue
        if _is_rows(value):
            yield name, [_flattened(row) for row in value]
            yield from _parts(_nested_parts(value, name), f"{name}.")
        elif isinstance(value, Mapping):
            inner_parts = {key: rows for key, rows in value.items() if _is_rows(rows)}
            yield from _parts(inner_parts, f"{name}.")
            # An object without lists is a part with a single row.
            if not any(isinstance(field, list) for field in value.values()):
                yield name, [_flattened(value)]


def _nested_parts(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the lists of objects that are nested in the rows of a part, by their key.

    A nested row also has the fields of the row that it is nested in.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for key, inner_rows in row.items():
            if _is_rows(inner_rows):
                merged = [_merged(row, inner_row, name) for inner_row in inner_rows]
                parts.setdefault(key, []).extend(merged)
    return parts


def _is_rows(value: Any) -> bool:
    """Tell whether a value is a list of objects."""
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _merged(row: Mapping[str, Any], inner_row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Merge a row of the part `name` with a row that is nested in it.

    Where both have a field, that of the outer row gets the name of its part as a prefix.
    """
    outer = {
        f"{name}.{key}" if key in inner_row else key: value
        for key, value in row.items()
        if not _is_rows(value)
    }
    return {**outer, **inner_row}


def _flattened(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row to a single level of columns.

    A list of texts becomes one text; lists of numbers are left out, except quartiles.
    """
    columns: dict[str, Any] = {}
    for key, value in row.items():
        if key in _BEHIND_WORDS:
            continue
        if isinstance(value, Mapping):
            columns |= _prefixed(key, _flattened(value))
        elif not isinstance(value, list):
            columns[key] = value
        elif key == "quartiles":
            columns |= dict(zip(_QUARTILES, value, strict=True))
        elif value and all(isinstance(text, str) for text in value):
            columns[key] = "; ".join(value)
    return columns


def _prefixed(key: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name nested columns after their key, such as ``share_low``; ``value`` becomes ``share``."""
    return {key if name == "value" else f"{key}_{name}": value for name, value in columns.items()}
