"""A result's rows as data frames: every number as its file holds it, for CSV and for those who go on computing."""

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
"""What a file says of the run, its ranked lists, and what it says once more for those who read it with other tools."""

_BEHIND_WORDS = (
    "asked_limit",
    "checked_tilt",
    "checked_change",
    "is_on_common_queries",
    "control_change",
)
"""What the reasons of a gate and of controls are made of, which have columns in words."""
_QUARTILES = ("quartile_1", "median", "quartile_3")
"""Columns of a distribution's quartiles, the only list of numbers that becomes columns."""


def frames(result: Any) -> dict[str, pl.DataFrame]:
    """Return every part of a result that has rows, by name; the rows of a part of a part have both names.

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
    rows = dict(_parts(orjson.loads(result.to_json())))
    means = {"means": result.by_group().fill_nan(None)} if hasattr(result, "by_group") else {}
    return means | {
        name: pl.DataFrame(some, infer_schema_length=None) for name, some in rows.items()
    }


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
    content: Mapping[str, Any], front: str = ""
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for key, value in content.items():
        name = f"{front}{key}"
        if key in _NO_ROWS:
            continue
        if _is_rows(value):
            yield name, [_flat(row) for row in value]
            below = dict.fromkeys(
                key for row in value for key, rows in row.items() if _is_rows(rows)
            )
            yield from _parts(
                {
                    key: [_beside(row, one, name) for row in value for one in row[key]]
                    for key in below
                },
                f"{name}.",
            )
        elif isinstance(value, Mapping):
            yield from _parts(
                {key: rows for key, rows in value.items() if _is_rows(rows)}, f"{name}."
            )
            if not any(isinstance(below, list) for below in value.values()):
                yield name, [_flat(value)]


def _is_rows(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _beside(row: Mapping[str, Any], below: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row of a row, with what the upper one says; where both have a column, the upper one's is named after it."""
    upper = {
        f"{name}.{key}" if key in below else key: value
        for key, value in row.items()
        if not _is_rows(value)
    }
    return {**upper, **below}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """One level of columns: nested values have both names, texts are joined, other lists of numbers are left out."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key in _BEHIND_WORDS:
            continue
        if isinstance(value, Mapping):
            flat |= {
                key if name == "value" else f"{key}_{name}": below
                for name, below in _flat(value).items()
            }
        elif not isinstance(value, list):
            flat[key] = value
        elif key == "quartiles":
            flat |= dict(zip(_QUARTILES, value, strict=True))
        elif value and all(isinstance(one, str) for one in value):
            flat[key] = "; ".join(value)
    return flat
