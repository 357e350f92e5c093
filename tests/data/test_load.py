"""Loading: each layout, its twins and judgments, every fault with its place; real collections."""

import json
import re
import shutil
import statistics
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from ranktilt.data.bundled import bundled, reader
from ranktilt.data.collection import Collection
from ranktilt.data.loading.assemble import judged_collection, only_judged
from ranktilt.data.loading.collection_name import CollectionName, read_name
from ranktilt.data.loading.load import load, splits
from ranktilt.errors import DataError, DataWarning, UserError
from tests.toy import (
    collection_of,
    jsonl,
    raw_qrels,
    toy,
    tsv,
    write,
    write_beir,
    write_cocktail,
    write_paper,
)


def doc(name: Any, text: str = "x", **fields: Any) -> dict[str, Any]:
    return {"_id": name, "text": text, **fields}


def fault(folder: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(folder, **options)
    return str(caught.value).replace(f"{folder}/", "")


def judgments(collection: Collection) -> set[tuple[str, str, int]]:
    return set(collection.qrels.rows())


def test_a_plain_beir_folder_has_no_source_where_none_is_given_and_is_read_before_compressed_files(
    tmp_path: Path,
) -> None:
    collection = load(write_beir(tmp_path))
    assert collection.sources == ()
    assert (
        collection.docs["id"].to_list() == collection.docs["origin"].to_list() == ["d1", "d2", "d3"]
    )
    assert collection.docs["title"].to_list() == ["Apples", "Rivers", "Clocks"]
    assert collection.queries.rows() == [
        ("q1", "red apples"),
        ("q2", "river water"),
        ("q3", "old clock bell"),
    ]
    assert judgments(collection) == set(raw_qrels())
    docs = [
        doc("a"),
        doc("b", source="llm", origin="a"),
        doc("c", source="llm"),
        doc("d", origin="a"),
    ]
    docs = load(write_beir(tmp_path, docs=docs, qrels=[("q1", "b", 1)])).docs
    origins = [("a", None, "a"), ("b", "llm", "a"), ("c", "llm", "c"), ("d", None, "a")]
    assert docs.select("id", "source", "origin").rows() == origins
    write_beir(tmp_path)
    write(tmp_path / "corpus.jsonl.gz", "broken")
    write(tmp_path / "queries.jsonl.gz", "broken")
    write(tmp_path / "qrels" / "test.tsv.gz", "broken")
    with pytest.warns(
        DataWarning, match=r"reading .*\.(jsonl|tsv), not .*\.gz in the same folder"
    ) as caught:
        assert judgments(load(tmp_path)) == set(raw_qrels())
    assert len(caught) == 3


def test_a_judgment_of_a_shared_id_holds_for_every_version_and_the_file_s_name_is_the_source(
    tmp_path: Path,
) -> None:
    corpora = {"human": [doc("a")], "x": [doc("a"), doc("b")], "y": [doc("a")]}
    collection = load(
        write_cocktail(tmp_path / "1", corpora=corpora, qrels=[("q1", "a", 2), ("q2", "b", 1)])
    )
    assert judgments(collection) == {
        ("q1", "a-human", 2),
        ("q1", "a-x", 2),
        ("q1", "a-y", 2),
        ("q2", "b-x", 1),
    }
    corpora = {
        "human": [doc("a"), doc("b")],
        "llm": [doc("a"), doc("c")],
    }  # or for one version alone
    collection = load(
        write_cocktail(tmp_path / "2", corpora=corpora, qrels=[("q1", "a-llm", 1), ("q1", "b", 2)])
    )
    assert judgments(collection) == {("q1", "a-llm", 1), ("q1", "b-human", 2)}
    origins = [
        ("a-human", "a-human"),
        ("b-human", "b-human"),
        ("a-llm", "a-human"),
        ("c-llm", "c-human"),
    ]
    assert collection.docs.select("id", "origin").rows() == origins
    corpora = {"llama-2-7b-tmp0.2": [doc("a", source="misleading")], "human": [doc("a")]}
    collection = load(
        write_cocktail(tmp_path / "cocktail", corpora=corpora, qrels=[("q1", "a", 1)])
    )
    assert collection.sources == ("human", "llama-2-7b-tmp0.2")
    assert collection.ids.to_list() == ["a-human", "a-llama-2-7b-tmp0.2"]
    corpora = {
        "corpus-human": [doc("a")],
        "0.2/corpus-llama": [doc("a", "y")],
        "0.7/corpus-llama": [doc("a", "z")],
    }
    collection = load(write_paper(tmp_path / "paper", corpora=corpora, qrels=[("q1", "a", 1)]))
    assert collection.docs.select("id", "source", "origin", "text").rows() == [
        ("a-human", "human", "a-human", "x"),
        ("a-llama_0.2", "llama_0.2", "a-human", "y"),
        ("a-llama_0.7", "llama_0.7", "a-human", "z"),
    ]
    assert judgments(collection) == {
        ("q1", f"a-{s}", 1) for s in ("human", "llama_0.2", "llama_0.7")
    }


@pytest.mark.parametrize("writer", [write_beir, write_cocktail, write_paper])
def test_compressed_files_load_alike_and_what_a_mac_leaves_is_passed_over(
    tmp_path: Path, writer: Any
) -> None:
    plain, packed = writer(tmp_path / "plain"), tmp_path / "packed"
    collection = load(plain)
    for file in [file for file in plain.rglob("*") if file.is_file()]:
        copy = write(packed / f"{file.relative_to(plain)}.gz", file.read_bytes())
        for beside in (file, copy):
            (beside.parent / f"._{beside.name}").write_bytes(b"\x00\x05\x16\x07 Mac OS X")
    assert load(packed) == load(plain) == collection
    assert splits(packed) == splits(plain) == ["test"]


def test_the_spec_says_what_was_read_and_a_missing_part_what_was_expected(tmp_path: Path) -> None:
    collection = load(write_cocktail(tmp_path, split="dev"))
    names = ("corpus/human.jsonl", "corpus/llm.jsonl", "queries.jsonl", "qrels/dev.tsv")
    files = [str(tmp_path / name) for name in names]
    assert collection == toy()
    assert collection.spec == {
        "path": str(tmp_path),
        "split": "dev",
        "layout": "cocktail",
        "files": files,
    }
    write(tmp_path / "qrels" / "test.tsv", tsv([("q2", "d2-llm", 1)]))
    assert judgments(load(tmp_path)) == {("q2", "d2-llm", 1)}
    assert load(tmp_path, split="dev") == toy()
    for gone, message in {
        "corpus.jsonl": (
            "expected corpus.jsonl or corpus/*.parquet (beir), corpus/<source>.jsonl (cocktail) or "
        ),
        "queries.jsonl": "expected queries.jsonl (or .gz) in this folder",
        "qrels/test.tsv": "expected judgments in qrels/<split>.tsv (or .gz)",
    }.items():
        (write_beir(tmp_path / "beir") / gone).unlink()
        assert message in fault(tmp_path / "beir")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "corpus/llm.jsonl",
            '{"_id": "d1", "text": "x"}\n{"_id"',
            "corpus/llm.jsonl:2: expected one JSON object, got",
        ),
        (
            "corpus/human.jsonl",
            jsonl([doc("a", title=3)]),
            "corpus/human.jsonl:1: expected title to be a string, got",
        ),
        (
            "corpus/llm.jsonl.gz",
            "",
            "corpus/llm.jsonl.gz: a second file for source 'llm', besides corpus/llm.jsonl",
        ),
        (
            "queries.jsonl",
            '{"text": "x"}',
            "queries.jsonl:1: expected the fields _id and text; _id is missing:",
        ),
        (
            "qrels/test.tsv",
            "q1\td1\t1\tx",
            (
                "qrels/test.tsv:1: expected judgments (query, document and grade), got text in 4 "
                "columns: "
            ),
        ),
        (
            "qrels/test.tsv",
            "q1\td1-llm\t1\nq1\td1\t2\n",
            "qrels/test.tsv:2: a second grade (2) for query 'q1', ",
        ),
    ],
)
def test_a_fault_in_any_file_names_it(
    tmp_path: Path, file: str, content: str, message: str
) -> None:
    write_cocktail(tmp_path)
    write(tmp_path / file, content)
    assert fault(tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "{folder}",
            {"split": "trian"},
            "qrels: unknown split 'trian'; did you mean 'train'? (valid: dev, train); ",
        ),
        (
            "{folder}",
            {"split": "test", "qrels": "none"},
            "give a split or a judgment file, not both",
        ),
        (
            "{folder}",
            {"docs": "juged"},
            "unknown choice of documents 'juged'; did you mean 'judged'? (valid: all, ju",
        ),
        (
            "{folder}",
            {"qrels": "none", "docs": "judged"},
            "docs 'judged' needs judgments, but there are none",
        ),
        ("hbu:a/b", {}, "hbu:a/b: no such folder; a public collection begins with hub: or irds:"),
        ("hub:", {}, "hub:: expected a name after the colon, such as hub:IR-Cocktail/scifact"),
        ("irds:/", {}, "irds:/: expected a name after the colon, such as irds:beir/scifact/test"),
        ("hub:a/b@", {}, "hub:a/b@: expected a revision after the @, such as hub:a/b@v1"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tmp_path: Path, name: str, options: dict[str, Any], message: str
) -> None:
    write_beir(tmp_path, split="train")
    write(tmp_path / "qrels" / "dev.tsv.gz", tsv(raw_qrels()))
    with pytest.raises(UserError, match=re.escape(message)):
        load(name.format(folder=tmp_path), **options)
    shutil.rmtree(tmp_path / "qrels")
    with pytest.raises(DataError, match=r"expected judgments in qrels/<split>\.tsv \(or \.gz\)"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("qrels", "line", "message"),
    [
        (
            [("q1", "y", 1), ("q2", "x", 1), ("q3", "x", 0)],
            2,
            "3 judgments of 2 unknown documents (first: 'y')",
        ),
        (
            [("q1", "d1", 1), ("q7", "d1", 1), ("q8", "d1", 1)],
            3,
            "2 judgments of 2 unknown queries (first: 'q7')",
        ),
        ([("q9", "d1", 1), ("q9", "d2", 1)], 2, "2 judgments of 1 unknown query (first: 'q9')"),
        (
            [("q1", "d1", 1), ("q9", "d1", 1), ("q1", "x", 1)],
            3,
            "1 judgment of 1 unknown document (first: 'x'); 1 ",
        ),
    ],
)
@pytest.mark.parametrize("writer", [write_beir, write_cocktail])
def test_unknown_ids_are_counted_and_the_first_is_named(
    tmp_path: Path, writer: Any, qrels: list[tuple[str, str, int]], line: int, message: str
) -> None:
    message_of_fault = fault(writer(tmp_path, qrels=qrels))
    assert message_of_fault.startswith(f"qrels/test.tsv:{line}: {message}")
    assert message_of_fault.endswith(
        "; --ignore-unknown (ignore_unknown=True) keeps them out of group measures"
    )


def test_unknown_ids_can_be_kept_and_judgments_without_lines_are_counted_as_pairs(
    tmp_path: Path,
) -> None:
    qrels = [("q1", "d1", 1), ("q1", "x", 2), ("q9", "d1", 1)]
    collection = load(write_cocktail(tmp_path, qrels=qrels), ignore_unknown=True)
    known = {(query, f"d1-{source}", 1) for query in ("q1", "q9") for source in ("human", "llm")}
    assert judgments(collection) == known | {("q1", "x", 2)}
    assert collection.queries_with_judgments["id"].to_list() == ["q1"]
    assert collection.spec["ignore_unknown"] is True
    docs = pl.DataFrame({"id": ["a"], "text": ["x"], "source": ["human"], "origin": ["a"]})
    queries = pl.DataFrame({"id": ["q"], "text": ["x"]})
    qrels = pl.DataFrame(
        {"query_id": ["q", "q", "r"], "doc_id": ["b", "c", "b"], "grade": [1, 1, 1]}
    )
    with pytest.raises(
        DataError,
        match=r"^irds:x: 3 judgments of 2 unknown documents .*; 1 judgment of 1 unknown q",
    ):
        judged_collection((docs, docs["id"]), queries, qrels, "irds:x", spec={})
    lenient = judged_collection(
        (docs, docs["id"]), queries, qrels, "irds:x", spec={}, ignore_unknown=True
    )
    assert (lenient.qrels.height, lenient.spec["ignore_unknown"]) == (3, True)


LLAMA = "llama-2-7b-chat-tmp0.2"


@pytest.mark.data
def test_real_collections_have_their_published_size(shared_data: Path) -> None:
    nfcorpus, scifact = (load(shared_data / name) for name in ("cocktail-nfcorpus", "scifact"))
    assert nfcorpus.sources == ("human", LLAMA)
    assert (
        nfcorpus.docs.height,
        nfcorpus.pairs("human", LLAMA).height,
        nfcorpus.queries_with_judgments.height,
    ) == (7266, 3633, 323)
    file = shared_data / "cocktail-nfcorpus" / "qrels" / "test.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == 12334
    assert judgments(nfcorpus) == {
        (q, f"{d}-{s}", int(g)) for q, d, g in rows for s in nfcorpus.sources
    }
    assert (scifact.sources, scifact.sourceless) == ((), 5183)
    assert (scifact.docs.height, scifact.queries.height, scifact.queries_with_judgments.height) == (
        5183,
        1109,
        300,
    )


def test_a_file_of_judgments_takes_the_place_of_the_folders_and_none_ranks_every_query(
    tmp_path: Path,
) -> None:
    folder = write_cocktail(tmp_path / "toy")
    file = write(tmp_path / "mine.tsv", tsv([("q2", "d3", 2), ("q2", "d1-llm", 1)]))
    collection = load(folder, qrels=file)
    assert judgments(collection) == {
        ("q2", "d3-human", 2),
        ("q2", "d3-llm", 2),
        ("q2", "d1-llm", 1),
    }
    assert collection.queries_with_judgments["id"].to_list() == ["q2"]
    assert str(file) in collection.spec["files"]
    assert not any("qrels/test.tsv" in name for name in collection.spec["files"])
    shutil.rmtree(folder / "qrels")
    collection = load(folder, qrels="none")
    assert collection.qrels.height == 0
    assert collection.qrels.schema == toy().qrels.schema
    assert collection.queries_with_judgments["id"].to_list() == ["q1", "q2", "q3"]
    assert collection.spec["qrels"] == "none"
    assert [Path(name).name for name in collection.spec["files"]] == [
        "human.jsonl",
        "llm.jsonl",
        "queries.jsonl",
    ]


def test_names_are_read_and_a_folder_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "hub:IR-Cocktail/scifact/": CollectionName(kind="hub", id="IR-Cocktail/scifact"),
        "hub:a/b@refs/pr/1": CollectionName(kind="hub", id="a/b", revision="refs/pr/1"),
        Path("irds:beir/scifact/test"): CollectionName(kind="irds", id="beir/scifact/test"),
        "some/folder": None,
        "C:/folder": None,
        "http://x": None,
    }
    assert {typed: read_name(typed) for typed in expected} == expected
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
    judged_part = only_judged(collection_of(docs, {"q": "x"}, {"q": {"a2": 0}}))
    assert judged_part.ids.to_list() == ["a", "a2"]
    assert (judged_part.spec["docs"], judged_part.spec["docs_of"]) == ("judged", 4)
    assert judged_part.qrels.rows() == [("q", "a2", 0)]
    collection = load(write_cocktail(tmp_path, qrels=[("q1", "d2", 1)]), docs="judged")
    assert collection.ids.to_list() == ["d2-human", "d2-llm"]


@pytest.fixture(scope="module")
def collection() -> Collection:
    return bundled()


@pytest.fixture(scope="module")
def texts(collection: Collection) -> list[tuple[str, str]]:
    """Return the two versions of each pair, human first."""
    text = dict(collection.docs.select("id", "text").iter_rows())
    return [(text[a], text[b]) for _, a, b in collection.pairs("human", "claude").iter_rows()]


def stored(name: str) -> str:
    return resources.files("ranktilt.data.bundled").joinpath(name).read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_installed_versions_hold_the_paragraphs_each_with_its_twin_and_judgments_of_both(
    collection: Collection,
) -> None:
    docs, spec = collection.docs, collection.spec
    assert set(spec) == {"path", "pairs", "matched", "numpy", "scipy"}
    assert spec["path"] == "bundled"
    assert 200 <= spec["matched"] <= spec["pairs"] == len(reader.pairs())
    assert docs["source"].to_list() == ["human"] * spec["matched"] + ["claude"] * spec["matched"]
    sides = docs.partition_by("source", maintain_order=True)
    assert sides[0]["title"].to_list() == sides[1]["title"].to_list()
    assert sides[0]["id"].to_list() == sides[0]["origin"].to_list() == sides[1]["origin"].to_list()
    qrels = collection.qrels
    assert set(qrels["grade"].to_list()) == {1, 2}
    assert set(qrels["doc_id"].to_list()) <= set(collection.docs["id"].to_list())
    assert set(qrels["query_id"].to_list()) <= set(collection.queries["id"].to_list())
    pair = pl.col("doc_id").str.replace("-(human|claude)$", "")
    sides = qrels.group_by("query_id", pair).agg(
        pl.len(), pl.col("grade").n_unique().alias("grades")
    )
    assert sides["len"].to_list() == [2] * sides.height
    assert sides["grades"].to_list() == [1] * sides.height


def test_neither_queries_nor_lengths_lean_to_a_side(
    collection: Collection, texts: list[tuple[str, str]]
) -> None:
    text = dict(collection.docs.select("id", "text").iter_rows())
    queries = dict(collection.queries.iter_rows())
    shares: dict[str, list[float]] = {"human": [], "claude": []}
    for query, doc, _ in collection.qrels.filter(pl.col("grade") == 2).iter_rows():
        query_words = words(queries[query])
        shares[doc.rpartition("-")[2]].append(
            len(query_words & words(text[doc])) / len(query_words)
        )
    assert abs(statistics.mean(shares["human"]) - statistics.mean(shares["claude"])) < 0.02
    ratios = [len(rewrite.split()) / len(human.split()) for human, rewrite in texts]
    assert 0.95 <= statistics.median(ratios) <= 1.05
    assert 0.35 <= statistics.mean(ratio < 1 for ratio in ratios) <= 0.65
    assert 0.75 <= min(ratios) <= max(ratios) <= 1.25


def test_no_human_paragraph_is_stored_and_the_card_counts_what_the_files_hold(
    texts: list[tuple[str, str]],
) -> None:
    for name in ("rewrites.jsonl", "queries.jsonl", "qrels.tsv", "meta.json"):
        folded = " ".join(stored(name).replace('\\"', '"').split())
        assert not [human for human, _ in texts if human in folded], name
    meta = json.loads(stored("meta.json"))
    numbers = meta["numbers"]
    assert numbers["pairs"] == len(reader.pairs())
    assert numbers["queries"] == len(stored("queries.jsonl").splitlines())
    assert numbers["judgments"] == len(stored("qrels.tsv").splitlines()) - 1
    for package in ("numpy", "scipy"):
        number = sum(pair.function.startswith(package) for pair in reader.pairs())
        assert re.search(rf"{package} \({number} pairs\)", meta["human"]["from"], re.IGNORECASE)
    assert meta["claude"]["model_family"] == "Claude (Anthropic)"
    assert meta["claude"]["prompt"] == "Please rewrite the following text: {text}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", meta["date"])


@pytest.mark.parametrize(
    "before",
    ["", "Before.\n\n    ", "Before.\n    \n    Twice.\n\n    Heading\n    =======\n\n    "],
)
def test_a_paragraph_is_found_wherever_it_stands(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = reader.pairs()[0]
    text = reader.paragraph(pair.function, pair.sha256)
    assert text is not None
    head, _, tail = text.partition(" ")
    doc = f"Moved.\n\n    Notes\n    -----\n    {before}{head}\n    {tail}\n\n    After.\n    "
    module = SimpleNamespace(f=SimpleNamespace(__doc__=doc), g=SimpleNamespace(__doc__=None))
    monkeypatch.setattr(reader.importlib, "import_module", lambda _: module)
    assert reader.paragraph("anywhere.f", pair.sha256) == text
    assert reader.paragraph("anywhere.g", pair.sha256) is None
    assert reader.paragraph("anywhere.gone", pair.sha256) is None
    monkeypatch.undo()
    assert reader.paragraph("no_such_package.f", pair.sha256) is None


def test_pairs_that_do_not_match_are_left_out(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = "numpy.loadtxt"
    find = reader.paragraph
    monkeypatch.setattr(
        reader, "paragraph", lambda f, sha256: None if f == lost else find(f, sha256)
    )
    fewer = bundled()
    assert fewer.spec["matched"] == collection.spec["matched"] - 1
    assert fewer.spec["pairs"] == collection.spec["pairs"]
    gone = {f"{lost}-human", f"{lost}-claude"}
    assert set(collection.docs["id"]) - set(fewer.docs["id"]) == gone
    assert not gone & set(fewer.qrels["doc_id"])
    assert fewer.queries.equals(collection.queries)
    assert fewer.queries_with_judgments.height < collection.queries_with_judgments.height
    monkeypatch.undo()
    matched = {pair.function for pair in reader.pairs()[:119]}
    monkeypatch.setattr(
        reader, "paragraph", lambda f, sha256: find(f, sha256) if f in matched else None
    )
    with pytest.warns(
        DataWarning, match=r"^bundled: found 119 of \d+ paragraphs .* install numpy"
    ) as caught:
        fewer = bundled()
    assert (fewer.spec["matched"], fewer.docs.height, caught[0].filename) == (
        119,
        2 * 119,
        __file__,
    )
    matched.difference_update([pair.function for pair in reader.pairs()[39:119]])
    with pytest.raises(
        UserError,
        match=r"^bundled: found 39 of \d+ paragraphs .* expected at least 40; install numpy",
    ):
        bundled()
