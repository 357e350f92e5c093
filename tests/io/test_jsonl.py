"""JSON lines: what is read, with which types, and how each fault is named."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.errors import DataError
from ranktilt.io import files
from ranktilt.io.jsonl import STRINGS, read_jsonl, stack, to_jsonl
from ranktilt.progress import listening
from tests.toy import jsonl, write

pytestmark = pytest.mark.usefixtures("chunks")

GOOD = b'{"_id": "1", "text": "one"}'


def read(folder: Path, content: str | bytes, **options: Any) -> pl.DataFrame:
    return read_jsonl(write(folder / "corpus.jsonl", content), **options)


def column(folder: Path, *values: Any) -> pl.Series:
    """Read one line a value, which is the field x; `...` leaves the field out."""
    rows = [{"_id": str(i), "text": "", **({} if v is ... else {"x": v})} for i, v in enumerate(values)]
    return read(folder, jsonl(rows))["x"]


def fault(folder: Path, content: str | bytes, **options: Any) -> str:
    """Return the message of a file that is refused, without its folder."""
    with pytest.raises(DataError) as caught:
        read(folder, content, **options)
    return str(caught.value).removeprefix(f"{folder}/")


# What is read


def test_id_and_text_come_first_and_all_fields_are_kept(tmp_path: Path) -> None:
    frame = read(tmp_path, jsonl([{"year": 1999, "text": "one", "title": "T", "_id": "1"}, {"_id": "2", "text": ""}]))
    assert frame.columns == ["id", "text", "year", "title"]
    assert frame.rows() == [("1", "one", 1999, "T"), ("2", "", None, None)]


def test_ids_may_be_whole_numbers_and_a_field_named_id_is_another(tmp_path: Path) -> None:
    frame = read(tmp_path, jsonl([{"_id": n, "text": ""} for n in (7, "x", 2**60)]))
    assert frame["id"].to_list() == ["7", "x", str(2**60)]
    frame = read(tmp_path, '{"id": 5, "_id": "1", "text": ""}\n{"_id": "2", "text": "", "id": 6}')
    assert frame["id"].to_list() == ["1", "2"]
    assert frame["_id"].to_list() == [5, 6]


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        (["a", "", None], pl.String, ["a", "", None]),
        ([1, -5, ...], pl.Int64, [1, -5, None]),
        ([True, None, False], pl.Boolean, [True, None, False]),
        ([1, 2.5], pl.Binary, [b"1", b"2.5"]),
        ([1, "1"], pl.Binary, [b"1", b'"1"']),
        ([{"a": None}, [], None], pl.Binary, [b'{"a":null}', b"[]", None]),
        ([2**63, 1], pl.Binary, [b"9223372036854775808", b"1"]),
        ([None, None], pl.String, [None, None]),
    ],
)
def test_a_field_has_a_type_of_its_own_or_is_raw_json(
    tmp_path: Path, values: list[Any], kind: Any, kept: list[Any]
) -> None:
    found = column(tmp_path, *values)
    assert found.dtype == kind
    assert found.to_list() == kept


def test_numbers_that_are_not_finite_are_null_where_they_are_not_used(tmp_path: Path) -> None:
    values = [float("nan"), 1.5, float("inf"), float("-inf"), None]
    assert column(tmp_path, *values).to_list() == [None, 1.5, None, None, None]
    assert column(tmp_path, 2**60 + 1, float("nan")).to_list() == [2**60 + 1, None]
    assert column(tmp_path, {"a": [float("nan"), "NaN"]}, "Infinity").to_list() == [
        b'{"a":[null,"NaN"]}',
        b'"Infinity"',
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=40)
@given(values=st.lists(JSON, min_size=1, max_size=5), size=st.integers(20, 80))
def test_no_type_depends_on_the_chunks(tmp_path_factory: pytest.TempPathFactory, values: list[Any], size: int) -> None:
    rows = [{"_id": str(i), "text": "", "x": v} for i, v in enumerate(values)]
    path = write(tmp_path_factory.getbasetemp() / "chunks.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        small = kept(read_jsonl(path))
    assert small.equals(kept(read_jsonl(path)))


def kept(frame: pl.DataFrame) -> pl.DataFrame:
    """The types that a collection gives to what was read."""
    nothing = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    return Collection(frame, frame.select("id", "text"), nothing).docs


def test_reading_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 30)
    steps: list[tuple[str, int, int]] = []
    with listening(lambda *step: steps.append(step)):
        read(tmp_path, jsonl([{"_id": str(i), "text": "some text"} for i in range(9)]))
    labels, done, total = zip(*steps, strict=True)
    assert set(labels) == {"reading corpus.jsonl"}
    assert list(done) == sorted(done)
    assert set(total) == {(tmp_path / "corpus.jsonl").stat().st_size} == {done[-1]}


# What is refused


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"_id": "1", "text": "one"', "expected one JSON object, got broken JSON (unexpected end of data"),
        (GOOD + GOOD, "expected one JSON object, got broken JSON ("),
        (b'{"_id": "1", "text": NaN}', "expected the fields _id and text, text is missing: "),
        (b'["1", "one"]', """expected one JSON object, got list: '["1", "one"]'"""),
        (b'{"id": "1", "text": "x"}', "expected the fields _id and text, _id is missing: "),
        (b'{"_id": "", "text": "x"}', "expected _id to be a string that is not empty: "),
        (b'{"_id": true, "text": "x"}', "expected _id to be a string that is not empty: "),
        (b'{"_id": "1", "text": "x", "title": 5}', "expected title to be a string, got int: "),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    content = b'\r\n\n{"_id": "0", "text": "fine"}\r\n' + line + b"\n" + GOOD
    assert fault(tmp_path, content, strings=STRINGS).startswith(f"corpus.jsonl:4: {message}")


def test_the_first_bad_line_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path, GOOD + b'\n{"_id": "2"}\n\xff\n{').startswith("corpus.jsonl:2: ")
    bad = GOOD + b'\r\n\r\n{"_id": "2", "text": "\xff"}'
    assert fault(tmp_path, bad) == "corpus.jsonl:3: invalid UTF-8 at byte 23 of the line; save it as UTF-8"
    deep = GOOD + b'\n{"_id": "2", "text": "x", "deep": ' + b"[" * 400 + b"]" * 400 + b"}"
    assert fault(tmp_path, deep).startswith("corpus.jsonl: cannot be read as JSON objects")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"_id": "a", "text": ""}\n{"_id": "b", "text": ""}\n{"_id": "a", "text": ""}', 3),
        (b'{"_id": "a", "text": ""}\n\n \n{"_id": "a", "text": ""}\n', 4),
        (b'\n\n{"_id": "a", "text": ""}\r\n\r\n{"_id": "b", "text": ""}\r\n\r\n{"_id": "a", "text": ""}\n', 7),
        (b'{"_id": "a", "text": ""}\n{"_id": "a", "text": ""}\n{"_id": "a", "text": ""}', 2),
        (b'{"_id": 1, "text": ""}\n{"_id": "1", "text": ""}', 2),
    ],
)
def test_the_same_id_twice_is_named_where_it_comes_again(tmp_path: Path, content: bytes, line: int) -> None:
    name = "1" if b"1" in content else "a"
    assert fault(tmp_path, content) == f"corpus.jsonl:{line}: _id '{name}' occurs twice; ids must be unique"


def test_a_column_of_two_types_becomes_raw_json() -> None:
    values: list[Any] = [[1, None], ["1"], [True], [1.0], [b"{}"], [None]]
    tables = [pl.DataFrame({"x": column}) for column in values]
    assert stack(tables)["x"].to_list() == [b"1", None, b'"1"', b"true", b"1.0", b"{}", None]


# Writing


def test_nulls_are_left_out_and_raw_json_is_written_as_it_is() -> None:
    frame = pl.DataFrame({"id": ["1", "2"], "text": ["", "x"], "m": [b'{"a":[1]}', None], "f": [None, 2.0]})
    assert to_jsonl(frame) == b'{"_id":"1","text":"","m":{"a":[1]}}\n{"_id":"2","text":"x","f":2.0}\n'


def test_a_line_end_inside_a_text_stays_inside_its_line(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["1", "2"], "text": ["a\nb\r\nc\rd\u2028\x85e", "x"], "_id": [5, 6]})
    assert to_jsonl(frame).count(b"\n") == 2
    assert read(tmp_path, to_jsonl(frame)).equals(frame)
