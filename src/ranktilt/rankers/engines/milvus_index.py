"""Milvus by its file or address, and its indexes: built, described, and compared with a collection."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.engines.client import error_summary

Vectors = npt.NDArray[np.float32]
PK, TEXT, SPARSE, VECTOR = "pk", "text", "sparse", "vector"
LONGEST = 65_535
"""Bytes of text that a field of Milvus holds."""
ROWS = 500
"""Documents of one insertion: a server takes messages of up to 64 MB."""
_BUILDING = 120.0
"""Seconds that a call may take while an index is built or compared."""
_SAMPLE, _ALIKE, _NEAREST_SHARE, _NEAR = 64, 0.9, 0.5, 1e-3
"""Documents of somebody else's index that are looked at, and how near their vectors are to the model's at least."""


def is_address(place: str) -> bool:
    """Whether a place is a server's address, not a file."""
    return "://" in place


def require_place(place: str) -> None:
    """Refuse what is neither a file that Milvus Lite takes nor an address without a password."""
    parts = urlsplit(place)
    if not is_address(place):
        if not place.endswith(".db"):
            raise UserError(f"milvus: expected a file that ends in .db, or an address http://…, got {place!r}")
    elif "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError("milvus: an address must hold no user, password or token; put the token into MILVUS_TOKEN")
    elif parts.scheme.lower() not in ("http", "https", "tcp") or not parts.hostname:
        raise UserError(f"milvus: expected an address such as http://localhost:19530, got {place!r}")


@contextmanager
def client(place: str, timeout: float) -> Iterator[Any]:
    """Connect to a server, or serve a file by Milvus Lite for as long as it is needed; errors are told in one line."""
    library = need("pymilvus", extra="milvus", for_="milvus")
    token = os.environ.get("MILVUS_TOKEN", "") if is_address(place) else ""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        address = place if is_address(place) else stack.enter_context(_milvus_lite(place))
        try:
            milvus = library.MilvusClient(uri=address, token=token, timeout=min(timeout, 10.0))
            stack.callback(milvus.close)
            yield milvus
        except Exception as error:
            if not type(error).__module__.startswith(("pymilvus", "grpc")):
                raise
            said = error_summary(error)
            raise UserError(f"milvus:{place}: {said.replace(token, '…') if token else said}") from None  # nor a cause


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what these libraries log of failed calls, with stack traces, off the screen."""
    loggers = [logging.getLogger(name) for name in ("pymilvus", "milvus_lite", "grpc")]
    before = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for one, level in zip(loggers, before, strict=True):
            one.setLevel(level)


@contextmanager
def _milvus_lite(place: str) -> Iterator[str]:
    """Serve a file as Milvus Lite does for pymilvus, which would not say why it cannot, nor give it back at the end."""
    lite = need("milvus_lite.adapter.grpc.server", extra="milvus", for_="milvus with a file")
    if not Path(place).absolute().parent.is_dir():
        raise UserError(f"milvus:{place}: there is no folder {str(Path(place).parent)!r}; make it first")
    try:
        server, database, port = lite.start_server_in_thread(str(Path(place).absolute()), host="127.0.0.1", port=0)
    except Exception as error:
        raise UserError(f"milvus:{place}: Milvus Lite cannot open the file: {error_summary(error)}") from error
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(grace=2).wait()
        database.close()


def cut_bytes(text: str, most: int = LONGEST) -> str:
    """Cut a text after at most so many bytes of UTF-8, between two characters."""
    return text.encode()[:most].decode(errors="ignore")


@dataclass(frozen=True)
class IndexContents:
    """What an index holds of each document, in the order of its numbers."""

    texts: Callable[[slice], list[str]] | None
    """Gives some documents' texts, where it is searched by BM25."""
    vectors: Callable[[slice], Vectors] | None
    metric: str
    """Of its vectors: ``COSINE``, ``IP`` or ``L2``."""
    analyzer: str
    total: int

    def rows(self, part: slice) -> list[dict[str, Any]]:
        """Return some documents as Milvus takes them."""
        columns: dict[str, Any] = {PK: range(part.start, part.stop)}
        if self.texts is not None:
            columns[TEXT] = [cut_bytes(text) for text in self.texts(part)]
        if self.vectors is not None:
            columns[VECTOR] = self.vectors(part)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def is_whole(milvus: Any, name: str, total: int) -> bool:
    """Whether there is an index of this name that holds so many documents."""
    return milvus.has_collection(name, timeout=_BUILDING) and rows(milvus, name) == total


def rows(milvus: Any, name: str) -> int:
    """How many documents an index holds."""
    milvus.load_collection(name, timeout=_BUILDING)
    return int(milvus.query(name, filter="", output_fields=["count(*)"], timeout=_BUILDING)[0]["count(*)"])


def build(milvus: Any, name: str, contents: IndexContents, label: str) -> None:
    """Insert the documents that an index does not hold yet; what an interrupted build has left is gone on with."""
    begun = milvus.has_collection(name, timeout=_BUILDING)
    # Milvus Lite begins a new segment whenever it is closed, and weighs terms in each by itself: other scores.
    if begun and contents.texts is not None and milvus.get_server_version().startswith("milvus_lite"):
        milvus.drop_collection(name, timeout=_BUILDING)
        begun = False
    if not begun:
        _create(milvus, name, contents)
    milvus.load_collection(name, timeout=_BUILDING)
    for start in range(0, contents.total, ROWS):
        part = slice(start, min(start + ROWS, contents.total))
        held = milvus.query(name, ids=list(range(part.start, part.stop)), output_fields=[PK]) if begun else []
        known = {row[PK] for row in held}
        if len(known) < part.stop - part.start:
            missing = [row for row in contents.rows(part) if row[PK] not in known]
            # The client would repeat a call that had arrived, and the index hold documents twice.
            milvus.insert(name, missing, retry_times=0)
            report(label, part.stop, contents.total)
    milvus.flush(name, timeout=_BUILDING)
    if (count := rows(milvus, name)) != contents.total:
        milvus.drop_collection(name, timeout=_BUILDING)
        documents = counted(contents.total, "document", "documents")
        raise UserError(f"milvus: {count:,} of {documents} arrived; does another process build {name!r}? Run it again")


def _create(milvus: Any, name: str, contents: IndexContents) -> None:
    library = need("pymilvus", extra="milvus", for_="milvus")
    kinds = library.DataType
    schema = library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(PK, kinds.INT64, is_primary=True)
    indexes = library.MilvusClient.prepare_index_params()
    if contents.texts is not None:
        analyzer = {"type": contents.analyzer}
        schema.add_field(TEXT, kinds.VARCHAR, max_length=LONGEST, enable_analyzer=True, analyzer_params=analyzer)
        schema.add_field(SPARSE, kinds.SPARSE_FLOAT_VECTOR)
        schema.add_function(library.Function("bm25", library.FunctionType.BM25, [TEXT], [SPARSE]))
        indexes.add_index(SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    if contents.vectors is not None:
        schema.add_field(VECTOR, kinds.FLOAT_VECTOR, dim=contents.vectors(slice(0, 1)).shape[1])
        indexes.add_index(VECTOR, index_type="FLAT", metric_type=contents.metric)
    strong = {"consistency_level": "Strong", "timeout": _BUILDING}
    milvus.create_collection(name, schema=schema, index_params=indexes, **strong)


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
    metric: str
    """By which the vectors' index compares."""
    kind: str
    """Of the vectors' index, such as ``FLAT``."""


def describe_index(milvus: Any, name: str) -> MilvusIndex:
    """Ask a server what an index is; refuses several fields of vectors, of which none can be chosen."""
    if not milvus.has_collection(name, timeout=_BUILDING):
        raise unknown("collection of this Milvus", name, sorted(milvus.list_collections(timeout=_BUILDING)))
    about = milvus.describe_collection(name, timeout=_BUILDING)
    key = next(field for field in about["fields"] if field.get("is_primary"))
    vectors = [field["name"] for field in about["fields"] if field["type"].name == "FLOAT_VECTOR"]
    if len(vectors) > 1:
        raise UserError(f"milvus: {name!r} has {len(vectors)} fields of vectors, expected one: {', '.join(vectors)}")
    vector = vectors[0] if vectors else ""
    words = next((f for f in about.get("functions", []) if getattr(f["type"], "name", "") == "BM25"), None)
    indexes = [milvus.describe_index(name, index, timeout=_BUILDING) for index in milvus.list_indexes(name)]
    index: dict[str, Any] = next((one for one in indexes if one["field_name"] == vector), {})
    return MilvusIndex(
        name, key["name"], key["type"].name == "VARCHAR", vector,
        words["output_field_names"][0] if words else "", words["input_field_names"][0] if words else "",
        str(index.get("metric_type", "")), str(index.get("index_type", "")),
    )  # fmt: skip


def check_documents(milvus: Any, found: MilvusIndex, collection: Collection) -> npt.NDArray[np.int64]:
    """Refuse an index of other documents than a collection's: their number, and ids and texts of a sample.

    Returns the rows of the documents that were looked at.
    """
    held, total = rows(milvus, found.name), collection.docs.height
    if held != total:
        here = counted(total, "document", "documents")
        raise UserError(f"milvus: {found.name!r} holds {held:,}, the collection has {here}; leave collection= out")
    sample = np.linspace(0, max(total - 1, 0), min(_SAMPLE, total)).astype(np.int64)
    names: list[str] = collection.ids.gather(sample).to_list()
    stored = _stored(milvus, found, names, [found.text] if found.text else [])
    texts = [collection.texts(choice) for choice in TEXT_CHOICES]
    for row, name in zip(sample.tolist(), names, strict=True):
        if name not in stored:
            raise UserError(f"milvus: {found.name!r} does not hold document {name!r}: its ids are others")
        if found.text and not any(_one_in_other(stored[name][found.text], series[row]) for series in texts):
            raise UserError(f"milvus: {found.name!r} holds another text of document {name!r} than the collection")
    return sample


def _stored(milvus: Any, found: MilvusIndex, ids: Sequence[str], fields: list[str]) -> dict[str, dict[str, Any]]:
    """Fields of documents by id; those that the index does not hold are left out."""
    if not found.key_is_text and not all(name.isdigit() and str(int(name)) == name for name in ids):
        return {}
    keys: list[Any] = list(ids) if found.key_is_text else [int(name) for name in ids]
    hits = milvus.query(found.name, ids=keys, output_fields=[found.key, *fields], timeout=_BUILDING)
    return {str(row[found.key]): row for row in hits}


def check_vectors(milvus: Any, found: MilvusIndex, ids: Sequence[str], expected: Vectors) -> None:
    """Refuse vectors of another model, which point another way, or of other texts, which are nearer to others."""
    held = _stored(milvus, found, ids, [found.vector])
    stored = np.array([held[name][found.vector] for name in ids], dtype=np.float32)
    who = f"milvus: {found.name!r}: its vectors"
    if stored.shape != expected.shape:
        raise UserError(f"{who} have {stored.shape[1]} dimensions, the model's {expected.shape[1]}")
    one, two = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (stored, expected))
    cosines = one @ two.T
    own = cosines.diagonal()
    alike, nearest = float(np.median(own)), float(np.mean(own >= cosines.max(axis=1) - _NEAR))
    if alike < _ALIKE or nearest < _NEAREST_SHARE:
        raise UserError(
            f"{who} are not those of this model and text: their median cosine with the model's own is {alike:.2f}, and "
            f"{nearest:.0%} of {len(own)} documents are nearest to their own text"
        )


def _one_in_other(stored: str, text: str) -> bool:
    one, two = (" ".join(t.split()) for t in (stored, cut_bytes(text)))
    return one in two or two in one
