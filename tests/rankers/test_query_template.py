"""Queries put into a template: what every ranker then reads, and what its run says of it."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt import Collection, Run, ranker
from tests.rankers.entries import ids
from tests.rankers.tiny_rerankers import tiny_classifier, tiny_t5
from tests.toy import toy

WATER = "query_template={attribute} {query},attribute=water"
STAGES = (
    "bm25", "tfidf", "dense:{tiny}", "bm25>>dense:{tiny}", "dense:{tiny}>>bm25", "engine:engine_of_lengths:search",
    "bm25>>cross-encoder:{one}", "bm25>>monobert:{two}", "bm25>>monot5:{t5}",
)  # fmt: skip


def asked_as(words: str) -> Collection:
    """The toy whose queries are written so; their ids and judgments stay."""
    collection = toy()
    queries = collection.queries.with_columns(pl.format(words, "text").alias("text"))
    return Collection(collection.docs, queries, collection.qrels)


def same(one: Run, two: Run) -> bool:
    return one.queries == two.queries and one == two and one.scores.tobytes() == two.scores.tobytes()


@pytest.fixture
def models(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    scored = "[(f'd{n}-human', len(query) / n) for n in (1, 2, 3)]"
    (tmp_path / "engine_of_lengths.py").write_text(f"def search(query, k):\n    return {scored}[:k]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # what the engine adds to it goes again
    return {"tiny": tiny, "one": tmp_path / "one", "two": tmp_path / "two", "t5": tmp_path / "t5"}


@pytest.mark.neural
@pytest.mark.parametrize("spec", STAGES)
def test_a_template_is_as_if_the_query_had_been_written_so(spec: str, models: dict[str, Path]) -> None:
    if "{t5}" in spec:
        tiny_t5(models["t5"])
    elif "{one}" in spec or "{two}" in spec:
        name = "two" if "{two}" in spec else "one"
        tiny_classifier(models[name], labels=1 + (name == "two"))
    spec = spec.format(**models)
    plain = ranker(spec).rank(toy())
    run = ranker(f"{spec}({WATER})").rank(toy())
    stage, _, last = spec.rpartition(">>")
    first = ranker(stage).rank(toy()) if stage else None
    assert same(run, ranker(last).rank(asked_as("water {}"), first))
    assert not same(run, plain)
    assert same(ranker(spec).rank(toy()), plain)  # what is cached of one is not taken for the other
    assert run.spec["queries_read"]["read_as"] == "water red apples"
    if stage:  # whose stage reads the plain query
        assert {query: set(docs) for query, docs in ids(run).items()} == {q: set(d) for q, d in ids(plain).items()}


def test_the_runs_spec_says_what_was_read() -> None:
    assert "queries_read" not in ranker("bm25").rank(toy()).spec
    template = {"template": "{query} by {attribute} writers", "attribute": "female", "query": "red apples"}
    run = ranker("bm25(query_template={query} by {attribute} writers,attribute=female)").rank(toy())
    assert run.spec["queries_read"] == {**template, "read_as": "red apples by female writers"}
    assert run.name == "bm25(query_template={query} by {attribute} writers,attribute=female)"
    assert ranker(run.name).rank(toy()) == run


def test_a_template_without_an_attribute_and_a_query_that_looks_like_a_slot() -> None:
    made = ranker("bm25(query_template=old {query})").rank(asked_as("{{attribute}} {{query}} {}"))
    assert made.spec["queries_read"]["read_as"] == "old {attribute} {query} red apples"
