"""A result's rows as data frames: every number as its file holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.errors import unknown

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
"""Keys of a file that are no rows: facts about the run, ranked lists, and repetitions."""

_BEHIND_WORDS = (
    "asked_limit",
    "checked_tilt",
    "checked_change",
    "is_on_common_queries",
    "control_change",
)
"""Numbers behind the reasons of a gate and of controls; the reasons have columns in words."""
_QUARTILES = ("quartile_1", "median", "quartile_3")
"""Columns of a distribution's quartiles, the only list of numbers that becomes columns."""


def frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return every part of a result that has rows, by name; nested parts have both names.

    Columns of nested values have both names too (``share_low``); what is not known is null.
    """
    if isinstance(result, SourceAudits):
        return _frames_of_sources(result)
    return _own_frames(result)


def _frames_of_sources(result: SourceAudits) -> dict[str, pl.DataFrame]:
    """Return the parts of all audits, each with a column that names the source, and the trends."""
    tables: dict[str, list[pl.DataFrame]] = {}
    for source, audited in zip(result.sources, result.audits, strict=True):
        for name, rows in _own_frames(audited).items():
            labelled = rows.with_columns(compared_source=pl.lit(source.source))
            tables.setdefault(name, []).append(labelled)
    joined = {name: pl.concat(parts, how="diagonal_relaxed") for name, parts in tables.items()}
    return joined | _own_frames(result)


def _own_frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return the tables that a result's file holds, and the means of an audit."""
    tables: dict[str, pl.DataFrame] = {}
    if hasattr(result, "by_group"):
        tables["means"] = result.by_group().fill_nan(None)
    for name, rows in _parts(orjson.loads(result.to_json())):
        tables[name] = pl.DataFrame(rows, infer_schema_length=None)
    return tables


def frame(result: Any, part: str = "") -> pl.DataFrame:
    """Return one part, or all of them below each other, with a column that names the part."""
    parts = frames(result)
    if part and part not in parts:
        raise unknown("part of the result", part, parts)
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
    """Yield the rows of every part, with the names of the parts above as a prefix."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if key in _NO_ROWS:
            continue
        if _is_rows(value):
            yield name, [_flat(row) for row in value]
            yield from _parts(_rows_of_rows(value, name), f"{name}.")
        elif isinstance(value, Mapping):
            inner_parts = {key: rows for key, rows in value.items() if _is_rows(rows)}
            yield from _parts(inner_parts, f"{name}.")
            if not any(isinstance(field, list) for field in value.values()):
                yield name, [_flat(value)]


def _rows_of_rows(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the parts that are nested in rows, by their key."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for key, inner_rows in row.items():
            if _is_rows(inner_rows):
                joined = [_joined(row, inner_row, name) for inner_row in inner_rows]
                parts.setdefault(key, []).extend(joined)
    return parts


def _is_rows(value: Any) -> bool:
    """Tell whether a value is a list of objects."""
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _joined(row: Mapping[str, Any], inner_row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Join a row with a row that is nested in it.

    Where both have a column, the outer one's gets the name of its part as a prefix.
    """
    outer = {
        f"{name}.{key}" if key in inner_row else key: value
        for key, value in row.items()
        if not _is_rows(value)
    }
    return {**outer, **inner_row}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row to one level of columns.

    Nested values have both names, texts are joined, other lists of numbers are left out.
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key in _BEHIND_WORDS:
            continue
        if isinstance(value, Mapping):
            flat |= _prefixed(key, _flat(value))
        elif not isinstance(value, list):
            flat[key] = value
        elif key == "quartiles":
            flat |= dict(zip(_QUARTILES, value, strict=True))
        elif value and all(isinstance(text, str) for text in value):
            flat[key] = "; ".join(value)
    return flat


def _prefixed(key: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name nested columns after their key; a nested ``value`` has the name of the key itself."""
    return {key if name == "value" else f"{key}_{name}": value for name, value in columns.items()}
