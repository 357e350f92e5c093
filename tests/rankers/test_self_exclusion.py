"""Queries that are documents: which documents a query may not find."""

import csv
from pathlib import Path

import pytest

from ranktilt import Collection
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.self_exclusion import exclusion_notes, exclusion_spec, self_documents
from tests.toy import collection_of


def collection(queries: dict[str, str], docs: list[dict[str, str]], *, judged: list[str] | None = None) -> Collection:
    return collection_of(docs, queries, {q: {docs[-1]["id"]: 1} for q in judged or queries})


def left_out(found: Collection, exclude_self: bool | None = None) -> dict[str, list[str]]:
    names = found.judged["id"]
    own = self_documents(found, exclude_self)
    return {names[query]: found.ids.gather(rows).to_list() for query, rows in own.items()}


DOCS = [{"id": str(n), "text": f"words number {n}"} for n in range(6)]


def test_where_half_the_queries_are_documents_all_that_coincide_count() -> None:
    found = collection({"0": "number words", "1": "number of words", "p": "z", "q": "w"}, DOCS)
    assert left_out(found) == {"0": ["0"], "1": ["1"]}


def test_where_fewer_coincide_only_those_of_the_same_text_count() -> None:
    queries = {"0": "something else", "1": "Words  NUMBER 1 ", "p": "x", "q": "y", "r": "z"}
    assert left_out(collection(queries, DOCS)) == {"1": ["1"]}


@pytest.mark.parametrize("query", ["the title", "the body", "the title the body", " THE\tbody\n"])
def test_the_same_text_is_that_of_title_body_or_both(query: str) -> None:
    docs = [{"id": "0", "title": "The Title", "text": "the  body"}, *DOCS[1:]]
    queries = {"0": query, "p": "x", "q": "y"}
    assert left_out(collection(queries, docs)) == {"0": ["0"]}


def test_ids_that_coincide_by_chance_do_not_count() -> None:
    queries = {"1": "red apples", "p": "x", "q": "y"}
    assert left_out(collection(queries, DOCS)) == {}


DROPPED, DIFFER, DOUBT = "own_documents_dropped", "own_documents_differ", "own_documents_in_doubt"


@pytest.mark.parametrize(
    ("queries", "spec"),
    [
        ({"0": "number words", "1": "words"}, {DROPPED: 2}),
        ({"0": "number words", "1": "red apples"}, {DROPPED: 2}),  # half of them
        ({"0": "words of NUMBER 0", "1": "Words, and number"}, {DROPPED: 2}),  # three words in four
        ({"0": "words of apples", "1": "Words, and apples"}, {DOUBT: 2}),
        ({"0": "words number 0", "1": "red apples", "2": "is of the"}, {DROPPED: 1, DOUBT: 2}),
        ({"0": "", "1": ""}, {DOUBT: 2}),
        ({"0": "red apples", "p": "x", "q": "y"}, {}),
        ({"p": "x"}, {}),
    ],
)
def test_ids_alone_leave_nothing_out_and_are_asked_about(queries: dict[str, str], spec: dict[str, int]) -> None:
    found = collection(queries, DOCS)
    own = self_documents(found, None)
    assert exclusion_spec(found, own, None) == spec
    assert len(own) == spec.get(DROPPED, 0)
    assert exclusion_spec(found, {}, False) == {}


@pytest.mark.parametrize(("query", "differ"), [("words number", False), ("red apples", True)])
def test_a_run_says_where_all_that_coincide_are_left_out_on_demand(query: str, differ: bool) -> None:
    found = collection({"0": query, "1": query}, DOCS)
    spec = exclusion_spec(found, self_documents(found, True), True)
    assert spec == {DROPPED: 2, **({DIFFER: True} if differ else {})}


def test_notes_on_own_documents() -> None:
    assert list(exclusion_notes({DROPPED: 1, DIFFER: True, DOUBT: 2})) == [
        "own documents of 1 query left out; their texts differ, as where ids coincide by chance (--no-exclude-self)",
        "2 queries share their id with a document of other words; nothing is left out for that. Are these queries "
        "documents (--exclude-self), or do ids coincide by chance (--no-exclude-self)?",
    ]
    assert list(exclusion_notes({})) == []


@pytest.mark.data
def test_grep_bias_ir_numbers_queries_and_documents_alike(shared_data: Path) -> None:
    """Its queries 0 to 116 are none of its documents 0 to 116."""
    rows = [row for file in sorted((shared_data / "grep-bias-ir").glob("queries-*.csv")) for row in read_csv(file)]
    docs = {row["d_id"]: {"id": row["d_id"], "title": row["doc_title"], "text": row["document"]} for row in rows}
    qrels: dict[str, dict[str, int]] = {}
    for row in rows:
        qrels.setdefault(row["q_id"], {})[row["d_id"]] = int(row["relevant"])
    found = collection_of(list(docs.values()), {row["q_id"]: row["query"] for row in rows}, qrels)
    run = BM25(k=10).rank(found)
    assert (run.spec.get(DROPPED), run.spec[DOUBT]) == (None, 117)
    assert len(self_documents(found, True)) == 117
    assert DOUBT not in BM25(k=10, exclude_self=False).rank(found).spec


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_true_takes_every_id_that_coincides() -> None:
    queries = {"1": "red apples", "p": "x", "q": "y"}
    assert left_out(collection(queries, DOCS), True) == {"1": ["1"]}


def test_only_judged_queries_are_asked_and_counted() -> None:
    queries = {"p": "x", "0": "y", "1": "number 1", "q": "w"}
    assert left_out(collection(queries, DOCS, judged=["1", "q"])) == {"1": ["1"]}


def twins(sources: list[str]) -> list[dict[str, str]]:
    return [
        {"id": f"{n}-{source}", "text": f"{source} words {n}", "source": source, "origin": f"{n}-human"}
        for source in sources
        for n in range(3)
    ]


def test_an_id_that_loading_made_longer_is_known_by_the_one_in_the_file() -> None:
    found = collection({"0": "words 0", "1": "words 1"}, twins(["human", "llm"]))
    assert left_out(found) == {"0": ["0-human", "0-llm"], "1": ["1-human", "1-llm"]}


def test_all_versions_go_with_a_document() -> None:
    found = collection({"0-llm": "llm words"}, twins(["human", "llm", "other"]))
    assert left_out(found) == {"0-llm": ["0-human", "0-llm", "0-other"]}


def test_a_depth_is_filled_although_own_documents_are_dropped() -> None:
    docs = [{"id": str(n), "text": "same words"} for n in range(6)]
    run = BM25(k=2).rank(collection({"0": "same words"}, docs))
    assert len(run.docs) >= 2
    assert "0" not in run.frame()["doc_id"]
