"""Milvus, asked as an engine that is up: embedded in a file, a server or a cluster."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.llm.server import redactor
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.base import Rows, require_choices
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.engines.base import Ask, Hits, LiveEngine, PartialResponse, error_summary

MODES = ("dense", "bm25", "hybrid")
FUSION = 60
"""The constant of reciprocal rank fusion, as its authors chose it (Cormack et al., SIGIR 2009)."""
PK, TEXT, SPARSE, VECTOR = "pk", "text", "sparse", "vector"
LONGEST = 65_535
"""Bytes of text that a field of Milvus holds."""
ROWS = 500
"""Documents of one insertion: a server takes messages of up to 64 MB."""
_CONNECTING, _ANSWERING, _BUILDING = 10.0, 30.0, 120.0
"""Seconds that a call may take."""


@dataclass(frozen=True)
class Milvus(LiveEngine):
    """Ranks by asking Milvus, in which the collection is indexed when it is not yet.

    `place` is a file that ends in ``.db`` (Milvus Lite, embedded) or an address, whose token is
    read from ``MILVUS_TOKEN``. The index is named after what it holds, so that other documents,
    texts, models or settings get another one.
    """

    name: ClassVar[str] = "milvus"
    argument: ClassVar[str | None] = "place"

    place: str
    mode: str = field(default="dense", kw_only=True)
    model: str = field(default="minilm", kw_only=True)
    text: str = field(default="title+text", kw_only=True)
    analyzer: str = field(default="standard", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_place(self.place)
        require_choices(self, mode=MODES, text=TEXT_CHOICES)

    @property
    def calls_at_once(self) -> int:
        """One for Milvus Lite, which runs in this process, where calls at once would only slow each other down."""
        return self.concurrency if is_address(self.place) else 1

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, Any]]]:
        """Connect, and build the index where there is none; see `LiveEngine.connected`."""
        with client(self.place) as milvus:
            index = _CollectionIndex(self, milvus, collection)
            hide = redactor(token_of(self.place))

            def ask(text: str, depth: int) -> Hits:
                try:
                    return index.ask(text, depth)
                except UserError:
                    raise
                except Exception as error:  # a server may repeat the token in what it says
                    raise PartialResponse(error_summary(error, hide)) from None

            yield ask, index.spec


def is_address(place: str) -> bool:
    """Whether a place is a server's address, not a file."""
    return "://" in place


def require_place(place: str) -> None:
    """Refuse what is neither a file that Milvus Lite takes nor an address without a password."""
    parts = urlsplit(place)
    if not is_address(place):
        if not place.endswith(".db"):
            raise UserError(
                f"milvus: expected a file that ends in .db, or an address http://…, got {place!r}"
            )
    elif "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError(
            "milvus: an address must hold no user, password or token; put the token into MILVUS_TOKEN"
        )
    elif parts.scheme.lower() not in ("http", "https", "tcp") or not parts.hostname:
        raise UserError(
            f"milvus: expected an address such as http://localhost:19530, got {place!r}"
        )


def token_of(place: str) -> str:
    """Return the token that the environment has for a server; none is sent to a file."""
    return os.environ.get("MILVUS_TOKEN", "") if is_address(place) else ""


@contextmanager
def client(place: str) -> Iterator[Any]:
    """Connect to a server, or to Milvus Lite with a file; errors are told in one line."""
    library = need("pymilvus", extra="milvus", for_="milvus")
    token = token_of(place)
    for name in ("pymilvus", "milvus_lite", "grpc"):  # which log failed calls with stack traces
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        # A connection that clients share outlives them all, and writes to stderr when the server
        # tires of its pings.
        connection = library.MilvusClient(
            uri=place, token=token, timeout=_CONNECTING, dedicated=True
        )
        with closing(connection) as milvus:
            yield milvus
    except Exception as error:
        if not type(error).__module__.startswith(("pymilvus", "grpc")):
            raise
        raise UserError(
            f"milvus:{place}: {error_summary(error, redactor(token))}"
        ) from None  # nor a cause


def cut_bytes(text: str, most: int = LONGEST) -> str:
    """Cut a text after at most so many bytes of UTF-8, between two characters."""
    return text.encode()[:most].decode(errors="ignore")


class _CollectionIndex:
    """The index of one collection, built where it is not there, and ready to be asked."""

    def __init__(self, ranker: Milvus, milvus: Any, collection: Collection) -> None:
        self.ranker, self.milvus, self.library = (
            ranker,
            milvus,
            need("pymilvus", extra="milvus", for_="milvus"),
        )
        self.dense = Dense(ranker.model, text=ranker.text) if ranker.mode != "bm25" else None
        self.metric = "COSINE" if self.dense is not None and self.dense.cosine else "IP"
        order = insertion_order(collection)
        self.ids: list[str] = collection.ids.gather(order).to_list()
        self.texts = collection.texts(ranker.text).gather(order)
        self.words = ranker.mode != "dense"
        if self.words and (cut := int((self.texts.str.len_bytes() > LONGEST).sum())):
            said = f"{counted(cut, 'document', 'documents')} cut after {LONGEST:,} bytes, the most that Milvus holds"
            warnings.warn(f"{ranker!r}: {said}", DataWarning, stacklevel=5)
        self.name = self._named()
        self.spec: dict[str, Any] = {
            "engine": {"version": milvus.get_server_version(), "index": self.name}
        }
        if not (
            milvus.has_collection(self.name, timeout=_BUILDING) and self._held() == len(self.ids)
        ):
            self._build()
        milvus.load_collection(self.name)
        self.vectors: dict[str, Any] = {}
        if self.dense is not None:
            self.spec["engine"]["metric"] = self.metric
            self.spec |= {**self.dense.provenance(), **self.dense.about(collection)}
            queries = ranker.read_queries(collection.queries_with_judgments["text"]).unique(
                maintain_order=True
            )
            stored, row = self.dense.encoder.encode(
                queries, "query", f"{ranker!r}: encoding queries"
            )
            self.vectors = dict(zip(queries, stored.take(row), strict=True)) if len(queries) else {}

    def ask(self, text: str, depth: int) -> Hits:
        """Search for a query; only ids come back, which is several times as fast."""
        mode, limit = self.ranker.mode, max(min(depth, len(self.ids)), 1)
        options = {"limit": limit, "output_fields": [PK], "timeout": _ANSWERING}
        if mode == "hybrid":
            parts = [self._part(one, text) for one in ("bm25", "dense")]
            both = [
                self.library.AnnSearchRequest(limit=limit, param=param, **part)
                for part, param in parts
            ]
            [answer] = self.milvus.hybrid_search(
                self.name, both, self.library.RRFRanker(FUSION), **options
            )
        else:
            part, param = self._part(mode, text)
            [answer] = self.milvus.search(self.name, search_params=param, **part, **options)
        # BM25 comes as a score from a server and negated from Milvus Lite, but is never below 0
        # itself.
        sign = abs if mode == "bm25" else float
        return [
            (self.ids[key], sign(score))
            for key, score in zip(answer.ids, answer.distances, strict=True)
        ]

    def _part(self, mode: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        if mode == "bm25":
            return {"data": [text], "anns_field": SPARSE}, {"metric_type": "BM25"}
        return {"data": [self.vectors[text]], "anns_field": VECTOR}, {"metric_type": self.metric}

    def _named(self) -> str:
        """Name of the index: that of its contents and of nothing else."""
        settings = {"mode": self.ranker.mode, "layout": 2}
        if self.words:
            settings["analyzer"] = self.ranker.analyzer
        if self.dense is not None:
            settings |= {"model": self.dense.encoder.fingerprint, "metric": self.metric}
        whole = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=12)
        for text in chain(self.ids, self.texts):
            whole.update(f"{len(text)}:{text}".encode())
        return f"ranktilt_{self.ranker.mode}_{whole.hexdigest()}"

    def _held(self) -> int:
        """How many documents the index holds."""
        self.milvus.load_collection(self.name, timeout=_BUILDING)
        return int(
            self.milvus.query(self.name, filter="", output_fields=["count(*)"], timeout=_BUILDING)[
                0
            ]["count(*)"]
        )

    def _build(self) -> None:
        """Insert the documents that the index does not hold yet; what an interrupted build has left is gone on with."""
        milvus, total, vectors = self.milvus, len(self.ids), None
        if self.dense is not None:
            vectors, row = self.dense.encoder.encode(
                self.texts, "document", f"{self.ranker!r}: encoding documents"
            )
        begun = milvus.has_collection(self.name, timeout=_BUILDING)
        # Milvus Lite begins a new segment whenever it is closed, and weighs terms in each by
        # itself: other scores.
        if begun and self.words and milvus.get_server_version().startswith("milvus_lite"):
            milvus.drop_collection(self.name, timeout=_BUILDING)
            begun = False
        if not begun:
            self._create(None if vectors is None else vectors.shape[1])
        milvus.load_collection(self.name, timeout=_BUILDING)
        for start in range(0, total, ROWS):
            numbers = range(start, min(start + ROWS, total))
            held = milvus.query(self.name, ids=list(numbers), output_fields=[PK]) if begun else []
            missing = sorted(set(numbers) - {row[PK] for row in held})
            if missing:
                columns: dict[str, Any] = {PK: missing}
                if self.words:
                    columns[TEXT] = [cut_bytes(text) for text in self.texts.gather(missing)]
                if vectors is not None:
                    columns[VECTOR] = vectors.take(row[missing])
                rows = [
                    dict(zip(columns, values, strict=True))
                    for values in zip(*columns.values(), strict=True)
                ]
                # The client would repeat a call that had arrived, and the index hold documents
                # twice.
                milvus.insert(self.name, rows, retry_times=0)
                report(f"{self.ranker!r}: indexing", numbers.stop, total)
        milvus.flush(self.name, timeout=_BUILDING)
        if (count := self._held()) != total:
            milvus.drop_collection(self.name, timeout=_BUILDING)
            documents = counted(total, "document", "documents")
            raise UserError(
                f"milvus: {count:,} of {documents} arrived; if no other process is building {self.name!r}, run it again"
            )

    def _create(self, dimension: int | None) -> None:
        kinds, client = self.library.DataType, self.library.MilvusClient
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(PK, kinds.INT64, is_primary=True)
        indexes = client.prepare_index_params()
        if self.words:
            analyzer = {"type": self.ranker.analyzer}
            schema.add_field(
                TEXT,
                kinds.VARCHAR,
                max_length=LONGEST,
                enable_analyzer=True,
                analyzer_params=analyzer,
            )
            schema.add_field(SPARSE, kinds.SPARSE_FLOAT_VECTOR)
            schema.add_function(
                self.library.Function("bm25", self.library.FunctionType.BM25, [TEXT], [SPARSE])
            )
            indexes.add_index(SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        if dimension is not None:
            schema.add_field(VECTOR, kinds.FLOAT_VECTOR, dim=dimension)
            indexes.add_index(VECTOR, index_type="FLAT", metric_type=self.metric)
        strong = {"consistency_level": "Strong", "timeout": _BUILDING}
        self.milvus.create_collection(self.name, schema=schema, index_params=indexes, **strong)


def insertion_order(collection: Collection) -> Rows:
    """Rows in the order in which they are inserted: that of a hash of their ids.

    Milvus decides between equal scores by number or place, and Milvus Lite weighs terms in each
    segment by itself.
    """
    digests = b"".join(
        hashlib.blake2b(name.encode(), digest_size=8).digest() for name in collection.ids
    )
    return np.argsort(np.frombuffer(digests, dtype="<u8"), kind="stable")
