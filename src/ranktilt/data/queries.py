"""Read files of queries, without a collection: id and text, as lines, tables or JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.assemble import read_rows, unjudged
from ranktilt.data.collection import Collection
from ranktilt.data.files import decode_lines, line_chunks, read_text, require_path, rereadable
from ranktilt.data.formats.base import QUERIES
from ranktilt.data.formats.cells import json_ids
from ranktilt.data.formats.column_names import folded
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.delimited import read_named_table
from ranktilt.data.formats.ids import id_texts, texts_of
from ranktilt.data.formats.json_values import loads, read_document, read_lines
from ranktilt.data.formats.jsonl import read_jsonl
from ranktilt.data.formats.parquet import PARQUET, read_table, schema_of
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.errors import DataError, UserError, located, shorten

_HEADER = (
    re.compile(r"_?id|q(?:uery)?[-_ ]?id", re.IGNORECASE),
    re.compile(r"text|query|question", re.IGNORECASE),
)
_TEXTS = ("text", "query_text", "query", "question", "title", "utterance")
"""Names of the column of texts, in the order of preference."""
_QUERY_IDS = ("qid", "query_id", "queryid", "q_id", "topic_id", "topic", "number")
_IDS = ("_id", "id")
"""Names of the column of ids, if there is none of `_QUERY_IDS`."""


def read_queries(path: str | Path) -> Collection:
    """Read queries without documents, as a collection.

    The file has lines of an id, a tab and the text, or is a table with a header, JSON or Parquet;
    its content tells which. ``-`` is standard input.
    """
    path = require_path(path)
    with rereadable(path) as file:
        queries = _read(DataFile(path=file))
        blank = queries.filter(pl.col("text").str.strip_chars() == "")
        if blank.height:
            raise DataError(file, f"query {blank['id'][0]!r} has no text")
    docs = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    return unjudged(docs, queries, {"path": str(path), "files": [str(path)]})


def query_texts(path: str | Path) -> dict[str, str]:
    """Read the text of each query by its id, in the order of the file."""
    queries = read_queries(path).queries
    return dict(zip(queries["id"], queries["text"], strict=True))


def read_query_ids(path: str | Path, collection: Collection) -> list[str]:
    """Read ids of queries, one on each line, such as ``held-out.txt`` of ``ranktilt train lora``."""
    names = dict.fromkeys(filter(None, map(str.strip, read_text(Path(path)).split("\n"))))
    if not names:
        raise DataError(path, "the file is empty")
    known = set(collection.queries["id"])
    for name in names:
        if name not in known:
            raise DataError(path, f"query {shorten(name)} is not in the collection")
    return list(names)


def _read(file: DataFile) -> pl.DataFrame:
    """Return ``id`` and ``text`` of each query, and the other fields of JSON lines and Parquet."""
    refuse_binary(file, QUERIES)
    if file.binary == "Parquet":
        return read_rows(file.path) if _has_id(file) else _parquet(file)
    if file.has_json:
        return _json(file)
    if not file.rows:
        raise refusal(file, QUERIES)
    is_table = file.separator and (file.separator != "\t" or len(file.header) > 2)
    if is_table:
        table = read_named_table(file)
        columns = [table.frame[str(number)] for number in range(len(table.names))]
        return _columns(file, dict(zip(table.names, columns, strict=True)))
    if "\t" not in file.rows[0]:
        raise refusal(file, QUERIES)
    return _tab_separated(file.path)


def _has_id(file: DataFile) -> bool:
    names = schema_of(file.path)
    return file.path.suffix == PARQUET and "text" in names and not {"id", "_id"}.isdisjoint(names)


def _parquet(file: DataFile) -> pl.DataFrame:
    table = read_table(file.path)
    return _columns(file, {name: table[name] for name in table.columns})


def _json(file: DataFile) -> pl.DataFrame:
    is_lines = file.has_json_lines and len(file.rows) > 1
    if is_lines or file.has_json_lines:
        first = loads(file.rows[0])
        if isinstance(first, Mapping) and {"_id", "text"} <= set(first):
            return read_jsonl(file.path)
    records = _records(file, is_lines=is_lines)
    if isinstance(records, pl.DataFrame):
        return records
    if not records or not all(isinstance(record, Mapping) for record in records):
        raise refusal(file, QUERIES)
    columns = dict[str, pl.Series]()
    try:
        for name in dict.fromkeys(chain.from_iterable(records)):
            values = [record.get(name) for record in records]
            if not any(isinstance(value, list | Mapping) for value in values):
                columns[name] = json_ids(values, name)
    except UserError as error:
        raise located(file.path, error) from error
    return _columns(file, columns)


def _records(file: DataFile, *, is_lines: bool) -> list[Any] | pl.DataFrame:
    """Return the records of JSON, or the queries of an object of ids and texts."""
    if is_lines:
        return list(chain.from_iterable(block.values for block in read_lines(file.path)))
    document = read_document(file.path)
    if not isinstance(document, Mapping):
        return document if isinstance(document, list) else [document]
    names = set(map(folded, document))
    is_record = not names.isdisjoint(_TEXTS) and not names.isdisjoint([*_QUERY_IDS, *_IDS])
    if not is_record and all(isinstance(text, str) for text in document.values()):
        return _queries(file.path, list(document), list(document.values()))
    return [document]


def _columns(file: DataFile, columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return the queries of a table, whose columns are recognised by their names."""
    by_name = {folded(name): name for name in columns}
    text = next((by_name[name] for name in _TEXTS if name in by_name), None)
    ids = [*_QUERY_IDS, *_IDS]
    name = next((by_name[name] for name in ids if name in by_name and by_name[name] != text), None)
    if text is None or name is None:
        raise refusal(file, QUERIES)
    try:
        names, texts = id_texts(columns[name], name), texts_of(columns[text], text)
    except UserError as error:
        raise located(file.path, error) from error
    return _queries(file.path, names.to_list(), texts.fill_null("").to_list())


def _queries(path: Path, names: list[str | None], texts: list[str]) -> pl.DataFrame:
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(path, f"query {number} has no id")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise DataError(path, f"query {repeated!r} comes twice")
    return pl.DataFrame({"id": names, "text": texts}, schema={"id": pl.String, "text": pl.String})


def _tab_separated(path: Path) -> pl.DataFrame:
    texts, has_header = dict[str, str](), False
    for first, lines in line_chunks(path):
        for number, line in enumerate(decode_lines(path, first, lines).split("\n"), start=first):
            if not line.strip():
                continue
            if not texts and not has_header and _is_header(line):
                has_header = True
                continue
            name, text = _id_and_text(path, number, line)
            if name in texts:
                raise DataError(path, f"query {name!r} came before", line=number)
            texts[name] = text
    if not texts:
        raise DataError(path, "expected queries, got a header only")
    return pl.DataFrame({"id": list(texts), "text": list(texts.values())})


def _is_header(line: str) -> bool:
    fields = line.split("\t")
    if len(fields) != 2:
        return False
    return all(name.fullmatch(field) for name, field in zip(_HEADER, fields, strict=True))


def _id_and_text(path: Path, number: int, line: str) -> tuple[str, str]:
    name, *rest = line.split("\t")
    if len(rest) == 1 and name.strip():
        return name, rest[0]
    came = f"{1 + len(rest)} fields" if name.strip() else "no id"
    message = f"expected id and text separated by a tab, got {came}: {shorten(line)}"
    raise DataError(path, message, line=number)
