"""The index's folder: two processes, a kill in the middle, and what a killed process leaves."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.rankers.lexical.index_files import IndexFolder, PostingTableDraft

TEXTS = pl.Series(["red apples", "", "a river"])


def draft(seed: int = 0, postings: int = 10) -> PostingTableDraft:
    """Ten postings of three terms in pieces of four."""
    rows = np.random.default_rng(seed).integers(0, 9, postings).astype(np.int32)
    times = np.arange(1, postings + 1, dtype=np.uint8)
    offsets = np.array([0, 2, 7, postings])
    lengths = np.array([5, 0, 7], dtype=np.int32)
    pieces = [(rows[a : a + 4], times[a : a + 4]) for a in range(0, postings, 4)]
    return PostingTableDraft(lambda: iter(pieces), np.dtype(np.uint8), offsets, lengths)


@pytest.fixture
def place(own_cache: Path) -> IndexFolder:
    return IndexFolder.of(TEXTS, "english")


def test_what_is_written_is_read(place: IndexFolder) -> None:
    assert place.read() is None
    with place.writing() as writer:
        made = writer.write(draft(), ["a", "b", "é"])
    found = place.read()
    assert found is not None
    assert found[1] == ["a", "b", "é"]
    for table in (made, found[0]):
        whole = draft().whole()
        for name in ("rows", "times", "offsets", "lengths"):
            assert np.array_equal(getattr(table, name), getattr(whole, name))
            assert getattr(table, name).dtype == getattr(whole, name).dtype


def test_the_second_of_two_writers_takes_the_firsts(place: IndexFolder) -> None:
    with place.writing() as one, place.writing() as two:
        first = one.write(draft(0), ["a", "b", "c"])
        second = two.write(draft(0), ["a", "b", "c"])
    assert np.array_equal(first.rows, second.rows)
    assert list(place.path.parent.iterdir()) == [place.path]


def test_the_name_is_that_of_all_texts_however_they_lie_in_memory(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.rankers.lexical.index_files._HASHED", 7)
    whole = pl.Series([f"text {n} é" for n in range(20)])
    parts = pl.concat([whole.slice(0, 9), whole.slice(9)], rechunk=False)
    longer = pl.concat([pl.Series(["before"]), whole]).slice(1)
    assert IndexFolder.of(whole, "english") == IndexFolder.of(parts, "english") == IndexFolder.of(longer, "english")
    others = [pl.concat([whole.slice(0, n), pl.Series(["x"]), whole.slice(n + 1)]) for n in range(20)]
    assert len({IndexFolder.of(texts, "english").path for texts in (whole, *others)}) == 21


MAKE = """
import sys, time
import polars as pl
from ranktilt import Collection
from ranktilt.rankers.lexical import index
index.LARGE, index.CHUNK = 0, 50
texts = [f"word{n % 97} and other{n % 13} words {n}" for n in range(2000)]
docs = pl.DataFrame({"id": [str(n) for n in range(len(texts))], "text": texts})
queries = pl.DataFrame({"id": ["q"], "text": ["word7 other5"]})
qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["7"], "grade": [1]})
print("ready", flush=True)
sys.stdin.readline()
made = index.terms(Collection(docs, queries, qrels), "english", "text")
print(len(made.vocabulary), int(made.table.offsets[-1]), int(made.table.rows.sum()))
"""


def started() -> subprocess.Popen[str]:
    made = subprocess.Popen([sys.executable, "-c", MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert made.stdout.readline() == "ready\n"
    return made


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_kill_in_the_middle_leaves_no_index_that_could_be_read(own_cache: Path) -> None:
    one = started()
    assert one.stdin is not None
    one.stdin.write("go\n")
    one.stdin.flush()
    until = time.monotonic() + 60
    while not list(own_cache.glob("lexical/*.tmp/*.npy")) and time.monotonic() < until:
        time.sleep(0.001)
    one.kill()
    one.communicate()
    after = started()
    said, _ = after.communicate("go\n")
    assert after.returncode == 0
    assert said == started().communicate("go\n")[0]
    whole = [path for path in (own_cache / "lexical").iterdir() if path.suffix == ""]
    assert len(whole) == 1
