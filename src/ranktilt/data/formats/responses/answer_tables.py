"""Read answers in JSON that are written as tables: columns, named rows, or parallel lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.hit_fields import is_pair
from ranktilt.data.formats.tables.column_names import Names, find_columns
from ranktilt.errors import UserError, shorten

PLACE = "id"
"""Field of the id of a hit that is no record."""
VALUE = "score"
"""Field of the score of such a hit."""
_HEADS = ("columns", "schema", "manifest.columns")
"""Paths of the names of a table's columns; the last one is Databricks'."""
_BODIES = ("data", "rows", "datarows", "result.data_array")
"""Paths of a table's rows."""


def as_record(hit: Any) -> Any:
    """Return a hit as a record, also if it is a bare id, or a pair of id and score."""
    if isinstance(hit, Mapping):
        return hit
    if is_pair(hit):
        return {PLACE: hit[0], VALUE: hit[1]}
    if isinstance(hit, list):
        expected = "expected documents as ids, as pairs of id and score, or as records"
        raise UserError(f"{expected}, got {shorten(hit)}")
    return {PLACE: hit}


def table_rows(document: Mapping[str, Any], valid: Names) -> list[Any] | None:
    """Return the rows of a table that is written as columns; None if an object is no table."""
    rows = _rows_below_names(document)
    if rows is not None:
        return rows
    if isinstance(document.get("ids"), list):
        return _parallel_lists(document)
    needed = {name: valid[name] for name in ("query", "document")}
    if len(find_columns(document, needed)) < len(needed):
        return None
    return _rows_of_columns(document)


def one_table(value: Any) -> list[Any] | None:
    """Return the documents of an answer that is a table, or lists of ids and scores; else None."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("ids"), list):
        answers = _parallel_lists(value)
        return answers[0] if answers is not None and len(answers) == 1 else None
    return _rows_below_names(value)


def _rows_below_names(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of a table whose columns are named once, as SQL engines and pandas do."""
    names = _first_list(document, _HEADS)
    body = _first_list(document, _BODIES)
    if names is None or body is None:
        return None
    heads = [str(value_at(name, "name") or name) for name in names]
    if not all(isinstance(row, list) and len(row) == len(heads) for row in body):
        return None
    return [dict(zip(heads, row, strict=True)) for row in body]


def _first_list(document: Mapping[str, Any], paths: Sequence[str]) -> list[Any] | None:
    """Return the first list at some paths; None where there is none."""
    for path in paths:
        values = value_at(document, path)
        if isinstance(values, list):
            return values
    return None


def _parallel_lists(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the answers that Chroma writes as lists of ids and lists of distances."""
    scores = next((key for key in ("distances", "scores") if document.get(key)), "")
    ids, numbers = document["ids"], document.get(scores)
    if not ids or not all(isinstance(names, list) for names in ids):
        return None
    name = scores.removesuffix("s")
    if numbers is None:
        return [list(map(as_record, names)) for names in ids]
    if len(numbers) != len(ids):
        return None
    answers = list[Any]()
    for names, values in zip(ids, numbers, strict=True):
        if not isinstance(values, list) or len(names) != len(values):
            return None
        pairs = zip(names, values, strict=True)
        answers.append([{PLACE: doc, name: value} for doc, value in pairs])
    return answers


def _rows_of_columns(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of ``{column: [cell, …]}`` or, as pandas does, ``{column: {row: cell}}``."""
    columns = list(document.values())
    if all(isinstance(cells, Mapping) for cells in columns):
        rows = list(columns[0])
        if any(list(cells) != rows for cells in columns):
            return None
        columns = [list(cells.values()) for cells in columns]
    if not all(isinstance(cells, list) for cells in columns):
        return None
    if len(set(map(len, columns))) > 1:
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
