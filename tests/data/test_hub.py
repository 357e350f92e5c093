"""Data sets of the hub, from caches as huggingface_hub leaves them, and from a hub on loopback."""

import sys
from pathlib import Path

import pytest

from ranktilt.data.loading.hub import dataset_files
from ranktilt.data.loading.load import load
from ranktilt.errors import MissingExtra
from tests.data.hub_cache import (
    COMMIT,
    OTHER,
    cached,
    cocktail_zip,
    judgments_parquet,
    mteb,
    point_to,
    refusal,
    rows,
)
from tests.toy import jsonl, raw_docs, raw_qrels, raw_queries, toy, tsv, write

pytest.importorskip("huggingface_hub")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    point_to(tmp_path / "hub", monkeypatch)
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "ours"))
    return tmp_path / "hub"


def test_zip_and_parquet_files_load_and_the_commit_and_every_file_are_told(
    cache: Path, tmp_path: Path
) -> None:
    cached(cache, "IR-Cocktail/scifact", cocktail_zip())
    collection = load("hub:IR-Cocktail/scifact")
    assert collection == toy()
    unpacked = tmp_path / "ours" / "collections" / f"IR-Cocktail--scifact-{COMMIT}" / "scifact"
    names = ("corpus/human.jsonl", "corpus/llm.jsonl", "queries.jsonl", "qrels/test.tsv")
    expected = {
        "path": "hub:IR-Cocktail/scifact",
        "revision": COMMIT,
        "split": "test",
        "layout": "cocktail",
        "files": [str(unpacked / name) for name in names],
    }
    assert {name: collection.spec[name] for name in expected} == expected
    assert sorted(p.name for p in unpacked.parent.iterdir()) == ["scifact"]  # nothing of the Mac's
    human, llm = raw_docs("human"), raw_docs("llm")
    files = {
        "corpus/human-00000-of-00002.parquet": rows(human[:2]),
        "corpus/human-00001-of-00002.parquet": rows(human[2:]),
        "corpus/llm-00000-of-00001.parquet": rows(llm),
        "queries/queries-00000-of-00001.parquet": rows(raw_queries()),
        "qrels/test-00000-of-00001.parquet": judgments_parquet(),
    }
    cached(cache, "IR-Cocktail/toy", files)
    assert load("hub:IR-Cocktail/toy") == toy()


def test_beirs_judgments_lie_in_a_data_set_beside_and_a_revision_is_a_tag_or_a_commit(
    cache: Path,
) -> None:
    texts = {
        "corpus/scifact-corpus.parquet": rows(raw_docs()),
        "queries/scifact-queries.parquet": rows(raw_queries()),
    }
    cached(cache, "BeIR/scifact", texts)
    cached(
        cache,
        "BeIR/scifact-qrels",
        {"test.tsv": tsv(raw_qrels()), "train.tsv": tsv(raw_qrels()[:2])},
        commit=OTHER,
    )
    collection = load("hub:BeIR/scifact")
    assert collection.sources == ()
    assert set(collection.qrels.rows()) == set(raw_qrels())
    names = ("layout", "revision", "qrels", "qrels_revision", "split")
    assert [collection.spec[name] for name in names] == [
        "beir",
        COMMIT,
        "hub:BeIR/scifact-qrels",
        OTHER,
        "test",
    ]
    assert load("hub:BeIR/scifact", split="train").qrels.height == 2
    cached(cache, "mteb/scifact", mteb())
    new = jsonl([{"_id": "d1", "text": "new"}, *raw_docs()[1:]])
    cached(cache, "mteb/scifact", {**mteb(), "corpus.jsonl": new}, commit=OTHER, ref="v2")
    assert load("hub:mteb/scifact").docs["text"][0] == "red apples grow on old trees in autumn"
    for revision in ("v2", OTHER):
        collection = load(f"hub:mteb/scifact@{revision}")
        assert (collection.docs["text"][0], collection.spec["revision"]) == ("new", OTHER)


def test_mtebs_judgments_are_json_lines_and_there_may_be_ones_own_or_none(
    cache: Path, tmp_path: Path
) -> None:
    cached(cache, "mteb/scifact", mteb())
    collection = load("hub:mteb/scifact")
    assert set(collection.qrels.rows()) == set(raw_qrels())
    assert collection.docs["title"].to_list() == ["Apples", "Rivers", "Clocks"]
    assert load("hub:mteb/scifact", split="train").qrels.rows() == [("q1", "d1", 2)]
    file = write(tmp_path / "own.tsv", "q3 0 d1 1\n")
    assert load("hub:mteb/scifact", qrels=file).qrels.rows() == [("q3", "d1", 1)]
    judged_by_user = load("hub:mteb/scifact", qrels=f"{file}:query=1,id=3,grade=4")
    names = ("split", "qrels_read")
    assert judged_by_user.qrels.rows() == [("q3", "d1", 1)]
    assert [judged_by_user.spec[name] for name in names] == [str(file), "query=1,id=3,grade=4"]
    assert judged_by_user.spec["files"][-1] == str(file)
    lines = write(tmp_path / "own.jsonl", '{"qid": "q3", "docid": "d1", "rating": 1}\n' * 2)
    assert load("hub:mteb/scifact", qrels=lines).qrels.rows() == [("q3", "d1", 1)]
    unjudged = load("hub:mteb/scifact", qrels="none")
    assert (unjudged.qrels.height, unjudged.queries.height) == (0, 3)
    judged = load("hub:mteb/scifact", split="train", docs="judged")
    assert (judged.ids.to_list(), judged.spec["docs"], judged.spec["docs_of"]) == (
        ["d1"],
        "judged",
        3,
    )


def test_what_the_cache_lacks_is_fetched_or_said_to_be_missing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal("hub:IR-Cocktail/scifact@v9") == (
        "hub:IR-Cocktail/scifact@v9: the hub cannot be reached (HF_HUB_OFFLINE?), and the cache "
        f"({cache}) does not hold all of it; `hf download IR-Cocktail/scifact --repo-type dataset "
        "--revision v9` "
        "downloads it"
    )

    def gone(*_: object, **__: object) -> str:
        raise OSError("404 Client Error: Repository Not Found\nfor url: https://huggingface.co/api")

    monkeypatch.setattr("huggingface_hub.snapshot_download", gone)
    assert refusal("hub:a/b") == (
        "hub:a/b: download failed: 404 Client Error: Repository Not Found for url: "
        "https://huggingface.co/api; "
        "see https://huggingface.co/datasets/a/b (private repositories need `hf auth login`)"
    )
    folder = cached(cache, "mteb/scifact", mteb())
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    assert load("hub:mteb/scifact").spec["revision"] == COMMIT


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {},
            (
                ": expected documents (corpus.jsonl, corpus/*) in the layout of Cocktail, BEIR or "
                "MTEB, got no "
            ),
        ),
        (
            {"labels.jsonl": "{}\n", "data/train-00000-of-00001.parquet": rows(raw_docs())},
            ": expected documents (corpus.jsonl, corpus/*) in the layout of Cocktail, BEIR or "
            "MTEB, got data/train-00000-of-00001.parquet, labels.jsonl",
        ),
        (
            {"corpus.jsonl": jsonl(raw_docs())},
            ": expected queries (queries.jsonl, queries/*.parquet) in",
        ),
        (
            {"corpus.jsonl": jsonl(raw_docs()), "queries.jsonl": jsonl(raw_queries())},
            " holds no judgments, and neither does hub:a/b-qrels, where BEIR keeps them; name a "
            "file of judgments with --qrels, or --qrels none (hub:a/b-qrels: the hub cannot be "
            "reached",
        ),
        (
            {"qrels/dev.tsv": tsv(raw_qrels()), **mteb()},
            ": unknown split 'tset'; did you mean 'test'? (valid: dev, ",
        ),
        (
            {**cocktail_zip("one"), **cocktail_zip("two")},
            ": expected one zip file, got one.zip, two.zip",
        ),
    ],
)
def test_what_is_no_collection_is_refused(
    cache: Path, files: dict[str, str | bytes], message: str
) -> None:
    cached(cache, "a/b", files)
    assert refusal("hub:a/b", split="tset" if "split" in message else None).startswith(
        f"hub:a/b{message}"
    )


def test_a_name_that_cannot_be_and_a_broken_zip_file_are_refused(
    cache: Path, tmp_path: Path
) -> None:
    for name in ("hub:scifact/a/b", "hub:a b/c", "hub:-a/b--c"):
        assert (
            refusal(name)
            == f"{name}: expected OWNER/NAME after hub:, such as hub:IR-Cocktail/scifact"
        )
    snapshot = cached(cache, "a/b", {"b.zip": b"PK\3\4 and no more"})
    assert refusal("hub:a/b").startswith(
        f"{snapshot / 'b.zip'}: cannot be unpacked: File is not a zip file; delete it"
    )
    assert not list((tmp_path / "ours" / "collections").iterdir())


@pytest.mark.parametrize(
    ("name", "package"), [("hub:a/b", "huggingface_hub"), ("irds:beir/scifact/test", "ir_datasets")]
)
def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        load(name)
    assert f'needs {package}. Install it with: pip install "ranktilt[datasets]"' in str(
        caught.value
    )


def files_in(folder: Path, *names: str) -> Path:
    for name in names:
        write(folder / name, "x")
    return folder


@pytest.mark.parametrize(
    ("names", "layout", "sources"),
    [
        (["corpus.jsonl.gz"], "beir", [None]),
        (
            ["corpus/corpus-00000-of-00002.parquet", "corpus/corpus-00001-of-00002.parquet"],
            "beir",
            [None, None],
        ),
        (["corpus/train-00000-of-00001.parquet"], "beir", [None]),
        (["corpus/corpus/0000.parquet", "corpus/corpus/index.duckdb"], "beir", [None]),
        (["corpus/gpt-tmp0.2.jsonl", "corpus/human.jsonl"], "cocktail", ["human", "gpt-tmp0.2"]),
        (["corpus/human/0000.parquet", "corpus/llm/0000.parquet"], "cocktail", ["human", "llm"]),
    ],
)
def test_files_of_documents(
    tmp_path: Path, names: list[str], layout: str, sources: list[str | None]
) -> None:
    dataset = dataset_files(files_in(tmp_path, *names, "queries/test.jsonl"))
    assert (dataset.layout, [source for source, _ in dataset.corpora]) == (layout, sources)
    assert dataset.queries == (tmp_path / "queries" / "test.jsonl",)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["qrels/test.tsv", "qrels/train.jsonl"], ["test", "train"]),
        (["qrels/test-00000-of-00002.parquet", "qrels/test-00001-of-00002.parquet"], ["test"]),
        (["data/test-00000-of-00001.parquet"], ["test"]),
        (["default/test/0000.parquet"], ["test"]),
        (["test.tsv", "validation.tsv"], ["test", "validation"]),
        (["other.tsv", "results/test.tsv"], []),
    ],
)
def test_files_of_judgments(tmp_path: Path, names: list[str], splits: list[str]) -> None:
    files_by_split = dataset_files(files_in(tmp_path, *names)).splits
    assert list(files_by_split) == splits
    assert sum(map(len, files_by_split.values())) == (len(names) if splits else 0)
    (tmp_path / "fold1.tsv").touch()
    assert "fold1" in dataset_files(tmp_path, judgments_only=True).splits
