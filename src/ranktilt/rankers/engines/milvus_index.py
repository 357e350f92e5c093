"""Milvus by its file or address, and its indexes: described, and compared with a collection before they are used."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.optional import need
from ranktilt.rankers.engines.client import error_summary

LONGEST = 65_535
"""Bytes of text that a field of Milvus holds."""
BUILDING = 120.0
"""Seconds that a call may take while an index is built or compared; the next run goes on with a build."""
_NO_CONTACT = 2
"""The code of pymilvus's errors where there is no connection."""
SAMPLE = 64
"""Documents of somebody else's index that are looked at."""
ALIKE = 0.9
_NEAREST_SHARE, _NEAR, _TINY = 0.5, 1e-3, 1e-12
_ADDRESS = re.compile(r"(?i)(https?|tcp)://")


def cut_bytes(text: str, most: int = LONGEST) -> str:
    """Cut a text after at most so many bytes of UTF-8, between two characters."""
    raw = text.encode()
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")


def is_address(place: str) -> bool:
    """Whether a place is a server's address, not a file."""
    return "://" in place


def require_place(place: str) -> None:
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
    """Connect to a server, or start Milvus Lite on a file for as long as it is needed; waits so many seconds."""
    library = need("pymilvus", extra="milvus", for_="milvus")
    token = os.environ.get("MILVUS_TOKEN", "") if is_address(place) else ""
    with _quiet() as heard, _milvus_lite(place):
        try:
            milvus = library.MilvusClient(uri=place, token=token, timeout=min(timeout, 10.0))
        except Exception as error:
            raise UserError(f"milvus:{place}: {_no_contact(place, error, heard)}") from None
        try:
            yield milvus
        finally:
            with suppress(Exception):
                milvus.close()


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Keep what these libraries log of failed calls, with stack traces, off the screen; it is told in one line."""
    heard: list[str] = []

    class _Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            heard.append(error_summary(error) if error else record.getMessage())

    loggers = [logging.getLogger(name) for name in ("pymilvus", "milvus_lite", "grpc")]
    before = [(one.handlers, one.propagate) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [_Listener()], False
    try:
        yield heard
    finally:
        for one, (handlers, propagate) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate


@contextmanager
def _milvus_lite(place: str) -> Iterator[None]:
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


def gone_server(place: str) -> str:
    """Say that nothing listens at an address, and what to do; empty where something does, and of a file."""
    parts = urlsplit(place)
    port = parts.port or (443 if parts.scheme.lower() == "https" else 19530)
    try:
        if is_address(place):
            socket.create_connection((str(parts.hostname), port), timeout=3).close()
    except OSError as refused:
        return f"no server there: {refused.strerror or refused}; start it, or name a file that ends in .db"
    return ""


def failure(place: str, error: Exception) -> str:
    """Say why a call failed, once there was a connection; of a server that is slow to answer, it may be the first."""
    if is_address(place) and getattr(error, "code", None) == _NO_CONTACT:
        return _no_contact(place, error)
    return gone_server(place) or error_summary(error)


def _no_contact(place: str, error: Exception, heard: Sequence[str] = ()) -> str:
    if not is_address(place):
        return f"Milvus Lite cannot open the file: {heard[-1] if heard else error_summary(error)}"
    if gone := gone_server(place):
        return gone
    token = os.environ.get("MILVUS_TOKEN", "")
    hint = "does it take the token in MILVUS_TOKEN?" if token else "a server's token is read from MILVUS_TOKEN"
    reason = error_summary(error).replace(token, "…") if token else error_summary(error)
    return f"something answers there, but not as Milvus does: {reason} ({hint})"


def rows(milvus: Any, name: str) -> int:
    """How many documents an index holds."""
    return int(milvus.query(name, filter="", output_fields=["count(*)"], timeout=BUILDING)[0]["count(*)"])


@dataclass(frozen=True)
class MilvusIndex:
    """An index as the server describes it; names of fields are empty where there is none."""

    name: str
    key: str
    """Field that numbers or names the documents."""
    key_is_text: bool
    vector: str
    """Field of the vectors."""
    sparse: str
    """Field that BM25 searches."""
    text: str
    """Field of the texts that BM25 searches."""
    dimension: int
    metric: str
    """By which the vectors' index compares."""
    kind: str
    """Of the vectors' index, such as ``FLAT``."""


def describe_index(milvus: Any, name: str) -> MilvusIndex:
    """Ask a server what an index is; refuses several fields of vectors, of which none can be chosen."""
    if not milvus.has_collection(name, timeout=BUILDING):
        raise unknown("collection of this Milvus", name, sorted(milvus.list_collections(timeout=BUILDING)))
    about = milvus.describe_collection(name, timeout=BUILDING)
    fields = {field["name"]: field for field in about["fields"]}
    key = next(field for field in fields.values() if field.get("is_primary"))
    vectors = [field for field, what in fields.items() if what["type"].name == "FLOAT_VECTOR"]
    if len(vectors) > 1:
        raise UserError(f"milvus: {name!r} has {len(vectors)} fields of vectors, expected one: {', '.join(vectors)}")
    vector = vectors[0] if vectors else ""
    words = next((f for f in about.get("functions", []) if getattr(f["type"], "name", "") == "BM25"), None)
    indexes = [milvus.describe_index(name, index, timeout=BUILDING) for index in milvus.list_indexes(name)]
    index: dict[str, Any] = next((one for one in indexes if one["field_name"] == vector), {})
    return MilvusIndex(
        name, key["name"], key["type"].name == "VARCHAR", vector,
        words["output_field_names"][0] if words else "", words["input_field_names"][0] if words else "",
        int(fields[vector]["params"]["dim"]) if vector else 0,
        str(index.get("metric_type", "")), str(index.get("index_type", "")),
    )  # fmt: skip


def check_documents(milvus: Any, found: MilvusIndex, collection: Collection) -> list[int]:
    """Refuse an index that holds other documents than a collection: their number, and a sample of ids and texts.

    Returns the rows of the documents that were looked at.
    """
    held, total = rows(milvus, found.name), collection.docs.height
    if held != total:
        here = counted(total, "document", "documents")
        raise UserError(f"milvus: {found.name!r} holds {held:,}, the collection has {here}; leave collection= out")
    sample: list[int] = np.linspace(0, max(total - 1, 0), min(SAMPLE, total)).astype(int).tolist()
    fields = [found.key, *([found.text] if found.text else [])]
    stored = stored_fields(milvus, found, [collection.ids[row] for row in sample], fields)
    texts = [collection.texts(choice) for choice in TEXT_CHOICES] if found.text else []
    for row in sample:
        name = collection.ids[row]
        if name not in stored:
            raise UserError(f"milvus: {found.name!r} does not hold document {name!r}: its ids are others")
        if texts and not any(_one_in_other(stored[name][found.text], series[row]) for series in texts):
            raise UserError(f"milvus: {found.name!r} holds another text of document {name!r} than the collection")
    return sample


def stored_fields(milvus: Any, found: MilvusIndex, ids: Sequence[str], fields: list[str]) -> dict[str, dict[str, Any]]:
    """Fields of documents by id; those that the index does not hold are left out."""
    if not found.key_is_text and not all(name.isdigit() and str(int(name)) == name for name in ids):
        return {}
    keys: list[Any] = list(ids) if found.key_is_text else [int(name) for name in ids]
    found_rows = milvus.query(found.name, ids=keys, output_fields=fields, timeout=BUILDING)
    return {str(row[found.key]): row for row in found_rows}


def check_vectors(who: str, stored: npt.NDArray[np.float32], expected: npt.NDArray[np.float32]) -> None:
    """Refuse vectors that another model made: those of one model point the same way, whatever it computes in."""
    if stored.shape != expected.shape:
        raise UserError(f"{who}: its vectors have {stored.shape[1]} dimensions, the model's {expected.shape[1]}")
    norms = np.linalg.norm(stored, axis=1) * np.linalg.norm(expected, axis=1)
    alike = float(np.median((stored * expected).sum(axis=1) / np.where(norms > 0, norms, 1)))
    if alike < ALIKE:
        text = f"their median cosine with the model's own is {alike:.2f} over {len(expected)} documents"
        raise UserError(f"{who}: its vectors are not those of this model and text: {text}")
    # Vectors of some models all point nearly the same way, so that those of another text are alike too.
    one, two = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), _TINY) for side in (stored, expected))
    cosines = one @ two.T
    nearest = float(np.mean(cosines.diagonal() >= cosines.max(axis=1) - _NEAR))
    if nearest < _NEAREST_SHARE:
        text = f"only {nearest:.0%} of {len(expected)} documents are nearest to their own text"
        raise UserError(f"{who}: its vectors are those of other documents: {text}")


def _one_in_other(stored: str, text: str) -> bool:
    one, two = (" ".join(t.split()) for t in (stored, cut_bytes(text, LONGEST)))
    return one in two or two in one
