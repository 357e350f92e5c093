"""Queries put into a template: what every ranker then reads, and what its run says of it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run, ranker
from tests.toy import toy

WATER = "query_template={attribute} {query},attribute=water"
MODELS = {"cross-encoder": "one", "monobert": "two", "monot5": "t5"}
STAGES = [
    "bm25",
    "tfidf",
    "dense:{tiny}",
    "bm25>>dense:{tiny}",
    "dense:{tiny}>>bm25",
    "engine:engine_of_lengths:search",
]


def asked_as(words: str) -> Collection:
    """The toy whose queries are written so; their ids and judgments stay."""
    collection = toy()
    queries = collection.queries.with_columns(pl.format(words, "text").alias("text"))
    return Collection(collection.docs, queries, collection.qrels)


def templated(spec: str, options: str = WATER) -> str:
    return f"{spec}({options})"


def same(one: Run, two: Run) -> bool:
    return one.queries == two.queries and one == two and one.scores.tobytes() == two.scores.tobytes()


@pytest.fixture
def models(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    scored = "[(f'd{n}-human', len(query) / n) for n in (1, 2, 3)]"
    (tmp_path / "engine_of_lengths.py").write_text(f"def search(query, k):\n    return {scored}[:k]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # what the engine adds to it goes again
    return {"tiny": tiny}


@pytest.mark.neural
@pytest.mark.parametrize("spec", STAGES)
def test_a_template_is_as_if_the_query_had_been_written_so(spec: str, models: dict[str, Path]) -> None:
    spec = spec.format(**models)
    plain = ranker(spec).rank(toy())
    run = ranker(templated(spec)).rank(toy())
    last = spec.rpartition(">>")[2]
    first = None if last == spec else ranker(spec.partition(">>")[0]).rank(toy())
    assert same(run, ranker(last).rank(asked_as("water {}"), first))
    assert not same(run, plain)
    assert same(ranker(spec).rank(toy()), plain)  # what is cached of one is not taken for the other


@pytest.mark.neural
@pytest.mark.parametrize("name", MODELS)
def test_re_rankers_read_the_template_too(name: str, tmp_path: Path) -> None:
    from tests.rankers.tiny_rerankers import tiny_classifier, tiny_t5

    folder = tiny_t5(tmp_path) if name == "monot5" else tiny_classifier(tmp_path, labels=1 + (name == "monobert"))
    spec = f"bm25>>{name}:{folder}"
    plain = ranker(spec).rank(toy())
    run = ranker(templated(spec)).rank(toy())
    # bm25 reads the plain query: the same candidates, other scores
    assert [set(found) for found in docs_of(run)] == [set(found) for found in docs_of(plain)]
    assert not same(run, plain)
    first = ranker("bm25").rank(toy())
    assert same(run, ranker(spec.partition(">>")[2]).rank(asked_as("water {}"), first))
    assert run.spec["queries_read"]["read_as"] == "water red apples"


def docs_of(run: Run) -> list[Any]:
    return np.split(run.docs, run.offsets[1:-1])


def test_the_runs_spec_says_what_was_read() -> None:
    assert "queries_read" not in ranker("bm25").rank(toy()).spec
    said = {"template": "{query} by {attribute} writers", "attribute": "female", "query": "red apples"}
    run = ranker(templated("bm25", "query_template={query} by {attribute} writers,attribute=female")).rank(toy())
    assert run.spec["queries_read"] == {**said, "read_as": "red apples by female writers"}
    assert run.name == "bm25(query_template={query} by {attribute} writers,attribute=female)"
    assert ranker(run.name).rank(toy()) == run


def test_a_template_without_an_attribute_and_a_query_that_looks_like_a_slot() -> None:
    collection = toy()
    queries = pl.DataFrame({"id": ["q1"], "text": ["{attribute} {query}"]})
    odd = Collection(collection.docs, queries, collection.qrels.filter(pl.col("query_id") == "q1"))
    one = ranker("bm25(query_template=old {query})")
    assert one.rank(odd).spec["queries_read"]["read_as"] == "old {attribute} {query}"
