"""Read candidates as the package rank_llm stores them: queries, and documents with texts.

*Candidates* are the documents that a first-stage ranker retrieved for a query. A language model
then re-ranks them. *Judgments* (*qrels*) say which documents are relevant to a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes
from ranktilt.data.formats.json_values import require_single_keys
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.formats.notation import file_of
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, shorten

_TEXT_NAMES = ("content", "contents", "segment", "text", "passage", "body")
"""Names of the field with a document's text."""
_EXPECTED = "expected rank_llm's candidates: query and hits (or candidates) with docid and content"
"""What a file must hold, for messages."""
_QRELS_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
"""Columns of judgments."""


@dataclass(frozen=True, kw_only=True)
class _CandidateList:
    """The documents that a first stage retrieved for a query, in their order."""

    query: str
    """Id of the query."""
    query_text: str
    """Text of the query."""
    documents: list[dict[str, str]]
    """``doc_id``, ``title`` and ``text`` of each."""


def read_candidates(path: str | Path, *, qrels: str | Path | None = None) -> tuple[Collection, Run]:
    """Read the candidates of each query, as a collection and a run.

    The file has a record for each query, as a JSON list or as JSON lines:

    - ``{"query": TEXT, "hits": [{"qid": ID, "docid": ID, "content": TEXT}]}``, or
    - ``{"query": {"qid": ID, "text": TEXT}, "candidates": [{"docid": ID, "doc": {"contents":
      TEXT}}]}``, as later versions write it.

    Parameters
    ----------
    path : str or Path
        The file.
    qrels : str or Path, optional
        File of the judgments, for the collection.

    Returns
    -------
    tuple of Collection and Run
        The collection of all candidates, and the run with each query's candidates in their order.
    """
    path = Path(path)
    queries, rows = dict[str, str](), list[dict[str, Any]]()
    for number, record in enumerate(_records(path), start=1):
        candidates = _candidate_list(record)
        if candidates is None:
            raise DataError(path, f"entry {number}: {_EXPECTED}; got {shorten(record)}")
        query = candidates.query
        if query in queries:
            raise DataError(path, f"entry {number}: query {query!r} occurs twice")
        queries[query] = candidates.query_text
        for rank, document in enumerate(candidates.documents, start=1):
            rows.append({"query_id": query, **document, "score": -rank})
    if not rows:
        raise DataError(path, f"{_EXPECTED}; got none")
    # All rows have the same keys and types, so that polars can tell the columns from the first.
    frame = pl.DataFrame(rows, infer_schema_length=1)
    repeated = frame.filter(~pl.struct("query_id", "doc_id").is_first_distinct())
    if repeated.height:
        query, doc = repeated.select("query_id", "doc_id").row(0)
        raise DataError(path, f"document {doc!r} occurs twice for query {query!r}")
    # A document may be a candidate of several queries; its text is repeated for each of them.
    docs = frame.select("title", "text", id="doc_id")
    docs = docs.unique("id", keep="first", maintain_order=True)
    files = [str(path)]
    judgments = pl.DataFrame(schema=_QRELS_SCHEMA)
    if qrels is not None:
        files.append(str(file_of(qrels)))
        # `read_qrels` adds the line of each judgment in its file, which a collection does not hold.
        judgments = read_qrels(qrels).drop("line")
    collection = Collection(
        docs=docs,
        queries=pl.DataFrame({"id": list(queries), "text": list(queries.values())}),
        qrels=judgments,
        spec={"candidates": str(path), "files": files},
    )
    # The file does not name its ranker, so the run is named by the file.
    run_spec = {"ranker": str(path), "file": str(path)}
    return collection, Run.from_frame(frame, queries=list(queries), spec=run_spec)


def holds_texts(path: Path) -> bool:
    """Return whether a file looks like candidates with texts, and not like a run in JSON.

    A JSON list is taken for candidates. An object may be a run (``{query: {document: score}}``),
    so it must have a key of candidates near its start.
    """
    start = read_bytes(path, 4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return True
    return start.startswith(b"{") and (b'"hits"' in start or b'"candidates"' in start)


def _records(path: Path) -> Iterator[Any]:
    """Yield the values of a JSON list, or of JSON lines.

    An object with the same key twice is refused, because orjson silently keeps the last value.
    """
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf").rstrip()
    try:
        if data.lstrip().startswith(b"["):
            records = orjson.loads(data)
            require_single_keys(path, data.decode(), records)
            yield from records
            return
        for number, line in enumerate(data.splitlines(), start=1):
            if line.strip():
                record = orjson.loads(line)
                require_single_keys(path, line.decode(), record, first_line=number)
                yield record
    except orjson.JSONDecodeError as error:
        raise DataError(path, f"{_EXPECTED}, as JSON: {error}") from error


def _candidate_list(record: Any) -> _CandidateList | None:
    """Read the candidates in the record of a query; None if it has neither of the two forms."""
    if not isinstance(record, Mapping):
        return None
    query, hits = record.get("query"), record.get("hits", record.get("candidates"))
    if not isinstance(hits, list) or not all(isinstance(hit, Mapping) for hit in hits):
        return None
    if isinstance(query, Mapping):
        query_id, query_text = query.get("qid"), query.get("text")
    else:
        query_id, query_text = next((hit.get("qid") for hit in hits), None), query
    documents = list[dict[str, str]]()
    for hit in hits:
        document = _document(hit)
        if document is None:
            return None
        documents.append(document)
    if query_id is None or not isinstance(query_text, str):
        return None
    return _CandidateList(query=str(query_id), query_text=query_text, documents=documents)


def _document(hit: Mapping[str, Any]) -> dict[str, str] | None:
    """Read the document of a hit; None if it has no id or no text."""
    # Later versions of rank_llm put the texts into an object of their own, ``doc``.
    doc = hit.get("doc", hit)
    doc = doc if isinstance(doc, Mapping) else {}
    text = next((doc[name] for name in _TEXT_NAMES if isinstance(doc.get(name), str)), None)
    doc_id, title = hit.get("docid"), doc.get("title")
    if text is None or not isinstance(doc_id, str | int):
        return None
    return {"doc_id": str(doc_id), "title": title if isinstance(title, str) else "", "text": text}
