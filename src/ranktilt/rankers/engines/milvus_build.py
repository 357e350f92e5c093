"""A collection's index in Milvus, built part by part: named after what it holds, and only when it holds all of it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.io.cache import Vectors
from ranktilt.io.files import alone
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.engines.client import RetryPolicy
from ranktilt.rankers.engines.milvus_index import BUILDING, LONGEST, describe_index, rows

PK, DOC, TEXT, SPARSE, VECTOR = "pk", "doc_id", "text", "sparse", "vector"
ROWS, BYTES = 1_000, 8 << 20
"""Most rows and most bytes of text of one insertion."""
CHUNK = 16_384
"""Documents that are encoded and held at once, and the most keys that Milvus answers with."""
PAUSE = 5.0
"""Seconds before a failed insertion is repeated, twice as many before each further time: servers start slowly."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class IndexFields:
    """What an index is made of."""

    sparse: bool
    """Whether it holds texts, for BM25."""
    metric: str = ""
    """Of its vectors: ``COSINE``, ``IP`` or ``L2``; empty where it holds none."""
    analyzer: str = "standard"
    """Name of the analyzer built into Milvus."""


@dataclass(frozen=True)
class IndexRows:
    """Some documents of an index; texts are cut to what a field holds."""

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: Vectors | None = None


def insertion_order(collection: Collection) -> Numbers:
    """Rows in the order in which they are inserted and numbered.

    Milvus decides between equal scores by number or place; a hash of the ids sees to it that neither has to do
    with the source. It spreads the sources evenly over segments too, each of which Milvus Lite weighs terms by itself.
    """
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in collection.ids)
    return np.argsort(np.frombuffer(digests, dtype="<u8"), kind="stable")


def index_name(ids: Iterable[str], texts: Iterable[str], settings: dict[str, Any]) -> str:
    """Name of the index: equal for equal documents, texts, model and settings, and for nothing else."""
    whole = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=12)
    for text in chain(ids, texts):
        raw = text.encode()
        whole.update(len(raw).to_bytes(8, "little"))
        whole.update(raw)
    return f"ranktilt_{settings['mode']}_{whole.hexdigest()}"


def is_whole(milvus: Any, name: str, total: int) -> bool:
    """Whether there is an index of this name that holds so many documents."""
    if not milvus.has_collection(name, timeout=BUILDING):
        return False
    milvus.load_collection(name, timeout=BUILDING)
    return rows(milvus, name) == total


def build(
    milvus: Any,
    name: str,
    fields: IndexFields,
    read: Callable[[Numbers], IndexRows],
    *,
    total: int,
    policy: RetryPolicy,
    label: str,
) -> None:
    """Build an index of documents 0 to `total`, as `read` gives them; it gets its name when it is complete.

    What an interrupted build has left is gone on with: documents that are there are neither read nor inserted again.
    """
    if is_whole(milvus, name, total):  # another process has been quicker
        return
    _drop(milvus, name)
    unfinished = _Unfinished(milvus, f"{name}_part", fields, policy)
    chunks = [np.arange(start, min(start + CHUNK, total)) for start in range(0, total, CHUNK)] or [np.arange(0)]
    resumed = unfinished.is_there(total)
    if not resumed:
        unfinished.create(read(chunks[0]))
    for numbers in chunks:
        missing = unfinished.missing(numbers) if resumed else numbers
        for done in unfinished.insert(missing, read) if len(missing) else ():
            report(label, done, total)
    milvus.flush(unfinished.name, timeout=BUILDING)
    _require_rows(milvus, unfinished.name, total)
    milvus.rename_collection(unfinished.name, name, timeout=BUILDING)
    _require_rows(milvus, name, total)  # or a second builder's last insertion came after the first look


@dataclass(frozen=True)
class _Unfinished:
    """An index that is being built, under a name of its own."""

    milvus: Any
    name: str
    fields: IndexFields
    policy: RetryPolicy

    def is_there(self, total: int) -> bool:
        """Whether an interrupted build can be gone on with; it cannot where it made no whole index, or doubles."""
        if not self.milvus.has_collection(self.name, timeout=BUILDING):
            return False
        # Milvus Lite begins a new segment whenever it is closed, and weighs terms in each by itself: other scores.
        if self.fields.sparse and self.milvus.get_server_version().startswith("milvus_lite"):
            return False
        fields, found = self.fields, describe_index(self.milvus, self.name)
        made = (found.key, found.sparse, found.vector, found.metric, len(self.milvus.list_indexes(self.name)))
        asked = (PK, SPARSE if fields.sparse else "", VECTOR if fields.metric else "", fields.metric)
        if made != (*asked, fields.sparse + bool(fields.metric)):
            return False
        self.milvus.load_collection(self.name, timeout=BUILDING)
        return rows(self.milvus, self.name) <= total

    def create(self, first: IndexRows) -> None:
        """Create it, with the dimension of the first documents, in place of what is there."""
        library = need("pymilvus", extra="milvus", for_="milvus")
        kinds, fields = library.DataType, self.fields
        schema = library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(PK, kinds.INT64, is_primary=True)
        schema.add_field(DOC, kinds.VARCHAR, max_length=LONGEST)
        indexes = library.MilvusClient.prepare_index_params()
        if fields.sparse:
            analyzer = {"type": fields.analyzer}
            schema.add_field(TEXT, kinds.VARCHAR, max_length=LONGEST, enable_analyzer=True, analyzer_params=analyzer)
            schema.add_field(SPARSE, kinds.SPARSE_FLOAT_VECTOR)
            schema.add_function(library.Function("bm25", library.FunctionType.BM25, [TEXT], [SPARSE]))
            indexes.add_index(SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        if first.vectors is not None:
            schema.add_field(VECTOR, kinds.FLOAT_VECTOR, dim=first.vectors.shape[1])
            indexes.add_index(VECTOR, index_type="FLAT", metric_type=fields.metric)
        _drop(self.milvus, self.name)
        strong = {"consistency_level": "Strong", "timeout": BUILDING}
        self.milvus.create_collection(self.name, schema=schema, index_params=indexes, **strong)

    def missing(self, numbers: Numbers) -> Numbers:
        """Which of these documents, whose numbers follow each other, it does not hold."""
        between = f"{PK} >= {numbers[0]} and {PK} <= {numbers[-1]}"
        options = {"output_fields": [PK], "limit": CHUNK, "timeout": self.policy.timeout}
        self.milvus.load_collection(self.name, timeout=BUILDING)  # a server that was started again has not
        found = self.milvus.query(self.name, filter=between, **options)
        return np.setdiff1d(numbers, [row[PK] for row in found])

    def insert(self, numbers: Numbers, read: Callable[[Numbers], IndexRows]) -> Iterator[int]:
        """Insert documents, and yield how far it is.

        After a failed call it is asked what arrived all the same: the client's own way to repeat a call would insert
        documents twice. A server that is dead is noticed by the client's pings, so that a call needs no time limit.
        """
        records, failures = self._records(numbers, read(numbers)), 0
        while records:
            try:
                if failures:
                    left = set(self.missing(np.arange(numbers[0], numbers[-1] + 1)).tolist())
                    records = [record for record in records if record[PK] in left]
                for start, stop in _batches([record.get(TEXT, "") for record in records]):
                    self.milvus.insert(self.name, records[start:stop], retry_times=0)
                    failures = 0
                    yield records[stop - 1][PK] + 1
                return
            except Exception:
                failures += 1
                if failures >= self.policy.attempts:
                    raise
                time.sleep(self.policy.wait(failures))

    def _records(self, numbers: Numbers, content: IndexRows) -> list[dict[str, Any]]:
        records = [{PK: n, DOC: name} for n, name in zip(numbers.tolist(), content.ids, strict=True)]
        for field, values in ((TEXT, content.texts if self.fields.sparse else None), (VECTOR, content.vectors)):
            for record, value in zip(records, values if values is not None else (), strict=values is not None):
                record[field] = value
        return records


@contextmanager
def sole_builder(who: str, place: str, name: str) -> Iterator[None]:
    """Keep other processes of this machine from building the same index; those of others only cost each other time."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(f"build {place} {name}"))
        except BlockingIOError:
            raise UserError(f"{who}: another process builds this index; run it again when that is done") from None
        yield


def _require_rows(milvus: Any, name: str, total: int) -> None:
    """Refuse an index that does not hold all documents once; one with doubles is of no use to a later build."""
    milvus.load_collection(name, timeout=BUILDING)
    held = rows(milvus, name)
    if held > total:
        _drop(milvus, name)
    if held != total:
        documents = counted(total, "document", "documents")
        message = f"milvus: {held:,} of {documents} arrived; is another process building {name!r}? Try again"
        raise UserError(message)


def _drop(milvus: Any, name: str) -> None:
    if milvus.has_collection(name, timeout=BUILDING):
        milvus.drop_collection(name, timeout=BUILDING)


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    start = size = 0
    for number, text in enumerate(texts):
        if number > start and (number - start == ROWS or size + len(text) > BYTES):
            yield start, number
            start, size = number, 0
        size += len(text)
    if len(texts) > start:
        yield start, len(texts)
