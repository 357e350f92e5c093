"""Queries in a file of their own: which layouts are read, and what else is said of others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.queries import read_queries
from ranktilt.errors import DataError
from tests.refusals import refused
from tests.toy import write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    content: str


CASES = [
    Case(name="tab", content="q1\tcold tea\nq2\twarm, milk\n"),
    Case(name="tab with a header", content="qid\tquery\nq1\tcold tea\nq2\twarm, milk\n"),
    Case(name="csv", content='id,text\nq1,cold tea\nq2,"warm, milk"\n'),
    Case(name="excel", content="qid;query\nq1;cold tea\nq2;warm, milk\n"),
    Case(name="three columns", content="qid\tdate\tquery\nq1\t1\tcold tea\nq2\t2\twarm, milk\n"),
    Case(
        name="BEIR",
        content='{"_id": "q1", "text": "cold tea"}\n{"_id": "q2", "text": "warm, milk"}\n',
    ),
    Case(
        name="lines",
        content='{"qid": "q1", "query": "cold tea"}\n{"qid": "q2", "query": "warm, milk"}\n',
    ),
    Case(
        name="list",
        content=(
            '[{"query_id": "q1", "text": "cold tea"}, {"query_id": "q2", "text": "warm, milk"}]'
        ),
    ),
    Case(name="object", content='{"q1": "cold tea", "q2": "warm, milk"}'),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_queries_are_read_from(case: Case, tmp_path: Path) -> None:
    queries = read_queries(write(tmp_path / "queries", case.content)).queries
    assert queries.select("id", "text").rows() == [("q1", "cold tea"), ("q2", "warm, milk")]


def test_parquet_of_queries_is_read(tmp_path: Path) -> None:
    path = tmp_path / "queries.parquet"
    pl.DataFrame({"qid": [1, 2], "query": ["cold", "warm"]}).write_parquet(path)
    assert read_queries(path).queries.select("id", "text").rows() == [("1", "cold"), ("2", "warm")]
    pl.DataFrame({"_id": ["1"], "text": ["cold"], "topic": ["tea"]}).write_parquet(path)
    assert read_queries(path).queries.select("id", "text", "topic").rows() == [("1", "cold", "tea")]


def test_one_record_is_one_query(tmp_path: Path) -> None:
    for content in ('{"qid": "q1", "query": "cold tea"}', '{"_id": "q1", "text": "cold tea"}\n'):
        queries = read_queries(write(tmp_path / "queries", content)).queries
        assert queries.select("id", "text").rows() == [("q1", "cold tea")]


def test_what_is_no_file_of_queries_is_said(tmp_path: Path) -> None:
    expected = "expected queries (id and text), got"
    for content, words in (
        ("q Q0 a 1 2 t\n", f":1: {expected} a run (TREC run); name a run with --run"),
        ("qid,docid,rating\nq,a,1\n", f":1: {expected} judgments (CSV: qid, docid, rating); …"),
        ('{"q": {"a": 1}}', f": {expected} judgments or a run (JSON: query, document); …"),
        ("", ": the file is empty"),
        ('{"qid": "q"}\n{"qid": "r"}\n', f": {expected} JSON lines…"),
        ("{}", f": {expected} JSON…"),
        ('{"_id": "q", "text": "NaN" b}\n', ":1: expected one JSON value, got broken JSON…"),
        ('{"_id": "q", "text": "NaN" b}\n{}\n', ":1: expected one JSON value per line, got…"),
        ('[{"qid": "q", "text": "a"}, {"qid": "q", "text": "b"}]', ": query 'q' occurs twice"),
    ):
        path = write(tmp_path / "queries", content)
        with refused(f"{path}{words}", DataError):
            read_queries(path)
