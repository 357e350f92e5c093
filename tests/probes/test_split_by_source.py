"""Each side alone: what has a twin, with its own judgments and every query."""

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.probes.equivalence import split_by_source
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


def test_the_toy_falls_into_two_equal_halves() -> None:
    found = split_by_source(toy(), "human", "llm")
    assert (found.pairs, found.left_out) == (3, 0)
    assert set(found.reference.docs["id"]) == {"d1-human", "d2-human", "d3-human"}
    assert set(found.source.docs["id"]) == {"d1-llm", "d2-llm", "d3-llm"}
    assert found.reference.qrels.height == found.source.qrels.height == toy().qrels.height // 2
    assert found.reference.queries.equals(found.source.queries)


def test_documents_without_a_twin_are_on_neither_side() -> None:
    found = split_by_source(collection_of(DOCS, QUERIES, {}), "human", "llm")
    assert found.reference.docs["id"].to_list() == ["a-h", "b-h"]
    assert found.source.docs["id"].to_list() == ["b-l", "a-l"]
    assert (found.pairs, found.left_out) == (2, 2)


def test_a_third_source_is_no_part_of_it() -> None:
    found = split_by_source(collection_of(DOCS, QUERIES, {}), "human", "other")
    assert (found.pairs, found.left_out) == (1, 2)
    assert found.source.docs["id"].to_list() == ["a-x"]


def test_judgments_go_with_their_documents() -> None:
    qrels = {"q1": {"a-h": 2, "c-h": 1, "b-l": 1}, "q2": {"a-l": 0, "gone": 3}, "q9": {"a-h": 1}}
    found = split_by_source(collection_of(DOCS, QUERIES, qrels), "human", "llm")
    assert found.reference.qrels.rows() == [("q1", "a-h", 2), ("q9", "a-h", 1)]
    assert found.source.qrels.rows() == [("q1", "b-l", 1), ("q2", "a-l", 0)]


def test_several_rewrites_of_one_document_are_one_pair() -> None:
    again = [*DOCS, {"id": "a-l2", "text": "a l again", "source": "llm", "origin": "a-h"}]
    found = split_by_source(collection_of(again, QUERIES, {}), "human", "llm")
    assert (found.pairs, found.left_out) == (2, 2)
    assert found.source.docs["id"].to_list() == ["b-l", "a-l", "a-l2"]


def test_without_twins_both_sides_are_empty() -> None:
    apart = [{**row, "origin": row["id"]} for row in DOCS]
    found = split_by_source(collection_of(apart, QUERIES, {}), "human", "llm")
    assert (found.pairs, found.left_out) == (0, 6)
    assert found.reference.docs.height == found.source.docs.height == 0


def test_further_columns_and_the_spec_are_kept() -> None:
    docs = pl.DataFrame([{**row, "year": n} for n, row in enumerate(DOCS)])
    whole = collection_of(DOCS, QUERIES, {})
    found = split_by_source(Collection(docs, whole.queries, whole.qrels, {"path": "x"}), "human", "llm")
    assert found.source.docs["year"].to_list() == [3, 4]
    assert (found.reference.spec["path"], found.reference.spec["only"]) == ("x", "human")


@pytest.mark.parametrize("names", [("human", "llm"), ("llm", "human")])
def test_the_sides_may_change_places(names: tuple[str, str]) -> None:
    found = split_by_source(collection_of(DOCS, QUERIES, {}), *names)
    assert set(found.reference.docs["source"]) == {names[0]}
    assert set(found.source.docs["source"]) == {names[1]}
