"""Saving: what is written loads equal, writes the same bytes again, and is there whole or not at all."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.datasets.save import save
from ranktilt.errors import UserError
from tests.refusals import refused
from tests.toy import collection_of, no_room, toy, write, write_beir, write_cocktail, write_paper


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# What is written


def test_a_beir_folder(tmp_path: Path) -> None:
    docs: list[dict[str, Any]] = [
        {"id": "a", "title": "T", "text": "one", "source": "human", "origin": "a", "year": 1999},
        {"id": "b", "title": "", "text": "two", "source": "llm", "origin": "a", "year": None},
    ]
    folder = save(collection_of(docs, {"q": "?"}, {"q": {"b": 2}}), tmp_path / "new" / "folder")
    assert folder == tmp_path / "new" / "folder"
    assert contents(folder) == {
        "corpus.jsonl": (
            b'{"_id":"a","title":"T","text":"one","source":"human","origin":"a","year":1999}\n'
            b'{"_id":"b","title":"","text":"two","source":"llm","origin":"a"}\n'
        ),
        "queries.jsonl": b'{"_id":"q","text":"?"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq\tb\t2\n",
    }


def test_the_split_keeps_its_name(tmp_path: Path) -> None:
    collection = load(write_cocktail(tmp_path / "raw", split="dev"))
    folder = save(collection, tmp_path / "saved")
    assert (folder / "qrels" / "dev.tsv").is_file()
    assert load(folder) == collection


# What is refused


@pytest.mark.parametrize(
    ("writer", "file"),
    [(write_beir, "corpus.jsonl"), (write_cocktail, "corpus/human.jsonl"), (write_paper, "corpus-human.jsonl")],
)
def test_a_folder_that_holds_another_collection_is_left_alone(tmp_path: Path, writer: Any, file: str) -> None:
    folder = writer(tmp_path, qrels=[("q1", "d1", 1)])
    before = contents(folder)
    with refused(f"{folder}: holds another collection ({folder / file}); choose an empty folder"):
        save(toy(), folder)
    assert contents(folder) == before


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    unwritable = collection_of([{"id": "a\tb", "text": ""}], {"q": "?"}, {"q": {"a\tb": 1}})
    with pytest.raises(UserError, match=r"^id 'a\\tb' has a tab or line end in it"):
        save(unwritable, tmp_path / "new")
    with no_room(150), pytest.raises(UserError, match="cannot be written: File too large"):
        save(toy(), tmp_path / "new" / "folder")
    assert contents(tmp_path) == {}
    write(tmp_path / "qrels", "in the way")
    with pytest.raises(UserError, match=r"/qrels/test\.tsv: cannot be written: Not a directory"):
        save(toy(), tmp_path)
    assert contents(tmp_path) == {"qrels": b"in the way"}


# Any collection: loads equal, and writes the same bytes again

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
QRELS = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
ID = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n"), min_size=1, max_size=6)
COLUMN = st.sampled_from(["n", "_id", "bare", "metadata", "ü ", "line", "full", "", "new"])
STEM = st.sampled_from(["x", "y", "x-human", "x-llm", "-human", "llm", "é 1", "x-human-human"])
SOURCE = st.sampled_from(["human", "llm", "llm-human", "a b", "ü.gz", "corpus"])


def further(values: st.SearchStrategy[Any], dtype: Any) -> Callable[[int], st.SearchStrategy[pl.Series]]:
    return lambda n: st.lists(values | st.none(), min_size=n, max_size=n).map(lambda v: pl.Series(v, dtype=dtype))


KINDS = [
    further(TEXT, pl.String), further(st.integers(-(2**63), 2**63 - 1), pl.Int64), further(st.floats(), pl.Float64),
    further(st.booleans(), pl.Boolean), further(st.sampled_from(["f", "m"]), pl.Categorical),
    further(JSON.map(lambda value: None if value is None else orjson.dumps(value)), pl.Binary),
]  # fmt: skip


@st.composite
def extras(draw: st.DrawFn, height: int) -> dict[str, pl.Series]:
    names = draw(st.lists(COLUMN, max_size=3, unique=True))
    return {name: draw(draw(st.sampled_from(KINDS))(height)) for name in names}


@st.composite
def twins(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Id, source and origin as loading makes them from shared ids; some sides may be missing."""
    stems = draw(st.lists(STEM, min_size=1, max_size=3, unique=True))
    sources = draw(st.lists(SOURCE, min_size=1, max_size=3, unique=True))
    rows = [(f"{stem}-{source}", source, f"{stem}-human") for source in sources for stem in stems]
    some = st.lists(st.sampled_from(rows), min_size=1, unique_by=lambda row: row[0])
    return draw(some) if draw(st.booleans()) else rows


@st.composite
def loose(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Ids, sources and origins that follow no rule."""
    ids = draw(st.lists(STEM | ID, min_size=1, max_size=4, unique=True))
    return [(name, draw(SOURCE), draw(st.sampled_from(ids) | STEM)) for name in ids]


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    rows = draw(twins() | loose())
    rows = list({row[0]: row for row in rows}.values())
    ids = [row[0] for row in rows]
    queries = draw(st.lists(STEM, min_size=1, max_size=3, unique=True))
    shared = {row[2] for row in rows} if draw(st.booleans()) else set()
    pairs = st.tuples(st.sampled_from([*queries, "unknown"]), st.sampled_from([*ids, *shared, "unknown"]))
    grades = draw(st.dictionaries(pairs, st.integers(-1, 3), min_size=1, max_size=5))
    if shared:  # whoever judges one version judges them all
        grades = {(q, i): g for (q, d), g in grades.items() for i, _, o in rows if o == d} or {(queries[0], ids[0]): 1}
    docs = {
        "id": pl.Series(ids, dtype=pl.String),
        "text": draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids))),
        "source": [row[1] for row in rows],
        "origin": [row[2] for row in rows],
        **draw(extras(len(ids))),
    }
    if draw(st.booleans()):
        docs["title"] = draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids)))
    return Collection(
        pl.DataFrame(docs),
        pl.DataFrame({"id": queries, "text": [f"text of {q}" for q in queries], **draw(extras(len(queries)))}),
        pl.DataFrame([(q, d, g) for (q, d), g in grades.items()], schema=QRELS, orient="row"),
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(collection=collections())
def test_what_is_saved_loads_equal_and_saves_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, collection: Collection
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    loaded = load(save(collection, folder / "one"), ignore_unknown=True)
    assert loaded == collection
    assert contents(save(loaded, folder / "two")) == contents(folder / "one")


@pytest.mark.parametrize(
    ("split", "expected"),
    [("dev", "dev"), ("/elsewhere/mine.tsv", "mine"), ("folder/mine.qrels.gz", "mine"), ("/a/qrels.txt", "qrels")],
)
def test_judgments_are_never_written_outside_of_the_folder(tmp_path: Path, split: str, expected: str) -> None:
    collection = toy()
    save(Collection(collection.docs, collection.queries, collection.qrels, {"split": split}), tmp_path / "out")
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.tsv")] == [f"out/qrels/{expected}.tsv"]


def test_a_collection_without_judgments_has_no_file_of_them(tmp_path: Path) -> None:
    bare = dataclasses.replace(toy(), qrels=toy().qrels.clear())
    save(bare, tmp_path / "bare")
    assert not (tmp_path / "bare" / "qrels").exists()
    assert load(tmp_path / "bare", qrels="none") == bare
