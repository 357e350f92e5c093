"""Results as files: they come back equal, what is none is refused in a sentence, and old files are still read."""

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import DataError
from ranktilt.io.artifact import Result, register

FORMATS = Path(__file__).with_name("formats")


class Unit:
    """Something that is written as its text."""

    def __init__(self, name: str) -> None:
        self.name = name


register(Unit, lambda unit: unit.name, Unit)


class Point(NamedTuple):
    x: float
    y: int


@dataclass(frozen=True)
class Row:
    """One of every kind of field that a result has."""

    name: str
    value: float
    count: int
    sure: bool
    outcome: Literal["level", "tilted"]
    quartiles: tuple[float, float, float]
    most: float | None = None

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"expected a count, got {self.count}")

    def derived(self) -> dict[str, Any]:
        return {"twice": 2 * self.value}


@dataclass(frozen=True, eq=False)
class Study1(Result, format="ranktilt-toy", version=3, noun="a toy", command="ranktilt toy"):
    """A result with every kind of part."""

    spec: Mapping[str, Any]
    rows: tuple[Row, ...]
    names: tuple[str, ...] = field(metadata={"file": "sources"})
    values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    points: tuple[Point, ...] = ()
    unit: Unit | None = None


ROW = Row("bm25", 1.5, 3, True, "level", (1.0, 2.0, 3.0))
WHOLE = Study1({"seed": 0}, (ROW,), ("a", "b"))
CONTENT: dict[str, Any] = json.loads(WHOLE.to_json())


def saved(folder: Path, content: bytes | dict[str, Any], name: str = "toy.json") -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder / name


def test_what_a_file_says() -> None:
    assert CONTENT == {
        "format": "ranktilt-toy", "version": 3, "spec": {"seed": 0}, "sources": ["a", "b"], "values": [], "counts": [],
        "rows": [{"twice": 3.0, "name": "bm25", "value": 1.5, "count": 3, "sure": True, "outcome": "level",
                  "quartiles": [1.0, 2.0, 3.0], "most": None}],
        "points": [], "unit": None,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["toy.json", "toy.json.gz"])
def test_it_comes_back_equal(name: str, tmp_path: Path) -> None:
    values = np.array([[0.1, np.nan], [5e-324, 1e308]])
    whole = Study1({"a": [1]}, (ROW, ROW), (), values.T, np.array([[2**62]]), (Point(np.nan, 1),), Unit("cm"))
    path = whole.save(tmp_path / name)
    back = Study1.load(path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    assert back == whole
    assert hash(back) == hash(whole)
    assert back != WHOLE
    assert back != "toy"
    assert np.array_equal(back.values, values.T, equal_nan=True)
    assert (back.counts.dtype, back.counts.tolist()) == ("int64", [[2**62]])
    assert math.isnan(back.points[0].x)
    assert isinstance(back.unit, Unit)


def test_null_is_nan_where_a_number_stands(tmp_path: Path) -> None:
    row = {**CONTENT["rows"][0], "value": None, "quartiles": [None, 2, 3]}
    (found,) = Study1.load(saved(tmp_path, {**CONTENT, "rows": [row]})).rows
    assert math.isnan(found.value)
    assert math.isnan(found.quartiles[0])
    assert found.most is None


NOT_ONE = "expected a toy (format 'ranktilt-toy'), got"
HEAD = {"format": "ranktilt-toy"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "expected a toy as JSON: "),
        (b"[" * 5000 + b"]" * 5000, "expected a toy as JSON: "),
        (b"[1]", f"{NOT_ONE} JSON without a format; ranktilt toy --json FILE makes one"),
        ({"format": "ranktilt-audit"}, f"{NOT_ONE} format 'ranktilt-audit'; ranktilt toy --json FILE makes one"),
        (HEAD, "expected version as a whole number, got None"),
        ({**HEAD, "version": True}, "expected version as a whole number, got True"),
        ({**HEAD, "version": 4}, "is a toy of version 4, this RankTilt reads version 3: run ranktilt toy again"),
        ({**HEAD, "version": 3}, "is not a whole toy: Object missing required field `spec`"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_in_one_line(content: Any, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(DataError) as caught:
        Study1.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"value": "1.5"}, r"rows\[0\]\.value: Expected `float`, got `str`"),
        ({"value": True}, r"rows\[0\]\.value: Expected `float`, got `bool`"),
        ({"count": 1.5}, r"rows\[0\]\.count: Expected `int`, got `float`"),
        ({"count": None}, r"rows\[0\]\.count: Expected `int`, got `null`"),
        ({"count": -1}, r"rows\[0\]: expected a count, got -1"),
        ({"outcome": "odd"}, r"rows\[0\]\.outcome: Invalid enum value 'odd'"),
        ({"quartiles": [1.0, 2.0]}, r"rows\[0\]\.quartiles: Expected `array` of length 3, got 2"),
    ],
)
def test_a_damaged_row_is_named(part: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, {**CONTENT, "rows": [{**CONTENT["rows"][0], **part}]})
    with pytest.raises(DataError, match=f"is not a whole toy: {message}$"):
        Study1.load(path)


@pytest.mark.parametrize(
    "part",
    [
        {"rows": [1]}, {"spec": []}, {"sources": "ab"}, {"values": "many"}, {"values": [True]},
        {"values": [[1.0], [1.0, 2.0]]}, {"counts": [None]}, {"points": [{"x": 1}]},
    ],
)  # fmt: skip
def test_a_damaged_part_is_refused(part: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a whole toy: "):
        Study1.load(saved(tmp_path, {**CONTENT, **part}))


def test_a_compressed_file_that_was_cut_off(tmp_path: Path) -> None:
    path = saved(tmp_path, gzip.compress(WHOLE.to_json())[:-12], "toy.json.gz")
    with pytest.raises(DataError, match="cannot be read to its end"):
        Study1.load(path)


number = st.floats(allow_infinity=False, allow_nan=False)


@settings(max_examples=40)
@given(
    st.builds(
        Row, st.text(), number, st.integers(0, 2**60), st.booleans(), st.sampled_from(["level", "tilted"]),
        st.tuples(number, number, number),
    )
)  # fmt: skip
def test_every_row_comes_back_to_the_last_bit(tmp_path_factory: Any, row: Row) -> None:
    folder = tmp_path_factory.mktemp("rows")
    assert Study1.load(Study1({}, (row,), ()).save(folder / "toy.json")).rows == (row,)
