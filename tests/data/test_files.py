"""Files read alike whatever their line ends and packing; results come back equal."""

import errno
import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.data import files
from ranktilt.data.artifact import Result, hash_values, register
from ranktilt.errors import DataError, UserError
from tests.refusals import refused
from tests.toy import no_permission, no_room, write

BOM = b"\xef\xbb\xbf"


def numbered(path: Path) -> list[tuple[int, bytes]]:
    return [
        (number, line)
        for first, lines in files.line_chunks(path)
        for number, line in enumerate(lines, start=first)
    ]


def decoded(path: Path) -> list[str]:
    return [files.decode_lines(path, *chunk) for chunk in files.line_chunks(path)]


@given(
    content=st.lists(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b" ", "é".encode(), BOM]), max_size=12
    ).map(lambda parts: b"x" + b"".join(parts)),
    mark=st.sampled_from([b"", BOM]),
    size=st.integers(1, 8),
    packed=st.booleans(),
)
def test_any_file_reads_as_python_splits_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, mark: bytes, size: int, packed: bool
) -> None:
    path = write(
        tmp_path_factory.getbasetemp() / ("split.gz" if packed else "split"), mark + content
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK", size)
        assert numbered(path) == list(enumerate(content.splitlines(), start=1))


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\r\n", BOM, BOM + b"\n"])
@pytest.mark.parametrize("name", ["f", "f.gz"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = write(tmp_path / name, content)
    with refused(f"{path}: the file is empty", DataError):
        numbered(path)


def test_gzip_members_are_read_to_the_end_a_long_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd"))
    assert numbered(path) == [(1, b"a"), (2, b"bc"), (3, b"d")]
    path.write_bytes(gzip.compress(bytes(range(256)))[:100])
    with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end: Compressed file ended"):
        numbered(path)
    monkeypatch.setattr(files, "CHUNK", 64)  # joined block by block this would move 200 GB
    path = write(tmp_path / "f", b"x" * (5 << 20) + b"\r\nend")
    assert [(number, len(line)) for number, line in numbered(path)] == [(1, 5 << 20), (2, 3)]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        (b"\xff", 1, 1),
        (b"ab\r\n\r\n\r\ncd\n\xff", 5, 1),
        (BOM + b"ab\n\xff", 2, 1),
        ("é\n".encode() * 3 + b"x\xc3\n", 4, 2),
        ("\ufeffa\tb\n".encode("utf-16"), 1, 1),
    ],
)
def test_invalid_utf8_names_line_and_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, content: bytes, line: int, byte: int
) -> None:
    monkeypatch.setattr(files, "CHUNK", size)
    path = write(tmp_path / "f", content)
    for read in (decoded, files.read_text):
        with refused(
            f"{path}:{line}: invalid UTF-8 at byte {byte} of the line; save it as UTF-8", DataError
        ):
            read(path)


def test_the_name_decides_on_compression_also_of_a_link_and_the_hash_is_of_the_bytes_on_disk(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "f.gz", b"abc")
    assert files.sha256(path) == sha256(path.read_bytes()).hexdigest() != sha256(b"abc").hexdigest()
    data = b"".join(b"%d " % number**2 for number in range(5000))
    for name in ("f.gz", "g.gz"):
        files.write_bytes(tmp_path / name, data)
    packed = (tmp_path / "f.gz").read_bytes()
    assert gzip.decompress(packed) == data
    assert packed == (tmp_path / "g.gz").read_bytes(), "neither its name nor the time is in it"
    assert len(packed) < len(data)
    (tmp_path / "link.gz").symlink_to("f.bin")
    files.require_place(tmp_path / "link.gz")
    files.write_bytes(tmp_path / "link.gz", b"new")
    assert os.readlink(tmp_path / "link.gz") == "f.bin"
    assert gzip.decompress((tmp_path / "f.bin").read_bytes()) == b"new", (
        "the name that was given decides on packing"
    )


def test_a_file_cannot_hold_a_file_and_a_write_that_fails_midway_keeps_the_old_one(
    tmp_path: Path,
) -> None:
    for below in ("g", "a/b/g"):
        path = write(tmp_path / "f", "kept") / below
        with refused(f"{path}: cannot be written: Not a directory; choose another place"):
            files.write_bytes(path, b"abc")
        assert os.listdir(tmp_path) == ["f"]
        assert (tmp_path / "f").read_text() == "kept"
    path = write(tmp_path / "f", "old")
    with no_room(1000), pytest.raises(UserError, match="/f: cannot be written"):
        files.write_bytes(path, bytes(5000))
    with no_room(1000), pytest.raises(UserError, match="/b/g: cannot be written"):
        files.write_files({tmp_path / "a" / "f": b"small", tmp_path / "b" / "g": bytes(5000)})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [path]
    assert path.read_text() == "old"


def test_what_to_do_depends_on_what_went_wrong(tmp_path: Path) -> None:
    for code, hint in {
        errno.ENOSPC: "free some space or choose another place",
        errno.EACCES: "choose a place where you may write",
        errno.EROFS: "choose a place where you may write",
        errno.EIO: "choose another place",
    }.items():
        error = files.cannot_write(Path("out/f"), OSError(code, "The reason"))
        assert str(error) == f"out/f: cannot be written: The reason; {hint}"
    message = (
        f"{tmp_path / 'f'}: cannot be written: Permission denied; choose a place where "
        "you may write"
    )
    with no_permission(tmp_path), refused(message):
        files.write_bytes(tmp_path / "f", b"abc")
    assert os.listdir(tmp_path) == []


def test_full_disk_is_named_where_numpy_gives_no_reason() -> None:
    error = files.cannot_write(Path("index"), OSError("828682 requested and 622560 written"))
    assert str(error) == (
        "index: cannot be written: No space left on device; free some space or choose another place"
    )


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with files.new_folder(tmp_path / "a" / "out") as folder:
            (folder / text).write_text(text)
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "out", "new"]
    full = pytest.raises(UserError, match="/out: cannot be written: File too large")
    with full, no_room(1000), files.new_folder(tmp_path / "a" / "out") as folder:
        (folder / "big").write_bytes(bytes(5000))
    with pytest.raises(KeyboardInterrupt), files.new_folder(tmp_path / "a" / "out"):
        raise KeyboardInterrupt
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "out", "new"]


def test_a_task_has_one_process_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with files.task_lock("task"):
        with pytest.raises(BlockingIOError), files.task_lock("task"):
            pass
        with files.task_lock("other task"):
            assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(KeyError), files.task_lock("task"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_tasks_take_turns_where_many_processes_ask(tmp_path: Path) -> None:
    """A lock that is removed while others wait for it is still one at a time."""
    code = f"""
import tempfile, time
tempfile.gettempdir = lambda: {str(tmp_path)!r}
from pathlib import Path
from ranktilt.data.files import task_lock
inside, turns = Path({str(tmp_path / "inside")!r}), 0
while turns < 20:
    try:
        with task_lock("task"):
            inside.touch(exist_ok=False)
            inside.unlink()
            turns += 1
    except BlockingIOError:
        time.sleep(0.001)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0, 0]
    assert list(tmp_path.iterdir()) == []


class Unit:
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
    names: tuple[str, ...]
    values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    points: tuple[Point, ...] = ()
    unit: Unit | None = None


ROW = Row("bm25", 1.5, 3, True, "level", (1.0, 2.0, 3.0))
WHOLE = Study1({"seed": 0}, (ROW,), ("a", "b"))
CONTENT: dict[str, Any] = json.loads(WHOLE.to_json())


def saved(folder: Path, content: bytes | dict[str, Any], name: str = "toy.json") -> Path:
    return write(folder / name, content if isinstance(content, bytes) else json.dumps(content))


def hashed(content: dict[str, Any]) -> bytes:
    """A file as a RankTilt with other types would have written it."""
    values = {name: value for name, value in content.items() if name != "sha256"}
    return json.dumps({**values, "sha256": hash_values(values)}).encode()


def test_file_says_everything_and_the_hash_of_its_values(tmp_path: Path) -> None:
    content = dict(CONTENT)
    # Keys in order, no blanks, and 1.5 as it is where 1.0, 2.0 and 3.0 are integers.
    values = (
        b'{"counts":[],"format":"ranktilt-toy","names":["a","b"],"points":[],'
        b'"rows":[{"count":3,"most":null,"name":"bm25","outcome":"level","quartiles":[1,2,3],'
        b'"sure":true,"twice":3,"value":1.5}],"spec":{"seed":0},'
        b'"unit":null,"values":[],"version":3}'
    )
    assert content.pop("sha256") == sha256(values).hexdigest()
    assert content == json.loads(values)


LAYOUTS: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n\n"),
    "jq .": lambda data: json.dumps(json.loads(data), indent=2, ensure_ascii=False).encode(),
    "jq -S -a": lambda data: json.dumps(json.loads(data), sort_keys=True).encode(),
    "jq 1.6, JavaScript": lambda data: data.replace(b".0", b""),
    "more digits": lambda data: data.replace(b"1.5,", b"15.00e-1,").replace(
        b'"count":3', b'"count":3.0'
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hash_does_not_ask_for_the_layout(layout: str, tmp_path: Path) -> None:
    result = replace(WHOLE, spec={"name": "Zürich 𝄞", "share": 1.0, "most": 1e16})
    back = Study1.load(saved(tmp_path, LAYOUTS[layout](result.to_json())))
    assert (back, hash(back)) == (result, hash(result))


SAME_VALUES = [
    (1.0, 1),
    (-0.0, 0),
    (1e16, 10**16),
    (1e20, 10**20),
    (1e308, 10**308),
    (0.1, 0.1 + 1e-18),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}),
]
OTHER_VALUES = [
    (2**62, 2**62 + 1),
    (0.1, 0.1 + 1e-16),
    (1, True),
    (None, 0),
    ("1.0", "1"),
    (10**400, None),
    ([1, 2], [2, 1]),
]


def test_hash_is_of_values() -> None:
    for first, second in SAME_VALUES:
        assert hash_values(first) == hash_values(second), (first, second)
    for first, second in OTHER_VALUES:
        assert hash_values(first) != hash_values(second), (first, second)


@pytest.mark.parametrize("name", ["toy.json", "toy.json.gz"])
def test_it_comes_back_equal(name: str, tmp_path: Path) -> None:
    values = np.array([[0.1, np.nan], [5e-324, 1e308]])
    rows = (ROW, replace(ROW, value=0.1 + 0.2))
    result = Study1(
        {"a": [1]}, rows, (), values.T, np.array([[2**62]]), (Point(np.nan, 1),), Unit("cm")
    )
    path = result.save(tmp_path / name)
    back = Study1.load(path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    assert (back == result, hash(back) == hash(result), back == WHOLE, back == "toy") == (
        True,
        True,
        False,
        False,
    )
    assert np.array_equal(back.values, values.T, equal_nan=True)
    assert (back.counts.dtype, back.counts.tolist()) == ("int64", [[2**62]])
    assert math.isnan(back.points[0].x)
    assert isinstance(back.unit, Unit)


NOT_ONE = "expected a toy (format 'ranktilt-toy'), got"
HEAD = {"format": "ranktilt-toy"}
CHANGED = (
    "was changed after ranktilt wrote it (its sha256 differs): restore the original file, "
    "or run ranktilt toy again"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "expected a toy as JSON: "),
        (b"[" * 5000 + b"]" * 5000, "expected a toy as JSON: "),
        (b"[1]", f"{NOT_ONE} JSON without a format; ranktilt toy --json FILE makes one"),
        (
            {"format": "ranktilt-audit"},
            f"{NOT_ONE} format 'ranktilt-audit'; ranktilt toy --json FILE makes one",
        ),
        (
            HEAD,
            "is a toy of version None, but this RankTilt reads version 3; run ranktilt toy again",
        ),
        (
            {**HEAD, "version": 4},
            "is a toy of version 4, but this RankTilt reads version 3; run ranktilt toy again",
        ),
        ({**HEAD, "version": 3}, CHANGED),
        (
            hashed({**HEAD, "version": 3}),
            "is not a toy that this RankTilt writes: Object missing required field",
        ),
    ],
)
def test_what_is_none_is_refused_in_one_line(content: Any, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(DataError) as caught:
        Study1.load(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@given(where=st.integers(0, len(WHOLE.to_json()) - 4), byte=st.sampled_from(b" 07az"))
def test_one_changed_byte_is_refused(tmp_path_factory: Any, where: int, byte: int) -> None:
    data = bytearray(WHOLE.to_json())
    data[where] = byte if data[where] != byte else byte ^ 1
    with pytest.raises(DataError):
        Study1.load(saved(tmp_path_factory.getbasetemp(), bytes(data), "changed.json"))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            {"rows": [{**CONTENT["rows"][0], "value": "1.5"}]},
            r"rows\[0\]\.value: Expected `float`, got `str`",
        ),
        (
            {"rows": [{**CONTENT["rows"][0], "outcome": "odd"}]},
            r"rows\[0\]\.outcome: Invalid enum value 'odd'",
        ),
        ({"names": "ab"}, "names: Expected `array`, got `str`"),
        ({"values": [[1.0], [1.0, 2.0]]}, "values: "),
        ({"points": [{"x": 1}]}, "KeyError: 'y'"),
    ],
)
def test_other_types_than_todays_are_named(
    part: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"is not a toy that this RankTilt writes: {message}"):
        Study1.load(saved(tmp_path, hashed({**CONTENT, **part})))
