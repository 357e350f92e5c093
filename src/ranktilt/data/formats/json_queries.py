"""Queries as JSON: records in lines or in one list, or one object of ids and texts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import polars as pl

from ranktilt.data.formats.base import QUERIES
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_values import parse_with_nan, read_document, read_lines
from ranktilt.data.formats.jsonl import read_jsonl
from ranktilt.data.formats.query_columns import are_query_fields, queries_of, queries_of_columns
from ranktilt.data.formats.refusals import refusal
from ranktilt.data.formats.tables.cells import json_ids
from ranktilt.errors import UserError, error_in_file


def read(file: DataFile) -> pl.DataFrame:
    """Read queries; records of BEIR (``_id``, ``text``) keep their other fields."""
    if file.has_json_lines:
        first = None
        with suppress(ValueError):  # broken JSON is refused below, with its line
            first = parse_with_nan(file.rows[0])
        if isinstance(first, Mapping) and {"_id", "text"} <= set(first):
            return read_jsonl(file.path)
        if len(file.rows) > 1:
            blocks = read_lines(file.path)
            return _queries_of_records(
                file, list(chain.from_iterable(block.values for block in blocks))
            )
    document = read_document(file.path)
    if not isinstance(document, Mapping):
        return _queries_of_records(file, document if isinstance(document, list) else [document])
    # {id: text, …}, unless it is the record of a single query: {"qid": "1", "text": "…"}.
    is_text_map = bool(document) and all(isinstance(text, str) for text in document.values())
    if is_text_map and not are_query_fields(document):
        return queries_of(file.path, list(document), list(document.values()))
    return _queries_of_records(file, [document])


def _queries_of_records(file: DataFile, records: list[Any]) -> pl.DataFrame:
    """Read queries from a list of objects."""
    if not records or not all(isinstance(record, Mapping) for record in records):
        raise refusal(file, QUERIES)
    columns = dict[str, pl.Series]()
    try:
        for name in dict.fromkeys(chain.from_iterable(records)):
            values = [record.get(name) for record in records]
            if not any(isinstance(value, list | Mapping) for value in values):
                columns[name] = json_ids(values, name)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    return queries_of_columns(file, columns)
