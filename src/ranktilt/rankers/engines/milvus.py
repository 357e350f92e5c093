"""Milvus, asked as an engine that is up: embedded in a file, a server or a cluster."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import DataWarning, UserError, counted
from ranktilt.models.encoder import Encoder
from ranktilt.optional import need
from ranktilt.rankers.base import Rows, require_choices
from ranktilt.rankers.dense.retriever import Dense, EmbeddingServer
from ranktilt.rankers.engines.base import Hits, LiveEngine, Session
from ranktilt.rankers.engines.milvus_index import (
    LONGEST,
    IndexContents,
    MilvusIndex,
    Vectors,
    build,
    check_documents,
    check_vectors,
    client,
    describe_index,
    is_address,
    is_whole,
    require_place,
)

MODES = ("dense", "bm25", "hybrid")
METRICS = ("auto", "cosine", "ip", "l2")
FUSION = 60
"""The constant of reciprocal rank fusion, as its authors chose it (Cormack et al., SIGIR 2009)."""
_BATCH = 16


@dataclass(frozen=True)
class Milvus(LiveEngine):
    """Ranks by asking Milvus, in which the collection is indexed when it is not yet.

    `place` is a file that ends in ``.db`` (Milvus Lite, embedded) or the address of a server or cluster, whose token is
    read from ``MILVUS_TOKEN``. The mode ``dense`` is exact search over a model's vectors (`model` as of `Dense`),
    ``bm25`` Milvus's own, ``hybrid`` both with reciprocal rank fusion. The metric ``auto`` is the model's own; that of
    the index is read back and must be it. `analyzer` is one that is built into Milvus; Milvus Lite has only
    ``standard``.

    The index is named after what it holds, so that other documents, texts, models or settings get another one, unless
    `collection` names one that is there: it must hold the collection's documents under their ids and, where a model is
    asked, its vectors; numbers, texts and vectors of a sample are compared.
    """

    name: ClassVar[str] = "milvus"
    argument: ClassVar[str | None] = "place"

    place: str
    mode: str = field(default="dense", kw_only=True)
    model: str = field(default="minilm", kw_only=True)
    metric: str = field(default="auto", kw_only=True)
    text: str = field(default="title+text", kw_only=True)
    analyzer: str = field(default="standard", kw_only=True)
    collection: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_place(self.place)
        require_choices(self, mode=MODES, metric=METRICS, text=TEXT_CHOICES)
        if self.mode == "bm25" and self.metric != "auto":
            raise UserError(f"milvus: metric={self.metric} is for vectors; mode=bm25 has a metric of its own")

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[Session]:
        """Connect, and build the index where there is none; see `LiveEngine.connected`."""
        with client(self.place, self.timeout) as milvus:
            index = _CollectionIndex(self, milvus, collection)
            search, spec = index.opened()
            limit = max(min(depth, collection.docs.height), 1)
            # Milvus Lite runs in this process, where calls at once would only slow each other down.
            concurrency = self.concurrency if is_address(self.place) else 1
            yield Session(lambda texts, _: search.ask(texts, limit), spec, _BATCH, concurrency)


@dataclass(frozen=True)
class _MilvusSearch:
    """An index that is ready to be asked."""

    ranker: Milvus
    milvus: Any
    found: MilvusIndex
    name: Callable[[Any], str]
    """A document's id by what the index calls it."""
    vector: dict[str, Vectors]
    """Of each query."""

    def ask(self, texts: list[str], limit: int) -> list[Hits]:
        """Search for several queries at once; only ids come back, which is several times as fast."""
        mode, name, timeout = self.ranker.mode, self.found.name, self.ranker.timeout
        options = {"limit": limit, "output_fields": [self.found.key], "timeout": timeout}
        if mode == "hybrid":
            library = need("pymilvus", extra="milvus", for_="milvus")
            both = [library.AnnSearchRequest(limit=limit, **self._part(one, texts)) for one in ("bm25", "dense")]
            answers = self.milvus.hybrid_search(name, both, library.RRFRanker(FUSION), **options)
        else:
            part = self._part(mode, texts)
            answers = self.milvus.search(name, search_params=part.pop("param"), **part, **options)
        sign = signed({"hybrid": "RRF", "bm25": "BM25"}.get(mode, self.found.metric))
        return [
            [(self.name(key), sign(score)) for key, score in zip(one.ids, one.distances, strict=True)]
            for one in answers
        ]

    def _part(self, mode: str, texts: list[str]) -> dict[str, Any]:
        if mode == "bm25":
            return {"data": texts, "anns_field": self.found.sparse, "param": {"metric_type": "BM25"}}
        data = [self.vector[text] for text in texts]
        return {"data": data, "anns_field": self.found.vector, "param": {"metric_type": self.found.metric}}


def signed(metric: str) -> Callable[[float], float]:
    """How a metric's distance becomes a score that is higher for better documents.

    ``BM25`` comes as a score from a server and negated from Milvus Lite, but is never below 0 itself; ``L2`` is a
    distance; ``COSINE``, ``IP`` and ``RRF`` are scores.
    """
    return {"BM25": abs, "L2": lambda distance: -distance}.get(metric, float)


class _CollectionIndex:
    """The index of one collection: ours, built where it is not there, or one that the user named."""

    def __init__(self, ranker: Milvus, milvus: Any, collection: Collection) -> None:
        self.ranker, self.milvus, self.collection = ranker, milvus, collection
        self.dense = Dense(ranker.model, text=ranker.text) if ranker.mode != "bm25" else None
        self.metric = ranker.metric.upper()
        if self.dense is not None and ranker.metric == "auto":
            self.metric = "COSINE" if self.dense.cosine else "IP"
        self.order = insertion_order(collection)
        self.texts = collection.texts(ranker.text)

    def opened(self) -> tuple[_MilvusSearch, dict[str, Any]]:
        """The index, loaded and checked, and what the run's spec says of it."""
        ranker, milvus = self.ranker, self.milvus
        name = ranker.collection or self._built()
        found = describe_index(milvus, name)
        self._check(found)
        milvus.load_collection(name)
        called: Callable[[Any], str] = str
        if ranker.collection is None:
            called = self.collection.ids.gather(self.order).to_list().__getitem__
        else:
            sample = check_documents(milvus, found, self.collection)
            if self.dense is not None and len(sample):
                expected = self._encoded(self.dense.encoder, sample, "comparing with the index")(slice(None))
                check_vectors(milvus, found, self.collection.ids.gather(sample).to_list(), expected)
        spec: dict[str, Any] = {"engine": {"version": milvus.get_server_version(), "index": name}}
        if ranker.collection is None and ranker.mode != "dense" and (cut := self._cut()):
            spec["cut"] = {"limit": LONGEST, "documents": cut}
        if self.dense is None:
            return _MilvusSearch(ranker, milvus, found, called, {}), spec
        spec["engine"] |= {"metric": found.metric, "kind": found.kind}
        queries = list(dict.fromkeys(ranker.read_queries(self.collection.judged["text"]).to_list()))
        stored, row = self.dense.encoder.encode(queries, "query", f"{ranker!r}: encoding queries")
        vectors = dict(zip(queries, stored.take(row), strict=True)) if queries else {}
        spec |= {**self.dense.provenance(), **self.dense.about(self.collection)}
        return _MilvusSearch(ranker, milvus, found, called, vectors), spec

    def _built(self) -> str:
        """Name of the index, which holds all documents then; the name is that of its contents and of nothing else."""
        ranker, ids, texts = self.ranker, self.collection.ids.gather(self.order), self.texts.gather(self.order)
        settings = {"mode": ranker.mode, "layout": 2}
        if ranker.mode != "dense":
            settings["analyzer"] = ranker.analyzer
        if self.dense is not None:
            settings |= {"model": self.dense.encoder.fingerprint, "metric": self.metric}
        whole = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=12)
        for text in chain(ids, texts):
            whole.update(f"{len(text)}:{text}".encode())
        name = f"ranktilt_{ranker.mode}_{whole.hexdigest()}"
        if not is_whole(self.milvus, name, len(ids)):
            contents = IndexContents(
                None if ranker.mode == "dense" else lambda part: texts[part].to_list(),
                None if self.dense is None else self._encoded(self.dense.encoder, self.order, "encoding documents"),
                self.metric, ranker.analyzer, len(ids),
            )  # fmt: skip
            build(self.milvus, name, contents, f"{ranker!r}: indexing")
        return name

    def _encoded(self, model: Encoder | EmbeddingServer, rows: Rows, label: str) -> Callable[[slice], Vectors]:
        """Encode some documents, whose vectors lie in the cache then, and read parts of them."""
        stored, row = model.encode(self.texts.gather(rows).to_list(), "document", f"{self.ranker!r}: {label}")
        return lambda part: stored.take(row[part])

    def _cut(self) -> dict[str, int]:
        """By source how many texts are longer than a field holds; told in a warning."""
        sources = self.collection.docs["source"].filter(self.texts.str.len_bytes() > LONGEST)
        by_source = {name: int((sources == name).sum()) for name in self.collection.sources if len(sources)}
        if by_source:
            which = ", ".join(f"{n} of {name}" for name, n in by_source.items())
            documents = counted(len(sources), "document", "documents")
            warnings.warn(
                f"{self.ranker!r}: {documents} cut after {LONGEST:,} bytes, the most that Milvus holds ({which})",
                DataWarning,
                stacklevel=6,
            )
        return by_source

    def _check(self, found: MilvusIndex) -> None:
        """Refuse an index without the field that the mode searches, or that compares otherwise than the model."""
        who = f"{self.ranker!r}: {found.name!r}"
        if self.ranker.mode != "dense" and not found.sparse:
            raise UserError(f"{who} has no function for BM25; choose mode=dense, or leave collection= out")
        if self.dense is None:
            return
        if not found.vector:
            raise UserError(f"{who} has no vectors; choose mode=bm25, or leave collection= out")
        if found.metric != self.metric:
            raise UserError(f"{who} compares by {found.metric or 'nothing'}, expected {self.metric}; see metric=")


def insertion_order(collection: Collection) -> Rows:
    """Rows in the order in which they are inserted and numbered.

    Milvus decides between equal scores by number or place; a hash of the ids sees to it that neither has to do
    with the source. It spreads the sources evenly over segments too, each of which Milvus Lite weighs terms by itself.
    """
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in collection.ids)
    return np.argsort(np.frombuffer(digests, dtype="<u8"), kind="stable")
