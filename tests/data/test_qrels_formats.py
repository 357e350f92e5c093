"""Judgments as their producers write them: each fixture holds the judgments of `TREC`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.errors import DataError, DataWarning
from tests.refusals import refused
from tests.toy import write

TREC = """\
q1 0 a 2
q1 0 b 0
q2 0 c 3
"""
ROWS = [("q1", "a", 2), ("q1", "b", 0), ("q2", "c", 3)]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    content: str


CASES = [
    Case(name="TREC", content=TREC),
    Case(name="TREC with comments", content=f"# judged by us\n\n{TREC}"),
    Case(name="BEIR", content="query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t3\n"),
    Case(name="csv", content="query,docid,rating\nq1,a,2\nq1,b,0\nq2,c,3\n"),
    Case(
        name="Quepid",
        content="Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating\n"
        'T,C,1,q1,a,1,"A, a",2\nT,C,1,q1,b,2,B,0\nT,C,1,q2,c,1,C,3\nT,C,1,q2,d,2,D,\n',
    ),
    Case(
        name="excel",
        content="\ufeffsep=;\r\nquery_id;doc_id;grade\r\nq1;a;2\r\nq1;b;0\r\nq2;c;3\r\n",
    ),
    Case(name="ranx", content='{"q1": {"a": 2, "b": 0}, "q2": {"c": 3}}'),
    Case(
        name="Elasticsearch _rank_eval",
        content="""{"requests": [
            {"id": "q1", "request": {"query": {"match": {"text": "one"}}},
             "ratings": [{"_index": "i", "_id": "a", "rating": 2},
                         {"_index": "i", "_id": "b", "rating": 0}]},
            {"id": "q2", "request": {"query": {"match": {"text": "two"}}},
             "ratings": [{"_index": "i", "_id": "c", "rating": 3}]}],
            "metric": {"precision": {"k": 20}}}""",
    ),
    Case(
        name="OpenSearch Search Relevance Workbench",
        content="""{"name": "Imported", "type": "IMPORT_JUDGMENT", "judgmentRatings": [
            {"query": "q1", "ratings": [{"docId": "a", "rating": "2.000"},
                                        {"docId": "b", "rating": "0.0"}]},
            {"query": "q2", "ratings": [{"docId": "c", "rating": "3.000"}]}]}""",
    ),
    Case(
        name="OpenSearch Search Relevance Workbench, searched",
        content="""{"took": 1, "hits": {"total": {"value": 1}, "hits": [
            {"_index": "search-relevance-judgment", "_id": "1", "_score": 1.0, "_source": {
             "id": "1", "timestamp": "2025", "name": "Imported", "status": "COMPLETED",
             "judgmentRatings": [
              {"query": "q1", "ratings": [{"rating": "2", "docId": "a"},
                                          {"rating": "0", "docId": "b"}]},
              {"query": "q2", "ratings": [{"rating": "3", "docId": "c"}]}]}}]}}""",
    ),
    Case(
        name="MTEB lines",
        content='{"query-id": "q1", "corpus-id": "a", "score": 2}\n'
        '{"query-id": "q1", "corpus-id": "b", "score": 0}\n'
        '{"query-id": "q2", "corpus-id": "c", "score": 3}\n',
    ),
    Case(
        name="ir_measures records",
        content='[{"query_id": "q1", "doc_id": "a", "relevance": 2, "iteration": "0"},'
        '{"query_id": "q1", "doc_id": "b", "relevance": 0}, {"query_id": "q2", "doc_id": "c", '
        '"relevance": 3}]',
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore:.*left out .* without a query, a document or a grade")
def test_a_format_holds_the_judgments_of_the_trec_file(case: Case, tmp_path: Path) -> None:
    judgments = read_qrels(write(tmp_path / "qrels", case.content))
    assert judgments.select("query_id", "doc_id", "grade").rows() == ROWS
    assert judgments["grade"].dtype == pl.Int32


def test_parquet_of_ranx_is_read(tmp_path: Path) -> None:
    path = tmp_path / "qrels.parquet"
    columns = {"q_id": ["q1", "q1", "q2"], "doc_id": ["a", "b", "c"], "score": [2, 0, 3]}
    pl.DataFrame(columns).write_parquet(path)
    assert read_qrels(path).select("query_id", "doc_id", "grade").rows() == ROWS


def test_fractions_and_truth_values_are_grades(tmp_path: Path) -> None:
    content = """{"judgmentRatings": [{"query": "q", "ratings": [
        {"docId": "a", "rating": "0.5"}, {"docId": "b", "rating": "1.0"}]}]}"""
    grades = read_qrels(write(tmp_path / "qrels.json", content))["grade"]
    assert (grades.dtype, grades.to_list()) == (pl.Float64, [0.5, 1.0])
    content = (
        '[{"qid": "q", "id": "a", "relevant": true}, {"qid": "q", "id": "b", "relevant": false}]'
    )
    assert read_qrels(write(tmp_path / "qrels.json", content))["grade"].to_list() == [1, 0]


def test_columns_are_named_and_the_first_of_several_grades_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", "ask;page;stars\nq1;a;2\nq1;b;0\nq2;c;3\nq1;a;1\n")
    notation = f"{path}:query=ask,id=page,grade=stars"
    with refused(
        f"{path}:5: a second grade (1) for query 'q1', document 'a'; to take the first, "
        "use FILE:several=first",
        DataError,
    ):
        read_qrels(notation)
    assert (
        read_qrels(f"{notation},several=first").select("query_id", "doc_id", "grade").rows() == ROWS
    )
    with refused(f"{path}: unknown column 'rating' (valid: ask, page, stars)", DataError):
        read_qrels(f"{path}:query=ask,id=page,grade=rating")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("query,docid,rating\nq,a,high\n", ":2: expected a number as rating, got 'high'"),
        ("query,docid,rating\nq,a,\n", ": expected judgments, got 1 row without rating"),
        ("query,docid,rating\nq,a,1,2\n", ":2: expected 3 fields as in the first line, got 4…"),
        ('{"q": {"a": "x"}}', ": judgment 1: expected a number as grade, got 'x'"),
        ('{"q": 1}', ": JSON records: expected a column for the document …"),
        (
            '{"requests": [{"id": "q", "ratings": [{"_id": "a"}]}]}',
            ": JSON answers: expected a column for the grade …",
        ),
        (
            '{"qid": "q", "docid": "a", "rel": 1}\n{"qid": "q", "docid": ["b"], "rel": 1}\n',
            ":2: document: expected ids as …",
        ),
        (
            "qid,docid,rank,score\nq,a,1,2.5\n",
            ":1: expected judgments (query, document and grade), got a run …",
        ),
        (
            "<html><body>404</body></html>",
            ": expected judgments (query, document and grade), got a web page; download …",
        ),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n",
            (
                ": expected judgments (query, document and grade), got a Git LFS pointer; fetch "
                "the "
                "file: git lfs pull"
            ),
        ),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_named(content: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "qrels", content)
    with refused(f"{path}{words}", DataError):
        read_qrels(path)


def test_rows_that_are_not_rated_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", "query,docid,rating\nq,a,1\nq,b,\n,c,1\n")
    with pytest.warns(DataWarning, match=r"q\.csv: left out 2 judgments without "):
        assert read_qrels(path).select("query_id", "doc_id", "grade").rows() == [("q", "a", 1)]
