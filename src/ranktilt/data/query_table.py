"""Read a file of queries and what is known of them: a table, JSON or Parquet with ids of queries.

A user names it as ``FILE`` or ``FILE:COLUMN``. ``FILE:COLUMN:3`` divides a column of numbers into
three parts; `ranktilt.auditing.query_groups` makes the parts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.files import rereadable
from ranktilt.data.formats.data_file import SEPARATORS, DataFile
from ranktilt.data.formats.ids import id_texts
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.tables.column_names import QUERY, folded
from ranktilt.data.formats.tables.delimited import LINE, read_named_table
from ranktilt.data.formats.tables.parquet import json_rows, json_table, read_table
from ranktilt.data.labels.label_table import one_row_each
from ranktilt.errors import DataError, shorten, unknown

_IDS = ("_id", "id", "number", *QUERY)
"""Names of a column of ids.

Files of answers may name queries by their texts (``question``, ``prompt``), which are the ids then.
"""
_TEXT = "text"
"""Name of the column of a query's text, which may be its id too."""
_ENDINGS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".gz")
"""Endings of what can only be a file, even if it is not there."""
_EXAMPLE = "such as the header query_id,topic"
"""Example for messages."""


@dataclass(frozen=True, kw_only=True)
class QueryTableName:
    """A file of queries and its column, as a user names them."""

    path: str
    """Path of the file."""
    column: str
    """Column, with its parts (``year:3``); empty for the only one besides the ids."""

    @classmethod
    def from_text(cls, text: str) -> QueryTableName | None:
        """Return the file and column that a text names; None for the name of a column."""
        pieces = text.split(":")
        # A path may have colons: the longest that exists wins. If none exists, the shortest that
        # looks like a path is taken, so that the error is about a missing file.
        for count in range(len(pieces), 0, -1):
            path = ":".join(pieces[:count])
            if os.path.isfile(path):
                return cls(path=path, column=":".join(pieces[count:]))
        for count in range(1, len(pieces) + 1):
            path = ":".join(pieces[:count])
            if path.lower().endswith(_ENDINGS) or os.sep in path:
                return cls(path=path, column=":".join(pieces[count:]))
        return None


def read_query_table(path: str, names: Collection[str], column: str) -> pl.DataFrame:
    """Return ``id`` and the other columns of a file, a row for each query that it names.

    Parameters
    ----------
    path : str
        The file.
    names : collection of str
        Ids of the queries that are looked for. The column that holds the most of them has the ids.
    column : str
        Name of the column that is asked for, without its parts; empty for all columns. A column
        that holds the ids themselves is refused.

    Raises
    ------
    UserError
        If the file has no column of ids, none of these queries, or a query with two values.
    """
    with rereadable(Path(path)) as file_path:
        frame = _read(DataFile(path=file_path))
    _refuse_ids(path, frame, names, column)
    id_column = _id_column(path, frame, names, column)
    columns = [name for name in frame.columns if name not in (id_column, _TEXT, LINE)]
    if column and column not in frame.columns:
        raise DataError(path, str(unknown("column", column, columns)))
    columns = [column] if column else columns
    if LINE in frame.columns:
        columns.append(LINE)
    ids = id_texts(frame[id_column], f"column {id_column!r}")
    values = frame.with_columns(ids.alias("id")).select("id", *columns)
    values = values.filter(pl.col("id").is_not_null() & (pl.col("id") != ""))
    return one_row_each(Path(path), values, "query", "id").drop(LINE, strict=False)


def _id_column(path: str, frame: pl.DataFrame, names: Collection[str], column: str) -> str:
    """Return the column that holds the most of the ids; refuse a file with none of them."""
    possible = {*_IDS, _TEXT}
    candidates = [name for name in frame.columns if folded(name) in possible and name != column]
    if not candidates:
        raise _no_ids(Path(path), [name for name in frame.columns if name != LINE])
    known = set(names)
    ids = {name: id_texts(frame[name], f"column {name!r}") for name in candidates}
    matches = {name: len(known.intersection(values)) for name, values in ids.items()}
    best = max(candidates, key=matches.__getitem__)
    if matches[best]:
        return best
    first = next(filter(None, ids[best]), "")
    raise DataError(
        path,
        f"names none of the {len(known):,} queries (first: {next(iter(names), '')!r}; the "
        f"file's look like {first!r})",
    )


def _refuse_ids(path: str, frame: pl.DataFrame, names: Collection[str], column: str) -> None:
    """Refuse a column of ids where a column of groups is asked for."""
    possible = {*_IDS, _TEXT}
    if column not in frame.columns or folded(column) not in possible:
        return
    values = frame[column].cast(pl.String).drop_nulls()
    if set(names).isdisjoint(values):
        return
    columns = [name for name in frame.columns if folded(name) not in possible and name != LINE]
    raise DataError(
        path,
        f"column {column!r} has the ids of the queries; expected a column of groups "
        f"(valid: {', '.join(columns) or 'none'})",
    )


def _read(file: DataFile) -> pl.DataFrame:
    """Read a table of texts, whichever form it has."""
    if file.binary == "Parquet":
        return read_table(file.path)
    if file.has_json:
        return _json(file)
    header = file.rows[0] if file.rows else ""
    for separator in SEPARATORS:
        cells = [cell.strip().strip('"') for cell in header.lstrip("#").split(separator)]
        ids = [cell for cell in cells if folded(cell) in _IDS]
        if len(cells) > 1 and ids:
            table = read_named_table(DataFile(path=file.path, columns={"id": ids[0]}))
            # The table calls its columns by their positions (see `NamedTable.frame`).
            names = {str(position): name for position, name in enumerate(table.names)}
            return table.frame.rename(names)
    raise _no_ids(file.path, [shorten(header)])


def _json(file: DataFile) -> pl.DataFrame:
    """Read records of JSON: a line each, or in one list; or an object of ids and values."""
    # A single line may be a list of all queries, or an object of ids and values.
    if file.has_json_lines and len(file.rows) > 1:
        frame, _ = json_rows(file.path, _IDS)
        return frame
    document = read_document(file.path)
    if isinstance(document, Mapping):
        document = [{"id": name, "group": value} for name, value in document.items()]
    if not isinstance(document, list) or not all(isinstance(row, Mapping) for row in document):
        raise _no_ids(file.path, ["other JSON"])
    return json_table(file.path, document, _IDS)


def _no_ids(path: Path, names: Sequence[str]) -> DataError:
    """Return the error for a file without a column of ids; `names` says what it has."""
    content = ", ".join(names) or "an empty file"
    return DataError(
        path, f"expected a table of queries with a column of their ids ({_EXAMPLE}), got {content}"
    )
