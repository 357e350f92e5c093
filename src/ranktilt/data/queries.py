"""Queries in a file of their own, without a collection: id and text, tab-separated or as JSON lines."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from ranktilt.data.assemble import read_rows, unjudged
from ranktilt.data.collection import Collection
from ranktilt.data.files import decode_lines, line_chunks, read_text
from ranktilt.data.formats.parquet import PARQUET
from ranktilt.errors import DataError, shorten

_HEADER = (
    re.compile(r"_?id|q(?:uery)?[-_ ]?id", re.IGNORECASE),
    re.compile(r"text|query|question", re.IGNORECASE),
)


def read_queries(path: str | Path) -> Collection:
    """Read queries without documents: JSON lines, Parquet, or lines of an id, a tab and the text; plain or ``.gz``."""
    path = Path(path)
    rows = path.name.removesuffix(".gz").endswith((".jsonl", PARQUET))
    queries = read_rows(path) if rows else _tab_separated(path)
    blank = queries.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        raise DataError(path, f"query {blank['id'][0]!r} has no text")
    docs = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    return unjudged(docs, queries, {"path": str(path), "files": [str(path)]})


def read_query_ids(path: str | Path, collection: Collection) -> list[str]:
    """Read ids of queries, one on each line, such as ``held-out.txt`` of ``ranktilt train lora``."""
    names = dict.fromkeys(filter(None, map(str.strip, read_text(Path(path)).split("\n"))))
    known = set(collection.queries["id"])
    strange = next((name for name in names if name not in known), None)
    if strange is not None or not names:
        raise DataError(
            path,
            f"query {shorten(strange)} is not in the collection" if names else "the file is empty",
        )
    return list(names)


def _tab_separated(path: Path) -> pl.DataFrame:
    found = dict[str, str]()
    for first, lines in line_chunks(path):
        for number, line in enumerate(decode_lines(path, first, lines).split("\n"), start=first):
            name, *rest = line.split("\t")
            header = len(rest) == 1 and _HEADER[0].fullmatch(name) and _HEADER[1].fullmatch(rest[0])
            if not line.strip() or (number == 1 and header):
                continue
            if len(rest) != 1 or not name.strip():
                came = f"{1 + len(rest)} fields" if name.strip() else "no id"
                raise DataError(
                    path,
                    f"expected id and text separated by a tab, got {came}: {shorten(line)}",
                    line=number,
                )
            if name in found:
                raise DataError(path, f"query {name!r} came before", line=number)
            found[name] = rest[0]
    if not found:
        raise DataError(path, "expected queries, got a header only")
    return pl.DataFrame({"id": list(found), "text": list(found.values())})
