"""Write TREC lines of a run and its JSON sidecar, and escape ids that the format cannot hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ranktilt.data.formats.runs.runfile import unwritable
from ranktilt.errors import UserError

WITHOUT_DOCUMENTS = "queries_without_documents"
"""Key of a sidecar: queries without an entry, which no line of a TREC file can name."""
ESCAPED = "ids_percent_encoded"
"""Key of a sidecar: whether the ids of the file are percent-encoded."""
ENTRIES_AT_ONCE = 500_000
"""Number of entries that are made into text at a time: text takes ten times their memory."""
_ESCAPES = {sign: f"%{ord(sign):02X}" for sign in "% \t\n\x0b\x0c\r"} | {"\ufeff": "%EF%BB%BF"}
"""Codes of characters that would end a field of a TREC file, or read as a byte-order mark."""
TAG_OF_RUNS = "ranktilt"
"""Tag of the lines of a run without repeats."""
REPEATS = "repeats"
"""Key of a sidecar: the specs of all repeats but the first."""


def trec_lines(parts: Iterable[pl.DataFrame], *, is_escaped: bool, tag: str = TAG_OF_RUNS) -> bytes:
    """Return the lines of a TREC run from tables of its entries."""
    score = pl.col("score").cast(pl.String)
    line = pl.format(f"{{}} Q0 {{}} {{}} {{}} {tag}\n", "query_id", "doc_id", "rank", score)
    lines = list[bytes]()
    for part in parts:
        frame = part
        if is_escaped:
            frame = _replace_in_ids(frame, list(_ESCAPES), list(_ESCAPES.values()))
        lines.append(frame.select(line=line)["line"].str.join("").item().encode())
    return b"".join(lines)


def sidecar_text(name: str, spec: Mapping[str, Any]) -> bytes:
    """Return a run's spec as JSON; `UserError` if JSON cannot hold it."""
    fault = unwritable(spec)
    if fault:
        raise UserError(f"run {name!r}: its spec: {fault}")
    return (json.dumps(spec, indent=1, default=str) + "\n").encode()


def needs_escapes(queries: pl.Series, documents: pl.Series) -> bool:
    """Return whether ids have to be escaped; refuse an empty one."""
    for noun, names in (("query", queries), ("document", documents)):
        if (names == "").any():
            raise UserError(f"a {noun} id is empty, which the TREC format cannot hold")
    return len(beyond_trec(queries)) > 0 or len(beyond_trec(documents)) > 0


def unescape_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the entries of a file of escaped ids with the ids themselves."""
    return _replace_in_ids(frame, list(_ESCAPES.values()), list(_ESCAPES))


def beyond_trec(names: pl.Series) -> pl.Series:
    """Return the ids that a TREC file cannot hold as they are.

    They have white space, which would end a field, or a byte-order mark.
    """
    return names.filter(names.str.contains(r"[ \t\n\x0b\x0c\r\x{feff}]"))


def _replace_in_ids(frame: pl.DataFrame, signs: list[str], codes: list[str]) -> pl.DataFrame:
    """Replace characters in the ids of queries and documents."""
    return frame.with_columns(pl.col("query_id", "doc_id").str.replace_many(signs, codes))
