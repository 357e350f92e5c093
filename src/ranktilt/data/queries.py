"""Read files of queries, without a collection: id and text, as lines, tables or JSON.

Such a file names the queries for an engine's responses that do not name them, or is sent to a live
engine.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import decode_lines, line_chunks, read_text, require_path, rereadable_file
from ranktilt.data.formats import json_queries
from ranktilt.data.formats.base import QUERIES
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.query_columns import queries_of_columns
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.data.formats.tables.delimited import read_named_table
from ranktilt.data.formats.tables.parquet import PARQUET, read_table, schema_of
from ranktilt.data.loading.assemble import read_rows, unjudged_collection
from ranktilt.errors import DataError, shorten

_HEADER_NAMES = (
    re.compile(r"_?id|q(?:uery)?[-_ ]?id", re.IGNORECASE),
    re.compile(r"text|query|question", re.IGNORECASE),
)
"""Names of the column of ids and of the column of texts in the header of tab-separated queries."""


def read_queries(path: str | Path) -> Collection:
    """Read queries without documents, as a collection.

    The file has lines of an id, a tab and the text, or is a table with a header, JSON or Parquet;
    its content tells which. ``-`` is standard input.
    """
    path = require_path(path)
    with rereadable_file(path) as file:
        queries = _read(DataFile(path=file))
        blank = queries.filter(pl.col("text").str.strip_chars() == "")
        if blank.height:
            raise DataError(file, f"query {blank['id'][0]!r} has no text")
    docs = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    return unjudged_collection(docs, queries, {"path": str(path), "files": [str(path)]})


def query_texts(path: str | Path) -> dict[str, str]:
    """Read the text of each query by its id, in the order of the file."""
    queries = read_queries(path).queries
    return dict(zip(queries["id"], queries["text"], strict=True))


def read_query_ids(path: str | Path, collection: Collection) -> list[str]:
    """Read ids of queries, one per line, such as ``held-out.txt`` of ``ranktilt train lora``.

    `DataError` for a query that the collection does not have.
    """
    lines = map(str.strip, read_text(Path(path)).split("\n"))
    query_ids = list(dict.fromkeys(line for line in lines if line))
    if not query_ids:
        raise DataError(path, "the file is empty")
    known_ids = set(collection.queries["id"])
    for query_id in query_ids:
        if query_id not in known_ids:
            raise DataError(path, f"query {shorten(query_id)} is not in the collection")
    return query_ids


def _read(file: DataFile) -> pl.DataFrame:
    """Return ``id`` and ``text`` of each query, and the other fields of JSON lines and Parquet."""
    refuse_binary(file, QUERIES)
    if file.binary == "Parquet":
        return read_rows(file.path) if _is_beir_parquet(file) else _read_parquet(file)
    if file.has_json:
        return json_queries.read(file)
    if not file.rows:
        raise refusal(file, QUERIES)
    # Two columns with a tab between them are read as lines, which may lack a header.
    is_table = file.separator and (file.separator != "\t" or len(file.header) > 2)
    if is_table:
        table = read_named_table(file)
        columns = [table.frame[str(number)] for number in range(len(table.names))]
        return queries_of_columns(file, dict(zip(table.names, columns, strict=True)))
    if "\t" not in file.rows[0]:
        raise refusal(file, QUERIES)
    return _read_tab_separated(file.path)


def _is_beir_parquet(file: DataFile) -> bool:
    """Return whether a Parquet file names its columns of ids and texts as BEIR does."""
    names = schema_of(file.path)
    return file.path.suffix == PARQUET and "text" in names and not {"id", "_id"}.isdisjoint(names)


def _read_parquet(file: DataFile) -> pl.DataFrame:
    """Read queries from a Parquet file whose columns have other names than BEIR's."""
    table = read_table(file.path)
    return queries_of_columns(file, {name: table[name] for name in table.columns})


def _read_tab_separated(path: Path) -> pl.DataFrame:
    """Read lines of an id, a tab and the text; the first line may be a header."""
    texts, has_header = dict[str, str](), False  # the text of each query by its id
    for first_line, lines in line_chunks(path):
        text_lines = decode_lines(path, first_line, lines).split("\n")
        for number, line in enumerate(text_lines, start=first_line):
            if not line.strip():
                continue
            if not texts and not has_header and _is_header(line):
                has_header = True
                continue
            query_id, text = _id_and_text(path, number, line)
            if query_id in texts:
                raise DataError(path, f"query {query_id!r} occurs twice", line=number)
            texts[query_id] = text
    if not texts:
        raise DataError(path, "expected queries, got a header only")
    return pl.DataFrame({"id": list(texts), "text": list(texts.values())})


def _is_header(line: str) -> bool:
    """Return whether a line names the columns."""
    fields = line.split("\t")
    if len(fields) != 2:
        return False
    return all(name.fullmatch(field) for name, field in zip(_HEADER_NAMES, fields, strict=True))


def _id_and_text(path: Path, number: int, line: str) -> tuple[str, str]:
    """Split the line with this number into id and text; `DataError` if it has other fields."""
    query_id, *further_fields = line.split("\t")
    if len(further_fields) == 1 and query_id.strip():
        return query_id, further_fields[0]
    came = f"{1 + len(further_fields)} fields" if query_id.strip() else "no id"
    message = f"expected id and text separated by a tab, got {came}: {shorten(line)}"
    raise DataError(path, message, line=number)
