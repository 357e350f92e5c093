"""Group queries by a column, by bins of its numbers, or by a file: what ``--by-query`` names.

`read_query_groups` reads the option. A column of the queries, such as ``topic``, makes a group of
each value; ``year:3`` makes three bins of numbers; a file has ids of queries with a column.
"""

from __future__ import annotations

from collections.abc import Collection as NameCollection
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.grouping.labels import MOST_GROUPS
from ranktilt.auditing.grouping.number_bins import divided_numbers
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_file import LENGTH
from ranktilt.data.labels.label_remarks import parts_of_numbers
from ranktilt.data.query_table import QueryTableName, read_query_table
from ranktilt.data.text.label_values import as_numbers, known_labels
from ranktilt.data.text.quality import words
from ranktilt.errors import UserError, counted, shorten, unknown_name

OPTION = "--by-query"
"""Option of the command line that names the groups; messages begin with it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryGroups:
    """Groups of queries."""

    text: str
    """The column or file as the user named it."""
    column: str
    """Column that the groups were made from; with the number of bins, as in ``year:3``."""
    names: tuple[str, ...]
    """Names of the groups, in their order."""
    code: npt.NDArray[np.int64]
    """Index of each query's group in `names`; −1 for none."""
    queries: tuple[str, ...]
    """Ids of the queries."""
    file: str = ""
    """File that was read; empty for a column of the collection's queries."""

    def members(self, group: int) -> list[str]:
        """Return the ids of the queries of a group, which is named by its index."""
        return [self.queries[index] for index in np.flatnonzero(self.code == group)]

    def codes_of(self, queries: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the index of the group of each of some queries; −1 for none."""
        code_by_query = dict(zip(self.queries, self.code.tolist(), strict=True))
        return np.array([code_by_query.get(query, -1) for query in queries], dtype=np.int64)


def read_query_groups(
    text: str,
    queries: Sequence[str],
    table: pl.DataFrame | None = None,
    *,
    document_columns: NameCollection[str] = (),
) -> QueryGroups:
    """Group queries by what ``--by-query`` names.

    Parameters
    ----------
    text : str
        ``COLUMN`` of the queries, ``COLUMN:N`` for N bins of numbers, or ``FILE[:COLUMN]``.
    queries : sequence of str
        Ids of the queries to group.
    table : polars.DataFrame, optional
        ``id`` and other columns of the collection's queries; without it, a file is expected.
    document_columns : collection of str, optional
        Columns of documents; a message says so if `text` names one of them.

    Raises
    ------
    UserError
        If there is no such column, or it does not make 2 to 50 groups.
    """
    table_name = QueryTableName.from_text(text)
    if table_name is not None:
        column = _without_bins(table_name.column, ())
        frame = read_query_table(table_name.path, queries, column)
        by = table_name.column or _only_column(table_name.path, frame)
        where = f"{table_name.path}: "  # begins messages
    else:
        if table is None:
            raise UserError(
                f"{OPTION} {text}: nothing is known of the queries but their ids; name a file: "
                f"{OPTION} FILE:COLUMN"
            )
        _check_column(text, table, document_columns)
        frame, by, where = table, text, ""
    ids = pl.DataFrame({"id": pl.Series(queries, dtype=pl.String)})
    frame = ids.join(frame, on="id", how="left", maintain_order="left")
    names, code = _groups(by, frame, where)
    return QueryGroups(
        text=text,
        column=by,
        names=names,
        code=code,
        queries=tuple(queries),
        file="" if table_name is None else table_name.path,
    )


def collection_query_groups(
    text: str, collection: Collection, queries: Sequence[str] | None = None
) -> QueryGroups:
    """Group a collection's queries by what ``--by-query`` names.

    `queries` are the ids of the queries to group; by default, of those with judgments.
    """
    if queries is None:
        queries = collection.queries_with_judgments["id"].to_list()
    columns = [name for name in collection.docs.columns if name not in ("id", "text", "title")]
    return read_query_groups(text, queries, collection.queries, document_columns=columns)


def _without_bins(by: str, columns: NameCollection[str]) -> str:
    """Return the column of ``COLUMN:N``; one of the known `columns` may itself have a colon."""
    return by.rpartition(":")[0] if ":" in by and by not in columns else by


def _only_column(path: str, frame: pl.DataFrame) -> str:
    """Return the only column of a file besides its ids; refuse several."""
    columns = [name for name in frame.columns if name != "id"]
    if len(columns) == 1:
        return columns[0]
    if not columns:
        raise UserError(f"{path}: expected a column of groups beside the ids, got none")
    raise UserError(
        f"{path}: has {len(columns)} columns to group by ({', '.join(columns)}); name one: "
        f"{OPTION} {path}:{columns[0]}"
    )


def _check_column(text: str, table: pl.DataFrame, document_columns: NameCollection[str]) -> None:
    """Refuse a text that names no column of the queries, nor their lengths."""
    columns = _groupable_columns(table)
    column = _without_bins(text, columns)
    has_texts = "text" in table.columns and bool((table["text"] != "").any())
    if column in columns or (column == LENGTH != text and has_texts):
        return
    lengths = [f"{LENGTH}:3"] if has_texts else []
    if column in document_columns:
        raise UserError(
            f"{OPTION} {text}: {column!r} is a column of the documents (--by {column}); expected "
            f"a column of the queries (valid: {', '.join([*columns, *lengths]) or 'none'}), or "
            "FILE:COLUMN"
        )
    if not columns and not lengths:
        raise UserError(
            f"{OPTION} {text}: nothing is known of the queries but their ids; name the file too: "
            f"{OPTION} FILE:{text}"
        )
    error = unknown_name("column of the queries", text, [*columns, *lengths])
    raise UserError(f"{error}; a file can be named too: {OPTION} FILE:COLUMN")


def _groupable_columns(table: pl.DataFrame) -> list[str]:
    """Return the columns to group queries by; binary columns hold raw JSON, and are left out."""
    return [
        name
        for name in table.columns
        if name not in ("id", "text") and table[name].dtype != pl.Binary
    ]


def _groups(
    by: str, frame: pl.DataFrame, where: str
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return the names of the groups, and the index of each query's group.

    `where` begins messages: the name of the file, if one was read.
    """
    if by not in frame.columns and ":" in by:
        return _bins(by, frame, where)
    values = known_labels(frame[by])
    distinct = values.drop_nulls().unique().sort()
    _check_labels(by, values, distinct, where)
    labels = distinct.cast(pl.String).to_list()
    index_of_label = {label: index for index, label in enumerate(labels)}
    code = [-1 if value is None else index_of_label[value] for value in values.cast(pl.String)]
    names = tuple(group_name(by, label) for label in labels)
    return names, np.array(code, dtype=np.int64)


def _bins(
    by: str, frame: pl.DataFrame, where: str
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Divide a column of numbers, or the numbers of words of the queries, into bins."""
    column = by.rpartition(":")[0]
    is_length = column not in frame.columns
    if is_length:
        values = words(frame["text"].fill_null(""))
        values = values.set(values == 0, None)
    else:
        values = as_numbers(known_labels(frame[column]))
        if not values.dtype.is_numeric():
            example = next(iter(known_labels(frame[column]).drop_nulls()), "")
            raise UserError(
                f"{where}{OPTION} {by}: {column} is no column of numbers (such as "
                f"{shorten(str(example))}); name it without parts: {column}"
            )
    groups = divided_numbers(by, values, is_length=is_length)
    return groups.names, groups.code


def _check_labels(by: str, values: pl.Series, distinct: pl.Series, where: str) -> None:
    """Refuse a column that does not make 2 to `MOST_GROUPS` groups.

    `values` are those of all queries, and `distinct` are the different values.
    """
    count = len(distinct)
    parts = parts_of_numbers(values)
    if count > 1 and parts is not None:
        raise UserError(
            f"{where}column {by!r} holds {count:,} different numbers; make parts of them: "
            f"{by}:3, or {by}:{_threshold(parts.parted_at)} for two"
        )
    if count > MOST_GROUPS:
        raise UserError(
            f"{where}column {by!r} makes {count:,} groups of {len(values):,} queries; expected at "
            f"most {MOST_GROUPS}: choose a column with fewer values"
        )
    if count < 2:
        fault = f"only {by} {str(distinct[0])!r}" if count else f"no value of {by}"
        unlabelled = values.null_count()
        rest = f"; {counted(unlabelled, 'query has', 'queries have')} none" if unlabelled else ""
        raise UserError(
            f"{where}nothing to compare: {fault}; expected two groups of queries or more{rest}"
        )


def _threshold(value: float) -> str:
    """Print a threshold with a decimal point; a number without one is a number of bins."""
    text = f"{value:g}"
    return text if "." in text else f"{text}."
