"""Milvus as a live engine: embedded in a file, a server or a cluster.

Milvus is a database of vectors, which also ranks by BM25. The documents of a collection are put
into an *index* there, which has one *field* for their texts, one for their vectors and one for the
weights of their terms. The *depth* is the number of documents that are asked for.
"""

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

from ranktilt.data.cache import StoredVectors, Vectors
from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.llm.server import redactor
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.base import Rows, require_choices
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.engines.base import Ask, LiveEngine
from ranktilt.rankers.engines.calls import Hits, PartialResponse, error_summary

MODES = ("dense", "bm25", "hybrid")
"""Kinds of search."""
FUSION = 60
"""Constant of reciprocal rank fusion, as its authors chose it (Cormack et al., SIGIR 2009)."""
PK, TEXT, SPARSE, VECTOR = "pk", "text", "sparse", "vector"
"""Fields of the index: number (primary key), text, weights of terms, and vector of a document."""
LONGEST = 65_535
"""Most bytes of text that Milvus allows in a field; longer texts are cut."""
ROWS = 500
"""Number of documents that are inserted in one call: a server takes messages of up to 64 MB."""
_CONNECTING, _ANSWERING, _BUILDING = 10.0, 30.0, 120.0
"""Time limits in seconds: to connect, to search, and of calls that build the index."""


@dataclass(frozen=True)
class Milvus(LiveEngine):
    """Ranks by asking Milvus; the collection is indexed there first, if it is not yet.

    `uri` is a file that ends in ``.db`` (Milvus Lite, embedded) or an address, whose token is
    read from ``MILVUS_TOKEN``. The index is named after its contents, so that other documents,
    texts, models or settings get another index.
    """

    name: ClassVar[str] = "milvus"
    argument: ClassVar[str | None] = "uri"

    uri: str
    """File of Milvus Lite, or address of a server."""
    mode: str = field(default="dense", kw_only=True)
    """Kind of search, one of `MODES`."""
    model: str = field(default="minilm", kw_only=True)
    """Encoder of the vectors."""
    text: str = field(default="title+text", kw_only=True)
    """Part of a document to index."""
    analyzer: str = field(default="standard", kw_only=True)
    """Name of the analyzer by which Milvus cuts texts into words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_uri(self.uri)
        require_choices(self, mode=MODES, text=TEXT_CHOICES)

    @property
    def calls_at_once(self) -> int:
        """Number of calls at the same time.

        One for Milvus Lite: it runs in this process, where calls slow each other down.
        """
        return self.concurrency if is_address(self.uri) else 1

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, Any]]]:
        """Connect, and build the index if there is none.

        Gives the function that searches it, and a description of the index for a run's spec.
        """
        with client(self.uri) as milvus:
            index = _CollectionIndex(self, milvus, collection)
            hide = redactor(token_of(self.uri))

            def ask(text: str, depth: int) -> Hits:
                try:
                    return index.ask(text, depth)
                except UserError:
                    raise
                except Exception as error:  # a server may repeat the token in its message
                    raise PartialResponse(error_summary(error, hide)) from None

            yield ask, index.spec


def is_address(uri: str) -> bool:
    """Tell whether a URI is a server's address, and not a file."""
    return "://" in uri


def require_uri(uri: str) -> None:
    """Refuse a text that is neither a file of Milvus Lite nor an address without a password."""
    parts = urlsplit(uri)
    if not is_address(uri):
        if not uri.endswith(".db"):
            raise UserError(
                f"milvus: expected a file that ends in .db, or an address http://…, got {uri!r}"
            )
    elif "@" in parts.netloc or parts.query or parts.fragment:
        raise UserError(
            "milvus: an address must hold no user, password or token; "
            "put the token into MILVUS_TOKEN"
        )
    elif parts.scheme.lower() not in ("http", "https", "tcp") or not parts.hostname:
        raise UserError(f"milvus: expected an address such as http://localhost:19530, got {uri!r}")


def token_of(uri: str) -> str:
    """Return the token that the environment has for a server; a file needs none."""
    return os.environ.get("MILVUS_TOKEN", "") if is_address(uri) else ""


@contextmanager
def client(uri: str) -> Iterator[Any]:
    """Connect to a server, or to Milvus Lite with a file; errors become one line."""
    library = need("pymilvus", extra="milvus", for_="milvus")
    token = token_of(uri)
    for name in ("pymilvus", "milvus_lite", "grpc"):  # they log failed calls with stack traces
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        # A connection that clients share would not be closed with them, and would write to stderr
        # when the server rejects its pings. So this client gets its own (`dedicated`).
        connection = library.MilvusClient(uri=uri, token=token, timeout=_CONNECTING, dedicated=True)
        with closing(connection) as milvus:
            yield milvus
    except Exception as error:
        if not type(error).__module__.startswith(("pymilvus", "grpc")):
            raise
        # `from None`, because the original error would show the token in a traceback.
        raise UserError(f"milvus:{uri}: {error_summary(error, redactor(token))}") from None


def cut_bytes(text: str, most: int = LONGEST) -> str:
    """Return the start of a text: at most this many bytes of UTF-8, and no part of a character."""
    return text.encode()[:most].decode(errors="ignore")


@dataclass(frozen=True, kw_only=True)
class _FieldSearch:
    """A search in one field of the index."""

    data: list[Any]
    """Query as Milvus takes it: a text or a vector."""
    field: str
    """Field to search."""
    metric: str
    """Name by which Milvus knows the similarity: ``BM25``, ``COSINE`` or ``IP``."""


@dataclass(frozen=True, kw_only=True)
class _TextVectors:
    """Vectors of the documents' texts, which are read from files when they are needed."""

    stored: StoredVectors
    """Vectors of distinct texts."""
    row: Rows
    """Row of each document's vector."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.stored.shape[1]

    def read(self, numbers: list[int]) -> Vectors:
        """Read the vectors of documents."""
        return self.stored.take(self.row[numbers])


class _CollectionIndex:
    """The index of a collection in Milvus, which is built if it is not there, ready for queries.

    Documents have numbers there: their positions in the order of insertion.
    """

    def __init__(self, ranker: Milvus, milvus: Any, collection: Collection) -> None:
        self.ranker = ranker
        self.milvus = milvus
        self.library = need("pymilvus", extra="milvus", for_="milvus")
        self.dense = Dense(ranker.model, text=ranker.text) if ranker.mode != "bm25" else None
        self.metric = "COSINE" if self.dense is not None and self.dense.cosine else "IP"
        order = insertion_order(collection)
        self.ids: list[str] = collection.ids.gather(order).to_list()
        self.texts = collection.texts(ranker.text).gather(order)
        self.has_texts = ranker.mode != "dense"
        if self.has_texts and (cut_count := int((self.texts.str.len_bytes() > LONGEST).sum())):
            message = (
                f"{counted(cut_count, 'document', 'documents')} cut after {LONGEST:,} bytes, "
                "the most that Milvus holds"
            )
            warnings.warn(f"{ranker!r}: {message}", DataWarning, stacklevel=5)
        self.name = self._content_name()
        self.spec: dict[str, Any] = {
            "engine": {"version": milvus.get_server_version(), "index": self.name}
        }
        exists = milvus.has_collection(self.name, timeout=_BUILDING)
        if not exists or self._document_count() != len(self.ids):
            self._build()
        milvus.load_collection(self.name)
        self.vectors: dict[str, Any] = {}
        if self.dense is not None:
            self.spec["engine"]["metric"] = self.metric
            self.spec |= {**self.dense.provenance(), **self.dense.about(collection)}
            texts = ranker.read_queries(collection.queries_with_judgments["text"])
            queries = texts.unique(maintain_order=True)
            stored, row = self.dense.encoder.encode(
                queries, "query", f"{ranker!r}: encoding queries"
            )
            self.vectors = dict(zip(queries, stored.take(row), strict=True)) if len(queries) else {}

    def ask(self, text: str, depth: int) -> Hits:
        """Return the best documents for the text of a query.

        Milvus returns only the numbers of documents, several times as fast as their texts.
        """
        mode, limit = self.ranker.mode, max(min(depth, len(self.ids)), 1)
        if mode == "hybrid":
            requests = []
            for search in (self._word_search(text), self._vector_search(text)):
                request = self.library.AnnSearchRequest(
                    data=search.data,
                    anns_field=search.field,
                    param={"metric_type": search.metric},
                    limit=limit,
                )
                requests.append(request)
            [answer] = self.milvus.hybrid_search(
                self.name,
                requests,
                self.library.RRFRanker(FUSION),
                limit=limit,
                output_fields=[PK],
                timeout=_ANSWERING,
            )
        else:
            search = self._word_search(text) if mode == "bm25" else self._vector_search(text)
            [answer] = self.milvus.search(
                self.name,
                data=search.data,
                anns_field=search.field,
                search_params={"metric_type": search.metric},
                limit=limit,
                output_fields=[PK],
                timeout=_ANSWERING,
            )
        # A score of BM25 is never below 0. A server returns it as it is, Milvus Lite negated.
        score_of = abs if mode == "bm25" else float
        return [
            (self.ids[key], score_of(score))
            for key, score in zip(answer.ids, answer.distances, strict=True)
        ]

    def _word_search(self, text: str) -> _FieldSearch:
        """Return the search for the words of a query."""
        return _FieldSearch(data=[text], field=SPARSE, metric="BM25")

    def _vector_search(self, text: str) -> _FieldSearch:
        """Return the search for the vector of a query."""
        return _FieldSearch(data=[self.vectors[text]], field=VECTOR, metric=self.metric)

    def _content_name(self) -> str:
        """Return the name of the index, a hash of its contents and settings."""
        # The number of the layout changes when the fields of the index do.
        settings = {"mode": self.ranker.mode, "layout": 2}
        if self.has_texts:
            settings["analyzer"] = self.ranker.analyzer
        if self.dense is not None:
            settings |= {"model": self.dense.encoder.fingerprint, "metric": self.metric}
        digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=12)
        for text in chain(self.ids, self.texts):
            digest.update(f"{len(text)}:{text}".encode())
        return f"ranktilt_{self.ranker.mode}_{digest.hexdigest()}"

    def _document_count(self) -> int:
        """Return the number of indexed documents."""
        self.milvus.load_collection(self.name, timeout=_BUILDING)
        [row] = self.milvus.query(
            self.name, filter="", output_fields=["count(*)"], timeout=_BUILDING
        )
        return int(row["count(*)"])

    def _build(self) -> None:
        """Insert the documents that the index lacks: all, or the rest of an interrupted build."""
        vectors = self._document_vectors()
        is_begun = self._prepare(None if vectors is None else vectors.dimension)
        total = len(self.ids)
        for start in range(0, total, ROWS):
            numbers = range(start, min(start + ROWS, total))
            missing = self._missing(numbers) if is_begun else list(numbers)
            if missing:
                self._insert(missing, vectors)
                report(f"{self.ranker!r}: indexing", numbers.stop, total)
        self.milvus.flush(self.name, timeout=_BUILDING)
        count = self._document_count()
        if count != total:
            self.milvus.drop_collection(self.name, timeout=_BUILDING)
            documents = counted(total, "document", "documents")
            raise UserError(
                f"milvus: {count:,} of {documents} arrived; if no other process is building "
                f"{self.name!r}, run it again"
            )

    def _document_vectors(self) -> _TextVectors | None:
        """Encode the documents; None where the index has no vectors."""
        if self.dense is None:
            return None
        stored, row = self.dense.encoder.encode(
            self.texts, "document", f"{self.ranker!r}: encoding documents"
        )
        return _TextVectors(stored=stored, row=row)

    def _prepare(self, dimension: int | None) -> bool:
        """Create the index if it does not exist; return whether it may already have documents."""
        is_begun = self.milvus.has_collection(self.name, timeout=_BUILDING)
        # Milvus Lite starts a new segment whenever it is closed, and computes the weights of terms
        # in each segment separately. So an index that was built in two parts gives other scores.
        is_lite = self.milvus.get_server_version().startswith("milvus_lite")
        if is_begun and self.has_texts and is_lite:
            self.milvus.drop_collection(self.name, timeout=_BUILDING)
            is_begun = False
        if not is_begun:
            self._create(dimension)
        self.milvus.load_collection(self.name, timeout=_BUILDING)
        return bool(is_begun)

    def _missing(self, numbers: range) -> list[int]:
        """Return which of some documents are not in the index."""
        rows = self.milvus.query(self.name, ids=list(numbers), output_fields=[PK])
        return sorted(set(numbers) - {row[PK] for row in rows})

    def _insert(self, numbers: list[int], vectors: _TextVectors | None) -> None:
        """Insert the documents with these numbers."""
        rows: list[dict[str, Any]] = [{PK: number} for number in numbers]
        if self.has_texts:
            for row, text in zip(rows, self.texts.gather(numbers), strict=True):
                row[TEXT] = cut_bytes(text)
        if vectors is not None:
            for row, vector in zip(rows, vectors.read(numbers), strict=True):
                row[VECTOR] = vector
        # No retries: the first call may have arrived, and documents would be inserted twice.
        self.milvus.insert(self.name, rows, retry_times=0)

    def _create(self, dimension: int | None) -> None:
        """Create the empty index with its fields."""
        kinds, client = self.library.DataType, self.library.MilvusClient
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(PK, kinds.INT64, is_primary=True)
        indexes = client.prepare_index_params()
        if self.has_texts:
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
        self.milvus.create_collection(
            self.name,
            schema=schema,
            index_params=indexes,
            consistency_level="Strong",
            timeout=_BUILDING,
        )


def insertion_order(collection: Collection) -> Rows:
    """Return the rows of documents in the order in which they are inserted: by a hash of their ids.

    The order matters because Milvus breaks ties by it, and Milvus Lite computes weights of terms
    for parts of the index. A hash favours no source.
    """
    digests = b"".join(
        hashlib.blake2b(name.encode(), digest_size=8).digest() for name in collection.ids
    )
    return np.argsort(np.frombuffer(digests, dtype="<u8"), kind="stable")
