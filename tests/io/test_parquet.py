"""Parquet files and JSON lines of public data sets, and what is wrong with them."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.errors import DataError
from ranktilt.io.jsonl import STRINGS, read_jsonl
from ranktilt.io.parquet import read_judgments, read_parquet
from tests.toy import jsonl, write

JUDGED = {"query-id": ["1", "2"], "corpus-id": ["a", "b"], "score": [1, 0]}


def table(folder: Path, **columns: Any) -> Path:
    path = folder / "t.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def fault(path: Path, read: Any = read_parquet) -> str:
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.path == str(path)
    return str(caught.value).removeprefix(str(path.parent) + "/")


def test_documents_are_as_json_lines_give_them(tmp_path: Path) -> None:
    raw = [
        {"_id": "a", "title": "T", "text": "x", "metadata": {"url": "u", "n": [1, 2]}, "year": 1999, "id": 7},
        {"_id": "b", "title": None, "text": "", "metadata": None, "year": None, "id": 8},
    ]
    write(tmp_path / "t.jsonl", jsonl(raw))
    pl.DataFrame(raw).write_parquet(tmp_path / "t.parquet")
    one, two = read_parquet(tmp_path / "t.parquet", strings=STRINGS), read_jsonl(tmp_path / "t.jsonl", strings=STRINGS)
    assert one.columns[:2] == ["id", "text"]
    assert one.select(two.columns).rows() == two.rows()


def test_ids_may_be_whole_numbers_and_be_called_id(tmp_path: Path) -> None:
    assert read_parquet(table(tmp_path, id=[3, 4], text=["x", "y"])).rows() == [("3", "x"), ("4", "y")]


def test_dates_are_kept_as_text(tmp_path: Path) -> None:
    found = read_parquet(table(tmp_path, _id=["a"], text=["x"], day=[datetime.date(2024, 5, 22)]))
    assert found["day"].to_list() == [b'"2024-05-22"']


def test_bytes_that_are_utf8_are_text_and_other_kinds_are_passed_over(tmp_path: Path) -> None:
    columns = {
        "_id": [b"a", b"b"], "text": ["größe".encode(), b"x"], "title": [b"T", None], "vector": [b"\xff\xfe", b"x"],
        "price": [decimal.Decimal("1.5"), None], "huge": pl.Series([2**64 - 1, 1], dtype=pl.UInt64),
        "small": pl.Series([7, 1], dtype=pl.UInt64), "kind": pl.Series(["k", "l"], dtype=pl.Categorical),
    }  # fmt: skip
    found = read_parquet(table(tmp_path, **columns), strings=STRINGS)
    assert found.columns == ["id", "text", "title", "price", "small", "kind"]
    assert found.rows() == [("a", "größe", "T", 1.5, 7, "k"), ("b", "x", None, None, 1, "l")]
    judged = {name: [str(value).encode() for value in values] for name, values in JUDGED.items()}
    assert read_judgments(table(tmp_path, **judged))["grade"].to_list() == [1, 0]


def test_a_judgment_nested_without_end_is_one_line(tmp_path: Path) -> None:
    rows = '{"query-id": "1", "corpus-id": "a", "score": 1}\n{"query-id": "1", "corpus-id": ' + "[" * 300 + "]" * 300
    path = write(tmp_path / "t.jsonl", rows + ', "score": 1}')
    assert fault(path, read_judgments).startswith("t.jsonl: cannot be read as JSON: ")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"_id": ["a"]}, "t.parquet: expected the column text, got _id"),
        ({"name": ["a"]}, "t.parquet: expected the columns _id and text, got name"),
        ({"_id": [1.5], "text": ["x"]}, "t.parquet: expected _id to be strings or whole numbers, got Float64"),
        ({"_id": ["a"], "text": [1]}, "t.parquet: expected text to be a string, got Int64"),
        ({"_id": ["a", "b", "c"], "text": ["x", None, None]}, "t.parquet:2: 2 rows without text"),
        ({"_id": ["a", "", "c"], "text": ["x", "y", "z"]}, "t.parquet:2: 1 row without _id"),
        ({"_id": ["a", "a"], "text": ["x", "y"]}, "t.parquet: _id 'a' occurs twice; ids must be unique"),
        ({"_id": [], "text": []}, "t.parquet: the file is empty"),
    ],
)
def test_what_documents_lack(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    assert fault(table(tmp_path, **columns)) == message


def test_no_parquet_file(tmp_path: Path) -> None:
    message = fault(write(tmp_path / "t.parquet", "nothing of the sort"))
    assert message.startswith("t.parquet: cannot be read as Parquet: ")
    assert message.endswith("; fetch it again")
    assert fault(tmp_path / "none.parquet").startswith("none.parquet: cannot be read as Parquet: ")


@pytest.mark.parametrize(
    "columns",
    [
        JUDGED,
        {"query-id": [1, 2], "corpus-id": ["a", "b"], "score": [1.0, 0.0]},
        {"query_id": ["1", "2"], "corpus_id": ["a", "b"], "relevance": [1, 0], "note": ["", ""]},
        {"qid": ["1", "2"], "docid": ["a", "b"], "label": ["1", "0"]},
    ],
)
def test_judgments(tmp_path: Path, columns: dict[str, Any]) -> None:
    expected = [("1", "a", 1, 1), ("2", "b", 0, 2)]
    assert read_judgments(table(tmp_path, **columns)).rows() == expected
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert read_judgments(write(tmp_path / "t.jsonl", jsonl(rows))).rows() == expected
    assert read_judgments(write(tmp_path / "t.jsonl.gz", jsonl(rows))).rows() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{oops\n", "t.jsonl:1: expected one JSON object, got broken JSON ("),
        ("\n[1]\n", "t.jsonl:2: expected one JSON object, got list"),
        ('{"query-id":"1","corpus-id":"a"}\n', "t.jsonl: expected the column score, got query-id, corpus-id"),
        (
            '{"query-id":"1","corpus-id":"a","score":1}\n{"query-id":"1","corpus-id":"b","score":1e12}\n',
            "t.jsonl:2: expected a number as score, got '1000000000000.0'",
        ),
        (
            '{"query-id":"1","corpus-id":"a","score":1}\n{"query-id":"1","score":1}\n',
            "t.jsonl:2: 1 row without corpus-id",
        ),
        ('{"query-id":"1","corpus-id":"a","score":NaN,"n":1}\n', "t.jsonl:1: 1 row without score"),
        ('{"query-id":Infinity,"corpus-id":"a","score":1}\n', "t.jsonl:1: 1 row without query-id"),
        ('{"query-id":"1","corpus-id":"a","score":"yes"}\n', "t.jsonl:1: expected a number as score, got 'yes'"),
    ],
)
def test_what_judgments_lack(tmp_path: Path, text: str, message: str) -> None:
    assert fault(write(tmp_path / "t.jsonl", text), read_judgments).startswith(message)


def test_grades_of_parquet_and_json_lines_may_be_fractions(tmp_path: Path) -> None:
    raw = {**JUDGED, "score": [1.0, 0.5]}
    for path in (table(tmp_path, **raw), write(tmp_path / "t.jsonl", jsonl(pl.DataFrame(raw).rows(named=True)))):
        found = read_judgments(path)["grade"]
        assert (found.dtype, found.to_list()) == (pl.Float64, [1.0, 0.5])
