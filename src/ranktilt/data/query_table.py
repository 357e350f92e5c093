"""Read a table with a row for each query, such as its topic or its year, to group queries by.

The file is delimited text, JSON or Parquet, and one of its columns has the ids of the queries. A
user names it as ``FILE`` or ``FILE:COLUMN``. ``FILE:COLUMN:3`` divides a column of numbers into
three *parts*, such as the early, the middle and the late years; `ranktilt.auditing.query_groups`
makes them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.files import rereadable_file
from ranktilt.data.formats.data_file import SEPARATORS, DataFile
from ranktilt.data.formats.ids import id_texts
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.tables.column_names import QUERY, snake_case
from ranktilt.data.formats.tables.delimited import LINE_COLUMN, read_named_table
from ranktilt.data.formats.tables.parquet import json_rows, json_table, read_table
from ranktilt.data.labels.label_table import one_row_each
from ranktilt.errors import DataError, shorten, unknown_name

_ID_NAMES = ("_id", "id", "number", *QUERY)
"""Names of a column of ids; `QUERY` has those that runs use, such as ``qid``.

Files of answers may name queries by their texts (``question``, ``prompt``), which are the ids then.
"""
_TEXT = "text"
"""Name of the column of a query's text, which may be its id too."""
_FILE_ENDINGS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".gz")
"""Endings by which a name is that of a file, even if no such file exists."""
_EXAMPLE = "such as the header query_id,topic"
"""Example of a header, for messages."""


@dataclass(frozen=True, kw_only=True)
class QueryTableName:
    """A file of queries and its column, as a user names them."""

    path: str
    """Path of the file."""
    column: str
    """Name of the column, with the number of its parts if any (``year:3``).

    Empty if the user names only the file, whose only column besides the ids is then used.
    """

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
            if path.lower().endswith(_FILE_ENDINGS) or os.sep in path:
                return cls(path=path, column=":".join(pieces[count:]))
        return None


def read_query_table(path: str, query_ids: Collection[str], column: str) -> pl.DataFrame:
    """Return ``id`` and the other columns of a file, a row for each query that it names.

    Parameters
    ----------
    path : str
        The file.
    query_ids : collection of str
        Ids of the queries to look for. The column that holds the most of them is the file's column
        of ids.
    column : str
        Name of the column to group queries by, without the number of its parts; empty for all
        columns. A column that holds the ids themselves is refused.

    Raises
    ------
    DataError
        If the file has no column of ids, none of these queries, or a query with two values.
    """
    with rereadable_file(Path(path)) as file_path:
        frame = _read(DataFile(path=file_path))
    _refuse_id_column(path, frame, query_ids, column)
    id_column = _id_column(path, frame, query_ids, column)
    columns = [name for name in frame.columns if name not in (id_column, _TEXT, LINE_COLUMN)]
    if column and column not in frame.columns:
        raise DataError(path, str(unknown_name("column", column, columns)))
    columns = [column] if column else columns
    # The error about a query with two values names their lines, if the file has lines.
    if LINE_COLUMN in frame.columns:
        columns.append(LINE_COLUMN)
    ids = id_texts(frame[id_column], f"column {id_column!r}")
    values = frame.with_columns(ids.alias("id")).select("id", *columns)
    values = values.filter(pl.col("id").is_not_null() & (pl.col("id") != ""))
    return one_row_each(Path(path), values, "query", "id").drop(LINE_COLUMN, strict=False)


def _may_hold_ids(name: str) -> bool:
    """Return whether a column may hold the ids of queries, by its name."""
    return snake_case(name) in (*_ID_NAMES, _TEXT)


def _id_column(path: str, frame: pl.DataFrame, query_ids: Collection[str], column: str) -> str:
    """Return the column that holds the most of the ids; refuse a file with none of them."""
    candidates = [name for name in frame.columns if _may_hold_ids(name) and name != column]
    if not candidates:
        raise _missing_ids_error(
            Path(path), [name for name in frame.columns if name != LINE_COLUMN]
        )
    sought_ids = set(query_ids)
    ids = {name: id_texts(frame[name], f"column {name!r}") for name in candidates}
    match_counts = {name: len(sought_ids.intersection(values)) for name, values in ids.items()}
    best_candidate = max(candidates, key=match_counts.__getitem__)
    if match_counts[best_candidate]:
        return best_candidate
    first_id = next(filter(None, ids[best_candidate]), "")
    raise DataError(
        path,
        f"names none of the {len(sought_ids):,} queries (first: {next(iter(query_ids), '')!r}; the "
        f"file's look like {first_id!r})",
    )


def _refuse_id_column(
    path: str, frame: pl.DataFrame, query_ids: Collection[str], column: str
) -> None:
    """Refuse to group queries by the column of their ids: each would be a group of its own."""
    if column not in frame.columns or not _may_hold_ids(column):
        return
    # A plain cast, because a column of groups may hold fractions, which `id_texts` refuses.
    values = frame[column].cast(pl.String).drop_nulls()
    if set(query_ids).isdisjoint(values):
        return
    columns = [name for name in frame.columns if not _may_hold_ids(name) and name != LINE_COLUMN]
    raise DataError(
        path,
        f"column {column!r} has the ids of the queries; expected a column of groups "
        f"(valid: {', '.join(columns) or 'none'})",
    )


def _read(file: DataFile) -> pl.DataFrame:
    """Read the table of a file of any format."""
    if file.binary == "Parquet":
        return read_table(file.path)
    if file.has_json:
        return _read_json(file)
    header = file.rows[0] if file.rows else ""
    for separator in SEPARATORS:
        # Some programs mark the header as a comment.
        cells = [cell.strip().strip('"') for cell in header.lstrip("#").split(separator)]
        id_names = [cell for cell in cells if snake_case(cell) in _ID_NAMES]
        if len(cells) > 1 and id_names:
            table = read_named_table(DataFile(path=file.path, columns={"id": id_names[0]}))
            # The table calls its columns by their positions, because names may be empty.
            names = {str(position): name for position, name in enumerate(table.names)}
            return table.frame.rename(names)
    raise _missing_ids_error(file.path, [shorten(header)])


def _read_json(file: DataFile) -> pl.DataFrame:
    """Read records of JSON: a line each, or in one list; or an object of ids and values."""
    # A single line may be a list of all queries, or an object of ids and values.
    if file.has_json_lines and len(file.rows) > 1:
        frame, _lines = json_rows(file.path, _ID_NAMES)
        return frame
    document = read_document(file.path)
    if isinstance(document, Mapping):
        document = [{"id": query_id, "group": value} for query_id, value in document.items()]
    if not isinstance(document, list) or not all(isinstance(row, Mapping) for row in document):
        raise _missing_ids_error(file.path, ["other JSON"])
    return json_table(file.path, document, _ID_NAMES)


def _missing_ids_error(path: Path, names: Sequence[str]) -> DataError:
    """Return the error for a file without a column of ids; `names` are the columns it has."""
    content = ", ".join(names) or "an empty file"
    return DataError(
        path, f"expected a table of queries with a column of their ids ({_EXAMPLE}), got {content}"
    )
