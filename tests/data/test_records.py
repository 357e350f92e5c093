"""JSON lines and Parquet: what is read, with which types, and how each fault is named."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.data import files
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import STRINGS, read_jsonl, stack, to_jsonl
from ranktilt.data.formats.tables.parquet import read_judgments, read_parquet
from ranktilt.errors import DataError
from ranktilt.progress import listening
from tests.toy import jsonl, write

pytestmark = pytest.mark.usefixtures("chunks")

GOOD = b'{"_id": "1", "text": "one"}'


def read(folder: Path, content: str | bytes, **options: Any) -> pl.DataFrame:
    return read_jsonl(write(folder / "corpus.jsonl", content), **options)


def column(folder: Path, *values: Any) -> pl.Series:
    """Read one line a value, which is the field x; `...` leaves the field out."""
    rows = [
        {"_id": str(i), "text": "", **({} if v is ... else {"x": v})} for i, v in enumerate(values)
    ]
    return read(folder, jsonl(rows))["x"]


def fault(folder: Path, content: str | bytes, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, content, **options)
    return str(caught.value).removeprefix(f"{folder}/")


def test_id_and_text_come_first_and_reading_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"year": 1999, "text": "one", "title": "T", "_id": 7},
        {"_id": "x", "text": "", "id": 6},
    ]
    frame = read(tmp_path, jsonl([*rows, {"_id": 2**60, "text": ""}]))
    assert frame.columns == ["id", "text", "year", "title", "_id"]
    assert frame.rows() == [
        ("7", "one", 1999, "T", None),
        ("x", "", None, None, 6),
        (str(2**60), "", None, None, None),
    ]
    monkeypatch.setattr(files, "CHUNK", 30)
    steps: list[tuple[str, int, int]] = []
    with listening(lambda *step: steps.append(step)):
        read(tmp_path, jsonl([{"_id": str(i), "text": "some text"} for i in range(9)]))
    labels, done, total = zip(*steps, strict=True)
    assert set(labels) == {"reading corpus.jsonl"}
    assert list(done) == sorted(done)
    assert set(total) == {(tmp_path / "corpus.jsonl").stat().st_size} == {done[-1]}


def test_a_field_has_a_type_or_is_json_and_numbers_that_are_not_finite_are_null(
    tmp_path: Path,
) -> None:
    for values, kind, column_values in (
        (["a", "", None], pl.String, ["a", "", None]),
        ([1, -5, ...], pl.Int64, [1, -5, None]),
        ([True, None, False], pl.Boolean, [True, None, False]),
        ([1, 2.5], pl.Binary, [b"1", b"2.5"]),
        ([1, "1"], pl.Binary, [b"1", b'"1"']),
        ([{"a": None}, [], None], pl.Binary, [b'{"a":null}', b"[]", None]),
        ([-(2**63), 2**63 - 1], pl.Int64, [-(2**63), 2**63 - 1]),
        ([2**63, 1], pl.Binary, [b"9223372036854775808", b"1"]),
        ([None, None], pl.String, [None, None]),
    ):
        read_column = column(tmp_path, *values)
        assert (read_column.dtype, read_column.to_list()) == (kind, column_values)
    values = [float("nan"), 1.5, float("inf"), float("-inf"), None]
    assert column(tmp_path, *values).to_list() == [None, 1.5, None, None, None]
    assert column(tmp_path, 2**60 + 1, float("nan")).to_list() == [2**60 + 1, None]
    raw = column(tmp_path, {"a": [float("nan"), "NaN"]}, "Infinity").to_list()
    assert raw == [b'{"a":[null,"NaN"]}', b'"Infinity"']


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=40)
@given(values=st.lists(JSON, min_size=1, max_size=5), size=st.integers(20, 80))
def test_no_type_depends_on_the_chunks(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], size: int
) -> None:
    rows = [{"_id": str(i), "text": "", "x": v} for i, v in enumerate(values)]
    path = write(
        tmp_path_factory.getbasetemp() / "chunks.jsonl",
        b"".join(orjson.dumps(row) + b"\n" for row in rows),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        small = typed(read_jsonl(path))
    assert small.equals(typed(read_jsonl(path)))


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """The types that a collection gives to what was read."""
    nothing = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    return Collection(frame, frame.select("id", "text"), nothing).docs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"_id": "1", "text": "one"',
            "expected one JSON object, got broken JSON (unexpected end of data",
        ),
        (GOOD + GOOD, "expected one JSON object, got broken JSON ("),
        (b'{"_id": "1", "text": NaN}', "expected the fields _id and text; text is missing: "),
        (b'["1", "one"]', """expected one JSON object, got list: '["1", "one"]'"""),
        (b'{"id": "1", "text": "x"}', "expected the fields _id and text; _id is missing: "),
        (b'{"_id": "", "text": "x"}', "expected _id to be a string that is not empty: "),
        (b'{"_id": true, "text": "x"}', "expected _id to be a string that is not empty: "),
        (b'{"_id": "1", "text": "x", "title": 5}', "expected title to be a string, got int: "),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    content = b'\r\n\n{"_id": "0", "text": "fine"}\r\n' + line + b"\n" + GOOD
    assert fault(tmp_path, content, strings=STRINGS).startswith(f"corpus.jsonl:4: {message}")


def test_the_first_bad_line_is_named_and_an_id_where_it_comes_again(tmp_path: Path) -> None:
    assert fault(tmp_path, GOOD + b'\n{"_id": "2"}\n\xff\n{').startswith("corpus.jsonl:2: ")
    bad = GOOD + b'\r\n\r\n{"_id": "2", "text": "\xff"}'
    assert (
        fault(tmp_path, bad)
        == "corpus.jsonl:3: invalid UTF-8 at byte 23 of the line; save it as UTF-8"
    )
    deep = GOOD + b'\n{"_id": "2", "text": "x", "deep": ' + b"[" * 400 + b"]" * 400 + b"}"
    assert fault(tmp_path, deep).startswith("corpus.jsonl: cannot be read as JSON objects")
    for content, line in (
        (b'{"_id": "a", "text": ""}\n\n \n{"_id": "a", "text": ""}\n', 4),
        (
            (
                b'\n\n{"_id": "a", "text": ""}\r\n\r\n{"_id": "b", "text": ""}\r\n\r\n'
                b'{"_id": "a", "text": ""}\n'
            ),
            7,
        ),
        (b'{"_id": "a", "text": ""}\n{"_id": "a", "text": ""}\n{"_id": "a", "text": ""}', 2),
        (b'{"_id": 1, "text": ""}\n{"_id": "1", "text": ""}', 2),
    ):
        name = "1" if b"1" in content else "a"
        assert (
            fault(tmp_path, content)
            == f"corpus.jsonl:{line}: _id '{name}' occurs twice; ids must be unique"
        )


def test_a_column_of_two_types_is_raw_json_and_nulls_and_line_ends_are_written_as_they_are(
    tmp_path: Path,
) -> None:
    values: list[Any] = [[1, None], ["1"], [True], [1.0], [b"{}"], [None]]
    tables = [pl.DataFrame({"x": column}) for column in values]
    assert stack(tables)["x"].to_list() == [b"1", None, b'"1"', b"true", b"1.0", b"{}", None]
    frame = pl.DataFrame(
        {"id": ["1", "2"], "text": ["", "x"], "m": [b'{"a":[1]}', None], "f": [None, 2.0]}
    )
    assert (
        to_jsonl(frame) == b'{"_id":"1","text":"","m":{"a":[1]}}\n{"_id":"2","text":"x","f":2.0}\n'
    )
    frame = pl.DataFrame(
        {"id": ["1", "2"], "text": ["a\nb\r\nc\rd\u2028\x85e", "x"], "_id": [5, 6]}
    )
    written = to_jsonl(frame)
    assert written.count(b"\n") == 2
    assert read(tmp_path, written).equals(frame)


JUDGED = {"query-id": ["1", "2"], "corpus-id": ["a", "b"], "score": [1, 0]}
FIRST = '{"query-id":"1","corpus-id":"a","score":1}\n'


def table(folder: Path, **columns: Any) -> Path:
    path = folder / "t.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def refusal(path: Path, reader: Any = read_parquet) -> str:
    with pytest.raises(DataError) as caught:
        reader(path)
    assert caught.value.path == str(path)
    return str(caught.value).removeprefix(str(path.parent) + "/")


def test_documents_are_as_json_lines_give_them_ids_may_be_numbers_and_bytes_text(
    tmp_path: Path,
) -> None:
    raw = [
        {
            "_id": "a",
            "title": "T",
            "text": "x",
            "metadata": {"url": "u", "n": [1, 2]},
            "year": 1999,
            "id": 7,
        },
        {"_id": "b", "title": None, "text": "", "metadata": None, "year": None, "id": 8},
    ]
    lines = read_jsonl(write(tmp_path / "t.jsonl", jsonl(raw)), strings=STRINGS)
    pl.DataFrame(raw).write_parquet(tmp_path / "t.parquet")
    parquet = read_parquet(tmp_path / "t.parquet", strings=STRINGS)
    assert parquet.columns[:2] == ["id", "text"]
    assert parquet.select(lines.columns).rows() == lines.rows()
    documents = read_parquet(table(tmp_path, id=[3], text=["x"], day=[datetime.date(2024, 5, 22)]))
    assert documents.rows() == [("3", "x", b'"2024-05-22"')]
    columns = {
        "_id": [b"a", b"b"],
        "text": ["größe".encode(), b"x"],
        "title": [b"T", None],
        "vector": [b"\xff\xfe", b"x"],
        "price": [decimal.Decimal("1.5"), None],
        "huge": pl.Series([2**64 - 1, 1], dtype=pl.UInt64),
        "small": pl.Series([7, 1], dtype=pl.UInt64),
        "kind": pl.Series(["k", "l"], dtype=pl.Categorical),
    }
    documents = read_parquet(table(tmp_path, **columns), strings=STRINGS)
    assert documents.columns == ["id", "text", "title", "price", "small", "kind"]
    assert documents.rows() == [("a", "größe", "T", 1.5, 7, "k"), ("b", "x", None, None, 1, "l")]
    judged = {name: [str(value).encode() for value in values] for name, values in JUDGED.items()}
    assert read_judgments(table(tmp_path, **judged))["grade"].to_list() == [1, 0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"_id": ["a"]}, "t.parquet: expected the column text, got _id"),
        ({"name": ["a"]}, "t.parquet: expected the columns _id and text, got name"),
        (
            {"_id": [1.5], "text": ["x"]},
            "t.parquet: column '_id': expected ids as strings or whole numbers, got float: 1.5",
        ),
        ({"_id": ["a"], "text": [1]}, "t.parquet: expected text to be a string, got Int64"),
        ({"_id": ["a", "b", "c"], "text": ["x", None, None]}, "t.parquet:2: 2 rows without text"),
        ({"_id": ["a", "", "c"], "text": ["x", "y", "z"]}, "t.parquet:2: 1 row without _id"),
        (
            {"_id": ["a", "a"], "text": ["x", "y"]},
            "t.parquet: _id 'a' occurs twice; ids must be unique",
        ),
        ({"_id": [], "text": []}, "t.parquet: the file is empty"),
    ],
)
def test_what_documents_lack(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    assert refusal(table(tmp_path, **columns)) == message


def test_no_parquet_file_and_a_judgment_nested_without_end(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "t.parquet", "nothing of the sort"))
    assert message.startswith("t.parquet: cannot be read as Parquet: ")
    assert message.endswith("; fetch it again")
    assert refusal(tmp_path / "none.parquet").startswith(
        "none.parquet: cannot be read as Parquet: "
    )
    rows = FIRST + '{"query-id": "1", "corpus-id": ' + "[" * 300 + "]" * 300
    path = write(tmp_path / "t.jsonl", rows + ', "score": 1}')
    message = "t.jsonl:2: expected a string or a whole number as corpus-id, got [[["
    assert refusal(path, read_judgments).startswith(message)


def test_judgments_of_parquet_and_json_lines_may_be_fractions(tmp_path: Path) -> None:
    for columns in (
        JUDGED,
        {"query-id": [1, 2], "corpus-id": ["a", "b"], "score": [1.0, 0.0]},
        {"query_id": ["1", "2"], "corpus_id": ["a", "b"], "relevance": [1, 0], "note": ["", ""]},
        {"qid": ["1", "2"], "docid": ["a", "b"], "label": ["1", "0"]},
    ):
        expected = [("1", "a", 1, 1), ("2", "b", 0, 2)]
        assert read_judgments(table(tmp_path, **columns)).rows() == expected
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        assert read_judgments(write(tmp_path / "t.jsonl", jsonl(rows))).rows() == expected
        assert read_judgments(write(tmp_path / "t.jsonl.gz", jsonl(rows))).rows() == expected
    raw = {**JUDGED, "score": [1.0, 0.5]}
    for path in (
        table(tmp_path, **raw),
        write(tmp_path / "t.jsonl", jsonl(pl.DataFrame(raw).rows(named=True))),
    ):
        grades = read_judgments(path)["grade"]
        assert (grades.dtype, grades.to_list()) == (pl.Float64, [1.0, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{oops\n", "t.jsonl:1: expected one JSON object, got broken JSON ("),
        ("\n[1]\n", "t.jsonl:2: expected one JSON object, got list"),
        (
            '{"query-id":"1","corpus-id":"a"}\n',
            "t.jsonl: expected the column score, got query-id, corpus-id",
        ),
        (
            f'{FIRST}{{"query-id":"1","corpus-id":"b","score":1e12}}\n',
            "t.jsonl:2: expected a number as score, got '1000000000000.0'",
        ),
        (f'{FIRST}{{"query-id":"1","score":1}}\n', "t.jsonl:2: 1 row without corpus-id"),
        ('{"query-id":"1","corpus-id":"a","score":NaN,"n":1}\n', "t.jsonl:1: 1 row without score"),
        ('{"query-id":Infinity,"corpus-id":"a","score":1}\n', "t.jsonl:1: 1 row without query-id"),
        (
            '{"query-id":"1","corpus-id":"a","score":"yes"}\n',
            "t.jsonl:1: expected a number as score, got 'yes'",
        ),
    ],
)
def test_what_judgments_lack(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(write(tmp_path / "t.jsonl", text), read_judgments).startswith(message)
