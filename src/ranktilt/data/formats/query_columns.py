"""Make queries from the columns of a table, which are recognised by their names.

A query has an id and a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from ranktilt.data.formats.base import QUERIES
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.ids import id_texts, texts_of
from ranktilt.data.formats.refusals import refusal
from ranktilt.data.formats.tables.column_names import snake_case
from ranktilt.errors import DataError, UserError, error_in_file

_TEXT_NAMES = ("text", "query_text", "query", "question", "title", "utterance")
"""Names of the column of texts, in the order of preference."""
_ID_NAMES = ("qid", "query_id", "queryid", "q_id", "topic_id", "topic", "number", "_id", "id")
"""Names of the column of ids, in the order of preference: those that mean queries come first."""


def are_query_fields(names: Iterable[str]) -> bool:
    """Return whether fields or columns are those of a query: a text and an id."""
    names = set(map(snake_case, names))
    return not names.isdisjoint(_TEXT_NAMES) and not names.isdisjoint(_ID_NAMES)


def queries_of_columns(file: DataFile, columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return the queries in a table's columns; refuse a table without ids or texts."""
    # The names of the columns in the file, by their spelling in this module.
    by_spelling = {snake_case(name): name for name in columns}
    text_columns = [by_spelling[name] for name in _TEXT_NAMES if name in by_spelling]
    id_columns = [by_spelling[name] for name in _ID_NAMES if name in by_spelling]
    text_column = next(iter(text_columns), None)
    id_column = next((name for name in id_columns if name != text_column), None)
    if text_column is None or id_column is None:
        raise refusal(file, QUERIES)
    try:
        ids = id_texts(columns[id_column], id_column)
        texts = texts_of(columns[text_column], text_column)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    return queries_of(file.path, ids.to_list(), texts.fill_null("").to_list())


def queries_of(path: Path, ids: list[str | None], texts: list[str]) -> pl.DataFrame:
    """Return ``id`` and ``text`` of queries; refuse one without an id, or that comes twice."""
    for number, id in enumerate(ids, start=1):
        if not id:
            raise DataError(path, f"query {number} has no id")
    repeated = next((id for id, count in Counter(ids).items() if count > 1), None)
    if repeated is not None:
        raise DataError(path, f"query {repeated!r} occurs twice")
    return pl.DataFrame({"id": ids, "text": texts}, schema={"id": pl.String, "text": pl.String})
