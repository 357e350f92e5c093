"""The steps of an audit, and how each is measured by itself with what RankTilt uses for it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.load import NO_QRELS, load
from ranktilt.datasets.save import save
from ranktilt.errors import UserError
from ranktilt.executing.memory_limits import index_files_from, vector_folder
from ranktilt.generation.estimate import estimate
from ranktilt.generation.rewrite.plan import Rewriting
from ranktilt.generation.rewrite.plan import plan as rewriting_plan
from ranktilt.io.cache import VectorCache, cache_folder, content_keys
from ranktilt.llm.base import LLM
from ranktilt.llm.estimate import time_of
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.planning.measuring import Experiment, Stopwatch, Taken, folder_size
from ranktilt.planning.sample import repeated, repeated_run, without_rewrites
from ranktilt.rankers.base import FirstStage, Ranker, stages_of
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import InMemory, search
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.lexical.bm25 import Lexical
from ranktilt.rankers.lexical.index import LARGE, documents_a_part, terms
from ranktilt.rankers.lexical.index_files import PostingTable
from ranktilt.rankers.llm.base import LLMRanker
from ranktilt.rankers.replay import Replay
from ranktilt.run import Run

DOCUMENTS, QUERIES, PRODUCT, RESULTS = "documents", "queries", "documents × queries", "results"
VOCABULARY = "vocabulary"
PLANNED = "planned rewrites"
"""The source of documents that stand in for rewrites."""
_TIMES, _POSTINGS, _NUMBERS, _RESULTS = 64, 1 << 23, 1 << 26, 1 << 20
"""How many times a sample's documents are searched; postings, numbers of vectors and results made of it at most."""
_PARTS, _FEW, _QUERIES, _FEWER = 2, 3, 500, 4
"""Where documents are many: parts of them for each thread, how often they are measured, queries, and times fewer."""
_REPEATS = 5
"""Searches of one sample, which are quick beside all else."""
_CANDIDATES = 20_000
"""Documents at most among which the pairs of a re-ranker's sample are found."""
_REWRITTEN = 4_000
"""Documents at most whose prompts are counted."""


@dataclass(frozen=True)
class Step:
    """A step of the work: which terms of the size its cost is made of, and whether machines can share it."""

    ranker: str
    name: str
    terms: tuple[str, ...]
    spreads: bool = False
    depth: int = 0
    """Results of a query at most, where they count."""
    batched: bool = False
    """Whether it works in batches, which cost as much as each other: memory does not grow, and time no other way."""
    limited: bool = False
    """Whether it keeps to the limit of the memory."""

    @property
    def memory_terms(self) -> tuple[str, ...]:
        """What its memory is made of: nothing holds a number for each document and query."""
        return () if self.batched else tuple(dict.fromkeys((DOCUMENTS, *({RESULTS} & set(self.terms)))))

    @property
    def disk_terms(self) -> tuple[str, ...]:
        """What it writes: of a run its results and nothing else, and queries beside documents are no part of it."""
        if RESULTS in self.terms:
            return (RESULTS,)
        return tuple(term for term in self.terms if term != QUERIES or DOCUMENTS not in self.terms)

    @property
    def key(self) -> str:
        """What its measurements are called."""
        return f"{self.ranker}: {self.name}" if self.ranker else self.name


LOAD = Step("", "load", (DOCUMENTS, QUERIES))


def text_bytes(collection: Collection) -> int:
    """Bytes of the texts and titles of a collection's documents."""
    size = pl.col("title", "text").str.len_bytes().cast(pl.Int64).sum()
    return sum(collection.docs.select(size).row(0))


def many_documents(collection: Collection, planned: int) -> tuple[int, int]:
    """Documents of a sample, and times, that are together enough for all threads to have parts of them."""
    count = collection.docs.height
    enough = min(planned, _PARTS * pl.thread_pool_size() * documents_a_part(count, text_bytes(collection)))
    return min(count, enough), math.ceil(enough / count)


def load_experiments(collection: Collection, planned: int, *, large: bool) -> Iterator[Experiment]:
    """Load collections that lie on disk in BEIR's layout; texts of `large` ones are mapped from files."""
    documents, times = many_documents(collection, planned)
    queries = collection.judged.height
    yield Experiment("loading", partial(_measure_load, large, 1), (collection.docs.height, queries))
    yield Experiment("loading", partial(_measure_load, large, times), (documents, queries), repeats=_FEW)


def _measure_load(large: bool, times: int, given: Collection, watch: Stopwatch) -> None:
    many = repeated(given, times)
    folder = save(many, cache_folder() / "collection", parts=many.docs.height if large else None)
    size = folder_size(folder)
    with watch(LOAD.key, many) as taken:
        load(folder, qrels=None if given.qrels.height else NO_QRELS)
        taken.disk, taken.times = size, times


class Rewrites:
    """Rewriting by a language model, which is not asked: its prompts are made and their tokens counted."""

    step = Step("", "rewrite", (DOCUMENTS,), spreads=True, batched=True)

    def __init__(self, llm: LLM, collection: Collection) -> None:
        self._llm = llm
        source = "human" if "human" in collection.sources else collection.sources[0]
        self._how = Rewriting(of=source, source=PLANNED)
        self._most = min(collection.docs.height, _REWRITTEN), 1
        self.share = rewriting_plan(collection, llm, self._how).chosen / collection.docs.height
        """Documents that are rewritten, of all."""

    def experiments(self) -> Iterator[Experiment]:
        """One."""
        yield Experiment("prompts", self._measure, self._most)

    def _measure(self, given: Collection, watch: Stopwatch) -> None:
        if self._how.of not in given.sources:
            return
        given = without_rewrites(given, PLANNED)
        with watch(self.step.key, given) as taken:
            found = estimate(rewriting_plan(given, self._llm, self._how), self._llm)
            _count(taken, found.tokens_in, found.tokens_out, found.seconds)


def _count(taken: Taken, tokens_in: int, tokens_out: int, seconds: float | None) -> None:
    taken.tokens_in, taken.tokens_out = tokens_in, tokens_out
    taken.seconds = math.nan if seconds is None else seconds


class RankerSteps:
    """What a ranker does; each of its stages computes on this machine, or can be rehearsed without asking anything."""

    def __init__(self, ranker: Ranker, documents: int) -> None:
        self._name, self._planned, stages = repr(ranker), documents, stages_of(ranker)
        for stage in stages:
            asks = isinstance(stage, Dense) and not isinstance(stage.encoder, Encoder)
            if isinstance(stage, LiveEngine | Replay) or asks:
                raise UserError(
                    f"{stage!r}: what a server or a saved run takes cannot be measured here; name a ranker that this "
                    "machine computes, such as bm25"
                )
            if not isinstance(stage, LLMRanker):  # they are not asked, and need no key
                stage.check()
        if not isinstance(stages[0], FirstStage):
            raise UserError(f"{ranker!r}: no stage searches; put one first, such as bm25@100>>{ranker!r}")
        self.first: Any = stages[0]
        self._later: tuple[Any, ...] = stages[1:]
        self._lengths: dict[int, Any] = {}
        """Results of each query of a first stage's run, by the documents of the sample."""

    @property
    def lexical(self) -> bool:
        """Whether it searches by words."""
        return isinstance(self.first, Lexical)

    def _depth(self, stages: int) -> int:
        """Results of a query, at most, after so many stages."""
        return int(min([self.first.depth, *(one.k for one in self._later[: stages - 1] if one.k)]))

    def steps(self) -> Iterator[Step]:
        """In the order of the work."""
        yield from self._prepared
        yield self._search
        for number, stage in enumerate(self._later, 1):
            yield Step(self._name, f"re-rank: {stage!r}", (RESULTS,), True, self._depth(number), True)
        depth = self._depth(len(self._later) + 1)
        yield Step(self._name, "audit, run saved", (DOCUMENTS, VOCABULARY, QUERIES, RESULTS), depth=depth)

    @property
    def _search(self) -> Step:
        terms = (PRODUCT, RESULTS) if self.lexical else (DOCUMENTS, PRODUCT, RESULTS)
        return Step(repr(self.first), "search", terms, True, self.first.depth, limited=True)

    @property
    def _prepared(self) -> tuple[Step, ...]:
        """What is done before a search; the same for rankers that share it."""
        first = self.first
        if isinstance(first, Lexical):
            of = "" if first.text == "title+text" else f", {first.text}"
            return (Step("", f"index documents ({first.analyzer}{of})", (DOCUMENTS, VOCABULARY), True),)
        name = repr(replace(first, k=None)) if isinstance(first, Dense) else repr(first)
        if isinstance(first, Dense):
            documents = Step(name, "encode documents", (DOCUMENTS,), spreads=True, batched=True)
            return documents, Step(name, "encode queries", (QUERIES,), spreads=True, batched=True)
        return (Step(name, "prepare documents", (DOCUMENTS,), True),)

    def results(self, documents: int, queries: int, depth: int) -> float:
        """Results of so many queries over so many documents, as the lists of the largest sample would grow."""
        sampled = max(self._lengths)
        return float(np.minimum(self._lengths[sampled] * (documents / sampled), depth).mean()) * queries

    def experiments(self, collection: Collection) -> Iterator[Experiment]:
        """The quick one first."""
        documents, queries = collection.docs.height, collection.judged.height
        yield Experiment(f"{self._name}: search and audit", self._measure_search, (documents, queries))
        if isinstance(self.first, Dense):
            yield Experiment(f"{self.first!r}: encoding", self._measure_encoding, (documents, queries), slow=True)
        sampled, times = many_documents(collection, self._planned)
        measured = partial(self._measure_many, times)
        yield Experiment(f"{self._name}: many documents", measured, (sampled, min(queries, _QUERIES)), repeats=_FEW)
        most = min(documents, _CANDIDATES), queries
        for number, stage in enumerate(self._later, 1):
            measured = partial(self._measure_stage, number)
            yield Experiment(f"{self._name}: {stage!r}", measured, most, (False, True), slow=True)

    def _measure_search(self, given: Collection, watch: Stopwatch) -> None:
        first = self._prepared_first(1, given, watch)
        for _ in range(_REPEATS):
            with watch(self._search.key, given) as taken:
                run = first.rank(given)
                taken.results = len(run.docs)
        self._lengths[given.docs.height] = np.diff(run.offsets)
        self._audit(1, first, given, watch)

    def _measure_many(self, times: int, given: Collection, watch: Stopwatch) -> None:
        """All steps but those of models, over a sample repeated, by all its queries and by some of them."""
        first = self._prepared_first(times, given, watch)
        some = given.only_queries(given.judged["id"][: max(given.judged.height // _FEWER, 1)])
        run = first.rank(given)  # where it is the first time, the index of the sample itself is made
        self._lengths[given.docs.height] = np.diff(run.offsets)
        for asked, share in ((some, 1.0), (given, 1.0), (given, 1 / _FEWER)):  # so that the terms can be told apart
            larger, factor = self._enlarged(first, asked, share)
            with watch.unheeded_memory(), watch(self._search.key, asked) as taken:
                taken.results, taken.documents = len(first.rank(asked).docs), (1 + factor) * given.docs.height
                deque(larger, maxlen=0)
        for asked in (some, given):
            self._audit(times, first, asked, watch)

    def _prepared_first(self, times: int, given: Collection, watch: Stopwatch) -> Any:
        """The first stage, with random vectors, or after its index has been measured."""
        first = replace(self.first)
        if isinstance(first, Dense):
            self._pretend_vectors(first, given)
        elif times == 1 or isinstance(first, Lexical):
            self._measure_index(times, given, watch)
        return first

    def _audit(self, times: int, first: Any, given: Collection, watch: Stopwatch) -> None:
        depth, run = self._depth(len(self._later) + 1), self._candidates(first, given, len(self._later) + 1)
        results = int(np.minimum(np.diff(run.offsets) * times, depth).sum())
        times = max(min(times, _RESULTS // max(results, 1)), 1)
        many = repeated(given, times)
        run = repeated_run(run, many, times, depth)
        with watch(f"{self._name}: audit, run saved", many) as taken:
            run.save(Path(mkdtemp(dir=cache_folder())) / "run.trec")
            audit(many, run, by="source" if len(many.sources) > 1 else None, card=not many.qrels.height)
            taken.results, taken.times = len(run.docs), times

    def _measure_index(self, times: int, given: Collection, watch: Stopwatch) -> None:
        """Make the index, or whatever a ranker makes of the documents before its first query."""
        first, many = self.first, repeated(given, times)
        with watch(self._prepared[0].key, many) as taken:
            taken.times = times
            if not isinstance(first, Lexical):
                first.rank(many.only_queries(many.judged["id"][:1]))
                return
            many.tie_keys()  # kept for all searches, as the index is
            table = terms(many, first.analyzer, first.text).table
            if text_bytes(many) < index_files_from(LARGE):  # else it lies on disk
                taken.disk = sum(getattr(part, "nbytes", 0) for part in vars(table).values())

    def _enlarged(self, first: Any, given: Collection, share: float) -> tuple[Iterator[Any], int]:
        """A search of many times the documents, as an index or vectors made of numbers alone, which are soon there.

        What it takes to score all documents of a large collection is hidden, in a small one, by all else.
        """
        rng = np.random.default_rng(0)
        if isinstance(first, Lexical):
            table, queries = first.read(given, given.judged["text"])
            times = round(share * min(_TIMES, _POSTINGS // max(len(table.rows), 1)))
            return first.best(_repeated(table, times, rng), first.depth, iter([queries])), times
        if isinstance(first, Dense):
            width = self._width(first.encoder)
            times = round(share * min(_TIMES, _NUMBERS // (width * given.docs.height)))
            documents = rng.normal(size=(times * given.docs.height, width)).astype(np.float32)
            asked = rng.normal(size=(given.judged.height, width)).astype(np.float32)
            return search(asked, InMemory(documents), first.depth, cosine=first.cosine, label=""), times
        return iter(()), 0

    def _candidates(self, first: Any, given: Collection, stages: int) -> Run:
        """As many as so many stages would leave."""
        run: Run = replace(first, k=self._depth(stages)).rank(given)
        return run

    def _pretend_vectors(self, stage: Dense, given: Collection) -> None:
        """Put random vectors into the cache: a search takes as long as with the model's, which take hours."""
        encoder, rng = stage.encoder, np.random.default_rng(0)
        width = self._width(encoder)
        cache = VectorCache(vector_folder() / "embeddings" / encoder.fingerprint, dtype=encoder.store)
        queries = stage.read_queries(given.judged["text"])
        read: list[tuple[Kind, pl.Series]] = [("document", given.texts(stage.text)), ("query", queries)]
        for kind, texts in read:
            keys = np.unique(content_keys(texts, prefix=kind))
            cache.put(keys, rng.normal(size=(len(keys), width)).astype(np.float32))
        stage.rank(given.only_queries(given.judged["id"][:1]))  # tokens are counted: a part of encoding

    def _width(self, encoder: Any) -> int:
        if not hasattr(self, "_vector_width"):
            self._vector_width = encoder.encode(["a text"], "query", "")[0].shape[1]
        return int(self._vector_width)

    def _measure_encoding(self, given: Collection, watch: Stopwatch) -> None:
        stage, (documents, queries) = replace(self.first), self._prepared
        with watch(documents.key, given):
            stage.encoder.encode(given.texts(stage.text).to_list(), "document", "")
        with watch(queries.key, given):
            stage.encoder.encode(stage.read_queries(given.judged["text"]).to_list(), "query", "")

    def _measure_stage(self, number: int, given: Collection, watch: Stopwatch) -> None:
        first, stage = replace(self.first), replace(self._later[number - 1])
        if isinstance(first, Dense):
            self._pretend_vectors(first, given)
        run = self._candidates(first, given, number)
        with watch(f"{self._name}: re-rank: {stage!r}", given) as taken:
            taken.results = len(run.docs)
            if isinstance(stage, LLMRanker):
                _, rehearsal = stage.rehearse(given, run)
                totals = rehearsal.totals()
                _count(taken, *totals[1:], time_of(rehearsal.llm, totals)[0])
            else:
                stage.rank(given, run)


def _repeated(table: PostingTable, times: int, rng: np.random.Generator) -> PostingTable:
    """An index of so many times the documents, each as often; their lengths vary, so that few are tied."""
    count = len(table.lengths)
    term = np.tile(np.repeat(np.arange(len(table.offsets) - 1), np.diff(table.offsets)), times)
    order = np.argsort(term, kind="stable")
    rows = (table.rows + count * np.arange(times, dtype=np.int32)[:, None]).ravel()[order]
    lengths = np.tile(table.lengths, times) * rng.uniform(0.5, 2.0, times * count)
    return replace(
        table, rows=rows.astype(np.int32), times=np.tile(table.times, times)[order], offsets=table.offsets * times,
        lengths=np.rint(lengths).astype(np.int32),
    )  # fmt: skip
