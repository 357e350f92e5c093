"""Corrections fitted on one collection and tested on another: what both hold, and what only looks
the same.
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Bench, Collection, MitigationOptions, Run, audit, mitigate, ranker, table
from ranktilt.mitigation.bench_result import RefusedMethod
from ranktilt.mitigation.offset import fit_offset
from ranktilt.mitigation.query_split import LeftOut, QuerySplit, split_across
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.retriever import Dense, EmbeddingServer
from ranktilt.rankers.fit_provenance import named_keys, same_names, text_key
from ranktilt.reporting.sentences.mitigation.mitigate import bench_notes
from tests.rankers.dense.test_search import Held
from tests.refusals import refused
from tests.toy import collection_of, run_of, versions, write_run

SOURCES = ("human", "llm")
PAIR = ("human", "llm")


def written(
    topic: str, size: int, prefix: str = "", *, sources: Sequence[str] = SOURCES, path: str = ""
) -> Collection:
    """Twins of so many texts about a topic, and a query for each, to which both versions are
    relevant.
    """
    texts = {source: [f"{topic}{n} {source}" for n in range(size)] for source in sources}
    queries = {f"{prefix}q{n}": f"{topic}{n}" for n in range(size)}
    grades = {
        f"{prefix}q{n}": {f"{prefix}{n}-{source}": 1 for source in sources} for n in range(size)
    }
    written_texts = collection_of(versions(texts, prefix), queries, grades)
    return Collection(
        written_texts.docs,
        written_texts.queries,
        written_texts.qrels,
        {"path": path} if path else {},
    )


class Kept(Held):
    """Vectors as the cache hands them out."""

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, rows: Any) -> Any:
        return self.vectors[rows]


class Axes(EmbeddingServer):
    """Vectors of which the first number is 1 for a query and 0.4 for what an LLM wrote; the others
    go by the words.
    """

    fingerprint = "axes"
    similarity = "dot"
    provenance: Any = {}  # noqa: RUF012 - as the property that it stands for

    def encode(self, texts: Any, kind: Any, label: str) -> Any:
        vectors = np.array([self._vector(text, kind) for text in texts], dtype=np.float32)
        return Kept(vectors), np.arange(len(vectors))

    def _vector(self, text: str, kind: str) -> list[float]:
        topic, _, source = text.partition(" ")
        by_topic, by_text = (
            np.random.default_rng([int(text_key(part)[:8], 16)]).normal(0, 1, 12)
            for part in (topic, text)
        )
        first = 1.0 if kind == "query" else 0.4 * (source == "llm")
        return [first, *(by_topic / np.linalg.norm(by_topic) + 0.03 * by_text)]


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> Dense:
    server: Any = SimpleNamespace(check=lambda: None)
    stub = Axes(model=server, store="float32", max_tokens=None, query_prefix="", document_prefix="")
    monkeypatch.setattr(Dense, "encoder", stub)
    return Dense("axes", k=20)


def levelled(collection: Collection, ranked: Any, *methods: str, **more: Any) -> Bench:
    chosen = MitigationOptions.from_texts(methods or ("offset",), strengths=(0.5, 1.0), always=True)
    return mitigate(
        collection, ranked, ["nDCG@1"], options=chosen, resamples=200, margin=25, **more
    )


@pytest.mark.parametrize("prefix", ["", "other-"], ids=["the same ids", "other ids"])
def test_a_direction_of_one_collection_levels_another(
    dense: Dense, prefix: str, tmp_path: Path
) -> None:
    here, there = written("river", 90), written("bell", 40, prefix, path="bells")
    bench = levelled(here, dense, "projection", fit=there, folder=tmp_path, budget=90)
    before, half, full = (bench.tilt(candidate.name, PAIR).value for candidate in bench.candidates)
    assert (before, half) == (-200, -200)
    assert abs(full) < 40
    assert bench.spec["queries"] == {"fit": 40, "select": 30, "test": 60}
    assert bench.spec["fitted_on"] == "bells"
    assert "fitted on 40 queries of bells" in list(bench_notes(bench))
    assert not any("left out" in note for note in bench_notes(bench))
    assert "fitted on bells and chosen on other queries" in table(bench)
    direction = Direction.load(tmp_path / "dense-axes-20-direction.json")
    assert abs(direction.vector[0]) > 0.97
    assert (direction.spec["twins"], direction.spec["left_out"], direction.spec["collection"]) == (
        40,
        0,
        "bells",
    )
    assert direction.queries(here) == []
    assert direction.queries(there) == there.queries["id"].to_list()
    assert bench == levelled(here, dense, "projection", fit=there, folder=tmp_path, budget=90)


def test_a_query_is_not_one_learned_from_for_its_id(tmp_path: Path) -> None:
    here, there, bm25 = written("river", 12), written("bell", 9), ranker("bm25@5")
    fit = fit_offset(there, bm25.rank(there))
    assert fit.queries == tuple(f"q{n}" for n in range(9))
    corrected = ranker(f"bm25@5>>offset(fit={fit.save(tmp_path / 'fit.json')})")
    assert corrected.rank(here).spec["fitted_on"]["queries"] == []
    assert corrected.rank(there).spec["fitted_on"]["queries"] == list(fit.queries)
    tested = audit(here, corrected.rank(here), ["nDCG@1"], resamples=100)
    assert tested.tilts[0].queries == 12
    renamed = written("bell", 12, "new-")
    known = corrected.rank(renamed).spec["fitted_on"]["queries"]
    assert [name for name in known if name in set(renamed.queries["id"])] == [
        f"new-q{n}" for n in range(9)
    ]


KEYED = [
    ({"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}, {"a", "b"}),
    ({"a": "1", "b": "2"}, {"a": "8", "b": "9"}, set()),
    ({"a": "1", "b": "2"}, {"x": "2", "a": "9"}, {"x"}),
    (
        {"a": "1", "b": "2"},
        {"a": "1", "b": "9"},
        {"a", "b"},
    ),  # half of the names have one text: they mean the same
    ({"a": "1", "b": "2"}, {"a": "1", "x": "2"}, {"a"}),
    (
        {"a": "", "b": ""},
        {"a": "8", "c": "9"},
        {"a"},
    ),  # of a file without keys names are all there is
    ({"a": "1"}, {"a": ""}, {"a"}),
    ({"a": "", "b": "2"}, {"c": "", "d": ""}, set()),
]


@pytest.mark.parametrize(("learned", "kept_names", "expected"), KEYED)
def test_names_that_mean_the_same(
    learned: dict[str, str], kept_names: dict[str, str], expected: set[str]
) -> None:
    assert (
        same_names(
            named_keys(learned, learned.values()), named_keys(kept_names, kept_names.values())
        )
        == expected
    )


def joined(*parts: Collection) -> Collection:
    frames = (
        pl.concat(frame)
        for frame in zip(*((p.docs, p.queries, p.qrels) for p in parts), strict=True)
    )
    return Collection(*frames, {"path": "mixed"})


def test_what_both_hold_is_not_learned_from(dense: Dense, tmp_path: Path) -> None:
    here = written("river", 30)
    overlapping = written("river", 40, "y")  # the first 30 are documents of here, of other ids
    apart = overlapping.only_queries(f"yq{n}" for n in (*range(10, 20), *range(30, 40)))
    both = Collection(
        overlapping.docs,
        apart.queries.with_columns(text=pl.format("what of {}", "text")),
        apart.qrels,
        {"path": "rivers"},
    )
    split = split_across(here, both)
    assert split.fit.queries_with_judgments["id"].to_list() == [f"yq{n}" for n in range(30, 40)]
    assert split.held_out == {f"y{n}-human" for n in range(30)}
    assert [len(side.queries_with_judgments) for side in (split.select, split.test)] == [10, 20]
    assert split.left_out == LeftOut(judgments=20, judgments_before=40, documents=30)
    bench = levelled(here, dense, "projection", fit=both, folder=tmp_path)
    assert list(bench_notes(bench))[1:3] == [
        "fitted on 10 queries of rivers",
        (
            "30 documents of rivers and 20 of 40 judgments left out, because they are also "
            "relevant to selection or test queries"
        ),
    ]
    direction = Direction.load(tmp_path / "dense-axes-20-direction.json")
    assert sorted(direction.origins) == sorted(f"y{n}-human" for n in range(30, 40))
    assert (direction.spec["twins"], direction.spec["left_out"]) == (10, 30)


def test_versions_without_the_original_are_known_by_the_names_that_others_share() -> None:
    here = written("river", 20)
    drawn = here.docs.with_row_index().with_columns(
        text=pl.when(pl.col("index") % 5 == 0)
        .then("text")
        .otherwise(pl.format("{} edited", "text"))
    )
    designed = Collection(
        drawn.drop("index"), here.queries.with_columns(text=pl.format("on {}", "text")), here.qrels
    )
    assert split_across(here, joined(designed, written("bell", 6, "z"))).held_out == set(
        here.docs["origin"]
    )


def test_a_query_that_is_asked_here_is_not_fitted_on() -> None:
    here, there = written("river", 9), joined(written("bell", 5), written("bell", 3, "z"))
    renamed_queries = there.queries.with_columns(
        text=pl.when(pl.col("id") == "zq1").then(pl.lit("river2")).otherwise("text")
    )
    split = split_across(here, Collection(there.docs, renamed_queries, there.qrels, there.spec))
    assert split.fit.queries_with_judgments["id"].to_list() == [
        "q0",
        "q1",
        "q2",
        "q3",
        "q4",
        "zq0",
        "zq2",
    ]
    assert split.left_out == LeftOut(judgments_before=16, queries=1)


def test_sides_of_its_own_are_kept_and_most_are_drawn() -> None:
    here, there = written("river", 9), written("bell", 8)
    sides = here.only_queries(["q0", "q1", "q2"]), here.only_queries(["q2", "q3"])
    split = QuerySplit.across(there, *sides, most=4, seed=1)
    assert [len(side.queries_with_judgments) for side in (split.fit, split.select, split.test)] == [
        4,
        2,
        2,
    ]
    again = levelled(
        QuerySplit(fit=here, select=sides[0], test=sides[1]),
        ranker("bm25"),
        "interleave",
        fit=there,
    )  # type: ignore[arg-type]
    assert again.spec["queries"] == {"fit": 8, "select": 2, "test": 2}


def test_a_method_without_its_groups_leaves_the_others() -> None:
    three = written("bell", 12, sources=("human", "gpt"), path="bells")
    bench = levelled(
        written("river", 30), ranker("bm25"), "offset", "interleave", "fair-rerank", fit=three
    )
    reason = "bells has no source 'llm' to fit on (valid: human, gpt)"
    assert bench.methods == ("interleave",)
    assert bench.refused == tuple(
        RefusedMethod(method=name, reason=reason) for name in ("offset", "fair-rerank")
    )


LONE = written("bell", 12, sources=("human",), path="bells")
REFUSED: list[tuple[Any, Collection, tuple[str, ...], str]] = [
    (
        None,
        written("bell", 9, path="bells"),
        ("offset",),
        "saved is a saved run, which cannot rank bells; fit on its own collection",
    ),
    (
        "replay:run.trec",
        written("bell", 9, path="bells"),
        ("interleave",),
        "replay:run.trec@100 is a saved run, which cannot rank bells; fit on its own collection",
    ),
    (
        "engine:asked:ask",
        written("bell", 9, path="bells"),
        ("offset",),
        "engine:asked:ask is a live engine, which cannot rank bells; fit on its own collection",
    ),
    (
        "bm25",
        written("river", 30, "x"),
        ("offset",),
        "no query of another collection is left to fit on: each is used to select or to test, or "
        "its relevant documents are relevant to one that is",
    ),
    (
        "bm25",
        written("bell", 9, sources=("gpt", "llm"), path="bells"),
        ("projection",),
        (
            "projection removes a direction from vectors, and bm25@100 has none; use it with "
            "dense rankers"
        ),
    ),
    (
        "bm25",
        written("bell", 9, sources=("gpt", "llm"), path="bells"),
        ("causal",),
        "bells has no source 'human' to fit on (valid: gpt, llm)",
    ),
    (
        "bm25",
        LONE,
        ("offset",),
        (
            "bells: nothing to compare: only source 'human'; expected two sources or more, such as "
            "human and llm"
        ),
    ),
]


@pytest.mark.parametrize(("ranked", "collection", "methods", "message"), REFUSED)
def test_what_cannot_be_fitted_elsewhere_is_refused(
    ranked: Any,
    collection: Collection,
    methods: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    here = written("river", 30)
    Path("asked.py").write_text("def ask(query, k):\n    return []\n")
    write_run(Path("run.trec"), {"q0": {"0-human": 1.0}})
    saved: Run = run_of(here, {"q0": {"0-human": 1.0}}, ranker="saved")
    with refused(message):
        levelled(here, saved if ranked is None else ranker(ranked), *methods, fit=collection)
