"""Write TREC lines of a run and its sidecar, and escape ids that the format cannot hold.

A line has six fields between blanks: ``query Q0 document rank score tag``. The *tag* is a name for
the whole run; the second field is never read. A run's *sidecar* is the JSON file ``<path>.json``
beside it, which says how the run was made (its *spec*).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ranktilt.data.formats.runs.runfile import unwritable
from ranktilt.errors import UserError

WITHOUT_DOCUMENTS = "queries_without_documents"
"""Key of a sidecar for the queries without an entry, which no line of a TREC file can name."""
ESCAPED = "ids_percent_encoded"
"""Key of a sidecar that says whether the ids of the file are percent-encoded."""
ENTRIES_AT_ONCE = 500_000
"""Number of entries that are made into text at a time: text takes ten times their memory."""
_BYTE_ORDER_MARK = "\ufeff"
"""Invisible character; at the start of a file, readers drop it as a mark of the encoding."""
_CODES = {character: f"%{ord(character):02X}" for character in "% \t\n\x0b\x0c\r"}
_CODES[_BYTE_ORDER_MARK] = "%EF%BB%BF"
"""Codes of characters that would end a field of a TREC file, or read as a byte-order mark."""
TAG_OF_RUNS = "ranktilt"
"""Tag of the lines of a run without repeats."""
REPEATS = "repeats"
"""Key of a sidecar for the specs of all repeats but the first."""


def trec_lines(
    tables: Iterable[pl.DataFrame], *, is_escaped: bool, tag: str = TAG_OF_RUNS
) -> bytes:
    """Return the lines of a TREC run.

    Parameters
    ----------
    tables : iterable of polars.DataFrame
        Tables of the entries, one below the other: ``query_id``, ``doc_id``, ``rank``, ``score``.
    is_escaped : bool
        Whether to percent-encode ids.
    tag : str, optional
        Tag of all lines.
    """
    score = pl.col("score").cast(pl.String)
    line = pl.format(f"{{}} Q0 {{}} {{}} {{}} {tag}\n", "query_id", "doc_id", "rank", score)
    lines = list[bytes]()
    for table in tables:
        entries = _replace_in_ids(table, _CODES) if is_escaped else table
        lines.append(entries.select(line=line)["line"].str.join("").item().encode())
    return b"".join(lines)


def sidecar_text(name: str, spec: Mapping[str, Any]) -> bytes:
    """Return the spec of the run `name` as JSON; `UserError` if JSON cannot hold it."""
    fault = unwritable(spec)
    if fault:
        raise UserError(f"run {name!r}: its spec: {fault}")
    return (json.dumps(spec, indent=1, default=str) + "\n").encode()


def needs_escapes(queries: pl.Series, documents: pl.Series) -> bool:
    """Return whether ids have to be escaped; refuse an empty id."""
    for noun, ids in (("query", queries), ("document", documents)):
        if (ids == "").any():
            raise UserError(f"a {noun} id is empty, which the TREC format cannot hold")
    return len(ids_beyond_trec(queries)) > 0 or len(ids_beyond_trec(documents)) > 0


def unescape_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """Return entries whose ids are percent-encoded with the ids themselves."""
    characters = {code: character for character, code in _CODES.items()}
    return _replace_in_ids(frame, characters)


def ids_beyond_trec(ids: pl.Series) -> pl.Series:
    """Return the ids that a TREC file cannot hold as they are.

    They have white space, which would end a field, or a byte-order mark.
    """
    return ids.filter(ids.str.contains(r"[ \t\n\x0b\x0c\r\x{feff}]"))


def _replace_in_ids(frame: pl.DataFrame, replacements: Mapping[str, str]) -> pl.DataFrame:
    """Replace texts in the ids of queries and documents."""
    ids = pl.col("query_id", "doc_id")
    return frame.with_columns(ids.str.replace_many(list(replacements), list(replacements.values())))
