"""A corpus in Parquet parts: equal to JSON lines in everything that comes of it, and what is wrong with one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ranktilt.collection
import ranktilt.io.jsonl
import ranktilt.io.parquet
from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.datasets.mix import mix
from ranktilt.datasets.save import save
from ranktilt.errors import DataError
from ranktilt.rankers.lexical.bm25 import BM25
from tests.refusals import refused
from tests.toy import QUERIES, collection_of, no_room, toy, write

DOCS: list[dict[str, Any]] = [
    {"id": "a", "title": "größe", "text": "", "year": 1999, "tags": b'["x",1]', "_id": "other"},
    {"id": "b", "title": "", "text": "a text of more than twelve bytes, 日本語", "tags": None},
    {"id": "c", "title": " t ", "text": "short\nlines\t\u2028", "source": "llm", "origin": "b"},
    {"id": "d", "title": "", "text": "x" * 5000, "year": -1, "tags": b'{"k":null}'},
    {"id": "e", "title": "", "text": "x" * 5000},
]


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Map the texts of collections however small, two documents at a time; the cache's folder."""
    for module in (ranktilt.collection, ranktilt.io.parquet, ranktilt.io.jsonl):
        monkeypatch.setattr(module, "LARGE", 0)
        monkeypatch.setattr(module, "AT_ONCE", 2, raising=False)
    monkeypatch.setattr(ranktilt.io.files, "CHUNK", 64)
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "texts"


def of(docs: list[dict[str, Any]]) -> Collection:
    return collection_of(docs, {"q": "more bytes", "r": "short x"}, {"q": {"b": 1}, "r": {"c": 2}})


def parts_of(folder: Path, *frames: pl.DataFrame, names: tuple[str, ...] = ()) -> Path:
    """A folder of parts as others may write them, without judgments."""
    write(folder / "queries.jsonl", '{"_id":"q","text":"?"}\n')
    (folder / "corpus").mkdir()
    for number, frame in enumerate(frames):
        frame.write_parquet(folder / "corpus" / (names[number] if names else f"{number}.parquet"))
    return folder


def one(name: str, text: str | None = "x") -> pl.DataFrame:
    return pl.DataFrame({"_id": [name], "text": [text]}, schema={"_id": pl.String, "text": pl.String})


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_parts_are_equal_to_json_lines(tmp_path: Path, mapped: Path, size: int) -> None:
    parts, lines = save(of(DOCS), tmp_path / "parts", rows_per_file=size), save(of(DOCS), tmp_path / "lines")
    number = -(-5 // size)
    names = [f"corpus/part-{n:05}-of-{number:05}.parquet" for n in range(number)]
    assert sorted(str(p.relative_to(parts)) for p in parts.rglob("*.parquet")) == names
    one, two = load(parts), load(lines)
    assert one == two == of(DOCS)
    assert one.docs.rows() == two.docs.select(one.docs.columns).rows()
    assert [str(parts / name) for name in names] == list(one.spec["files"])[:number]
    for choice in ("title+text", "text", "title"):
        assert one.texts(choice).to_list() == two.texts(choice).to_list()
    assert one.tie_keys().tolist() == two.tie_keys().tolist() == of(DOCS).tie_keys().tolist()
    assert not list(mapped.iterdir())
    assert save(load(parts), parts, rows_per_file=size) == parts  # the same bytes again
    assert (save(one, tmp_path / "again") / "corpus.jsonl").read_bytes() == (lines / "corpus.jsonl").read_bytes()


def test_runs_audits_and_mixes_are_equal(tmp_path: Path, mapped: Path) -> None:
    found = [load(save(toy(), tmp_path / str(parts), rows_per_file=parts)) for parts in (None, 2)]
    runs = [BM25().rank(one) for one in found]
    assert runs[0].contents(Path("run.trec"))[Path("run.trec")] == runs[1].contents(Path("run.trec"))[Path("run.trec")]
    one, two = (audit(c, run, card=True, resamples=200) for c, run in zip(found, runs, strict=True))
    assert one.table.equals(two.table)
    assert repr(one.estimates) == repr(two.estimates)
    assert one.confounds == two.confounds
    assert mix(found[1], found[0]) == mix(found[1], found[1]) == found[0]


def test_parts_of_others_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = ("train-10.parquet", "train-2.parquet", ".hidden.parquet", "train-1.parquet", "more-11.parquet")
    folder = parts_of(tmp_path / "c", one("x"), one("b"), one("z"), one("a"), one("m"), names=names)
    assert load(folder, qrels="none").ids.to_list() == ["m", "a", "b", "x"]


def test_damage_is_one_line(tmp_path: Path, mapped: Path) -> None:
    folder = save(toy(), tmp_path / "c", rows_per_file=2)
    part = folder / "corpus" / "part-00001-of-00003.parquet"
    data = part.read_bytes()
    part.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=f"^{part}: cannot be read as Parquet: [^\n]+$"):
        load(folder)
    part.write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot be read as Parquet: .*; fetch it again"):
        load(folder)
    part.unlink()
    with refused(f"{folder / 'corpus'}: expected 3 parts, as their names say, got 2", DataError):
        load(folder)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (one("b").drop("text"), "expected the columns _id String, text String, as in 0.parquet, got _id String"),
        (one("b").clear(), "the file is empty"),
        (pl.concat([one("b"), one("b")]), "_id 'b' came before; ids must be unique"),
        (one(""), "1: 1 row without _id"),
        (pl.concat([one("b"), one("c", None)]), "2: 1 row without text"),
    ],
)
@pytest.mark.parametrize("large", [0, 1 << 30])
def test_what_is_wrong_with_a_part(
    tmp_path: Path, mapped: Path, monkeypatch: pytest.MonkeyPatch, second: pl.DataFrame, message: str, large: int
) -> None:
    monkeypatch.setattr(ranktilt.io.parquet, "LARGE", large)
    folder = parts_of(tmp_path / "c", one("a"), second)
    file = folder / "corpus" / "1.parquet"
    separator = ":" if message[0].isdigit() else ": "
    with refused(f"{file}{separator}{message}", DataError):
        load(folder, qrels="none")


def test_json_lines_beside_parts_are_refused(tmp_path: Path) -> None:
    folder = save(toy(), tmp_path / "c", rows_per_file=6)
    for name in ("corpus/human.jsonl", "corpus.jsonl"):
        write(folder / name, "{}\n")
        came = f"{name} beside Parquet parts in corpus/ (part-00000-of-00001.parquet)"
        with refused(f"{folder}: expected one form of the documents, got {came}; remove one of them", DataError):
            load(folder)


def test_what_cannot_be_saved_in_parts(tmp_path: Path) -> None:
    with refused("expected rows_per_file of at least 1, got 0"):
        save(toy(), tmp_path / "c", rows_per_file=0)
    first = save(toy(), tmp_path / "c", rows_per_file=2) / "corpus" / "part-00000-of-00003.parquet"
    for parts in (None, 3):
        with refused(f"{tmp_path / 'c'}: holds another collection ({first}); choose an empty folder"):
            save(toy(), tmp_path / "c", rows_per_file=parts)
    with pytest.raises(Exception, match="File too large"), no_room(1):
        save(toy(), tmp_path / "new", rows_per_file=2)
    assert not list((tmp_path / "new").rglob("*.parquet"))


CODE = """
import sys, threading, time
import ranktilt.collection, ranktilt.io.parquet, ranktilt.datasets.save
from ranktilt.datasets.load import load
from ranktilt.datasets.mix import mix
for module in (ranktilt.collection, ranktilt.io.parquet, ranktilt.datasets.save):
    module.AT_ONCE = 50
ranktilt.io.parquet.LARGE = 0
peak = []
def watch():
    while True:
        peak.append(int(open("/proc/self/status").read().partition("RssAnon:")[2].split()[0]))
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
found = load(sys.argv[1], qrels="none")
mixed = mix(found, found)
assert mixed.texts().str.len_bytes().sum() > 99_000_000
mixed.tie_keys()
ranktilt.datasets.save.save(mixed, sys.argv[2], rows_per_file=50)
print(max(peak) - peak[0])
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="reads this system's count of a process's memory")
def test_a_process_holds_no_texts(tmp_path: Path) -> None:
    """2,000 documents of 50 kB: loading, mixing, joining titles and saving hold less than these 100 MB."""
    docs = [{"id": str(n), "title": "t", "text": f"{n} " * (50_000 // len(f"{n} "))} for n in range(2000)]
    save(collection_of(docs, QUERIES, {}), tmp_path / "c", rows_per_file=50)
    given = {**os.environ, "RANKTILT_CACHE": str(tmp_path / "cache"), "POLARS_MAX_THREADS": "2"}
    command = [sys.executable, "-c", CODE, str(tmp_path / "c"), str(tmp_path / "new")]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 75_000, done.stdout
