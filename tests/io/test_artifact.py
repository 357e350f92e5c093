"""Results as files: they come back equal, and what is none, or was changed, is refused in a sentence."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import DataError
from ranktilt.io.artifact import Result, register


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


def hashed(content: dict[str, Any]) -> bytes:
    """A file as a RankTilt with other types would have written it."""
    front = json.dumps({name: value for name, value in content.items() if name != "sha256"}).encode()[:-1]
    return front + f',"sha256":"{sha256(front).hexdigest()}"}}\n'.encode()


def test_what_a_file_says() -> None:
    whole = dict(CONTENT)
    assert whole.pop("sha256") == sha256(WHOLE.to_json().partition(b',"sha256"')[0]).hexdigest()
    assert whole == {
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


NOT_ONE = "expected a toy (format 'ranktilt-toy'), got"
HEAD = {"format": "ranktilt-toy"}
CHANGED = "was changed after ranktilt wrote it (its sha256 differs): take the file as it was, or run ranktilt toy again"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "expected a toy as JSON: "),
        (b"[" * 5000 + b"]" * 5000, "expected a toy as JSON: "),
        (b"[1]", f"{NOT_ONE} JSON without a format; ranktilt toy --json FILE makes one"),
        ({"format": "ranktilt-audit"}, f"{NOT_ONE} format 'ranktilt-audit'; ranktilt toy --json FILE makes one"),
        (HEAD, "is a toy of version None, this RankTilt reads version 3: run ranktilt toy again"),
        ({**HEAD, "version": 4}, "is a toy of version 4, this RankTilt reads version 3: run ranktilt toy again"),
        ({**HEAD, "version": 3}, CHANGED),
        (hashed({**HEAD, "version": 3}), "is not a toy as this RankTilt writes it: Object missing required field"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_in_one_line(content: Any, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(DataError) as caught:
        Study1.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@given(where=st.integers(0, len(WHOLE.to_json()) - 4), byte=st.sampled_from(b" 07az"))
def test_one_changed_byte_is_refused(tmp_path_factory: Any, where: int, byte: int) -> None:
    data = bytearray(WHOLE.to_json())
    other = byte if data[where] != byte else byte ^ 1
    data[where] = other
    with pytest.raises(DataError):
        Study1.load(saved(tmp_path_factory.getbasetemp(), bytes(data), "changed.json"))


def test_line_ends_are_no_change_and_another_layout_is(tmp_path: Path) -> None:
    assert Study1.load(saved(tmp_path, WHOLE.to_json().replace(b"\n", b"\r\n\n"))) == WHOLE
    with pytest.raises(DataError, match="was changed after ranktilt wrote it"):
        Study1.load(saved(tmp_path, json.dumps(CONTENT, indent=1).encode()))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"rows": [{**CONTENT["rows"][0], "value": "1.5"}]}, r"rows\[0\]\.value: Expected `float`, got `str`"),
        ({"rows": [{**CONTENT["rows"][0], "outcome": "odd"}]}, r"rows\[0\]\.outcome: Invalid enum value 'odd'"),
        ({"sources": "ab"}, "names: Expected `array`, got `str`"),
        ({"values": [[1.0], [1.0, 2.0]]}, "values: "),
        ({"points": [{"x": 1}]}, "KeyError: 'y'"),
    ],
)
def test_other_types_than_todays_are_named(part: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"is not a toy as this RankTilt writes it: {message}"):
        Study1.load(saved(tmp_path, hashed({**CONTENT, **part})))


number = st.floats(allow_infinity=False, allow_nan=False)


@settings(max_examples=40)
@given(
    st.builds(
        Row, st.text(), number, st.integers(0, 2**60), st.booleans(), st.sampled_from(["level", "tilted"]),
        st.tuples(number, number, number),
    )
)  # fmt: skip
def test_every_row_comes_back_to_the_last_bit(tmp_path_factory: Any, row: Row) -> None:
    folder = tmp_path_factory.getbasetemp()
    assert Study1.load(Study1({}, (row,), ()).save(folder / "toy.json")).rows == (row,)
