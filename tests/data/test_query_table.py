"""Files of queries and their groups, as they are named and as they are written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.query_table import QueryTableName, read_query_table
from ranktilt.errors import UserError

QUERIES = ["q1", "q2", "q3"]
TOPICS = {"q1": "health", "q2": "law", "q3": None}

FILES = [
    ("topics.csv", "query_id,topic\nq1,health\nq2,law\n"),
    ("topics.tsv", "qid\ttopic\nq1\thealth\nq2\tlaw\n"),
    ("topics.csv", "sep=;\nid;topic\nq1;health\nq2;law\n"),
    ("topics.csv", 'topic,query_id\n"health",q1\nlaw,q2\nsport,q9\n'),
    (
        "topics.jsonl",
        '{"_id": "q1", "topic": "health"}\n{"_id": "q2", "topic": "law"}\n',
    ),
    ("topics.json", '[{"id": "q1", "topic": "health"}, {"id": "q2", "topic": "law"}]'),
    ("topics.csv", "query_id,topic\nq1,health\nq1,health\nq2,law\n"),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_read(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    table = read_query_table(str(file), QUERIES, "topic")
    topic_of = dict(table.iter_rows())
    assert {query: topic_of.get(query) for query in QUERIES} == TOPICS


def test_read_parquet(tmp_path: Path) -> None:
    file = tmp_path / "topics.parquet"
    pl.DataFrame({"query_id": ["q1", "q2"], "topic": ["health", "law"]}).write_parquet(file)
    assert read_query_table(str(file), QUERIES, "topic").rows() == [("q1", "health"), ("q2", "law")]


def test_object_of_ids_and_groups(tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"q1": "health", "q2": "law"}')
    assert read_query_table(str(file), QUERIES, "").rows() == [("q1", "health"), ("q2", "law")]


def test_column_of_texts_has_the_ids_where_queries_are_texts(tmp_path: Path) -> None:
    file = tmp_path / "topics.tsv"
    file.write_text("query_id\ttext\ttopic\nq1\tred apples\thealth\n")
    assert read_query_table(str(file), ["red apples"], "topic").rows() == [("red apples", "health")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "query_id,topic\nq7,health\n",
            "names none of the 3 queries (first: 'q1'; the file's look like 'q7')",
        ),
        (
            "query_id,topic\nq1,health\nq1,law\n",
            "query 'q1' has two values of 'topic': 'health' (line 2) and 'law'",
        ),
        (
            "query,topic\nred apples,q1\n",
            "column 'topic' has the ids of the queries; expected a column of groups",
        ),
        ("query_id,market\nq1,health\n", "unknown column 'topic' (valid: market)"),
        (
            "q1\thealth\nq2\tlaw\n",
            "expected a table of queries with a column of their ids (such as the header "
            "query_id,topic)",
        ),
        ("", "expected a table of queries with a column of their ids"),
        ("query_id,topic\n", "expected rows below the header, got none"),
        ("{", "expected"),
    ],
    ids=[
        "other ids",
        "two values",
        "ids",
        "other column",
        "no header",
        "empty",
        "header only",
        "broken",
    ],
)
def test_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "topics.csv"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read_query_table(str(file), QUERIES, "topic")
    assert message in str(caught.value)
    assert "topics.csv" in str(caught.value)


def test_names_of_files_and_columns(tmp_path: Path) -> None:
    file = tmp_path / "a:b"
    file.write_text("query_id,topic\n")
    for text, expected in (
        (str(file), (str(file), "")),
        (f"{file}:topic", (str(file), "topic")),
        (f"{file}:year:3", (str(file), "year:3")),
        ("gone.csv:year:.5", ("gone.csv", "year:.5")),
        ("folder/gone", ("folder/gone", "")),
    ):
        name = QueryTableName.from_text(text)
        assert name is not None
        assert (name.path, name.column) == expected
    assert QueryTableName.from_text("topic") is None
    assert QueryTableName.from_text("year:3") is None
