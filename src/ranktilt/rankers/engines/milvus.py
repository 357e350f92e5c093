"""Milvus, asked as an engine that is up: embedded in a file, a server or a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import DataWarning, UserError, counted, unknown
from ranktilt.models.encoder import Encoder
from ranktilt.optional import need
from ranktilt.rankers.dense.embedding_server import EmbeddingServer
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.engines.answers import Hits
from ranktilt.rankers.engines.base import LiveEngine, Session
from ranktilt.rankers.engines.client import retry_policy
from ranktilt.rankers.engines.milvus_build import (
    CHUNK,
    PAUSE,
    IndexFields,
    IndexRows,
    build,
    index_name,
    insertion_order,
    is_whole,
    sole_builder,
)
from ranktilt.rankers.engines.milvus_index import (
    LONGEST,
    MilvusIndex,
    check_documents,
    check_vectors,
    client,
    cut_bytes,
    describe_index,
    failure,
    is_address,
    require_place,
    stored_fields,
)

MODES = ("dense", "bm25", "hybrid")
METRICS = ("auto", "cosine", "ip", "l2")
FUSION = 60
"""The constant of reciprocal rank fusion, as its authors chose it (Cormack et al., SIGIR 2009)."""
_OF_SIMILARITY = {"cosine": "COSINE", "dot": "IP"}
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
        for option, choices in (("mode", MODES), ("metric", METRICS), ("text", TEXT_CHOICES)):
            if getattr(self, option) not in choices:
                raise unknown(f"{option} of milvus", getattr(self, option), choices)
        if self.mode == "bm25" and self.metric != "auto":
            raise UserError(f"milvus: metric={self.metric} is for vectors; mode=bm25 has a metric of its own")

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[Session]:
        """Connect, and build the index where there is none; see `LiveEngine.connected`."""
        with client(self.place, self.timeout) as milvus:
            try:
                search = _MilvusSearch.of(self, milvus, collection)
            except Exception as error:
                if not type(error).__module__.startswith(("pymilvus", "grpc")):
                    raise
                raise UserError(f"{self!r}: {failure(self.place, error)}") from error
            limit = max(min(depth, collection.docs.height), 1)
            # Milvus Lite runs in this process, where calls at once would only slow each other down.
            concurrency = self.concurrency if is_address(self.place) else 1
            yield Session(lambda texts, _: search.ask(texts, limit), search.spec, _BATCH, concurrency)


@dataclass(frozen=True)
class _MilvusSearch:
    """An index that is ready to be asked."""

    ranker: Milvus
    milvus: Any
    found: MilvusIndex
    name: Callable[[Any], str]
    vector: dict[str, npt.NDArray[np.float32]]
    spec: dict[str, Any]

    @classmethod
    def of(cls, ranker: Milvus, milvus: Any, collection: Collection) -> _MilvusSearch:
        neural = ranker.mode != "bm25"
        dense = Dense(ranker.model, text=ranker.text)
        model = dense.encoder if neural else None
        metric = _metric(ranker, "cosine" if dense.cosine else "dot") if model else ""
        index = _CollectionIndex(ranker, milvus, collection, model, metric)
        found, cut = index.opened()
        spec: dict[str, Any] = {"engine": {"version": milvus.get_server_version(), "index": found.name}}
        if cut:
            spec["cut"] = {"limit": LONGEST, "documents": cut}
        if not model:
            return cls(ranker, milvus, found, index.name, {}, spec)
        spec["engine"] |= {"metric": found.metric, "kind": found.kind}
        queries = list(dict.fromkeys(ranker.read_queries(collection.judged["text"]).to_list()))
        vectors, row = model.encode(queries, "query", f"{ranker!r}: encoding queries")
        of_text = dict(zip(queries, vectors.take(row), strict=True)) if queries else {}
        return cls(
            ranker, milvus, found, index.name, of_text, {**spec, **dense.provenance(), **dense.about(collection)}
        )

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
        sign = signed("RRF" if mode == "hybrid" else "BM25" if mode == "bm25" else self.found.metric)
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


def _metric(ranker: Milvus, similarity: str) -> str:
    return _OF_SIMILARITY[similarity] if ranker.metric == "auto" else ranker.metric.upper()


class _CollectionIndex:
    """The index of one collection: ours, built where it is not there, or one that the user named."""

    def __init__(
        self, ranker: Milvus, milvus: Any, collection: Collection, model: Encoder | EmbeddingServer | None, metric: str
    ) -> None:
        self.ranker, self.milvus, self.collection = ranker, milvus, collection
        self.model, self.metric = model, metric
        self.order = insertion_order(collection)
        self.ids: list[str] = collection.ids.gather(self.order).to_list()
        self.texts = collection.texts(ranker.text)

    def opened(self) -> tuple[MilvusIndex, dict[str, int]]:
        """The index, loaded and checked, and by source how many of its texts are cut."""
        cut: dict[str, int] = {}
        if self.ranker.collection is None:
            name, cut = self._built()
        else:
            name = self.ranker.collection
        found = describe_index(self.milvus, name)
        self._check(found)
        self.milvus.load_collection(name)
        if self.ranker.collection is not None:
            self._compare(found)
        return found, cut

    def name(self, key: Any) -> str:
        """A document's id by what the index calls it."""
        return self.ids[key] if self.ranker.collection is None else str(key)

    def _built(self) -> tuple[str, dict[str, int]]:
        ranker, total = self.ranker, len(self.ids)
        settings: dict[str, Any] = {"mode": ranker.mode, "layout": 1}
        if ranker.mode != "dense":
            settings["analyzer"] = ranker.analyzer
        if self.model is not None:
            settings |= {"model": self.model.fingerprint, "metric": self.metric}
        parts = (self._texts(self.order[start : start + CHUNK]) for start in range(0, total, CHUNK))
        name = index_name(self.ids, chain.from_iterable(parts), settings)
        cut = self._cut() if ranker.mode != "dense" else {}
        if not is_whole(self.milvus, name, total):
            fields = IndexFields(ranker.mode != "dense", self.metric, ranker.analyzer)
            policy, label = retry_policy(ranker.timeout, ranker.attempts, pause=PAUSE), f"{ranker!r}: indexing"
            with sole_builder(repr(ranker), ranker.place, name):
                build(self.milvus, name, fields, self._read, total=total, policy=policy, label=label)
        return name, cut

    def _texts(self, rows: npt.NDArray[np.int64]) -> list[str]:
        texts: list[str] = self.texts.gather(rows).to_list()
        return texts

    def _read(self, numbers: npt.NDArray[np.int64]) -> IndexRows:
        """Documents by their numbers in the index, encoded where there is a model."""
        texts, vectors = self._texts(self.order[numbers]), None
        if self.model is not None:
            stored, row = self.model.encode(texts, "document", f"{self.ranker!r}: encoding documents")
            vectors = stored.take(row)
        return IndexRows([self.ids[n] for n in numbers], [cut_bytes(text) for text in texts], vectors)

    def _cut(self) -> dict[str, int]:
        """By source how many texts are longer than a field holds; told in a warning."""
        sources = self.collection.docs["source"].filter(self.texts.str.len_bytes() > LONGEST)
        by_source = {name: int((sources == name).sum()) for name in self.collection.sources if len(sources)}
        if len(sources):
            which = ", ".join(f"{n} of {name}" for name, n in by_source.items())
            documents = counted(len(sources), "document", "documents")
            warnings.warn(
                f"{self.ranker!r}: {documents} cut after {LONGEST:,} bytes, the most that Milvus holds ({which})",
                DataWarning,
                stacklevel=8,
            )
        return by_source

    def _check(self, found: MilvusIndex) -> None:
        """Refuse an index without the field that the mode searches, or that compares otherwise than the model."""
        who = f"{self.ranker!r}: {found.name!r}"
        if self.ranker.mode != "dense" and not found.sparse:
            raise UserError(f"{who} has no function for BM25; choose mode=dense, or leave collection= out")
        if self.model is None:
            return
        if not found.vector:
            raise UserError(f"{who} has no vectors; choose mode=bm25, or leave collection= out")
        if found.metric != self.metric:
            hint = (
                f"; metric={found.metric.lower()} ranks by it all the same" if found.metric.lower() in METRICS else ""
            )
            raise UserError(f"{who} compares by {found.metric or 'nothing'}, expected {self.metric}{hint}")

    def _compare(self, found: MilvusIndex) -> None:
        sample = check_documents(self.milvus, found, self.collection)
        if self.model is None or not sample:
            return
        names = [self.collection.ids[row] for row in sample]
        stored = stored_fields(self.milvus, found, names, [found.key, found.vector])
        texts = self._texts(np.array(sample))
        vectors, row = self.model.encode(texts, "document", f"{self.ranker!r}: comparing with the index")
        held = np.array([stored[name][found.vector] for name in names], dtype=np.float32)
        check_vectors(f"{self.ranker!r}: {found.name!r}", held, vectors.take(row))
