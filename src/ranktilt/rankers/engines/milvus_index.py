"""A collection's index in Milvus: named after what it holds, built whole or not at all, read back before it is used."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.io.cache import Stored
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.engines.client import error_summary

PK, DOC, TEXT, SPARSE, VECTOR = "pk", "doc_id", "text", "sparse", "vector"
LONGEST = 65_535
"""Bytes of text that a field of Milvus holds."""
ROWS, BYTES = 1_000, 8 << 20
"""Most rows and most bytes of text of one insertion."""
BUILDING = 600.0
_ADDRESS = re.compile(r"(?i)(https?|tcp)://")


@dataclass(frozen=True)
class Layout:
    """What an index is made of.

    Parameters
    ----------
    sparse : bool
        Whether it holds texts, for BM25.
    dimension : int
        Of its vectors; 0 where it holds none.
    metric : str
        Of its vectors: ``COSINE``, ``IP`` or ``L2``.
    analyzer : str
        Name of the analyzer built into Milvus.
    """

    sparse: bool
    dimension: int = 0
    metric: str = ""
    analyzer: str = "standard"


@dataclass(frozen=True)
class Content:
    """What an index is filled with; rows are in the order of insertion.

    Parameters
    ----------
    ids : list of str
        Document ids.
    texts : list of str
        Texts, cut to what a field holds.
    vectors : Stored or None
        Vectors, a row each distinct text.
    row : ndarray of int64
        Row in `vectors` of each document.
    """

    ids: list[str]
    texts: list[str]
    vectors: Stored | None = None
    row: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def is_address(place: str) -> bool:
    """Whether a place is a server's address, not a file."""
    return "://" in place


def check_place(place: str) -> None:
    """Refuse what is neither a file that Milvus Lite takes nor an address without a password."""
    if not is_address(place):
        if not place.endswith(".db"):
            raise UserError(f"milvus: expected a file that ends in .db, or an address http://…, got {place!r}")
        return
    parts = urlsplit(place)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError("milvus: an address must hold no user, password or token; put the token into MILVUS_TOKEN")
    if not _ADDRESS.match(place) or not parts.hostname:
        raise UserError(f"milvus: expected an address such as http://localhost:19530, got {place!r}")


@contextmanager
def client(place: str, timeout: float) -> Iterator[Any]:
    """Connect to a server, or start Milvus Lite on a file for as long as it is needed.

    Parameters
    ----------
    place : str
        File or address.
    timeout : float
        Seconds to wait for a server.

    Yields
    ------
    MilvusClient
        Closed at the end.

    Raises
    ------
    UserError
        If there is no server, or the file cannot be opened.
    MissingExtra
        If pymilvus, or for a file milvus-lite, is not installed.
    """
    library = need("pymilvus", extra="milvus", for_="milvus")
    token = os.environ.get("MILVUS_TOKEN", "") if is_address(place) else ""
    with _quiet() as heard, _lite(place):
        try:
            made = library.MilvusClient(uri=place, token=token, timeout=min(timeout, 10.0))
        except Exception as error:
            raise UserError(f"milvus:{place}: {_why(place, error, heard, token)}") from None
        try:
            yield made
        finally:
            with suppress(Exception):
                made.close()


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Keep what these libraries log of failed calls, with stack traces, off the screen; it is told in one line."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            heard.append(error_summary(error) if error else record.getMessage())

    loggers = [logging.getLogger(name) for name in ("pymilvus", "milvus_lite", "grpc")]
    before = [(one.handlers, one.propagate) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [Ear()], False
    try:
        yield heard
    finally:
        for one, (handlers, propagate) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate


@contextmanager
def _lite(place: str) -> Iterator[None]:
    """Stop Milvus Lite at the end, so that other processes can open the file, unless somebody else here uses it."""
    if is_address(place):
        yield
        return
    if not Path(place).absolute().parent.is_dir():
        raise UserError(f"milvus:{place}: there is no folder {str(Path(place).parent)!r}; make it first")
    manager = need("milvus_lite.server_manager", extra="milvus", for_="milvus with a file").server_manager_instance
    mine = str(Path(place).absolute()) not in getattr(manager, "_servers", {})
    try:
        yield
    finally:
        if mine:
            manager.release_server(place)


def _why(place: str, error: Exception, heard: Sequence[str], token: str) -> str:
    if not is_address(place):
        return f"Milvus Lite cannot open the file: {heard[-1] if heard else error_summary(error)}"
    parts = urlsplit(place)
    port = parts.port or (443 if parts.scheme.lower() == "https" else 19530)
    try:
        socket.create_connection((str(parts.hostname), port), timeout=3).close()
    except OSError as refused:
        return f"no server there: {refused.strerror or refused}; start it, or name a file that ends in .db"
    hint = "" if token else " (a server that asks for a token takes it from MILVUS_TOKEN)"
    reason = error_summary(error).replace(token, "…") if token else error_summary(error)
    return f"something answers there, but not as Milvus does: {reason}{hint}"


def order(collection: Collection) -> npt.NDArray[np.int64]:
    """Rows in the order in which they are inserted and numbered.

    Milvus decides between equal scores by number or place; a hash of the ids sees to it that neither has to do
    with the source. It spreads the sources evenly over segments too, each of which Milvus Lite weighs terms by itself.
    """
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in collection.ids)
    return np.argsort(np.frombuffer(digests, dtype="<u8"), kind="stable")


def cut_bytes(text: str, most: int = LONGEST) -> str:
    """Cut a text after at most so many bytes of UTF-8, between two characters."""
    raw = text.encode()
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")


def name_of(ids: Sequence[str], texts: Sequence[str], made: dict[str, Any]) -> str:
    """Name of the index: equal for equal documents, texts, model and settings, and for nothing else."""
    whole = hashlib.blake2b(json.dumps(made, sort_keys=True).encode(), digest_size=12)
    for text in chain(ids, texts):
        raw = text.encode()
        whole.update(len(raw).to_bytes(8, "little"))
        whole.update(raw)
    return f"ranktilt_{made['mode']}_{whole.hexdigest()}"


def is_whole(made: Any, name: str, total: int) -> bool:
    """Whether there is an index of this name that holds so many documents."""
    return bool(made.has_collection(name, timeout=BUILDING)) and rows(made, name) == total


def build(made: Any, name: str, layout: Layout, content: Content, label: str) -> None:
    """Build an index, which gets its name when it is complete; what an interrupted build has left is thrown away.

    Parameters
    ----------
    made : MilvusClient
        The server.
    name : str
        See `name_of`.
    layout : Layout
        Its fields.
    content : Content
        Its rows.
    label : str
        Names the progress.

    Raises
    ------
    UserError
        If the server holds another number of documents than it was given.
    """
    total, part = len(content.ids), f"{name}_part"
    for old in (name, part):
        if made.has_collection(old, timeout=BUILDING):
            made.drop_collection(old, timeout=BUILDING)
    _create(made, part, layout)
    for start, stop in _batches(content.texts if layout.sparse else [""] * total):
        made.insert(part, _records(layout, content, start, stop), timeout=BUILDING)
        report(label, stop, total)
    made.flush(part, timeout=BUILDING)
    held = rows(made, part)
    if held != total:
        documents = counted(total, "document", "documents")
        message = f"milvus: {held:,} of {documents} arrived; is another process building {name!r}? Try again"
        raise UserError(message)
    made.rename_collection(part, name, timeout=BUILDING)


def _create(made: Any, name: str, layout: Layout) -> None:
    library = need("pymilvus", extra="milvus", for_="milvus")
    kinds = library.DataType
    schema = library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(PK, kinds.INT64, is_primary=True)
    schema.add_field(DOC, kinds.VARCHAR, max_length=LONGEST)
    indexes = library.MilvusClient.prepare_index_params()
    if layout.sparse:
        analyzer = {"type": layout.analyzer}
        schema.add_field(TEXT, kinds.VARCHAR, max_length=LONGEST, enable_analyzer=True, analyzer_params=analyzer)
        schema.add_field(SPARSE, kinds.SPARSE_FLOAT_VECTOR)
        schema.add_function(library.Function("bm25", library.FunctionType.BM25, [TEXT], [SPARSE]))
        indexes.add_index(SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    if layout.dimension:
        schema.add_field(VECTOR, kinds.FLOAT_VECTOR, dim=layout.dimension)
        indexes.add_index(VECTOR, index_type="FLAT", metric_type=layout.metric)
    strong = {"consistency_level": "Strong", "timeout": BUILDING}
    made.create_collection(name, schema=schema, index_params=indexes, **strong)


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    start = size = 0
    for number, text in enumerate(texts):
        if number > start and (number - start == ROWS or size + len(text) > BYTES):
            yield start, number
            start, size = number, 0
        size += len(text)
    if len(texts) > start:
        yield start, len(texts)


def _records(layout: Layout, content: Content, start: int, stop: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [{PK: n, DOC: content.ids[n]} for n in range(start, stop)]
    if layout.sparse:
        for record, text in zip(records, content.texts[start:stop], strict=True):
            record[TEXT] = text
    if content.vectors is not None:
        for record, vector in zip(records, content.vectors.take(content.row[start:stop]), strict=True):
            record[VECTOR] = vector
    return records


def rows(made: Any, name: str) -> int:
    """How many documents an index holds."""
    return int(made.query(name, filter="", output_fields=["count(*)"], timeout=BUILDING)[0]["count(*)"])
