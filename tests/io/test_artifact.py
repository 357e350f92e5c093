"""Results as files: what a reader refuses, and records made of rows again."""

import gzip
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import DataError, UserError
from ranktilt.io.artifact import Saved, numbers, record, require_numbers, typed

STUDY = Saved("a study", "ranktilt-study", 3, "ranktilt study", oldest=2, lacking="the values of single pairs")
WHOLE: dict[str, Any] = {"format": "ranktilt-study", "version": 3, "runs": ["bm25"]}


@dataclass(frozen=True)
class Row:
    """One of every kind of field that a result has."""

    name: str
    value: float
    count: int
    sure: bool
    outcome: Literal["level", "tilted"]
    names: tuple[str, ...]
    quartiles: tuple[float, float, float]


ROW: dict[str, Any] = {
    "name": "bm25", "value": 1.5, "count": 3, "sure": True, "outcome": "level", "names": ["a", "b"],
    "quartiles": [1.0, 2.0, 3.0],
}  # fmt: skip


def runs(content: dict[str, Any]) -> list[str]:
    found: list[str] = content["runs"]
    return found


def written(folder: Path, content: bytes, name: str = "study.json") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["bare", "with a byte-order mark"])
def test_a_whole_file_is_read(pack: Any, mark: bytes, tmp_path: Path) -> None:
    assert STUDY.read(written(tmp_path, pack(mark + json.dumps(WHOLE).encode())), runs) == ["bm25"]


def test_the_oldest_that_is_read(tmp_path: Path) -> None:
    assert STUDY.read(written(tmp_path, json.dumps({**WHOLE, "version": 2}).encode()), runs) == ["bm25"]


NOT_ONE = "expected a study (format 'ranktilt-study'), got"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"{", "expected a study as JSON: "),
        (json.dumps(WHOLE).encode()[:-4], "expected a study as JSON: "),
        (b'{"a": "\xe9"}', "invalid UTF-8 at byte 7 of the file; save it as UTF-8"),
        (b"{}", f"{NOT_ONE} JSON without a format; ranktilt study --json FILE makes one"),
        (b"[1]", f"{NOT_ONE} JSON without a format; ranktilt study --json FILE makes one"),
        (b'{"format": "ranktilt-audit"}', f"{NOT_ONE} format 'ranktilt-audit'; ranktilt study --json FILE makes one"),
        (b'{"format": ["x"]}', f"{NOT_ONE} format ['x']; ranktilt study --json FILE makes one"),
        (b'{"format": "ranktilt-study"}', "expected version as a whole number, got None"),
        (b'{"format": "ranktilt-study", "version": true}', "expected version as a whole number, got True"),
        (b'{"format": "ranktilt-study", "version": 3.5}', "expected version as a whole number, got 3.5"),
        (b'{"format": "ranktilt-study", "version": 4}', "is a study of format 4, this RankTilt reads up to 3; "
         "update it"),
        (b'{"format": "ranktilt-study", "version": 1}', "is a study of format 1, made by an older RankTilt, which left "
         "out the values of single pairs: run ranktilt study again"),
        (b'{"format": "ranktilt-study", "version": 3}', "is not a whole study: KeyError: 'runs'"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        STUDY.read(path, runs)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_a_compressed_file_that_was_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(json.dumps(WHOLE).encode())[:-12], "study.json.gz")
    with pytest.raises(DataError, match="cannot be read to its end"):
        STUDY.read(path, runs)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.json: cannot be read: No such file or directory$"):
        STUDY.read(tmp_path / "gone.json", runs)


@pytest.mark.parametrize("depth", [240, 900])
def test_what_could_not_be_written_again_is_refused(depth: int, tmp_path: Path) -> None:
    content = json.dumps({**WHOLE, "spec": None}).replace("null", "[" * depth + "]" * depth)
    with pytest.raises(DataError, match="expected what JSON can hold: Recursion limit reached"):
        STUDY.read(written(tmp_path, content.encode()), runs)


def test_options_that_are_numbers_must_be() -> None:
    require_numbers({"level": 5, "alpha": 0.05, "other": "x"}, "level", "alpha", "margin")
    for value in ("5", None, True, [5]):
        with pytest.raises(TypeError, match="level: expected a number, got "):
            require_numbers({"level": value}, "level")


@pytest.mark.parametrize(
    "error", [AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError, UserError]
)
def test_whatever_its_maker_trips_over_says_that_it_is_not_whole(error: type[Exception], tmp_path: Path) -> None:
    def fails(content: dict[str, Any]) -> None:
        raise error("broken")

    with pytest.raises(DataError, match=f"is not a whole study: {error.__name__}: '?broken'?$"):
        STUDY.read(written(tmp_path, json.dumps(WHOLE).encode()), fails)


def test_a_record_has_every_field() -> None:
    assert record(Row, ROW) == Row("bm25", 1.5, 3, True, "level", ("a", "b"), (1.0, 2.0, 3.0))


def test_null_is_nan_where_a_number_stands_and_nowhere_else() -> None:
    found = record(Row, {**ROW, "value": None, "quartiles": [None, 2, 3]})
    assert math.isnan(found.value)
    assert math.isnan(found.quartiles[0])
    for name in ("name", "count", "sure", "outcome", "names"):
        with pytest.raises((TypeError, ValueError), match=name):
            record(Row, {**ROW, name: None})


def test_what_is_computed_of_the_fields_is_left_out() -> None:
    assert record(Row, {**ROW, "detectable": 2.8}) == record(Row, ROW)


def test_a_whole_number_stays_one() -> None:
    assert json.dumps(record(Row, {**ROW, "value": 2}).value) == "2"


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        ({"value": "1.5"}, "^value: expected a number, got '1.5'$"),
        ({"value": True}, "^value: expected a number, got True$"),
        ({"count": 1.0}, "^count: expected a whole number, got 1.0$"),
        ({"count": False}, "^count: expected a whole number, got False$"),
        ({"name": 3}, "^name: expected a text, got 3$"),
        ({"sure": 1}, "^sure: expected true or false, got 1$"),
        ({"outcome": "odd"}, "^outcome: expected one of level, tilted; got 'odd'$"),
        ({"outcome": []}, "^outcome: expected one of level, tilted; got "),
        ({"names": "ab"}, "^names: expected a list, got 'ab'$"),
        ({"names": ["a", 1]}, "^names: expected a text, got 1$"),
        ({"quartiles": [1.0, 2.0]}, "^quartiles: expected 3 values, got 2$"),
        ({"quartiles": [1.0, 2.0, "3"]}, "^quartiles: expected a number, got '3'$"),
    ],
)
def test_a_field_of_another_kind_is_named(altered: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        record(Row, {**ROW, **altered})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(KeyError, match="quartiles"):
        record(Row, {name: found for name, found in ROW.items() if name != "quartiles"})


@settings(max_examples=40)
@given(
    st.builds(
        Row, st.text(), st.floats(allow_infinity=False, allow_nan=False), st.integers(), st.booleans(),
        st.sampled_from(["level", "tilted"]), st.lists(st.text()).map(tuple),
        st.tuples(*[st.floats(allow_infinity=False, allow_nan=False)] * 3),
    )
)  # fmt: skip
def test_every_record_comes_back_through_json(row: Row) -> None:
    assert record(Row, json.loads(json.dumps(asdict(row)))) == row


def test_numbers_are_an_array_with_nan_for_null() -> None:
    found = numbers([0.5, None, 1], "values")
    assert found.dtype == "float64"
    assert [found[0], found[2]] == [0.5, 1.0]
    assert math.isnan(found[1])
    assert numbers([], "values").shape == (0,)


@pytest.mark.parametrize("found", [None, "abc", {"a": 1}, [1.0, "2"], [True], [[1.0]]])
def test_other_than_numbers_is_refused(found: Any) -> None:
    with pytest.raises(TypeError, match=r"^values: expected a list of numbers, got "):
        numbers(found, "values")


def test_names_and_values_are_a_mapping() -> None:
    assert typed({"seed": 0}, dict, "spec") == {"seed": 0}
    with pytest.raises(TypeError, match=r"^spec: expected names and values, got \[\]$"):
        typed([], dict, "spec")
