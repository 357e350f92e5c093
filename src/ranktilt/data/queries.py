"""Read files of queries, without a collection: id and text, as lines, tables or JSON."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import decode_lines, line_chunks, read_text, require_path, rereadable
from ranktilt.data.formats import json_queries
from ranktilt.data.formats.base import QUERIES
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.query_columns import queries_of_columns
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.data.formats.tables.delimited import read_named_table
from ranktilt.data.formats.tables.parquet import PARQUET, read_table, schema_of
from ranktilt.data.loading.assemble import read_rows, unjudged
from ranktilt.errors import DataError, shorten

_HEADER = (
    re.compile(r"_?id|q(?:uery)?[-_ ]?id", re.IGNORECASE),
    re.compile(r"text|query|question", re.IGNORECASE),
)
"""Names of both columns in the first line of a file of tab-separated queries."""


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
    """Read ids of queries, one per line, such as ``held-out.txt`` of ``ranktilt train lora``."""
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
        return json_queries.read(file)
    if not file.rows:
        raise refusal(file, QUERIES)
    is_table = file.separator and (file.separator != "\t" or len(file.header) > 2)
    if is_table:
        table = read_named_table(file)
        columns = [table.frame[str(number)] for number in range(len(table.names))]
        return queries_of_columns(file, dict(zip(table.names, columns, strict=True)))
    if "\t" not in file.rows[0]:
        raise refusal(file, QUERIES)
    return _tab_separated(file.path)


def _has_id(file: DataFile) -> bool:
    """Return whether a Parquet file has a column of ids and one of texts."""
    names = schema_of(file.path)
    return file.path.suffix == PARQUET and "text" in names and not {"id", "_id"}.isdisjoint(names)


def _parquet(file: DataFile) -> pl.DataFrame:
    """Read queries from a Parquet file."""
    table = read_table(file.path)
    return queries_of_columns(file, {name: table[name] for name in table.columns})


def _tab_separated(path: Path) -> pl.DataFrame:
    """Read lines of an id, a tab and the text; the first line may be a header."""
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
                raise DataError(path, f"query {name!r} occurs twice", line=number)
            texts[name] = text
    if not texts:
        raise DataError(path, "expected queries, got a header only")
    return pl.DataFrame({"id": list(texts), "text": list(texts.values())})


def _is_header(line: str) -> bool:
    """Return whether a line names the columns."""
    fields = line.split("\t")
    if len(fields) != 2:
        return False
    return all(name.fullmatch(field) for name, field in zip(_HEADER, fields, strict=True))


def _id_and_text(path: Path, number: int, line: str) -> tuple[str, str]:
    """Split a line into id and text."""
    name, *rest = line.split("\t")
    if len(rest) == 1 and name.strip():
        return name, rest[0]
    came = f"{1 + len(rest)} fields" if name.strip() else "no id"
    message = f"expected id and text separated by a tab, got {came}: {shorten(line)}"
    raise DataError(path, message, line=number)
