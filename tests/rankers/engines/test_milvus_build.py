"""An index in Milvus is built part by part: killed anywhere and gone on with, it is what it would have been at once."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Collection
from ranktilt.progress import listening
from ranktilt.rankers.engines import milvus, milvus_build
from ranktilt.rankers.engines.client import retry_policy
from ranktilt.rankers.engines.milvus import Milvus
from ranktilt.rankers.engines.milvus_build import IndexFields, IndexRows, build, sole_builder
from ranktilt.rankers.engines.milvus_index import client
from tests.rankers.engines.milvus_places import ServerProcess, indexes, serving
from tests.rankers.entries import ids
from tests.refusals import refused
from tests.toy import collection_of, write_beir

pytestmark = pytest.mark.long

pymilvus = pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")

DOCUMENTS, ROWS, CHUNK = 60, 4, 16
DRAWN = np.random.default_rng(0)
TEXTS = [" ".join(f"w{n}" for n in row) for row in DRAWN.integers(0, 40, (DOCUMENTS, 12))]
ASKED = {f"q{n}": f"w{n} w{n + 1} w{n + 2}" for n in range(10)}
VECTORS, QUERIES = (DRAWN.standard_normal((n, 8)).astype(np.float32) for n in (DOCUMENTS, 10))
EXPECTED = np.argsort(-(QUERIES @ VECTORS.T), axis=1).tolist()
NAME = "ranktilt_dense_x"


def many() -> Collection:
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    return collection_of(docs, ASKED, {name: {"d1": 1} for name in ASKED})


def filled(place: str, *, attempts: int = 1, reads: list[list[int]] | None = None) -> list[list[int]]:
    """Build an index of vectors, and return the documents that it holds, best first, for each query."""

    def read(numbers: np.ndarray[Any, Any]) -> IndexRows:
        if reads is not None:
            reads.append(numbers.tolist())
        return IndexRows([f"d{n}" for n in numbers], [TEXTS[n] for n in numbers], VECTORS[numbers])

    with client(place, 10) as made:
        fields, policy = IndexFields(sparse=False, metric="IP"), retry_policy(10, attempts, pause=0)
        build(made, NAME, fields, read, total=DOCUMENTS, policy=policy, label="indexing")
        options = {"limit": 2 * DOCUMENTS, "search_params": {"metric_type": "IP"}, "output_fields": ["doc_id"]}
        answers = made.search(NAME, data=list(QUERIES), anns_field="vector", **options)
        assert made.list_collections() == [NAME]
    return [[int(hit["entity"]["doc_id"][1:]) for hit in one] for one in answers]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus_build, "ROWS", ROWS)
    monkeypatch.setattr(milvus_build, "CHUNK", CHUNK)
    monkeypatch.setattr(milvus, "PAUSE", 0.0)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "index.db")


Insert = Callable[..., Any]


@pytest.fixture
def inserted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keys in the order in which they are inserted."""
    keys = list[int]()
    usual = pymilvus.MilvusClient.insert

    def insert(self: Any, name: str, data: list[dict[str, Any]], **options: Any) -> Any:
        keys.extend(row["pk"] for row in data)
        return usual(self, name, data, **options)

    monkeypatch.setattr(pymilvus.MilvusClient, "insert", insert)
    return keys


@contextmanager
def insertions(monkeypatch: pytest.MonkeyPatch, odd: Callable[[Insert, list[dict[str, Any]]], None]) -> Iterator[None]:
    """Let the third insertion be an odd one."""
    usual, calls = pymilvus.MilvusClient.insert, 0

    def insert(self: Any, name: str, data: list[dict[str, Any]], **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != 3:
            return usual(self, name, data, **options)
        return odd(lambda rows: usual(self, name, rows), data)

    with monkeypatch.context() as patch:
        patch.setattr(pymilvus.MilvusClient, "insert", insert)
        yield


@contextmanager
def interrupted(after: int) -> Iterator[None]:
    """End the block as Ctrl-C does, after so many insertions."""
    heard = 0

    def hear(label: str, done: int, total: int) -> None:
        nonlocal heard
        heard += "indexing" in label
        if heard == after:
            raise KeyboardInterrupt

    with listening(hear), suppress(KeyboardInterrupt):
        yield


@pytest.mark.parametrize("after", [1, 4, 5, 14, 15])
def test_an_interrupted_build_goes_on(place: str, after: int, inserted: list[int]) -> None:
    with interrupted(after):
        filled(place)
    assert (inserted, indexes(place)) == (list(range(after * ROWS)), [f"{NAME}_part"])
    assert filled(place) == EXPECTED
    assert filled(place) == EXPECTED  # as where another process has been quicker
    assert inserted == list(range(DOCUMENTS))


def test_a_build_on_a_server_goes_on_as_often_as_it_is_interrupted(tmp_path: Path, inserted: list[int]) -> None:
    with serving(tmp_path / "served") as address:
        for _ in range(4):
            with interrupted(3):
                filled(address)
        assert inserted == list(range(12 * ROWS))
        assert filled(address) == EXPECTED
    assert inserted == list(range(DOCUMENTS))


@pytest.mark.neural
@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_an_interrupted_build_ends_with_the_same_run(
    tmp_path: Path, place: str, tiny: Path, mode: str, inserted: list[int]
) -> None:
    expected = Milvus(str(tmp_path / "whole.db"), mode=mode, model=str(tiny)).rank(many())
    inserted.clear()
    with interrupted(5):
        Milvus(place, mode=mode, model=str(tiny)).rank(many())
    run = Milvus(place, mode=mode, model=str(tiny)).rank(many())
    assert ids(run) == ids(expected)
    assert run.scores == pytest.approx(expected.scores, rel=1e-6)  # a segment is multiplied by itself
    # Milvus Lite would weigh terms by the parts.
    assert inserted[5 * ROWS :] == list(range(5 * ROWS if mode == "dense" else 0, DOCUMENTS))


def test_bm25_of_a_server_goes_on_too(tmp_path: Path, inserted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pymilvus.MilvusClient, "get_server_version", lambda _: "v2.6.0")  # which the stand-in is not
    with serving(tmp_path / "served") as address:
        with interrupted(5):
            Milvus(address, mode="bm25").rank(many())
        found = ids(Milvus(address, mode="bm25").rank(many()))
    for name, query in ASKED.items():
        words = set(query.split())
        assert sorted(found[name]) == sorted(f"d{n}" for n, text in enumerate(TEXTS) if words & set(text.split()))
    assert inserted == list(range(DOCUMENTS))


def test_only_what_is_missing_is_read_and_never_more_than_a_chunk(place: str) -> None:
    reads = list[list[int]]()
    with interrupted(6):
        filled(place, reads=reads)
    assert reads == [list(range(16)), list(range(16)), list(range(16, 32))]  # the first says how long vectors are
    reads.clear()
    assert filled(place, reads=reads) == EXPECTED
    assert reads == [list(range(24, 32)), list(range(32, 48)), list(range(48, 60))]


def test_an_insertion_that_arrived_in_part_is_completed(
    place: str, inserted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(insert: Insert, data: list[dict[str, Any]]) -> None:
        insert(data[1:3])
        raise pymilvus.MilvusException(message="connection reset")

    with insertions(monkeypatch, odd), pytest.raises(pymilvus.MilvusException, match="connection reset"):
        filled(place)
    assert sorted(inserted) == [*range(2 * ROWS), 9, 10]
    with insertions(monkeypatch, odd):
        assert filled(place, attempts=2) == EXPECTED
    assert sorted(inserted) == list(range(DOCUMENTS))


@pytest.mark.parametrize(("odd", "held"), [(61, "61 of 60"), (59, "59 of 60")], ids=["doubles", "lost"])
def test_an_index_that_does_not_hold_each_document_once_gets_no_name(
    place: str, odd: int, held: str, inserted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def insert_oddly(insert: Insert, data: list[dict[str, Any]]) -> None:
        insert([*data, {**data[0], "pk": 1_000}] if odd > DOCUMENTS else data[1:])

    message = f"milvus: {held} documents arrived; is another process building '{NAME}_part'? Try again"
    with insertions(monkeypatch, insert_oddly), refused(message):
        filled(place)
    assert indexes(place) == ([] if odd > DOCUMENTS else [f"{NAME}_part"])
    inserted.clear()
    assert filled(place) == EXPECTED
    assert inserted == (list(range(DOCUMENTS)) if odd > DOCUMENTS else [8])


def test_doubles_of_an_interrupted_build_are_not_gone_on_with(place: str, inserted: list[int]) -> None:
    with interrupted(14):
        filled(place)
    with client(place, 10) as made:
        made.insert(f"{NAME}_part", [{"pk": 1_000 + n, "doc_id": "d0", "vector": VECTORS[0]} for n in range(5)])
    inserted.clear()
    assert filled(place) == EXPECTED
    assert inserted == list(range(DOCUMENTS))


def test_a_second_builder_is_refused(tmp_path: Path, place: str) -> None:
    name = Milvus(str(tmp_path / "whole.db"), mode="bm25").rank(many()).spec["engine"]["index"]
    busy = f"milvus:{place}(mode=bm25): another process builds this index; run it again when that is done"
    with sole_builder("the first", place, name), refused(busy):
        Milvus(place, mode="bm25").rank(many())
    assert Milvus(place, mode="bm25").rank(many()).spec["engine"]["index"] == name


def test_a_server_that_goes_away_while_it_is_filled_ends_in_one_line(tmp_path: Path) -> None:
    context = serving(tmp_path / "served")
    address = context.__enter__()

    def hear(label: str, done: int, total: int) -> None:
        if done == 2 * ROWS:
            context.__exit__(None, None, None)

    asked = Milvus(address, mode="bm25", attempts=2, timeout=1)
    gone = f"{asked!r}: no server there: Connection refused; start it, or name a file that ends in .db"
    with listening(hear), refused(gone):
        asked.rank(many())


# Killed.

BUILD = f"""
import sys
from pymilvus import MilvusClient
from ranktilt import load, ranker
from ranktilt.progress import listening
from ranktilt.rankers.engines import milvus_build
milvus_build.ROWS, milvus_build.CHUNK = {ROWS}, {CHUNK}
with listening(lambda label, done, total: "indexing" in label and print(done, flush=True)):
    run = ranker(sys.argv[2]).rank(load(sys.argv[1]))
run.save(sys.argv[3])
"""
PRETEND = "MilvusClient.get_server_version = lambda _: 'v2.6.0'\n"


@pytest.mark.neural
@pytest.mark.parametrize(("kind", "mode"), [("file", "dense"), ("file", "bm25"), ("server", "hybrid")])
def test_three_kills_of_the_builder_change_nothing(tmp_path: Path, tiny: Path, kind: str, mode: str) -> None:
    docs = [{"_id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    queries = [{"_id": name, "text": text} for name, text in ASKED.items()]
    folder = write_beir(tmp_path / "in", docs=docs, queries=queries, qrels=[(name, "d0", 1) for name in ASKED])
    server = ServerProcess(tmp_path / "served") if kind == "server" else None
    place = server.address if server else str(tmp_path / "index.db")
    out = tmp_path / "run.trec"
    options = f'(mode={mode},model="{tiny}")'
    code = BUILD.replace("with", PRETEND + "with") if server else BUILD
    command = [sys.executable, "-c", code, str(folder), f'milvus:"{place}"{options}', str(out)]
    try:
        if server:
            server.wait()
        began = list[int]()
        for insertions in (2, 4, 5):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                steps = [int(process.stdout.readline()) for _ in range(insertions)]
                began.append(steps[0])
                process.kill()
        assert began == [ROWS] * 3 if mode == "bm25" else began[0] == ROWS < began[1] < began[2] < DOCUMENTS
        assert not out.exists()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (int(done.stdout.split()[0]) > 10 * ROWS) == (mode != "bm25")
        assert indexes(place) == [name for name in indexes(place) if not name.endswith("_part")]
    finally:
        if server:
            server.kill()
    again = [*command[:-2], f'milvus:"{tmp_path / "whole.db"}"{options}', str(tmp_path / "whole.trec")]
    subprocess.run(again, check=True, capture_output=True)
    kept, whole = (path.read_text().splitlines() for path in (out, tmp_path / "whole.trec"))
    assert [line.split()[:4] for line in kept] == [line.split()[:4] for line in whole]
    assert [float(line.split()[4]) for line in kept] == pytest.approx([float(line.split()[4]) for line in whole])
    assert len(kept) > 20 * len(ASKED)


def test_a_server_that_is_killed_and_started_again_is_waited_for(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus, "PAUSE", 0.5)
    expected = Milvus(place, mode="bm25").rank(many())
    server = ServerProcess(tmp_path / "served")
    killed = list[int]()

    def hear(label: str, done: int, total: int) -> None:
        if "indexing" in label and done in (2 * ROWS, 9 * ROWS):
            server.kill()
            server.start()
            killed.append(done)

    try:
        server.wait()
        with listening(hear):
            assert Milvus(server.address, mode="bm25", attempts=10).rank(many()) == expected
    finally:
        server.kill()
    assert killed == [2 * ROWS, 9 * ROWS]
