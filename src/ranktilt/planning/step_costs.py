"""The steps of an audit, measured on samples of several sizes: time, memory at its peak and bytes written."""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.load import NO_QRELS, load
from ranktilt.datasets.save import save
from ranktilt.errors import DataWarning, UserError
from ranktilt.io.cache import VectorCache, cache_folder, content_keys
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.progress import listening, report
from ranktilt.rankers.base import FirstStage, Ranker, stages_of
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.lexical.bm25 import Lexical
from ranktilt.rankers.llm.base import LLMRanker
from ranktilt.rankers.replay import Replay

DOCUMENTS, QUERIES, PRODUCT, RESULTS = "documents", "queries", "documents × queries", "results"
SIZES = 3
"""Samples that are measured at least."""
_COPIES, _COPIED, _QUERIES, _NUMBERS, _CANDIDATES = 64, 20_000, 500, 1 << 26, 20_000
"""At most: copies of a document in a sample, and documents of one with copies, which bring no new words, of which an
index is measured; queries where no model computes, numbers of pretended vectors, and documents among which candidates
of a re-ranker are found."""
_FIRST, _FIRST_SLOW, _FEWER_QUERIES = 1_024, 64, 4
"""Documents of the first sample (in far fewer, lists are as long as the collection), of one where a model computes, and
by how many times fewer queries each is measured too."""
_GROWTH, _LEAST_GROWTH, _DEARER = 4, 1.5, 1.25
"""How much larger each sample is than the one before, at least where the time is short, and how much longer a document
of it may take."""
_PAUSE, _STATUS = 0.004, Path("/proc/self/statm")


class Measurement(NamedTuple):
    """One step on one sample; NaN for what does not apply or could not be measured."""

    step: str
    """Ranker and name."""
    documents: int
    queries: int
    results: int
    """Results of the run that was made, or pairs that were scored."""
    seconds: float
    processor: float
    memory: float
    disk: float


@dataclass(frozen=True)
class Step:
    """A step of the work, and which terms of the size its cost is made of."""

    ranker: str
    name: str
    terms: tuple[str, ...]
    depth: int = 0
    """Results of a query at most, where they count."""
    batched: bool = False
    """Whether it works in batches, which cost as much as each other: memory does not grow, and time no other way."""

    def terms_of(self, quantity: str) -> tuple[str, ...]:
        """What a quantity is made of, after a fixed part: no memory is held and no byte written for a product."""
        if quantity == "memory":
            return () if self.batched else (DOCUMENTS,)
        return tuple(term for term in self.terms if term != PRODUCT) if quantity == "disk" else self.terms

    @property
    def key(self) -> str:
        """What its measurements are called."""
        return f"{self.ranker}: {self.name}" if self.ranker else self.name


LOAD = Step("", "load", (DOCUMENTS, QUERIES))


@dataclass
class Usage:
    """What a block that is measured says of itself."""

    results: int = 0
    disk: float = 0.0
    """Bytes that it would write beside what it does."""


class Stopwatch:
    """Takes the measurements of steps; `held` are bytes of the process that a run of the real size would not hold."""

    def __init__(self, held: float = 0.0) -> None:
        self.measurements: list[Measurement] = []
        self._held = held

    @contextmanager
    def __call__(self, step: str, given: Collection) -> Iterator[Usage]:
        """Measure the block as a step on a sample."""
        usage, before = Usage(), _folder_size(cache_folder())
        with _peak_memory() as peak:
            wall, processor = time.perf_counter(), time.process_time()
            yield usage
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
        size = given.docs.height, given.judged.height, usage.results
        disk = _folder_size(cache_folder()) - before + usage.disk
        self.measurements.append(Measurement(step, *size, wall, processor, max(peak) - self._held, disk))


@contextmanager
def _peak_memory() -> Iterator[list[float]]:
    """Follow the memory of the process that is no file's; NaN where the system does not tell."""
    seen, over = [_anonymous_memory()], threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE):
            seen[0] = max(seen[0], _anonymous_memory())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
        seen.append(_anonymous_memory())
    finally:
        over.set()
        thread.join()


def _anonymous_memory() -> float:
    try:
        _, resident, shared = _STATUS.read_bytes().split()[:3]
    except OSError:
        return math.nan
    return float(int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _folder_size(folder: Path) -> float:
    return float(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


def sample(collection: Collection, documents: int, queries: int, *, seed: int) -> Collection:
    """Draw about so many documents and queries, evenly over their lengths; where there are too few, from copies.

    Documents of one origin are drawn together. A query keeps about as many judgments as it has, which are given to
    documents of the sample by chance, all of one origin alike: what is measured is time, and not effectiveness.
    """
    rng, docs = np.random.default_rng([seed, documents, queries]), collection.docs
    mark = pl.col("id", "origin")
    copies = (
        docs.with_columns(mark + f"\ue000{n}", text=pl.col("text") + " " * n)  # another text of the same words
        for n in range(1, -(-documents // docs.height))
    )
    docs = pl.concat([docs, *copies])
    size = pl.col("text").str.len_bytes() + pl.col("title").str.len_bytes()
    origins = docs.group_by("origin").agg(size.sum().alias("bytes")).sort("bytes", "origin")
    chosen = _drawn(origins, round(documents * origins.height / docs.height), rng)
    docs = docs.join(chosen, on="origin", how="semi", maintain_order="left")
    asked = _drawn(collection.judged.sort(pl.col("text").str.len_bytes(), "id"), queries, rng)
    qrels = collection.qrels.join(asked, left_on="query_id", right_on="id", how="semi")
    return Collection(docs, asked, _judged_by_chance(qrels, docs, rng), {"split": "test"})


def _drawn(rows: pl.DataFrame, most: int, rng: np.random.Generator) -> pl.DataFrame:
    """Rows at even distances, from a random one on; at least one."""
    number = min(max(most, 1), rows.height)
    return rows[((np.arange(number) + rng.random()) * rows.height / number).astype(np.int64)]


def _judged_by_chance(qrels: pl.DataFrame, docs: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """About as many judgments of the same queries and grades, of other documents; an audit of twins takes less time."""
    versions = max(round(docs.height / docs["origin"].n_unique()), 1)
    some = qrels.sort(pl.col("grade"), descending=True, maintain_order=True)
    some = some.filter(pl.col("doc_id").cum_count().over("query_id") % versions == 1 % versions)
    drawn = docs["origin"].gather(rng.integers(docs.height, size=some.height))
    judged = some.with_columns(origin=drawn).join(docs.select("origin", "id"), on="origin", maintain_order="left")
    judged = judged.select("query_id", pl.col("id").alias("doc_id"), "grade")
    return judged.unique(["query_id", "doc_id"], keep="first", maintain_order=True)


@dataclass(frozen=True)
class Experiment:
    """Steps that are measured together on one sample after the other."""

    label: str
    measure: Callable[[Collection, Stopwatch], None]
    collection: Collection
    documents: int
    """Of the largest sample."""
    queries: int
    slow: bool = False
    """Whether a model computes in it, so that a smaller sample has fewer queries, too."""
    documents_vary: bool = True
    """Whether a smaller sample has fewer documents."""

    def once(self, share: float, fewer: int, watch: Stopwatch, *, seed: int) -> None:
        """Measure on one sample, with an empty cache."""
        documents = self.documents * (share if self.documents_vary else 1)
        queries = self.queries / fewer * (share if self.slow else 1)
        given = sample(self.collection, max(round(documents), 1), max(round(queries), 1), seed=seed)
        with empty_cache(), listening(lambda *_: None), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            self.measure(given, watch)

    def carry_out(self, watch: Stopwatch, *, seconds: float, seed: int) -> None:
        """Measure on larger and larger samples, each with few and with many queries, until the time is spent.

        There are three at least. The first is measured twice: it warms up.
        """
        begun = time.perf_counter()
        first = (_FIRST_SLOW if self.slow else _FIRST) / self.documents
        share = min(first if self.documents_vary else 1 / self.queries, _GROWTH ** (1 - SIZES))
        self.once(share, 1, Stopwatch(), seed=seed)
        for number in count(1):
            start = time.perf_counter()
            for fewer in (_FEWER_QUERIES, 1):
                self.once(share, fewer, watch, seed=seed + number)
            spent, took = time.perf_counter() - begun, time.perf_counter() - start
            report(f"measuring {self.label}", min(int(spent), int(seconds)), int(seconds) + 1)
            growth = _GROWTH if number < SIZES else min((seconds - spent) / max(_DEARER * took, 1e-9), _GROWTH)
            if share == 1 or growth < _LEAST_GROWTH:
                break
            share = min(growth * share, 1.0)
        report(f"measuring {self.label}", int(seconds) + 1, int(seconds) + 1)


@contextmanager
def empty_cache() -> Iterator[None]:
    """Let everything be computed anew inside the block, and keep nothing of it."""
    usual = os.environ.get("RANKTILT_CACHE")
    with tempfile.TemporaryDirectory(prefix="ranktilt-plan-") as folder:
        os.environ["RANKTILT_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("RANKTILT_CACHE")
            if usual is not None:
                os.environ["RANKTILT_CACHE"] = usual


def loading(collection: Collection, planned: int, *, large: bool) -> Experiment:
    """Load collections that lie on disk in BEIR's layout; texts of `large` ones are mapped from files."""

    def measure(given: Collection, watch: Stopwatch) -> None:
        folder = save(given, cache_folder() / "collection", rows_per_file=given.docs.height if large else None)
        size = _folder_size(folder)
        with watch(LOAD.key, given) as usage:
            load(folder, qrels=None if given.qrels.height else NO_QRELS)
            usage.disk = size

    most, queries = min(planned, _COPIES * collection.docs.height), min(collection.judged.height, _QUERIES)
    return Experiment("loading", measure, collection, most, queries)


class RankerSteps:
    """What a ranker does; each of its stages computes on this machine."""

    def __init__(self, ranker: Ranker) -> None:
        stages: list[Any] = list(stages_of(ranker))
        for stage in stages:
            asks = isinstance(stage, Dense) and not isinstance(stage.encoder, Encoder)
            if isinstance(stage, LLMRanker):
                raise UserError(f"{stage!r}: requests of language models are estimated by ranktilt rank --dry-run")
            if isinstance(stage, LiveEngine | Replay) or asks:
                raise UserError(f"{stage!r}: what a server or a saved run takes cannot be measured here; try bm25")
            stage.check()
        if not isinstance(stages[0], FirstStage):
            raise UserError(f"{ranker!r}: no stage searches; put one first, such as bm25@100>>{ranker!r}")
        self._name, (self._first, *self._later) = repr(ranker), stages
        first, text = self._first, repr(self._first)
        depths = list(accumulate(self._later, lambda depth, stage: min(depth, stage.k or depth), initial=first.depth))
        if isinstance(first, Dense):
            name = repr(replace(first, k=None))
            self._prepared = [Step(name, f"encode {kind}", (kind,), batched=True) for kind in (DOCUMENTS, QUERIES)]
        elif isinstance(first, Lexical):  # rankers share it
            of = "" if first.text == "title+text" else f", {first.text}"
            self._prepared = [Step("", f"index documents ({first.analyzer}{of})", (DOCUMENTS,))]
        else:
            self._prepared = [Step(text, "prepare documents", (DOCUMENTS,))]
        self._search = Step(text, "search", (DOCUMENTS, PRODUCT, RESULTS), depths[0])
        self._reranked = [
            Step(self._name, f"re-rank: {stage!r}", (RESULTS,), depth, batched=True)
            for stage, depth in zip(self._later, depths, strict=False)
        ]
        self._audited = Step(self._name, "audit, run saved", (DOCUMENTS, QUERIES, RESULTS), depth=depths[-1])
        self.steps = (*self._prepared, self._search, *self._reranked, self._audited)
        """In the order of the work."""

    def experiments(self, collection: Collection, planned: int) -> Iterator[Experiment]:
        """The quick one first."""
        documents, queries = collection.docs.height, collection.judged.height
        most = min(planned, _COPIES * documents)
        if isinstance(self._first, Dense):
            most = min(most, _NUMBERS // self._width)
        yield Experiment(
            f"{self._name}: search and audit", partial(self._measure_search, max(documents, _COPIED)), collection, most,
            min(queries, _QUERIES),
        )  # fmt: skip
        if isinstance(self._first, Dense):
            encode = self._measure_encoding
            yield Experiment(f"{self._first!r}: encoding", encode, collection, documents, queries, slow=True)
        for number, stage in enumerate(self._later):
            yield Experiment(
                f"{self._name}: {stage!r}", partial(self._measure_stage, number), collection,
                min(documents, _CANDIDATES), queries, slow=True, documents_vary=False,
            )  # fmt: skip

    def _measure_search(self, indexed: int, given: Collection, watch: Stopwatch) -> None:
        """Index samples of so many documents at most, search and audit; where a model encodes, over random vectors."""
        first, depth = replace(self._first), self._audited.depth
        if isinstance(first, Dense):
            self._pretend_vectors(first, given)
        else:
            with watch(self._prepared[0].key, given) if given.docs.height <= indexed else nullcontext():
                first.rank(given.only_queries(given.judged["id"][:1]))
        with watch(self._search.key, given) as usage:
            run = first.rank(given)
            usage.results = len(run.docs)
        if depth < first.depth:
            run = replace(first, k=depth).rank(given)
        with watch(self._audited.key, given) as usage:
            run.save(cache_folder() / "run.trec")
            audit(given, run, by="source" if len(given.sources) > 1 else None, card=not given.qrels.height)
            usage.results = len(run.docs)

    def _pretend_vectors(self, stage: Dense, given: Collection) -> None:
        """Put random vectors into the cache: a search takes as long as with the model's, which take hours."""
        encoder, rng = stage.encoder, np.random.default_rng(0)
        cache = VectorCache(cache_folder() / "embeddings" / encoder.fingerprint, dtype=encoder.store)
        queries = stage.read_queries(given.judged["text"])
        read: list[tuple[Kind, pl.Series]] = [("document", given.texts(stage.text)), ("query", queries)]
        for kind, texts in read:
            keys = np.unique(content_keys(texts, prefix=kind))
            cache.put(keys, rng.normal(size=(len(keys), self._width)).astype(np.float32))
        stage.rank(given.only_queries(given.judged["id"][:1]))  # tokens are counted: a part of encoding

    @cached_property
    def _width(self) -> int:
        return int(self._first.encoder.encode(["a text"], "query", "")[0].shape[1])

    def _measure_encoding(self, given: Collection, watch: Stopwatch) -> None:
        stage, (documents, queries) = replace(self._first), self._prepared
        with watch(documents.key, given):
            stage.encoder.encode(given.texts(stage.text).to_list(), "document", "")
        with watch(queries.key, given):
            stage.encoder.encode(stage.read_queries(given.judged["text"]).to_list(), "query", "")

    def _measure_stage(self, number: int, given: Collection, watch: Stopwatch) -> None:
        step, stage = self._reranked[number], replace(self._later[number])
        first = replace(self._first, k=step.depth)
        if isinstance(first, Dense):
            self._pretend_vectors(first, given)
        run = first.rank(given)
        with watch(step.key, given) as usage:
            usage.results = len(run.docs)
            stage.rank(given, run)
