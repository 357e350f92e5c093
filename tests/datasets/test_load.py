"""Loading: each layout, its twins and judgments, every fault with its place, and the real collections."""

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.datasets.assemble import judged, only_judged
from ranktilt.datasets.load import load, splits
from ranktilt.datasets.named import Named, read_name
from ranktilt.errors import DataError, DataWarning, UserError
from tests.toy import collection_of, jsonl, raw_qrels, toy, tsv, write, write_beir, write_cocktail, write_paper

WRITERS = [write_beir, write_cocktail, write_paper]


def doc(name: Any, text: str = "x", **fields: Any) -> dict[str, Any]:
    return {"_id": name, "text": text, **fields}


def fault(folder: Path, **options: Any) -> str:
    """Return the message of a folder that is refused, paths from the folder on."""
    with pytest.raises(DataError) as caught:
        load(folder, **options)
    return str(caught.value).replace(f"{folder}/", "")


def judgments(collection: Collection) -> set[tuple[str, str, int]]:
    return set(collection.qrels.rows())


def test_a_plain_beir_folder_is_human(tmp_path: Path) -> None:
    collection = load(write_beir(tmp_path))
    assert collection.sources == ("human",)
    assert collection.docs["id"].to_list() == collection.docs["origin"].to_list() == ["d1", "d2", "d3"]
    assert collection.docs["title"].to_list() == ["Apples", "Rivers", "Clocks"]
    assert collection.queries.rows() == [("q1", "red apples"), ("q2", "river water"), ("q3", "old clock bell")]
    assert judgments(collection) == set(raw_qrels())


def test_source_and_origin_are_read_where_they_are_given(tmp_path: Path) -> None:
    docs = [doc("a"), doc("b", source="llm", origin="a"), doc("c", source="llm"), doc("d", origin="a")]
    found = load(write_beir(tmp_path, docs=docs, qrels=[("q1", "b", 1)])).docs
    origins = [("a", "human", "a"), ("b", "llm", "a"), ("c", "llm", "c"), ("d", "human", "a")]
    assert found.select("id", "source", "origin").rows() == origins


def test_a_judgment_of_a_shared_id_holds_for_every_version(tmp_path: Path) -> None:
    corpora = {"human": [doc("a")], "x": [doc("a"), doc("b")], "y": [doc("a")]}
    collection = load(write_cocktail(tmp_path, corpora=corpora, qrels=[("q1", "a", 2), ("q2", "b", 1)]))
    assert judgments(collection) == {("q1", "a-human", 2), ("q1", "a-x", 2), ("q1", "a-y", 2), ("q2", "b-x", 1)}
    corpora = {"human": [doc("a"), doc("b")], "llm": [doc("a"), doc("c")]}  # or for one version alone
    collection = load(write_cocktail(tmp_path / "2", corpora=corpora, qrels=[("q1", "a-llm", 1), ("q1", "b", 2)]))
    assert judgments(collection) == {("q1", "a-llm", 1), ("q1", "b-human", 2)}
    origins = [("a-human", "a-human"), ("b-human", "b-human"), ("a-llm", "a-human"), ("c-llm", "c-human")]
    assert collection.docs.select("id", "origin").rows() == origins


def test_the_file_s_name_is_the_source(tmp_path: Path) -> None:
    corpora = {"llama-2-7b-tmp0.2": [doc("a", source="misleading")], "human": [doc("a")]}
    collection = load(write_cocktail(tmp_path, corpora=corpora, qrels=[("q1", "a", 1)]))
    assert collection.sources == ("human", "llama-2-7b-tmp0.2")
    assert collection.ids.to_list() == ["a-human", "a-llama-2-7b-tmp0.2"]


def test_the_first_paper_s_layout(tmp_path: Path) -> None:
    corpora = {"corpus-human": [doc("a")], "0.2/corpus-llama": [doc("a", "y")], "0.7/corpus-llama": [doc("a", "z")]}
    collection = load(write_paper(tmp_path, corpora=corpora, qrels=[("q1", "a", 1)]))
    assert collection.docs.select("id", "source", "origin", "text").rows() == [
        ("a-human", "human", "a-human", "x"),
        ("a-llama_0.2", "llama_0.2", "a-human", "y"),
        ("a-llama_0.7", "llama_0.7", "a-human", "z"),
    ]
    assert judgments(collection) == {("q1", f"a-{s}", 1) for s in ("human", "llama_0.2", "llama_0.7")}


@pytest.mark.parametrize("writer", WRITERS)
def test_compressed_files_load_alike(tmp_path: Path, writer: Any) -> None:
    assert load(writer(tmp_path / "plain")) == load(writer(tmp_path / "packed", end=".gz"))


def test_the_spec_says_what_was_read(tmp_path: Path) -> None:
    collection = load(write_cocktail(tmp_path, split="dev"))
    names = ("corpus/human.jsonl", "corpus/llm.jsonl", "queries.jsonl", "qrels/dev.tsv")
    files = [str(tmp_path / name) for name in names]
    assert collection == toy()
    assert collection.spec == {"path": str(tmp_path), "split": "dev", "layout": "cocktail", "files": files}


def test_the_test_split_is_loaded_by_default(tmp_path: Path) -> None:
    write_beir(tmp_path, qrels=[("q1", "d1", 1)], split="train")
    write_beir(tmp_path, qrels=[("q2", "d2", 1)], split="test")
    assert judgments(load(tmp_path)) == {("q2", "d2", 1)}
    assert judgments(load(tmp_path, split="train")) == {("q1", "d1", 1)}


def test_a_plain_file_is_read_before_a_compressed_one(tmp_path: Path) -> None:
    write_beir(tmp_path)
    write(tmp_path / "corpus.jsonl.gz", "broken")
    write(tmp_path / "queries.jsonl.gz", "broken")
    write(tmp_path / "qrels" / "test.tsv.gz", "broken")
    with pytest.warns(DataWarning) as said:
        assert judgments(load(tmp_path)) == set(raw_qrels())
    assert [str(one.message).removeprefix(f"{tmp_path}/") for one in said] == [
        f"{name} is read instead of {Path(name).name}.gz beside it"
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
    ]


@pytest.mark.parametrize("written", WRITERS)
def test_files_that_a_mac_leaves_beside_others_are_passed_over(tmp_path: Path, written: Any) -> None:
    whole = load(written(tmp_path))
    for file in [file for file in tmp_path.rglob("*") if file.is_file()]:
        (file.parent / f"._{file.name}").write_bytes(b"\x00\x05\x16\x07 Mac OS X")
    assert load(tmp_path) == whole
    assert splits(tmp_path) == ["test"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus/llm.jsonl", '{"_id": "d1", "text": "x"}\n{"_id"', "corpus/llm.jsonl:2: expected one JSON object, got"),
        ("corpus/human.jsonl", jsonl([doc("a", title=3)]), "corpus/human.jsonl:1: expected title to be a string, got"),
        ("corpus/human.jsonl", "", "corpus/human.jsonl: the file is empty"),
        ("corpus/llm.jsonl.gz", "", "corpus/llm.jsonl.gz: a second file for source 'llm', beside corpus/llm.jsonl"),
        ("queries.jsonl", '{"text": "x"}', "queries.jsonl:1: expected the fields _id and text, _id is missing:"),
        ("qrels/test.tsv", "q1\td1\t1\tx", "qrels/test.tsv:1: expected query-id, corpus-id, score (3 tab-separated"),
        ("qrels/test.tsv", tsv([]), "qrels/test.tsv: expected judgments, got a header only"),
        ("qrels/test.tsv", "q1\td1-llm\t1\nq1\td1\t2\n", "qrels/test.tsv:2: a second grade (2) for query 'q1', "),
    ],
)
def test_a_fault_in_any_file_names_it(tmp_path: Path, file: str, content: str, message: str) -> None:
    write_cocktail(tmp_path)
    write(tmp_path / file, content)
    assert fault(tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("corpus.jsonl", "expected corpus.jsonl or corpus/*.parquet (BEIR), corpus/<source>.jsonl (Cocktail) or "),
        ("queries.jsonl", "expected queries.jsonl (or .gz) in this folder"),
        ("qrels/dev.tsv", "expected judgments in qrels/<split>.tsv (or .gz)"),
        ("qrels", "expected judgments in qrels/<split>.tsv (or .gz)"),
    ],
)
def test_a_missing_part_says_what_was_expected(tmp_path: Path, gone: str, message: str) -> None:
    folder = write_beir(tmp_path, split="dev")
    if gone == "qrels":
        shutil.rmtree(folder / gone)
    else:
        (folder / gone).unlink()
    with pytest.raises(DataError, match=re.escape(message)):
        load(folder)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("{folder}", {"split": "trian"}, "qrels: unknown split 'trian'; did you mean 'train'? (valid: dev, train); "),
        ("{folder}", {"split": "test", "qrels": "none"}, "give a split or a judgment file, not both"),
        ("{folder}", {"docs": "juged"}, "unknown choice of documents 'juged'; did you mean 'judged'? (valid: all, ju"),
        ("{folder}", {"qrels": "none", "docs": "judged"}, "docs 'judged' needs judgments, and there are none"),
        ("hbu:a/b", {}, "hbu:a/b: no such folder; a public collection begins with hub: or irds:"),
        ("hub:", {}, "hub:: expected a name after the colon, such as hub:IR-Cocktail/scifact"),
        ("irds:/", {}, "irds:/: expected a name after the colon, such as irds:beir/scifact/test"),
        ("hub:a/b@", {}, "hub:a/b@: expected a revision after the @, such as hub:a/b@v1"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    write_beir(tmp_path, split="train")
    write(tmp_path / "qrels" / "dev.tsv.gz", tsv(raw_qrels()))
    with pytest.raises(UserError, match=re.escape(message)):
        load(name.format(folder=tmp_path), **options)


@pytest.mark.parametrize(
    ("qrels", "line", "message"),
    [
        ([("q1", "d1", 1), ("q1", "x", 1)], 3, "1 judgment of 1 unknown document (first: 'x')"),
        ([("q1", "y", 1), ("q2", "x", 1), ("q3", "x", 0)], 2, "3 judgments of 2 unknown documents (first: 'y')"),
        ([("q1", "d1", 1), ("q7", "d1", 1), ("q8", "d1", 1)], 3, "2 judgments of 2 unknown queries (first: 'q7')"),
        ([("q9", "d1", 1), ("q9", "d2", 1)], 2, "2 judgments of 1 unknown query (first: 'q9')"),
        ([("q1", "d1", 1), ("q9", "d1", 1), ("q1", "x", 1)], 3, "1 judgment of 1 unknown document (first: 'x'); 1 "),
    ],
)
@pytest.mark.parametrize("writer", [write_beir, write_cocktail])
def test_unknown_ids_are_counted_and_the_first_is_named(
    tmp_path: Path, writer: Any, qrels: list[tuple[str, str, int]], line: int, message: str
) -> None:
    found = fault(writer(tmp_path, qrels=qrels))
    assert found.startswith(f"qrels/test.tsv:{line}: {message}")
    assert found.endswith("; --ignore-unknown (ignore_unknown=True) keeps them out of group measures")


def test_unknown_ids_can_be_kept(tmp_path: Path) -> None:
    qrels = [("q1", "d1", 1), ("q1", "x", 2), ("q9", "d1", 1)]
    collection = load(write_cocktail(tmp_path, qrels=qrels), ignore_unknown=True)
    known = {(query, f"d1-{source}", 1) for query in ("q1", "q9") for source in ("human", "llm")}
    assert judgments(collection) == known | {("q1", "x", 2)}
    assert collection.judged["id"].to_list() == ["q1"]
    assert collection.spec["ignore_unknown"] is True


# The real collections: counts as their authors give them, or by an independent count of the file


LLAMA = "llama-2-7b-chat-tmp0.2"


@pytest.mark.data
def test_real_collections_have_their_published_size(shared_data: Path) -> None:
    nfcorpus, scifact = (load(shared_data / name) for name in ("cocktail-nfcorpus", "scifact"))
    assert nfcorpus.sources == ("human", LLAMA)
    assert (nfcorpus.docs.height, nfcorpus.pairs("human", LLAMA).height, nfcorpus.judged.height) == (7266, 3633, 323)
    file = shared_data / "cocktail-nfcorpus" / "qrels" / "test.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == 12334
    assert judgments(nfcorpus) == {(q, f"{d}-{s}", int(g)) for q, d, g in rows for s in nfcorpus.sources}
    assert scifact.sources == ("human",)
    assert (scifact.docs.height, scifact.queries.height, scifact.judged.height) == (5183, 1109, 300)


def test_a_file_of_judgments_takes_the_place_of_the_folders(tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "toy")
    file = write(tmp_path / "mine.tsv", tsv([("q2", "d3", 2), ("q2", "d1-llm", 1)]))
    found = load(folder, qrels=file)
    assert judgments(found) == {("q2", "d3-human", 2), ("q2", "d3-llm", 2), ("q2", "d1-llm", 1)}
    assert found.judged["id"].to_list() == ["q2"]
    assert str(file) in found.spec["files"]
    assert not any("qrels/test.tsv" in name for name in found.spec["files"])


def test_without_judgments_every_query_is_ranked(tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path)
    shutil.rmtree(folder / "qrels")
    found = load(folder, qrels="none")
    assert found.qrels.height == 0
    assert found.qrels.schema == toy().qrels.schema
    assert found.judged["id"].to_list() == ["q1", "q2", "q3"]
    assert found.spec["qrels"] == "none"
    assert [Path(name).name for name in found.spec["files"]] == ["human.jsonl", "llm.jsonl", "queries.jsonl"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("hub:IR-Cocktail/scifact", Named("hub", "IR-Cocktail/scifact")),
        ("hub:IR-Cocktail/scifact/", Named("hub", "IR-Cocktail/scifact")),
        ("hub:a/b@v1", Named("hub", "a/b", "v1")),
        ("hub:a/b@refs/pr/1", Named("hub", "a/b", "refs/pr/1")),
        (Path("irds:beir/scifact/test"), Named("irds", "beir/scifact/test")),
        ("some/folder", None),
        ("C:/folder", None),
        ("http://x", None),
    ],
)
def test_names_are_read(typed: str | Path, expected: Named | None) -> None:
    assert read_name(typed) == expected


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_beir(tmp_path / "hub:toy")
    assert load("hub:toy").ids.to_list() == ["d1", "d2", "d3"]


def test_a_judged_document_stays_with_its_versions(tmp_path: Path) -> None:
    docs = [
        {"id": "a", "text": "x", "source": "human"},
        {"id": "a2", "text": "y", "source": "llm", "origin": "a"},
        {"id": "b", "text": "z", "source": "human"},
        {"id": "b2", "text": "w", "source": "llm", "origin": "b"},
    ]
    kept = only_judged(collection_of(docs, {"q": "x"}, {"q": {"a2": 0}}))
    assert kept.ids.to_list() == ["a", "a2"]
    assert (kept.spec["docs"], kept.spec["docs_of"]) == ("judged", 4)
    assert kept.qrels.rows() == [("q", "a2", 0)]
    collection = load(write_cocktail(tmp_path, qrels=[("q1", "d2", 1)]), docs="judged")
    assert collection.ids.to_list() == ["d2-human", "d2-llm"]


def test_judgments_without_lines_are_counted_as_pairs() -> None:
    docs = pl.DataFrame({"id": ["a"], "text": ["x"], "source": ["human"], "origin": ["a"]})
    queries = pl.DataFrame({"id": ["q"], "text": ["x"]})
    qrels = pl.DataFrame({"query_id": ["q", "q", "r"], "doc_id": ["b", "c", "b"], "grade": [1, 1, 1]})
    with pytest.raises(DataError, match=r"^irds:x: 3 judgments of 2 unknown documents .*; 1 judgment of 1 unknown q"):
        judged((docs, docs["id"]), queries, qrels, "irds:x", spec={})
    kept = judged((docs, docs["id"]), queries, qrels, "irds:x", spec={}, ignore_unknown=True)
    assert (kept.qrels.height, kept.spec["ignore_unknown"]) == (3, True)
