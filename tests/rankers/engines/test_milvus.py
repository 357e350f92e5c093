"""Milvus: an embedded file, or a server, asked as an engine that is up."""

import json
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, MissingExtra, UserError, ranker, save
from ranktilt.errors import DataWarning
from ranktilt.progress import listening
from ranktilt.rankers.engines.milvus import Milvus, insertion_order, signed
from ranktilt.rankers.engines.milvus_index import LONGEST, client, cut_bytes
from tests.rankers.engines.milvus_places import closed_port, indexes, serving
from tests.rankers.entries import ids, scores
from tests.refusals import refused
from tests.toy import QUERIES, collection_of, toy, write

pytestmark = pytest.mark.long

pymilvus = pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")
from pymilvus import DataType, Function, FunctionType, MilvusClient  # noqa: E402


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "index.db")


def fields(**more: Any) -> Any:
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=100, **more)
    return schema


def filled(place: str, rows: list[dict[str, Any]], *, metric: str = "", texts: bool = False) -> None:
    """An index named ``mine`` as somebody else would have made it."""
    schema, made_of = fields(), MilvusClient.prepare_index_params()
    if metric:
        schema.add_field("meaning", DataType.FLOAT_VECTOR, dim=len(rows[0]["meaning"]))
        made_of.add_index("meaning", index_type="FLAT", metric_type=metric)
    if texts:
        schema.add_field("body", DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True)
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("f", FunctionType.BM25, ["body"], ["words"]))
        made_of.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    with client(place, 10) as made:
        made.create_collection("mine", schema=schema, index_params=made_of, consistency_level="Strong")
        made.insert("mine", rows)
        made.flush("mine")


# Directions: what is best comes first, and its score is highest.

POINTS = {"near": [1.0, 0.1], "far": [3.0, 3.0], "behind": [-1.0, 0.0]}
EXPECTED = {
    "COSINE": [("near", 1 / 1.01**0.5), ("far", 0.5**0.5), ("behind", -1.0)],
    "IP": [("far", 3.0), ("near", 1.0), ("behind", -1.0)],
    "L2": [("near", -0.01), ("behind", -4.0), ("far", -13.0)],
}
"""By hand, from the query (1, 0); squared distances for L2."""


@pytest.mark.parametrize("metric", EXPECTED)
def test_the_best_by_each_metric_comes_first_with_the_highest_score(place: str, metric: str) -> None:
    filled(place, [{"name": name, "meaning": point} for name, point in POINTS.items()], metric=metric)
    with client(place, 10) as made:
        made.load_collection("mine")
        [hits] = made.search("mine", data=[[1.0, 0.0]], anns_field="meaning", limit=3, output_fields=["name"])
    assert list(hits.ids) == [name for name, _ in EXPECTED[metric]]
    assert [signed(metric)(d) for d in hits.distances] == pytest.approx([s for _, s in EXPECTED[metric]], abs=1e-6)


def test_the_best_by_bm25_comes_first_with_the_highest_score(place: str) -> None:
    rows = [{"name": name, "body": text} for name, text in (("one", "red clock"), ("two", "red red"), ("none", "sea"))]
    filled(place, rows, texts=True)
    with client(place, 10) as made:
        made.load_collection("mine")
        [hits] = made.search("mine", data=["red"], anns_field="words", limit=3, output_fields=["name"])
    assert list(hits.ids) == ["two", "one"]
    better, worse = (signed("BM25")(distance) for distance in hits.distances)
    assert better > worse > 0


def test_the_scores_of_a_server_are_taken_as_they_are() -> None:
    assert [signed(metric)(0.5) for metric in ("BM25", "COSINE", "IP", "RRF", "L2")] == [0.5, 0.5, 0.5, 0.5, -0.5]


# The index: whole, and of these contents only.


def test_an_index_is_built_once(place: str) -> None:
    steps: list[str] = []
    with listening(lambda label, done, total: steps.append(label)):
        first = Milvus(place, mode="bm25").rank(toy())
        assert steps.count(f"milvus:{place}(mode=bm25): indexing") == 1
        assert Milvus(place, mode="bm25").rank(toy()) == first
    assert steps.count(f"milvus:{place}(mode=bm25): indexing") == 1
    assert indexes(place) == [first.spec["engine"]["index"]]
    assert first.spec["engine"]["version"].startswith("milvus_lite-")


def changed(**values: str) -> Collection:
    rows = toy().docs.to_dicts()
    rows[0] |= values
    return collection_of(rows, QUERIES, {"q1": {"d1-llm": 1}, "q2": {"d1-llm": 1}, "q3": {"d1-llm": 1}})


def test_other_contents_get_an_index_of_their_own(place: str) -> None:
    one = Milvus(place, mode="bm25")
    names = [
        one.rank(c).spec["engine"]["index"]
        for c in (toy(), changed(title="Plums", text="blue plums"), changed(id="d1-man"))
    ]
    assert len(set(names)) == 3
    assert indexes(place) == sorted(names)
    assert "d1-human" not in ids(one.rank(changed(title="Plums", text="blue plums")))["q1"]


def test_the_order_of_insertion_has_nothing_to_do_with_sources() -> None:
    rows = [
        {"id": f"{n}-{source}", "text": f"{n}", "source": source, "origin": f"{n}"}
        for source in ("human", "llm")
        for n in range(500)
    ]
    found = insertion_order(collection_of(rows, {"q": "x"}, {}))
    assert sorted(found) == list(range(1000))
    place = np.argsort(found)
    human_first = (place[:500] < place[500:]).mean()
    assert 0.4 < human_first < 0.6
    assert 0.4 < (found[:500] < 500).mean() < 0.6


# Long texts.


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a" * LONGEST, LONGEST),
        ("a" * (LONGEST + 1), LONGEST),
        ("ü" * 40_000, 32_767),
        ("€" * 21_845, 21_845),
        ("€" * 21_846, 21_845),
        ("𝄞" * 20_000, 16_383),
        ("a" + "𝄞" * 20_000, 16_384),
    ],
    ids=["fits", "one too many", "two bytes", "three fit", "three", "four", "one and four"],
)
def test_texts_are_cut_between_characters(text: str, kept: int) -> None:
    cut = cut_bytes(text)
    assert text.startswith(cut)
    assert len(cut) == kept
    assert len(cut.encode()) <= LONGEST


def test_cut_texts_are_counted_by_source(place: str) -> None:
    rows = toy().docs.to_dicts()
    rows[0]["text"] = "early " + "ü " * 30_000 + "late"
    rows[1]["text"] = "early " * 20_000
    rows[4]["text"] = "early " + "x" * LONGEST + " late"
    asked = collection_of(rows, {"q1": "early", "q2": "late river"}, {"q1": {"d1-llm": 1}, "q2": {"d1-llm": 1}})
    with pytest.warns(DataWarning) as caught:
        run = Milvus(place, mode="bm25").rank(asked)
    assert [str(one.message) for one in caught] == [
        f"milvus:{place}(mode=bm25): 3 documents cut after 65,535 bytes, the most that Milvus holds "
        "(2 of human, 1 of llm)"
    ]
    assert caught[0].filename == __file__
    assert run.spec["cut"] == {"limit": 65_535, "documents": {"human": 2, "llm": 1}}
    assert set(ids(run)["q1"]) == {"d1-human", "d2-human", "d2-llm"}
    assert ids(run)["q2"] == []


# Dense and hybrid, with a tiny model.


def reference(folder: Path, collection: Collection, *, cosine: bool) -> np.ndarray[Any, Any]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    sides = [model.encode(list(side)).astype(np.float64) for side in (collection.judged["text"], collection.texts())]
    if cosine:
        sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    return sides[0] @ sides[1].T


@pytest.mark.neural
@pytest.mark.parametrize(("metric", "name"), [("auto", "COSINE"), ("ip", "IP")])
def test_dense_search_is_exact(place: str, tiny: Path, metric: str, name: str) -> None:
    collection = toy()
    run = Milvus(place, model=str(tiny), metric=metric).rank(collection)
    expected = reference(tiny, collection, cosine=name == "COSINE")
    for query, (got, known) in zip(QUERIES, zip(scores(run).values(), expected, strict=True), strict=True):
        assert ids(run)[query] == collection.ids.gather(np.argsort(-known)).to_list()
        assert list(got.values()) == pytest.approx(sorted(known, reverse=True), abs=1e-4)
    assert run.spec["engine"]["metric"] == name
    assert run.spec["engine"]["kind"] == "FLAT"
    assert len(run.spec["model"]["fingerprint"]) == 32


@pytest.mark.neural
def test_hybrid_fuses_the_ranks_of_both(place: str, tiny: Path) -> None:
    collection = toy()
    parts = [ids(Milvus(place, mode=mode, model=str(tiny)).rank(collection)) for mode in ("bm25", "dense")]
    got = scores(Milvus(place, mode="hybrid", model=str(tiny)).rank(collection))
    for query in QUERIES:
        expected = dict.fromkeys(parts[1][query], 0.0)
        for part in parts:
            for rank, name in enumerate(part[query], start=1):
                expected[name] += 1 / (60 + rank)
        assert got[query] == pytest.approx(expected, rel=1e-5)
    assert sorted(name.split("_")[1] for name in indexes(place)) == ["bm25", "dense", "hybrid"]


# Somebody else's index.


def mine(**replaced: str) -> list[dict[str, Any]]:
    collection = toy()
    texts = dict(zip(collection.ids, collection.texts(), strict=True)) | replaced
    return [{"name": name, "body": text} for name, text in texts.items()]


def test_an_index_that_is_there_is_asked_as_it_is(place: str) -> None:
    filled(place, mine(), texts=True)
    run = Milvus(place, mode="bm25", collection="mine").rank(toy())
    assert scores(run) == {
        q: pytest.approx(s, rel=1e-5) for q, s in scores(Milvus(place, mode="bm25").rank(toy())).items()
    }
    assert run.spec["engine"]["index"] == "mine"


def test_numbers_serve_as_ids(place: str) -> None:
    schema, made_of = MilvusClient.create_schema(auto_id=False), MilvusClient.prepare_index_params()
    schema.add_field("n", DataType.INT64, is_primary=True)
    schema.add_field("body", DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(Function("f", FunctionType.BM25, ["body"], ["words"]))
    made_of.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    docs = [{"id": str(n), "text": text} for n, text in ((7, "red apples"), (12, "cold water"))]
    with client(place, 10) as made:
        made.create_collection("mine", schema=schema, index_params=made_of)
        made.insert("mine", [{"n": int(d["id"]), "body": d["text"]} for d in docs])
    found = Milvus(place, mode="bm25", collection="mine").rank(collection_of(docs, {"q": "water"}, {"q": {"7": 1}}))
    assert ids(found) == {"q": ["12"]}
    with pytest.raises(UserError, match="'mine' does not hold document '07': its ids are others"):
        Milvus(place, mode="bm25", collection="mine").rank(
            collection_of([{**docs[0], "id": "07"}, docs[1]], {"q": "water"}, {"q": {"12": 1}})
        )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (mine()[:4], "milvus: 'mine' holds 4, the collection has 6 documents; leave collection= out"),
        (
            [{**row, "name": row["name"].upper()} for row in mine()],
            "milvus: 'mine' does not hold document 'd1-human': its ids are others",
        ),
        (
            mine(**{"d3-human": "something else"}),
            "milvus: 'mine' holds another text of document 'd3-human' than the collection",
        ),
    ],
    ids=["number", "ids", "texts"],
)
def test_an_index_of_other_documents_is_refused(place: str, rows: list[dict[str, Any]], message: str) -> None:
    filled(place, rows, texts=True)
    with refused(message):
        Milvus(place, mode="bm25", collection="mine").rank(toy())


def test_an_index_without_bm25_is_refused(place: str) -> None:
    filled(place, [{"name": name, "meaning": [1.0, 2.0]} for name in toy().ids], metric="IP")
    with pytest.raises(UserError, match="'mine' has no function for BM25; choose mode=dense, or leave collection= out"):
        Milvus(place, mode="bm25", collection="mine").rank(toy())


def test_an_index_that_is_not_there_is_refused(place: str) -> None:
    filled(place, mine(), texts=True)
    with pytest.raises(UserError, match="unknown collection of this Milvus 'mime'; did you mean 'mine'"):
        Milvus(place, mode="bm25", collection="mime").rank(toy())


def vectors(folder: Path) -> list[dict[str, Any]]:
    from sentence_transformers import SentenceTransformer

    made = SentenceTransformer(str(folder), device="cpu").encode(toy().texts().to_list())
    return [{"name": name, "meaning": vector.tolist()} for name, vector in zip(toy().ids, made, strict=True)]


@pytest.mark.neural
def test_vectors_that_are_there_are_searched(place: str, tiny: Path) -> None:
    filled(place, vectors(tiny), metric="COSINE")
    live, own = (Milvus(place, model=str(tiny), collection=name).rank(toy()) for name in ("mine", None))
    assert ids(live) == ids(own)
    assert live.scores == pytest.approx(own.scores, abs=1e-5)


@pytest.mark.neural
def test_an_index_that_compares_otherwise_is_refused_unless_asked_for(place: str, tiny: Path) -> None:
    filled(place, vectors(tiny), metric="L2")
    with pytest.raises(UserError) as caught:
        Milvus(place, model=str(tiny), collection="mine").rank(toy())
    assert str(caught.value).endswith("'mine' compares by L2, expected COSINE; see metric=")
    run = Milvus(place, model=str(tiny), collection="mine", metric="l2").rank(toy())
    rows = {row["name"]: np.array(row["meaning"]) for row in vectors(tiny)}
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny), device="cpu")
    for query, text in QUERIES.items():
        far = {name: float(((model.encode(text) - row) ** 2).sum()) for name, row in rows.items()}
        assert ids(run)[query] == sorted(far, key=far.__getitem__)
        assert scores(run)[query] == pytest.approx({name: -d for name, d in far.items()}, rel=1e-4)


@pytest.mark.neural
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held[:, :2], "have 2 dimensions, the model's 32"),
        (lambda held: np.random.default_rng(0).standard_normal(held.shape), "are not those of this model and text"),
        (lambda held: np.roll(held, 2, axis=0), "0% of 6 documents are nearest to their own text"),
    ],
    ids=["length", "model", "texts"],
)
def test_other_vectors_are_refused(place: str, tiny: Path, change: Callable[[Any], Any], message: str) -> None:
    held = vectors(tiny)
    changed = change(np.array([row["meaning"] for row in held]))
    filled(
        place,
        [{**row, "meaning": list(map(float, one))} for row, one in zip(held, changed, strict=True)],
        metric="COSINE",
    )
    with pytest.raises(UserError, match=message):
        Milvus(place, model=str(tiny), collection="mine").rank(toy())


# Places.


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("index", "milvus: expected a file that ends in .db, or an address http://…, got 'index'"),
        ("ftp://host", "milvus: expected an address such as http://localhost:19530, got 'ftp://host'"),
        ("http://", "milvus: expected an address such as http://localhost:19530, got 'http://'"),
    ],
)
def test_another_kind_of_place_is_refused(place: str, message: str) -> None:
    with refused(message):
        Milvus(place)


@pytest.mark.parametrize(
    "place", ["http://root:secret@host:19530", "https://secret@host", "http://host/?token=secret", "http://host#secret"]
)
def test_an_address_with_a_secret_is_refused_without_showing_it(place: str) -> None:
    with refused("milvus: an address must hold no user, password or token; put the token into MILVUS_TOKEN"):
        Milvus(place)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "sparse"}, "unknown mode of milvus 'sparse' (valid: dense, bm25, hybrid)"),
        ({"metric": "dot"}, "unknown metric of milvus 'dot' (valid: auto, cosine, ip, l2)"),
        ({"text": "body"}, "unknown text of milvus 'body' (valid: title+text, text, title)"),
        ({"k": 0}, "milvus: expected a depth of at least 1, got @0"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], message: str) -> None:
    with refused(message):
        Milvus("a.db", **options)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        Milvus(str(tmp_path / "none" / "index.db"), mode="bm25").rank(toy())
    assert str(caught.value).endswith(f"there is no folder {str(tmp_path / 'none')!r}; make it first")
    assert not (tmp_path / "none").exists()


def test_another_file_of_that_name_is_refused_in_one_line(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    write(Path(place), "no index at all")
    with pytest.raises(UserError) as caught:
        Milvus(place, mode="bm25").rank(toy())
    assert str(caught.value).startswith(f"milvus:{place}: Milvus Lite cannot open the file: ")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_an_analyzer_that_lite_does_not_have_is_refused(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="unknown tokenizer type: 'english'"):
        Milvus(place, mode="bm25", analyzer="english").rank(toy())
    assert capfd.readouterr() == ("", "")


HOLD = """
import sys
from pymilvus import MilvusClient
MilvusClient(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_holds_is_refused(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", HOLD, place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(UserError) as caught:
            Milvus(place, mode="bm25").rank(toy())
        other.communicate()
    assert "Milvus Lite cannot open the file: DataDirLockedError: another process holds the lock" in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_file_is_free_again_after_the_run(place: str) -> None:
    Milvus(place, mode="bm25").rank(toy())
    code = HOLD.replace("sys.stdin.read()", "")
    done = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "ready\n"


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtra) as caught:
        Milvus("a.db", mode="bm25").rank(toy())
    assert str(caught.value) == 'milvus needs pymilvus. Install it with: pip install "ranktilt[milvus]"'


# Servers.


@pytest.mark.neural
@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_a_server_ranks_as_the_file_does(
    tmp_path: Path, place: str, tiny: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    with serving(tmp_path / "served") as address:
        run = Milvus(address, mode=mode, model=str(tiny)).rank(toy())
    expected = Milvus(place, mode=mode, model=str(tiny)).rank(toy())
    assert ids(run) == ids(expected)
    assert run.scores == pytest.approx(expected.scores)
    assert run.spec["engine"] == expected.spec["engine"]
    assert "secret" not in json.dumps(dict(run.spec))
    assert "secret" not in repr(Milvus(address))


def test_a_server_that_is_not_there_gives_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    address = f"http://127.0.0.1:{closed_port()}"
    with refused(f"milvus:{address}: no server there: Connection refused; start it, or name a file that ends in .db"):
        Milvus(address, mode="bm25").rank(toy())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("token", ["", "root:secret"])
def test_another_server_is_told_apart(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", token)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UserError, match="something answers there, but not as Milvus does: ") as caught:
            Milvus(address, mode="bm25", timeout=0.5).rank(toy())
    assert "secret" not in str(caught.value)


def test_a_server_that_goes_away_fails_its_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranktilt.rankers.engines import milvus

    stack: list[Callable[[], None]] = []
    usual = milvus._MilvusSearch.ask

    def ask(self: Any, texts: list[str], limit: int) -> Any:
        while stack:
            stack.pop()()
        return usual(self, texts, limit)

    monkeypatch.setattr(milvus._MilvusSearch, "ask", ask)
    context = serving(tmp_path / "served")
    address = context.__enter__()
    stack.append(lambda: context.__exit__(None, None, None))
    with pytest.raises(UserError, match=r"first 3 of 3 queries failed after 1 attempt, none got an answer: 'q1', 'q2'"):
        Milvus(address, mode="bm25", attempts=1, timeout=1, max_failures=1, concurrency=1).rank(toy())


# Interrupted builds.

DOCUMENTS, ROWS = 60, 4
TEXTS = [" ".join(f"w{n}" for n in row) for row in np.random.default_rng(0).integers(0, 40, (DOCUMENTS, 12))]


def many() -> Collection:
    asked = {f"q{n}": f"w{n} w{n + 1} w{n + 2}" for n in range(10)}
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    return collection_of(docs, asked, {name: {"d1": 1} for name in asked})


@pytest.fixture
def inserted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Keys in the order in which they are inserted, a few at a time."""
    keys = list[int]()
    usual = pymilvus.MilvusClient.insert

    def insert(self: Any, name: str, data: list[dict[str, Any]], **options: Any) -> Any:
        keys.extend(row["pk"] for row in data)
        return usual(self, name, data, **options)

    monkeypatch.setattr(pymilvus.MilvusClient, "insert", insert)
    monkeypatch.setattr("ranktilt.rankers.engines.milvus_index.ROWS", ROWS)
    return keys


def interrupt(ranker: Milvus, after: int) -> None:
    """Rank, and end as Ctrl-C does after so many insertions."""
    heard = list[str]()

    def hear(label: str, done: int, total: int) -> None:
        heard.append(label)
        if sum("indexing" in one for one in heard) == after:
            raise KeyboardInterrupt

    with listening(hear), pytest.raises(KeyboardInterrupt):
        ranker.rank(many())


@pytest.mark.neural
@pytest.mark.parametrize("mode", ["bm25", "dense", "hybrid"])
def test_an_interrupted_build_ends_with_the_same_run(
    tmp_path: Path, place: str, tiny: Path, mode: str, inserted: list[int]
) -> None:
    expected = Milvus(str(tmp_path / "whole.db"), mode=mode, model=str(tiny)).rank(many())
    inserted.clear()
    ranker = Milvus(place, mode=mode, model=str(tiny))
    interrupt(ranker, 5)
    run = ranker.rank(many())
    assert ids(run) == ids(expected)
    assert run.scores == pytest.approx(expected.scores, rel=1e-6)
    # Milvus Lite would weigh terms by the parts.
    assert inserted[5 * ROWS :] == list(range(5 * ROWS if mode == "dense" else 0, DOCUMENTS))


def test_only_what_a_server_does_not_hold_is_inserted(
    tmp_path: Path, inserted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pymilvus.MilvusClient, "get_server_version", lambda _: "v2.6.0")  # which the stand-in is not
    with serving(tmp_path / "served") as address:
        ranker = Milvus(address, mode="bm25")
        interrupt(ranker, 3)
        [name] = indexes(address)
        with client(address, 10) as made:
            made.delete(name, ids=[5])
        assert len(ranker.rank(many()).queries) == 10
        assert inserted == [*range(3 * ROWS), 5, *range(3 * ROWS, DOCUMENTS)]
        assert indexes(address) == [name]


def test_an_index_with_doubles_is_refused_and_built_anew(place: str, inserted: list[int]) -> None:
    usual = pymilvus.MilvusClient.insert
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pymilvus.MilvusClient,
            "insert",
            lambda self, name, rows, **options: usual(self, name, [*rows, {**rows[0], "pk": 1000 + rows[0]["pk"]}]),
        )
        with pytest.raises(
            UserError, match="milvus: 75 of 60 documents arrived; does another process build 'ranktilt_"
        ):
            Milvus(place, mode="bm25").rank(many())
    assert indexes(place) == []
    assert len(Milvus(place, mode="bm25").rank(many()).queries) == 10


BUILD = f"""
import sys
from ranktilt import load, ranker
from ranktilt.progress import listening
from ranktilt.rankers.engines import milvus_index
milvus_index.ROWS = {ROWS}
with listening(lambda label, done, total: "indexing" in label and print(done, flush=True)):
    ranker(sys.argv[2]).rank(load(sys.argv[1]))
"""


@pytest.mark.neural
def test_a_killed_build_goes_on(tmp_path: Path, place: str, tiny: Path) -> None:
    save(many(), tmp_path / "docs")
    command = [sys.executable, "-c", BUILD, str(tmp_path / "docs"), f'milvus:"{place}"(model="{tiny}")']
    began = list[int]()
    for insertions in (2, 4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            steps = [int(process.stdout.readline()) for _ in range(insertions)]
            began.append(steps[0])
            process.kill()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    began.append(int(done.stdout.split()[0]))
    assert began[0] == ROWS < began[1] < began[2] < DOCUMENTS


# Real data.


@pytest.mark.data
@pytest.mark.neural
def test_nfcorpus_is_ranked_as_dense_does(shared_data: Path, tmp_path: Path) -> None:
    from ranktilt import load

    whole = load(shared_data / "cocktail-nfcorpus")
    docs = whole.docs.filter(
        pl.col("origin").is_in(whole.docs["origin"].unique(maintain_order=True).head(150).implode())
    )
    judged = whole.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    collection = Collection(docs, whole.queries, judged)  # a part, because encoding all of it takes minutes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        dense = ranker("dense:minilm@50").rank(collection)
        live = ranker(f'milvus:"{tmp_path / "index.db"}"@30').rank(collection)
    expected, got = scores(dense), scores(live)
    for query, found in got.items():
        known = expected[query]
        assert len(found) == 30
        # Where places differ, the scores that stand there do not.
        ranked = sorted(known.values(), reverse=True)[:30]
        assert list(found.values()) == pytest.approx(ranked, abs=1e-5)
        assert all(abs(known[name] - score) < 1e-5 for name, score in found.items())


def test_a_metric_is_for_vectors() -> None:
    with refused("milvus: metric=l2 is for vectors; mode=bm25 has a metric of its own"):
        ranker("milvus:x.db(mode=bm25,metric=l2)")
