"""Write a run as TREC lines with a JSON sidecar, and escape ids that the format cannot hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ranktilt.data.files import sidecar
from ranktilt.data.formats.runfile import unwritable
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.run import Run

WITHOUT_DOCUMENTS = "queries_without_documents"
"""Key of a sidecar: queries without an entry, which no line of a TREC file can name."""
ESCAPED = "ids_percent_encoded"
"""Key of a sidecar: whether the ids of the file are percent-encoded."""
_ENTRIES_AT_ONCE = 500_000
"""Entries that are written at a time: as text they take ten times the memory."""
_ESCAPES = {sign: f"%{ord(sign):02X}" for sign in "% \t\n\x0b\x0c\r"} | {"\ufeff": "%EF%BB%BF"}
"""Codes of the signs that would end a field of a TREC file, or read as its byte-order mark."""
_LINE = pl.format(
    "{} Q0 {} {} {} ranktilt\n", "query_id", "doc_id", "rank", pl.col("score").cast(pl.String)
)


def run_contents(run: Run, path: Path) -> dict[Path, bytes]:
    """Return the bytes of a run's TREC file, not compressed, and of its sidecar, by their paths.

    If an id has a blank, which would end a field, blanks and ``%`` are percent-encoded in all ids
    of the file (``%20``, ``%25``), and the sidecar says so (``ids_percent_encoded``).
    """
    is_escaped = _needs_escapes(run)
    lines = list[bytes]()
    for start in range(0, len(run.docs), _ENTRIES_AT_ONCE):
        frame = run.entries(slice(start, start + _ENTRIES_AT_ONCE))
        if is_escaped:
            frame = _replace_in_ids(frame, list(_ESCAPES), list(_ESCAPES.values()))
        lines.append(frame.select(line=_LINE)["line"].str.join("").item().encode())
    spec = dict(run.spec)
    counts = np.diff(run.offsets)
    without = [query for query, count in zip(run.queries, counts, strict=True) if not count]
    if without:
        spec[WITHOUT_DOCUMENTS] = without
    if is_escaped:
        spec[ESCAPED] = True
    fault = unwritable(spec)
    if fault:
        raise UserError(f"run {run.name!r}: its spec: {fault}")
    text = json.dumps(spec, indent=1, default=str) + "\n"
    return {path: b"".join(lines), sidecar(path): text.encode()}


def _needs_escapes(run: Run) -> bool:
    """Return whether an id of a run has to be escaped; refuse an empty one."""
    queries = pl.Series(run.queries, dtype=pl.String)
    ranked = run.ids.gather(np.flatnonzero(np.bincount(run.docs)))
    for noun, names in (("query", queries), ("document", ranked)):
        if (names == "").any():
            raise UserError(f"a {noun} id is empty, which the TREC format cannot hold")
    return len(beyond_trec(queries)) > 0 or len(beyond_trec(ranked)) > 0


def unescape_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the entries of a file of escaped ids with the ids themselves."""
    return _replace_in_ids(frame, list(_ESCAPES.values()), list(_ESCAPES))


def beyond_trec(names: pl.Series) -> pl.Series:
    """Return the ids that a TREC file cannot hold as they are: with a blank or byte-order mark."""
    return names.filter(names.str.contains(r"[ \t\n\x0b\x0c\r\x{feff}]"))


def _replace_in_ids(frame: pl.DataFrame, signs: list[str], codes: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col("query_id", "doc_id").str.replace_many(signs, codes))
