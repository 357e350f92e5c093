"""Queries that are documents: which documents a query may not find."""

import csv
from pathlib import Path

import polars as pl
import pytest

from ranktilt import Collection
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.self_exclusion import exclusion_notes, exclusion_spec, self_documents
from tests.toy import collection_of

DOCS = [{"id": str(n), "text": f"words number {n}"} for n in range(6)]


def collection(queries: dict[str, str], docs: list[dict[str, str]], *, judged: list[str] | None = None) -> Collection:
    return collection_of(docs, queries, {q: {docs[-1]["id"]: 1} for q in judged or queries})


def left_out(found: Collection, exclude_self: bool | None = None) -> dict[str, list[str]]:
    names = found.judged["id"]
    own = self_documents(found, exclude_self)
    return {names[query]: found.ids.gather(rows).to_list() for query, rows in own.items()}


@pytest.mark.parametrize(
    ("queries", "exclude_self", "out"),
    [
        ({"0": "number words", "1": "number of words", "p": "z", "q": "w"}, None, ["0", "1"]),  # half are documents
        ({"1": "red apples", "p": "x", "q": "y"}, None, []),  # by chance
        ({"1": "red apples", "p": "x", "q": "y"}, True, ["1"]),
        ({"0": "number words", "1": "red apples"}, None, ["0", "1"]),  # half of them hold the words
        ({"0": "words of NUMBER 0", "1": "Words, and number"}, None, ["0", "1"]),  # three words in four
        ({"0": "words of apples", "1": "Words, and apples"}, None, []),
        ({"0": "words number 0", "1": "red apples", "2": "is of the"}, None, []),
        ({"0": "", "1": ""}, None, []),
    ],
)
def test_which_documents_a_query_may_not_find(
    queries: dict[str, str], exclude_self: bool | None, out: list[str]
) -> None:
    found = collection(queries, DOCS)
    assert left_out(found, exclude_self) == {name: [name] for name in out}
    run = BM25(k=2, exclude_self=exclude_self).rank(found)
    assert not run.frame().filter(pl.col("query_id").is_in(out) & (pl.col("query_id") == pl.col("doc_id"))).height
    notes = list(exclusion_notes(exclusion_spec(self_documents(found, None))))
    assert notes == (["own documents of 2 queries left out (--no-exclude-self)"] if len(out) == 2 else [])


@pytest.mark.data
def test_grep_bias_ir_numbers_queries_and_documents_alike(shared_data: Path) -> None:
    """Its queries 0 to 116 are none of its documents 0 to 116."""
    docs, queries, qrels = dict[str, dict[str, str]](), dict[str, str](), dict[str, dict[str, int]]()
    for file in sorted((shared_data / "grep-bias-ir").glob("queries-*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream):
                docs[row["d_id"]] = {"id": row["d_id"], "title": row["doc_title"], "text": row["document"]}
                queries[row["q_id"]] = row["query"]
                qrels.setdefault(row["q_id"], {})[row["d_id"]] = int(row["relevant"])
    found = collection_of(list(docs.values()), queries, qrels)
    assert "own_documents_dropped" not in BM25(k=10).rank(found).spec
    assert len(self_documents(found, True)) == 117


def test_all_versions_go_with_a_document_known_by_the_id_in_the_file_too() -> None:
    def twins(*sources: str) -> list[dict[str, str]]:
        return [
            {"id": f"{n}-{source}", "text": f"{source} words {n}", "source": source, "origin": f"{n}-human"}
            for source in sources
            for n in range(3)
        ]

    found = collection({"0": "words 0", "1": "words 1"}, twins("human", "llm"))
    assert left_out(found) == {"0": ["0-human", "0-llm"], "1": ["1-human", "1-llm"]}
    found = collection({"0-llm": "llm words"}, twins("human", "llm", "other"))
    assert left_out(found) == {"0-llm": ["0-human", "0-llm", "0-other"]}
    found = collection({"p": "x", "0": "y", "1": "number 1", "q": "w"}, DOCS, judged=["1", "q"])
    assert left_out(found) == {"1": ["1"]}, "of judged queries alone"
