"""What all rankers share: depth, ties at the cut, pipelines, templates of queries, and queries that
are documents.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Collection, Ranker, Run, __version__, ranker
from ranktilt.errors import UserError
from ranktilt.progress import listening
from ranktilt.rankers.base import FirstStage, Pipeline, Rows, Scores, prefilter, top_k
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.self_exclusion import exclusion_notes, exclusion_spec, self_documents
from ranktilt.reporting.sentences.notes import note_sentences
from tests.rankers.contract import Counting, ids
from tests.rankers.tiny_rerankers import tiny_classifier, tiny_t5
from tests.refusals import refused
from tests.toy import collection_of, toy, versions


@dataclass(frozen=True, kw_only=True)
class Constant(FirstStage):
    """Finds every document with the same score."""

    name: ClassVar[str] = "constant"
    score: float = 1.0
    strict: bool = False

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        n = collection.docs.height
        for _ in range(collection.queries_with_judgments.height):
            yield np.arange(n), np.full(n, self.score)


def best(entries: list[tuple[float, int]], k: int) -> list[int]:
    scores, keys = [score for score, _ in entries], [key for _, key in entries]
    return top_k(np.array(scores), np.array(keys, dtype=np.uint64), k).tolist()


@given(
    entries=st.lists(
        st.tuples(st.sampled_from([0.0, -1.0, 2.0]), st.integers(0, 4) | st.just(2**64 - 1)),
        max_size=12,
    ),
    k=st.integers(1, 13),
)
def test_the_cut_is_that_of_a_full_sort(entries: list[tuple[float, int]], k: int) -> None:
    order = sorted(range(len(entries)), key=lambda i: (-entries[i][0], entries[i][1], i))
    last = [entries[i] for i in order[:k]][-1:]
    expected = [i for rank, i in enumerate(order) if rank < k or [entries[i]] == last]
    assert best(entries, k) == expected


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 2000),
    k=st.integers(1, 40),
    values=st.sampled_from([1, 3, 10**6]),
)
def test_nothing_prefilter_is_left_out(seed: int, n: int, k: int, values: int) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, values + 1, n) * (draw.random(n) < draw.random()).astype(float)
    scores = np.sort(scores)[:: draw.choice([1, -1])] if seed % 2 else scores
    rows = prefilter(scores, k)
    positive = np.sort(scores[scores > 0])[::-1]
    last = positive[:k][-1] if len(positive) else np.inf
    assert set(np.flatnonzero((scores >= last) & (scores > 0))) <= set(rows)
    assert (scores[rows] > 0).all()
    assert (np.diff(rows) > 0).all()


def test_a_cut_through_ties_takes_whole_origins_whatever_ids_and_sources_are() -> None:
    docs = [
        {"id": f"{s}{n}", "text": f"{s} {n}", "source": s, "origin": f"o{n}"}
        for s in "ab"
        for n in range(20)
    ]
    renamed = [
        {**row, "id": row["id"][::-1], "source": {"a": "y", "b": "x"}[row["source"]]}
        for row in docs
    ]
    chosen = []
    for rows in (docs, renamed):
        collection = collection_of(rows, {"q": "x"}, {"q": {rows[0]["id"]: 1}})
        run = Constant(k=5).rank(collection)
        chosen.append(set(run.docs.tolist()))
        assert (
            len(run.docs) == 2 * collection.docs["origin"].gather(run.docs.tolist()).n_unique() == 6
        )
    assert chosen[0] == chosen[1]


def test_a_first_stage_names_what_made_the_run_and_reports_and_a_dataclass_prints_as_typed() -> (
    None
):
    collection, steps = toy(), list[tuple[str, int, int]]()
    with listening(lambda *step: steps.append(step)):
        run = Constant(k=3).rank(collection)
    assert run.spec == {"ranker": "constant@3", "ranktilt": __version__, "collection": None}
    assert run.ids is collection.ids
    assert steps == [("constant@3: ranking", n, 3) for n in (1, 2, 3)]

    @dataclass(frozen=True)
    class Mine(Wayward):
        name = "mine"
        depth: int = 3

    assert (repr(Mine()), repr(Mine(depth=5))) == ("mine", "mine(depth=5)")


def test_a_pipeline_checks_every_stage_first_and_each_gives_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for message, stages in (
        (
            "wayward ranks documents that are not among its candidates; put it first",
            BM25(k=1) >> Wayward(),
        ),
        ("ranker wayward(run=false) gave NoneType, expected a Run", BM25() >> Wayward(run=False)),
        ("a pipeline needs at least one stage", Pipeline(())),
    ):
        with refused(message):
            stages.rank(toy())
    run = (BM25(k=2) >> Counting(k=1)).rank(toy())
    assert (run.name, np.diff(run.offsets).max()) == ("bm25@2>>counting@1", 2), (
        "twins stay together"
    )
    steps, rank = list[str](), Counting.rank

    def check(stage: Counting) -> None:
        steps.append("checked")
        if stage.k == 1:
            raise UserError("no such model")

    monkeypatch.setattr(Counting, "check", check)
    monkeypatch.setattr(
        Counting, "rank", lambda *arguments: steps.append("ranked") or rank(*arguments)
    )
    (BM25() >> Counting() >> Counting()).rank(toy())
    with refused("no such model"):
        (BM25() >> Counting() >> Counting(k=1)).rank(toy())
    assert steps == ["checked", "checked", "ranked", "ranked", "checked", "checked"]


@dataclass(frozen=True, kw_only=True)
class Wayward(Ranker):
    """Gives what it likes, whatever it is given."""

    name: ClassVar[str] = "wayward"
    run: bool = True

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        return BM25().rank(collection) if self.run else None  # type: ignore[return-value]


WATER = "query_template={attribute} {query},attribute=water"
STAGES = (
    "bm25",
    "tfidf",
    "dense:{tiny}",
    "bm25>>dense:{tiny}",
    "dense:{tiny}>>bm25",
    "engine:engine_of_lengths:search",
    "bm25>>cross-encoder:{one}",
    "bm25>>monobert:{two}",
    "bm25>>monot5:{t5}",
)


def written_as(words: str) -> Collection:
    """The toy whose queries are written so; their ids and judgments stay."""
    collection = toy()
    return replace(
        collection, queries=collection.queries.with_columns(pl.format(words, "text").alias("text"))
    )


def same(run: Run, second: Run) -> bool:
    return (
        run.queries == second.queries
        and run == second
        and run.scores.tobytes() == second.scores.tobytes()
    )


@pytest.fixture
def models(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    code = (
        "def search(query, k):\n    return [(f'd{n}-human', len(query) / n) for n in (1, 2, "
        "3)][:k]\n"
    )
    (tmp_path / "engine_of_lengths.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # what the engine adds to it goes again
    labels = {
        name: tiny_classifier(tmp_path / name, labels=n)
        for n, name in enumerate(("one", "two"), start=1)
    }
    return {"tiny": tiny, "t5": tiny_t5(tmp_path / "t5"), **labels}


@pytest.mark.neural
@pytest.mark.parametrize("spec", STAGES)
def test_a_template_is_as_if_the_query_had_been_written_so(
    spec: str, models: dict[str, Path]
) -> None:
    spec = spec.format(**models)
    plain = ranker(spec).rank(toy())
    run = ranker(f"{spec}({WATER})").rank(toy())
    stage, _, last = spec.rpartition(">>")
    first = ranker(stage).rank(toy()) if stage else None
    assert same(run, ranker(last).rank(written_as("water {}"), first))
    assert not same(run, plain)
    assert same(ranker(spec).rank(toy()), plain)  # what is cached of one is not taken for the other
    assert run.spec["queries_read"]["read_as"] == "water red apples"
    if stage:  # whose stage reads the plain query
        assert {query: set(docs) for query, docs in ids(run).items()} == {
            q: set(d) for q, d in ids(plain).items()
        }


def test_the_runs_spec_says_what_was_read() -> None:
    assert "queries_read" not in ranker("bm25").rank(toy()).spec
    template = {
        "template": "{query} by {attribute} writers",
        "attribute": "female",
        "query": "red apples",
    }
    run = ranker("bm25(query_template={query} by {attribute} writers,attribute=female)").rank(toy())
    assert run.spec["queries_read"] == {**template, "read_as": "red apples by female writers"}
    assert run.name == "bm25(query_template={query} by {attribute} writers,attribute=female)"
    run = ranker("bm25(query_template=old {query})").rank(written_as("{{attribute}} {{query}} {}"))
    assert run.spec["queries_read"]["read_as"] == "old {attribute} {query} red apples", (
        "it looks like a slot"
    )


DOCS = [{"id": str(n), "text": f"words number {n}"} for n in range(6)]


def queried(
    queries: dict[str, str], docs: list[dict[str, str]], *, judged: list[str] | None = None
) -> Collection:
    return collection_of(docs, queries, {q: {docs[-1]["id"]: 1} for q in judged or queries})


def left_out(collection: Collection, exclude_self: bool | None = None) -> dict[str, list[str]]:
    names = collection.queries_with_judgments["id"]
    excluded = self_documents(collection, exclude_self)
    return {names[query]: collection.ids.gather(rows).to_list() for query, rows in excluded.items()}


def test_which_documents_a_query_may_not_find_in_all_their_versions() -> None:
    for queries, exclude_self, out in (
        (
            {"0": "number words", "1": "number of words", "p": "z", "q": "w"},
            None,
            ["0", "1"],
        ),  # half are documents
        ({"1": "red apples", "p": "x", "q": "y"}, None, []),  # by chance
        ({"1": "red apples", "p": "x", "q": "y"}, True, ["1"]),
        ({"0": "number words", "1": "red apples"}, None, ["0", "1"]),  # half of them hold the words
        (
            {"0": "words of NUMBER 0", "1": "Words, and number"},
            None,
            ["0", "1"],
        ),  # three words in four
        ({"0": "words of apples", "1": "Words, and apples"}, None, []),
        ({"0": "words number 0", "1": "red apples", "2": "is of the"}, None, []),
        ({"0": "", "1": ""}, None, []),
    ):
        collection = queried(queries, DOCS)
        assert left_out(collection, exclude_self) == {name: [name] for name in out}
        run = BM25(k=2, exclude_self=exclude_self).rank(collection)
        assert (
            not run.frame()
            .filter(pl.col("query_id").is_in(out) & (pl.col("query_id") == pl.col("doc_id")))
            .height
        )
        spec = exclusion_spec(self_documents(collection, None))
        notes = list(note_sentences(exclusion_notes("r", spec)))
        assert notes == (
            ["r: own documents of 2 queries left out (exclude_self=false keeps them)"]
            if len(out) == 2
            else []
        )
    texts = {
        source: [f"{source} words {n}" for n in range(3)] for source in ("human", "llm", "other")
    }
    three = versions(texts)
    human_and_llm = [row for row in three if row["source"] != "other"]
    assert left_out(queried({"0": "words 0", "1": "words 1"}, human_and_llm)) == {
        q: [f"{q}-human", f"{q}-llm"] for q in "01"
    }
    assert left_out(queried({"0-llm": "llm words"}, three)) == {
        "0-llm": ["0-human", "0-llm", "0-other"]
    }
    partly_judged = queried(
        {"p": "x", "0": "y", "1": "number 1", "q": "w"}, DOCS, judged=["1", "q"]
    )
    assert left_out(partly_judged) == {"1": ["1"]}, "of judged queries alone"


@pytest.mark.data
def test_grep_bias_ir_numbers_queries_and_documents_alike(shared_data: Path) -> None:
    """Its queries 0 to 116 are none of its documents 0 to 116."""
    docs, queries, qrels = (
        dict[str, dict[str, str]](),
        dict[str, str](),
        dict[str, dict[str, int]](),
    )
    for file in sorted((shared_data / "grep-bias-ir").glob("queries-*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream):
                docs[row["d_id"]] = {
                    "id": row["d_id"],
                    "title": row["doc_title"],
                    "text": row["document"],
                }
                queries[row["q_id"]] = row["query"]
                qrels.setdefault(row["q_id"], {})[row["d_id"]] = int(row["relevant"])
    collection = collection_of(list(docs.values()), queries, qrels)
    assert "own_documents_dropped" not in BM25(k=10).rank(collection).spec
    assert len(self_documents(collection, True)) == 117
