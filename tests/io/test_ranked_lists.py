"""Runs as engines give them: search responses, ranked lists in JSON, tables with named columns."""

import json
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import DataError, DataWarning
from ranktilt.run import Run
from tests.toy import write

pytestmark = pytest.mark.usefixtures("chunks")


def response(*hits: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "took": 1,
        "hits": {"total": {"value": 9}, "hits": [{"_index": "i", "_id": d, "_score": s} for d, s in hits]},
    }


TWO = {"took": 2, "responses": [response(("a", 2.5), ("b", 1)), response()]}
UNSCORED = {"responses": [response(("b", None), ("a", None)), response(("a", None))]}
ERROR = {"error": {"type": "x", "reason": "no such index [i]"}, "status": 404}
CSV = '\ufeffQuery-ID,query,Doc_ID,Score,rank\nq,"what,\nthen",a,2.5,1\n\nq,"what,\nthen",b,1,2\n'


@pytest.mark.parametrize(
    ("content", "lists", "read_as"),
    [
        (TWO, {"q": [("a", 2.5), ("b", 1)], "r": []}, "responses to searches: _id, _score"),
        (UNSCORED, {"q": [("b", -1), ("a", -2)], "r": [("a", -1)]}, "responses to searches: _id, in their order"),
        ({"x": response(("a", 7)), "y": response()}, {"x": [("a", 7)], "y": []}, "responses to searches: _id, _score"),
        ({"x": [], "y": ["b", 7]}, {"x": [], "y": [("b", -1), ("7", -2)]}, "JSON lists: id, in their order"),
        ({"x": [{"id": "n", "Doc-ID": "a", "score": 2}]}, {"x": [("a", 2)]}, "JSON lists: Doc-ID, score"),
        (
            [{"qid": 1, "query": "t", "docid": "a", "rank": 2}, {"qid": 1, "docid": "b", "rank": 1}],
            {"1": [("b", -1), ("a", -2)]}, "JSON records: qid, docid, rank",
        ),
        (CSV, {"q": [("a", 2.5), ("b", 1)]}, "CSV: Query-ID, Doc_ID, Score"),
        ("\tqid\tdocid\tdocno\n0\tx\t1\tb\n1\ty\t1\tb\n2\tx\t2\ta\n", {"x": [("b", -1), ("a", -2)], "y": [("b", -1)]},
         "TSV: qid, docno, in their order"),
    ],
)  # fmt: skip
def test_what_engines_give_is_read_and_said(
    tmp_path: Path, content: Any, lists: dict[str, list[tuple[str, float]]], read_as: str
) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    run = Run.load(write(tmp_path / "run", text), queries=["q", "r"])
    found: dict[str, list[tuple[str, float]]] = {query: [] for query in run.queries}
    for query, doc, _, score in run.frame().iter_rows():
        found[query].append((doc, score))
    ordered = any(score == -1 for entries in lists.values() for _, score in entries)
    assert (found, run.spec["read_as"]) == (lists, read_as)
    assert run.spec.get("score_order", "score") == ("rank" if ordered else "score")
    again = Run.load(run.save(tmp_path / "saved.trec"))
    assert "read_as" not in again.spec


def test_ranks_are_read_in_place_of_scores_where_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "run", '{"q": [{"id": "a", "score": 1}, {"id": "b", "score": 2}]}')
    assert Run.load(path, score_order="rank").frame()["doc_id"].to_list() == ["a", "b"]
    with pytest.warns(DataWarning, match="the ranks contradict the scores in 1 of 1 query"):
        Run.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"responses": [response()]}, ": expected responses to searches and an id for each, got 1 response and 2 ids"),
        ({"responses": [response(), ERROR]}, ": query 'r': the engine's error is 'no such index [i]'"),
        ({"x": ["a", "b", "a"]}, ": document 'a' occurs twice for query 'x'"),
        ([{"qid": "x", "id": "a"}, 3], ": document 2: expected a query id, got None"),
        ("qid,score\nx,1\n", ": CSV: expected a column for the document (docno, doc_id, docid, corpus_id), got qid"),
        ("qid,docid,score\nx,a,2\n\nx,b,\n", ":4: expected a finite number as score (of all documents, or of none)"),
        ('"qid","docid"\nx,"a\n', ":2: expected a table: unexpected end of data"),
        ("query-id\tcorpus-id\tscore\nq\ta\t1\n", ": expected a run, got judgments (whole numbers); they are named wi"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "run", content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError) as caught:
        Run.load(path, queries=["q", "r"])
    assert str(caught.value).startswith(f"{path}{message}")
