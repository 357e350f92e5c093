"""Read answers in JSON that are written as tables: columns, named rows, or parallel lists.

An *answer* is the ranked documents of one query, and a *hit* one document in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.hit_fields import is_pair
from ranktilt.data.formats.tables.column_names import Names, find_columns
from ranktilt.errors import UserError, shorten

ID_FIELD = "id"
"""Field that gets the id of a hit that is no record."""
SCORE_FIELD = "score"
"""Field that gets the score of such a hit."""
_NAME_PATHS = ("columns", "schema", "manifest.columns")
"""Paths of the names of a table's columns; the last one is Databricks'."""
_ROW_PATHS = ("data", "rows", "datarows", "result.data_array")
"""Paths of a table's rows."""


def as_record(hit: Any) -> Any:
    """Return a hit as a record, also if it is a bare id, or a pair of id and score."""
    if isinstance(hit, Mapping):
        return hit
    if is_pair(hit):
        return {ID_FIELD: hit[0], SCORE_FIELD: hit[1]}
    if isinstance(hit, list):
        expected = "expected documents as ids, as pairs of id and score, or as records"
        raise UserError(f"{expected}, got {shorten(hit)}")
    return {ID_FIELD: hit}


def table_rows(document: Mapping[str, Any], valid: Names) -> list[Any] | None:
    """Return the rows of a table, or the answers in it; None if an object is no table.

    `valid` has the possible names of the columns to find.
    """
    rows = _rows_below_names(document)
    if rows is not None:
        return rows
    if isinstance(document.get("ids"), list):
        return _parallel_lists(document)
    needed = {name: valid[name] for name in ("query", "document")}
    if len(find_columns(document, needed)) < len(needed):
        return None
    return _rows_of_columns(document)


def table_documents(value: Any) -> list[Any] | None:
    """Return the documents of an answer that is a table, or lists of ids and scores; else None."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("ids"), list):
        answers = _parallel_lists(value)
        return answers[0] if answers is not None and len(answers) == 1 else None
    return _rows_below_names(value)


def _rows_below_names(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of a table whose columns are named once, as SQL engines and pandas do."""
    columns = _first_list(document, _NAME_PATHS)
    rows = _first_list(document, _ROW_PATHS)
    if columns is None or rows is None:
        return None
    # A column is described by its name, or by an object with its name.
    names = [str(value_at(column, "name") or column) for column in columns]
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return [dict(zip(names, row, strict=True)) for row in rows]


def _first_list(document: Mapping[str, Any], paths: Sequence[str]) -> list[Any] | None:
    """Return the first list at some paths; None if there is no list at any."""
    for path in paths:
        values = value_at(document, path)
        if isinstance(values, list):
            return values
    return None


def _parallel_lists(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the answers that Chroma writes as lists of ids and lists of distances.

    None if an object has no such lists.
    """
    score_key = next((key for key in ("distances", "scores") if document.get(key)), "")
    id_lists, score_lists = document["ids"], document.get(score_key)
    if not id_lists or not all(isinstance(ids, list) for ids in id_lists):
        return None
    score_field = score_key.removesuffix("s")
    if score_lists is None:
        return [list(map(as_record, ids)) for ids in id_lists]
    if len(score_lists) != len(id_lists):
        return None
    answers = list[Any]()
    for ids, scores in zip(id_lists, score_lists, strict=True):
        if not isinstance(scores, list) or len(ids) != len(scores):
            return None
        pairs = zip(ids, scores, strict=True)
        answers.append([{ID_FIELD: doc_id, score_field: score} for doc_id, score in pairs])
    return answers


def _rows_of_columns(document: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of ``{column: [cell, …]}`` or, as pandas does, ``{column: {row: cell}}``."""
    columns = list(document.values())
    if all(isinstance(cells, Mapping) for cells in columns):
        row_names = list(columns[0])
        if any(list(cells) != row_names for cells in columns):
            return None
        columns = [list(cells.values()) for cells in columns]
    if not all(isinstance(cells, list) for cells in columns):
        return None
    if len(set(map(len, columns))) > 1:
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
