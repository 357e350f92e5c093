"""Milvus: an embedded file, or a server, asked as an engine that is up."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ranktilt import Collection, MissingExtra, UserError
from ranktilt.errors import DataWarning
from ranktilt.progress import listening
from ranktilt.rankers.engines.milvus import LONGEST, Milvus, client, cut_bytes, insertion_order
from tests.rankers.contract import ids, scores
from tests.rankers.dense.test_retriever import reference
from tests.rankers.tiny import tiny_model
from tests.toy import QUERIES, collection_of, toy, write

pytestmark = pytest.mark.long

pymilvus = pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
OPEN = pymilvus.client.connection_manager.ConnectionManager.get_instance()
"""The connections that stay open."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "index.db")


def indexes(database: str) -> list[str]:
    with client(database) as connection:
        return sorted(connection.list_collections())


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, store, port = start_server_in_thread(data_dir=str(folder), host="127.0.0.1", port=0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()
        store.close()


def test_an_index_is_built_once_and_other_contents_get_their_own(database: str) -> None:
    ranker, steps = Milvus(database, mode="bm25"), list[str]()
    before = OPEN.get_stats()
    with listening(lambda label, done, total: steps.append(label)):
        first = ranker.rank(toy())
        assert ranker.rank(toy()) == first
    assert steps.count(f"milvus:{database}(mode=bm25): indexing") == 1
    assert OPEN.get_stats() == before
    grades = {query: {"d1-llm": 1} for query in QUERIES}
    runs = [first]
    for values in ({"title": "Plums", "text": "blue plums"}, {"id": "d1-man"}):
        rows = toy().docs.to_dicts()
        rows[0] |= values
        runs.append(ranker.rank(collection_of(rows, QUERIES, grades)))
    assert indexes(database) == sorted({run.spec["engine"]["index"] for run in runs})
    assert len(indexes(database)) == 3
    assert "d1-human" not in ids(runs[1])["q1"]
    assert first.spec["engine"]["version"].startswith("milvus_lite-")


def test_the_order_of_insertion_has_nothing_to_do_with_sources() -> None:
    rows = [
        {"id": f"{n}-{source}", "text": f"{n}", "source": source, "origin": f"{n}"}
        for source in ("human", "llm")
        for n in range(500)
    ]
    order = insertion_order(collection_of(rows, {"q": "x"}, {}))
    assert sorted(order) == list(range(1000))
    number = np.argsort(order)
    assert 0.4 < (number[:500] < number[500:]).mean() < 0.6
    assert 0.4 < (order[:500] < 500).mean() < 0.6


def test_texts_are_cut_between_characters_and_counted(database: str) -> None:
    for text, length in (
        ("a" * (LONGEST + 1), LONGEST),
        ("€" * 21_845, 21_845),
        ("a" + "𝄞" * 20_000, 16_384),
    ):
        assert cut_bytes(text) == text[:length]
    rows = toy().docs.to_dicts()
    rows[0]["text"] = "early " + "ü " * 30_000 + "late"
    rows[1]["text"] = "early " * 20_000
    rows[4]["text"] = "early " + "x" * LONGEST + " late"
    collection = collection_of(
        rows, {"q1": "early", "q2": "late river"}, {"q1": {"d1-llm": 1}, "q2": {"d1-llm": 1}}
    )
    with pytest.warns(
        DataWarning, match="3 documents cut after 65,535 bytes, the most that Milvus holds$"
    ):
        run = Milvus(database, mode="bm25").rank(collection)
    assert set(ids(run)["q1"]) == {"d1-human", "d2-human", "d2-llm"}
    assert ids(run)["q2"] == []


@pytest.mark.neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_dense_search_is_exact(database: str, tmp_path: Path, similarity: str) -> None:
    collection, folder = toy(), tiny_model(tmp_path / "model", similarity=similarity)
    run = Milvus(database, model=str(folder)).rank(collection)
    for query, known in zip(QUERIES, reference(folder, collection, similarity), strict=True):
        assert ids(run)[query] == collection.ids.gather(np.argsort(-known)).to_list()
        assert list(scores(run)[query].values()) == pytest.approx(
            sorted(known, reverse=True), abs=1e-4
        )
    assert run.spec["engine"]["metric"] == {"cosine": "COSINE", "dot": "IP"}[similarity]
    assert len(run.spec["model"]["fingerprint"]) == 32


@pytest.mark.neural
def test_hybrid_fuses_the_ranks_of_both(database: str, tiny: Path) -> None:
    collection = toy()
    parts = [
        ids(Milvus(database, mode=mode, model=str(tiny)).rank(collection))
        for mode in ("bm25", "dense")
    ]
    got = scores(Milvus(database, mode="hybrid", model=str(tiny)).rank(collection))
    for query in QUERIES:
        expected = dict.fromkeys(parts[1][query], 0.0)
        for part in parts:
            for rank, name in enumerate(part[query], start=1):
                expected[name] += 1 / (60 + rank)
        assert got[query] == pytest.approx(expected, rel=1e-5)
    assert sorted(name.split("_")[1] for name in indexes(database)) == ["bm25", "dense", "hybrid"]


def test_what_cannot_be_used_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    write(tmp_path / "other.db", "no index at all")
    for where, options, message in (
        (tmp_path / "index.db", {"analyzer": "english"}, "unknown tokenizer type: 'english'"),
        (tmp_path / "none" / "index.db", {}, "not exists"),
        (tmp_path / "other.db", {}, "Open local milvus failed"),
        ("http://127.0.0.1:1", {}, "connect"),
    ):
        with pytest.raises(UserError, match=rf"^milvus:{where}[^\n]*{message}[^\n]*\Z") as caught:
            Milvus(str(where), mode="bm25", **options).rank(toy())
        assert "secret" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtra, match=r"ranktilt\[milvus\]"):
        Milvus("a.db", mode="bm25").rank(toy())


@pytest.mark.neural
@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_a_server_ranks_as_the_file_does(
    tmp_path: Path, database: str, tiny: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    with serving(tmp_path / "served") as address:
        run = Milvus(address, mode=mode, model=str(tiny)).rank(toy())
    expected = Milvus(database, mode=mode, model=str(tiny)).rank(toy())
    assert ids(run) == ids(expected)
    assert run.scores == pytest.approx(expected.scores)
    assert run.spec["engine"] == expected.spec["engine"]
    assert "secret" not in json.dumps(dict(run.spec))
    assert "secret" not in repr(Milvus(address))


DOCUMENTS, ROWS = 60, 4
TEXTS = [
    " ".join(f"w{n}" for n in row)
    for row in np.random.default_rng(0).integers(0, 40, (DOCUMENTS, 12))
]


def many() -> Collection:
    queries = {f"q{n}": f"w{n} w{n + 1} w{n + 2}" for n in range(10)}
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    return collection_of(docs, queries, {name: {"d1": 1} for name in queries})


@pytest.fixture
def inserted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keys in the order in which they are inserted, a few at a time."""
    keys = list[int]()
    usual = pymilvus.MilvusClient.insert

    def insert(self: Any, name: str, data: list[dict[str, Any]], **options: Any) -> Any:
        keys.extend(row["pk"] for row in data)
        return usual(self, name, data, **options)

    monkeypatch.setattr(pymilvus.MilvusClient, "insert", insert)
    monkeypatch.setattr("ranktilt.rankers.engines.milvus.ROWS", ROWS)
    return keys


def interrupt(ranker: Milvus, after: int) -> None:
    """Rank, and end as Ctrl-C does after so many insertions."""
    labels = list[str]()

    def hear(label: str, done: int, total: int) -> None:
        labels.append(label)
        if sum("indexing" in name for name in labels) == after:
            raise KeyboardInterrupt

    with listening(hear), pytest.raises(KeyboardInterrupt):
        ranker.rank(many())


@pytest.mark.neural
@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_interrupted_builds_go_on(
    tmp_path: Path, database: str, tiny: Path, mode: str, inserted: list[int]
) -> None:
    expected = Milvus(str(tmp_path / "whole.db"), mode=mode, model=str(tiny)).rank(many())
    inserted.clear()
    ranker = Milvus(database, mode=mode, model=str(tiny))
    interrupt(ranker, 5)
    run = ranker.rank(many())
    assert ids(run) == ids(expected)
    assert run.scores == pytest.approx(expected.scores, rel=1e-6)
    # Milvus Lite would weigh terms by the parts.
    assert inserted[5 * ROWS :] == list(range(5 * ROWS if mode == "dense" else 0, DOCUMENTS))


def test_only_what_is_missing_is_inserted(
    tmp_path: Path, inserted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pymilvus.MilvusClient, "get_server_version", lambda _: "v2.6.0"
    )  # which the stand-in is not
    with serving(tmp_path / "served") as address:
        ranker = Milvus(address, mode="bm25")
        interrupt(ranker, 3)
        [name] = indexes(address)
        with client(address) as connection:
            connection.delete(name, ids=[5])
        assert len(ranker.rank(many()).queries) == 10
        assert inserted == [*range(3 * ROWS), 5, *range(3 * ROWS, DOCUMENTS)]
        assert indexes(address) == [name]


def test_a_token_that_a_server_repeats_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class RepeatingIndex:
        spec: ClassVar[dict[str, str]] = {}

        def __init__(self, *_: object) -> None: ...

        def ask(self, text: str, depth: int) -> None:
            raise ConnectionError("x" * 178 + " root:secret is wrong")

    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    monkeypatch.setattr("ranktilt.rankers.engines.calls.PAUSES", (0.0, 0.0))
    monkeypatch.setattr("ranktilt.rankers.engines.milvus._CollectionIndex", RepeatingIndex)
    monkeypatch.setattr("ranktilt.rankers.engines.milvus.client", lambda uri: nullcontext(None))
    with pytest.raises(UserError, match=r" \[ke") as caught:
        Milvus("http://127.0.0.1:1", mode="bm25").rank(toy())
    assert "root" not in str(caught.value)
