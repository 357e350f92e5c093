"""Saving and mixing: a saved collection loads equal; twins stay apart by their source."""

import dataclasses
import itertools
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ranktilt.data.collection
import ranktilt.data.formats.jsonl
import ranktilt.data.formats.tables.parquet
from ranktilt.auditing.audit import audit
from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load
from ranktilt.data.mix import mix
from ranktilt.data.save import save
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.rankers.lexical.bm25 import BM25
from tests.refusals import refused
from tests.toy import (
    QRELS,
    QUERIES,
    TEXTS,
    TITLES,
    Table,
    collection_of,
    no_room,
    toy,
    write,
    write_beir,
    write_cocktail,
    write_paper,
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_beir_folder_with_judgments_and_without(tmp_path: Path) -> None:
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
    bare = dataclasses.replace(toy(), qrels=toy().qrels.clear())
    save(bare, tmp_path / "bare")
    assert not (tmp_path / "bare" / "qrels").exists()
    assert load(tmp_path / "bare", qrels="none") == bare


@pytest.mark.parametrize(
    ("writer", "file"),
    [
        (write_beir, "corpus.jsonl"),
        (write_cocktail, "corpus/human.jsonl"),
        (write_paper, "corpus-human.jsonl"),
    ],
)
def test_a_folder_that_holds_another_collection_is_left_alone(
    tmp_path: Path, writer: Any, file: str
) -> None:
    folder = writer(tmp_path, qrels=[("q1", "d1", 1)])
    before = contents(folder)
    with refused(f"{folder}: holds another collection ({folder / file}); choose an empty folder"):
        save(toy(), folder)
    assert contents(folder) == before


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    unwritable = collection_of([{"id": "a\tb", "text": ""}], {"q": "?"}, {"q": {"a\tb": 1}})
    with pytest.raises(UserError, match=r"^id 'a\\tb' contains a tab or line end"):
        save(unwritable, tmp_path / "new")
    with no_room(150), pytest.raises(UserError, match="cannot be written: File too large"):
        save(toy(), tmp_path / "new" / "folder")
    assert contents(tmp_path) == {}
    write(tmp_path / "qrels", "in the way")
    with pytest.raises(UserError, match=r"/qrels/test\.tsv: cannot be written: Not a directory"):
        save(toy(), tmp_path)
    assert contents(tmp_path) == {"qrels": b"in the way"}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
ID = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n"), min_size=1, max_size=6
)
COLUMN = st.sampled_from(["n", "_id", "bare", "metadata", "ü ", "line", "full", "", "new"])
STEM = st.sampled_from(["x", "y", "x-human", "x-llm", "-human", "llm", "é 1", "x-human-human"])
SOURCE = st.sampled_from(["human", "llm", "llm-human", "a b", "ü.gz", "corpus"])


def further(
    values: st.SearchStrategy[Any], dtype: Any
) -> Callable[[int], st.SearchStrategy[pl.Series]]:
    return lambda n: st.lists(values | st.none(), min_size=n, max_size=n).map(
        lambda v: pl.Series(v, dtype=dtype)
    )


KINDS = [
    further(TEXT, pl.String),
    further(st.integers(-(2**63), 2**63 - 1), pl.Int64),
    further(st.floats(), pl.Float64),
    further(st.booleans(), pl.Boolean),
    further(st.sampled_from(["f", "m"]), pl.Categorical),
    further(JSON.map(lambda value: None if value is None else orjson.dumps(value)), pl.Binary),
]


@st.composite
def extras(draw: st.DrawFn, height: int) -> dict[str, pl.Series]:
    names = draw(st.lists(COLUMN, max_size=3, unique=True))
    return {name: draw(draw(st.sampled_from(KINDS))(height)) for name in names}


@st.composite
def twins(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Id, source and origin as loading makes them from shared ids; some may be missing."""
    stems = draw(st.lists(STEM, min_size=1, max_size=3, unique=True))
    sources = draw(st.lists(SOURCE, min_size=1, max_size=3, unique=True))
    rows = [(f"{stem}-{source}", source, f"{stem}-human") for source in sources for stem in stems]
    some_rows = st.lists(st.sampled_from(rows), min_size=1, unique_by=lambda row: row[0])
    return draw(some_rows) if draw(st.booleans()) else rows


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
    pairs = st.tuples(
        st.sampled_from([*queries, "unknown"]), st.sampled_from([*ids, *shared, "unknown"])
    )
    grades = draw(st.dictionaries(pairs, st.integers(-1, 3), min_size=1, max_size=5))
    if shared:  # whoever judges one version judges them all
        grades = {(q, i): g for (q, d), g in grades.items() for i, _, o in rows if o == d} or {
            (queries[0], ids[0]): 1
        }
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
        pl.DataFrame(
            {"id": queries, "text": [f"text of {q}" for q in queries], **draw(extras(len(queries)))}
        ),
        pl.DataFrame([(q, d, g) for (q, d), g in grades.items()], schema=SCHEMA, orient="row"),
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(collection=collections())
def test_what_is_saved_loads_equal(
    tmp_path_factory: pytest.TempPathFactory, collection: Collection
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    loaded = load(save(collection, folder / "one"), ignore_unknown=True)
    assert loaded == collection
    assert contents(save(loaded, folder / "two")) == contents(folder / "one")


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("dev", "dev"),
        ("/elsewhere/mine.tsv", "mine"),
        ("folder/mine.qrels.gz", "mine"),
        ("/a/qrels.txt", "qrels"),
    ],
)
def test_judgments_are_never_written_outside_of_the_folder(
    tmp_path: Path, split: str, expected: str
) -> None:
    collection = toy()
    save(
        Collection(collection.docs, collection.queries, collection.qrels, {"split": split}),
        tmp_path / "out",
    )
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.tsv")] == [
        f"out/qrels/{expected}.tsv"
    ]


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
    for module in (
        ranktilt.data.collection,
        ranktilt.data.formats.tables.parquet,
        ranktilt.data.formats.jsonl,
    ):
        monkeypatch.setattr(module, "LARGE_BYTES", 0)
        monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", 2, raising=False)
    monkeypatch.setattr(ranktilt.data.files, "CHUNK", 64)
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


def document(name: str, text: str | None = "x") -> pl.DataFrame:
    return pl.DataFrame(
        {"_id": [name], "text": [text]}, schema={"_id": pl.String, "text": pl.String}
    )


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_parts_are_equal_to_json_lines(tmp_path: Path, mapped: Path, size: int) -> None:
    parts, lines = (
        save(of(DOCS), tmp_path / "parts", rows_per_file=size),
        save(of(DOCS), tmp_path / "lines"),
    )
    number = -(-5 // size)
    names = [f"corpus/part-{n:05}-of-{number:05}.parquet" for n in range(number)]
    assert sorted(str(p.relative_to(parts)) for p in parts.rglob("*.parquet")) == names
    from_parts, from_lines = load(parts), load(lines)
    assert from_parts == from_lines == of(DOCS)
    assert from_parts.docs.rows() == from_lines.docs.select(from_parts.docs.columns).rows()
    assert [str(parts / name) for name in names] == list(from_parts.spec["files"])[:number]
    for choice in ("title+text", "text", "title"):
        assert from_parts.texts(choice).to_list() == from_lines.texts(choice).to_list()
    assert (
        from_parts.tie_keys().tolist()
        == from_lines.tie_keys().tolist()
        == of(DOCS).tie_keys().tolist()
    )
    assert not list(mapped.iterdir())
    assert save(load(parts), parts, rows_per_file=size) == parts  # the same bytes again
    assert (save(from_parts, tmp_path / "again") / "corpus.jsonl").read_bytes() == (
        lines / "corpus.jsonl"
    ).read_bytes()


def test_runs_audits_and_mixes_are_equal_and_parts_of_others_go_by_their_numbers(
    tmp_path: Path, mapped: Path
) -> None:
    lines, parts = (
        load(save(toy(), tmp_path / str(size), rows_per_file=size)) for size in (None, 2)
    )
    assert BM25().rank(lines) == BM25().rank(parts)
    lines_audit, parts_audit = (
        audit(c, BM25().rank(c), card=True, resamples=200) for c in (lines, parts)
    )
    assert lines_audit.table.equals(parts_audit.table)
    assert repr(lines_audit.card) == repr(parts_audit.card)
    assert lines_audit.confounds == parts_audit.confounds
    assert mix(parts, lines) == mix(parts, parts) == lines
    names = (
        "train-10.parquet",
        "train-2.parquet",
        ".hidden.parquet",
        "train-1.parquet",
        "more-11.parquet",
    )
    folder = parts_of(tmp_path / "c", *map(document, "xbzam"), names=names)
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
    with refused(f"{folder / 'corpus'}: expected 3 parts by their names, got 2", DataError):
        load(folder)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            document("b").drop("text"),
            "expected the columns _id String, text String, as in 0.parquet, got _id String",
        ),
        (document("b").clear(), "the file is empty"),
        (pl.concat([document("b"), document("b")]), "_id 'b' occurs twice; ids must be unique"),
        (document(""), "1: 1 row without _id"),
        (pl.concat([document("b"), document("c", None)]), "2: 1 row without text"),
    ],
)
@pytest.mark.parametrize("large", [0, 1 << 30])
def test_what_is_wrong_with_a_part(
    tmp_path: Path,
    mapped: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: pl.DataFrame,
    message: str,
    large: int,
) -> None:
    monkeypatch.setattr(ranktilt.data.formats.tables.parquet, "LARGE_BYTES", large)
    folder = parts_of(tmp_path / "c", document("a"), second)
    file = folder / "corpus" / "1.parquet"
    separator = ":" if message[0].isdigit() else ": "
    with refused(f"{file}{separator}{message}", DataError):
        load(folder, qrels="none")


def test_what_cannot_be_saved_in_parts_and_json_lines_beside_them_are_refused(
    tmp_path: Path,
) -> None:
    with refused("expected rows_per_file of at least 1, got 0"):
        save(toy(), tmp_path / "c", rows_per_file=0)
    first = save(toy(), tmp_path / "c", rows_per_file=2) / "corpus" / "part-00000-of-00003.parquet"
    for parts in (None, 3):
        with refused(
            f"{tmp_path / 'c'}: holds another collection ({first}); choose an empty folder"
        ):
            save(toy(), tmp_path / "c", rows_per_file=parts)
    with pytest.raises(Exception, match="File too large"), no_room(1):
        save(toy(), tmp_path / "new", rows_per_file=2)
    assert not list((tmp_path / "new").rglob("*.parquet"))
    folder = save(toy(), tmp_path / "d", rows_per_file=6)
    for name in ("corpus/human.jsonl", "corpus.jsonl"):
        write(folder / name, "{}\n")
        came = f"{name} and Parquet parts in corpus/ (part-00000-of-00001.parquet)"
        with refused(
            f"{folder}: expected one format of the documents, got {came}; remove one of them",
            DataError,
        ):
            load(folder)


CODE = """
import sys, threading, time
import ranktilt.data.collection, ranktilt.data.formats.tables.parquet, ranktilt.data.save
from ranktilt.data.loading.load import load
from ranktilt.data.mix import mix
for module in (ranktilt.data.collection, ranktilt.data.formats.tables.parquet, ranktilt.data.save):
    module.DOCUMENTS_AT_ONCE = 50
ranktilt.data.formats.tables.parquet.LARGE_BYTES = 0
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
ranktilt.data.save.save(mixed, sys.argv[2], rows_per_file=50)
print(max(peak) - peak[0])
"""


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/status").is_file(),
    reason="reads this system's count of a process's memory",
)
def test_a_process_holds_no_texts(tmp_path: Path) -> None:
    """Load, mix and save 2,000 documents of 50 kB in less memory than their 100 MB."""
    docs = [
        {"id": str(n), "title": "t", "text": f"{n} " * (50_000 // len(f"{n} "))}
        for n in range(2000)
    ]
    save(collection_of(docs, QUERIES, {}), tmp_path / "c", rows_per_file=50)
    environment = {
        **os.environ,
        "RANKTILT_CACHE": str(tmp_path / "cache"),
        "POLARS_MAX_THREADS": "2",
    }
    command = [sys.executable, "-c", CODE, str(tmp_path / "c"), str(tmp_path / "new")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 75_000, done.stdout


def docs(source: str, *names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": name, "text": f"{source} {name}", "source": source, **fields} for name in names]


def part(source: str, *names: str, qrels: Table | None = None, **fields: Any) -> Collection:
    return collection_of(docs(source, *names, **fields), {"q": "?"}, qrels or {})


def side(source: str, *, judged: bool = True) -> Collection:
    rows = [
        {"id": d, "title": TITLES[d], "text": text, "source": source}
        for d, text in TEXTS[source].items()
    ]
    return collection_of(rows, QUERIES, QRELS if judged else {})


def judgments(collection: Collection) -> dict[tuple[str, str], int]:
    return {(q, d): g for q, d, g in collection.qrels.iter_rows()}


def quietly(*parts: Collection) -> Collection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return mix(*parts)


def test_ids_get_their_source_once_and_only_where_any_id_is_shared_and_origins_with_them() -> None:
    mixed = quietly(part("human", "a", "b"), part("llm", "c", "d", origin="a"), part("human", "e"))
    assert mixed.docs.select("id", "origin").rows() == [
        ("a", "a"),
        ("b", "b"),
        ("c", "a"),
        ("d", "a"),
        ("e", "e"),
    ]
    mixed = quietly(part("human", "a", "b"), part("llm", "a", "c"))
    origins = [
        ("a-human", "a-human"),
        ("b-human", "b-human"),
        ("a-llm", "a-human"),
        ("c-llm", "c-human"),
    ]
    assert mixed.docs.select("id", "origin").rows() == origins
    for collection in (toy(), side("llm"), side("human")):
        assert mix(toy(), collection) == mix(collection, toy()) == toy()
    assert quietly(toy(), part("human", "e")).ids.to_list() == [*toy().ids, "e"]
    rewrites = collection_of([*docs("llm", "a"), *docs("llm", "r7", origin="b")], {"q": "?"}, {})
    mixed = mix(part("human", "a", "b"), rewrites)
    assert mixed.pairs("human", "llm").rows() == [
        ("a-human", "a-human", "a-llm"),
        ("b-human", "b-human", "r7-llm"),
    ]


def test_a_third_version_joins_saved_twins_columns_stay_and_the_spec_says_what_was_mixed(
    tmp_path: Path,
) -> None:
    saved = load(save(mix(side("human"), side("llm")), tmp_path / "saved"))
    mixed = mix(saved, part("gpt", "d1", "d2", "d3"))
    assert mixed.pairs("human", "gpt")["b"].to_list() == ["d1-gpt", "d2-gpt", "d3-gpt"]
    assert judgments(mixed)["q1", "d1-gpt"] == 2
    mixed = mix(part("human", "a", year=1999), part("llm", "b", origin="a", model="m", year=0.5))
    assert mixed.docs.select("year", "model").rows() == [(1999.0, None), (0.5, "m")]
    human = load(write_beir(tmp_path, split="dev"))
    assert mix(human, side("llm")).spec == {"mix": [dict(human.spec), {}], "split": "dev"}


def test_an_unjudged_side_inherits_whichever_comes_first_and_which_grade() -> None:
    for judged in ("human", "llm"):
        for order in (("human", "llm"), ("llm", "human")):
            assert mix(*(side(source, judged=source == judged) for source in order)) == toy()
    for grades, expected in (
        ({"human": 2, "x": 0}, {"human": 2, "x": 0, "y": 2}),  # its own judgment is not overruled
        (
            {"human": 1, "x": 3},
            {"human": 1, "x": 3, "y": 1},
        ),  # the origin's comes before a higher one
        ({"x": 1, "y": 3}, {"human": 3, "x": 1, "y": 3}),  # without it, the highest one
    ):
        sources = ("human", "x", "y")
        parts = [
            part(s, "a", qrels={"q": {"a": grades[s]}} if s in grades else {}) for s in sources
        ]
        for order in itertools.permutations(parts):
            assert judgments(mix(*order)) == {
                ("q", f"a-{source}"): grade for source, grade in expected.items()
            }


def test_grades_may_be_whole_in_one_part_and_fractions_in_another_or_of_what_is_in_none(
    tmp_path: Path,
) -> None:
    human, llm = part("human", "a", "b", qrels={"q": {"a": 1, "b": 2}}), part("llm", "a", "b")
    halves = Collection(llm.docs, llm.queries, human.qrels.with_columns(grade=pl.col("grade") / 4))
    mixed = quietly(human, halves)
    assert judgments(mixed) == {
        ("q", "a-human"): 1,
        ("q", "b-human"): 2,
        ("q", "a-llm"): 0.25,
        ("q", "b-llm"): 0.5,
    }
    assert load(save(mixed, tmp_path / "c")) == mixed
    mixed = mix(part("human", "a", qrels={"q": {"gone": 1, "a": 1}}), part("llm", "a"))
    assert judgments(mixed) == {("q", "gone"): 1, ("q", "a-human"): 1, ("q", "a-llm"): 1}
    mixed = quietly(part("human", "a", "b"), part("llm", "a", qrels={"q": {"b": 1}}))
    assert judgments(mixed) == {("q", "b-human"): 1}


@pytest.mark.parametrize(
    ("sides", "first", "last"),
    [
        (
            {"human": "abcde", "llm": "ax"},
            "4 'human' documents have no 'llm' version: b-human, c-human, d-human, …",
            "1 'llm' documents have no 'human' version: x-llm",
        ),
        ({"x": "ab", "human": "a", "y": "a"}, "1 'x' documents have no 'human' version: b-x", ""),
        (
            {"x": "ab", "y": "a"},
            "1 'x' documents have no 'y' version: b-x",
            "",
        ),  # without a human one: the first
    ],
)
def test_missing_sides_are_counted_and_the_first_are_named(
    sides: dict[str, str], first: str, last: str
) -> None:
    with pytest.warns(DataWarning) as caught:
        mix(*(part(source, *names) for source, names in sides.items()))
    assert {warning.filename for warning in caught} == {__file__}
    assert [str(warning.message) for warning in caught] == [
        message for message in (first, last) if message
    ]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (part("human", "a"), part("human", "a", title="other"), "document 'a'"),
        (part("human", "a"), collection_of(docs("human", "b"), {"q": "two"}, {}), "query 'q'"),
        (
            part("human", "a", qrels={"q": {"a": 1}}),
            part("human", "a", qrels={"q": {"a": 2}}),
            "judgment 'q', 'a'",
        ),
    ],
)
def test_what_differs_is_named(a: Collection, b: Collection, message: str) -> None:
    with refused(f"cannot mix: {message} differs between the collections"):
        mix(a, b)
