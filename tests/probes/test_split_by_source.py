"""Each side alone: what has a twin, with its own judgments and every query."""

import polars as pl

from ranktilt.collection import Collection
from ranktilt.probes.validation import split_by_source
from tests.toy import QUERIES, collection_of, toy

DOCS = [
    {"id": "a-h", "text": "a", "source": "human", "origin": "a-h"},
    {"id": "b-h", "text": "b", "source": "human", "origin": "b-h"},
    {"id": "c-h", "text": "c", "source": "human", "origin": "c-h"},
    {"id": "b-l", "text": "b l", "source": "llm", "origin": "b-h"},
    {"id": "a-l", "text": "a l", "source": "llm", "origin": "a-h"},
    {"id": "d-l", "text": "d l", "source": "llm", "origin": "d-l"},
    {"id": "a-x", "text": "a x", "source": "other", "origin": "a-h"},
]


def ids(names: tuple[str, str], docs: list[dict[str, str]] = DOCS) -> list[list[str]]:
    return [side.docs["id"].to_list() for side in split_by_source(collection_of(docs, QUERIES, {}), *names)]


def test_the_toy_falls_into_two_equal_halves() -> None:
    human, llm = split_by_source(toy(), "human", "llm")
    assert set(human.docs["id"]) == {"d1-human", "d2-human", "d3-human"}
    assert set(llm.docs["id"]) == {"d1-llm", "d2-llm", "d3-llm"}
    assert human.qrels.height == llm.qrels.height == toy().qrels.height // 2
    assert human.queries.equals(llm.queries)


def test_documents_without_a_twin_are_on_neither_side() -> None:
    assert ids(("human", "llm")) == [["a-h", "b-h"], ["b-l", "a-l"]]
    assert ids(("llm", "human")) == [["b-l", "a-l"], ["a-h", "b-h"]]
    assert ids(("human", "other")) == [["a-h"], ["a-x"]]
    again = [*DOCS, {"id": "a-l2", "text": "a l again", "source": "llm", "origin": "a-h"}]
    assert ids(("human", "llm"), again) == [["a-h", "b-h"], ["b-l", "a-l", "a-l2"]]
    assert ids(("human", "llm"), [{**row, "origin": row["id"]} for row in DOCS]) == [[], []]


def test_judgments_go_with_their_documents() -> None:
    qrels = {"q1": {"a-h": 2, "c-h": 1, "b-l": 1}, "q2": {"a-l": 0, "gone": 3}, "q9": {"a-h": 1}}
    human, llm = split_by_source(collection_of(DOCS, QUERIES, qrels), "human", "llm")
    assert human.qrels.rows() == [("q1", "a-h", 2), ("q9", "a-h", 1)]
    assert llm.qrels.rows() == [("q1", "b-l", 1), ("q2", "a-l", 0)]


def test_further_columns_and_the_spec_are_kept() -> None:
    docs = pl.DataFrame([{**row, "year": n} for n, row in enumerate(DOCS)])
    whole = collection_of(DOCS, QUERIES, {})
    human, llm = split_by_source(Collection(docs, whole.queries, whole.qrels, {"path": "x"}), "human", "llm")
    assert llm.docs["year"].to_list() == [3, 4]
    assert (human.spec["path"], human.spec["only"]) == ("x", "human")
