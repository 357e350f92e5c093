"""Candidates as rank_llm stores them: queries, and the documents that a first stage found, with their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes
from ranktilt.data.formats.json_text import require_single_keys
from ranktilt.data.formats.qrels import read_qrels
from ranktilt.data.run import Run
from ranktilt.errors import DataError, shorten

_CONTENTS = ("content", "contents", "segment", "text", "passage", "body")
_EXPECTED = "expected rank_llm's candidates: query and hits (or candidates) with docid and content"


def read_candidates(path: str | Path, *, qrels: str | Path | None = None) -> tuple[Collection, Run]:
    """Read a first stage's lists with their texts, as a collection of these documents and a run in their order.

    A JSON list, or a line each: ``{"query", "hits": [{"qid", "docid", "content"}]}``, or as later
    versions write it ``{"query": {"qid", "text"}, "candidates": [{"docid", "doc":
    {"contents"}}]}``.
    """
    path = Path(path)
    queries, rows = dict[str, str](), list[tuple[str, str, str, str, int]]()
    for number, entry in enumerate(_entries(path), start=1):
        found = _hits(entry)
        if found is None:
            raise DataError(path, f"entry {number}: {_EXPECTED}; got {shorten(entry)}")
        query, text, hits = found
        if query in queries:
            raise DataError(path, f"entry {number}: query {query!r} came before")
        queries[query] = text
        rows += [(query, *hit, -rank) for rank, hit in enumerate(hits, start=1)]
    if not rows:
        raise DataError(path, f"{_EXPECTED}; got none")
    frame = pl.DataFrame(
        rows, schema=["query_id", "doc_id", "title", "text", "score"], orient="row"
    )
    again = frame.select("query_id", "doc_id").filter(
        ~pl.struct("query_id", "doc_id").is_first_distinct()
    )
    for query, doc in again.head(1).iter_rows():
        raise DataError(path, f"document {doc!r} occurs twice for query {query!r}")
    docs = frame.select("title", "text", id="doc_id").unique(
        "id", keep="first", maintain_order=True
    )
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    judged = pl.DataFrame(schema=judgments) if qrels is None else read_qrels(qrels).drop("line")
    files = [str(path), *([] if qrels is None else [str(qrels)])]
    named = pl.DataFrame({"id": list(queries), "text": list(queries.values())})
    collection = Collection(docs, named, judged, {"candidates": str(path), "files": files})
    return collection, Run.from_frame(
        frame, queries=list(queries), spec={"ranker": str(path), "file": str(path)}
    )


def holds_texts(path: Path) -> bool:
    """Whether a file looks like candidates with texts and not like a run, which may be JSON too."""
    start = read_bytes(path, 4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"[") or (
        start.startswith(b"{") and any(key in start for key in (b'"hits"', b'"candidates"'))
    )


def _entries(path: Path) -> Iterator[Any]:
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf").rstrip()
    try:
        if data.lstrip().startswith(b"["):
            entries = orjson.loads(data)
            require_single_keys(path, data.decode(), entries)
            yield from entries
            return
        for number, line in enumerate(data.splitlines(), start=1):
            if line.strip():
                entry = orjson.loads(line)
                require_single_keys(path, line.decode(), entry, first_line=number)
                yield entry
    except orjson.JSONDecodeError as error:
        raise DataError(path, f"{_EXPECTED}, as JSON: {error}") from error


def _hits(entry: Any) -> tuple[str, str, list[tuple[str, str, str]]] | None:
    """Query id and text, and id, title and text of each document; None where an entry is not what it should be."""
    if not isinstance(entry, Mapping):
        return None
    query, hits = entry.get("query"), entry.get("hits", entry.get("candidates"))
    if not isinstance(hits, list) or not all(isinstance(hit, Mapping) for hit in hits):
        return None
    if isinstance(query, Mapping):
        name, text = query.get("qid"), query.get("text")
    else:
        name, text = next((hit.get("qid") for hit in hits), None), query
    found = [_document(hit) for hit in hits]
    if name is None or not isinstance(text, str) or None in found:
        return None
    return str(name), text, [one for one in found if one is not None]


def _document(hit: Mapping[str, Any]) -> tuple[str, str, str] | None:
    doc = hit.get("doc", hit)
    doc = doc if isinstance(doc, Mapping) else {}
    text = next((doc[name] for name in _CONTENTS if isinstance(doc.get(name), str)), None)
    name, title = hit.get("docid"), doc.get("title")
    if text is None or not isinstance(name, str | int):
        return None
    return str(name), title if isinstance(title, str) else "", text
