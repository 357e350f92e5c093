"""ranktilt data load: named collections and folders become folders; what came from where is written beside them."""

import json
from pathlib import Path

import pytest

from ranktilt.datasets.load import load
from ranktilt.io.files import sha256
from tests.cli.conftest import Cli, refused
from tests.datasets.hub_cache import COMMIT, cached, cocktail_zip, mteb, point_to
from tests.toy import no_permission, raw_docs, toy, write, write_beir, write_cocktail, write_paper


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("huggingface_hub")
    point_to(tmp_path / "hub", monkeypatch)
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "ours"))
    return tmp_path / "hub"


def test_a_collection_of_the_hub_becomes_a_folder(cli: Cli, cache: Path, tmp_path: Path) -> None:
    cached(cache, "IR-Cocktail/scifact", cocktail_zip())
    code, out, err = cli("data", "load", "hub:IR-Cocktail/scifact", "-o", tmp_path / "scifact")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{tmp_path / 'scifact'}: Collection(3 human, 3 llm; 3 queries, 10 judgments), from hub:IR-Cocktail/scifact "
        f"at {COMMIT[:12]}",
        f"Next: ranktilt check {tmp_path / 'scifact'}",
    ]
    assert load(tmp_path / "scifact") == toy()


def test_what_it_was_made_from_is_written_beside(cli: Cli, cache: Path, tmp_path: Path) -> None:
    cached(cache, "mteb/scifact", mteb())
    cli("data", "load", f"hub:mteb/scifact@{COMMIT}", "-o", tmp_path / "x", "--split", "train")
    about = json.loads((tmp_path / "x" / "loaded.json").read_text())
    assert {name: about[name] for name in ("path", "revision", "split", "layout")} == {
        "path": "hub:mteb/scifact",
        "revision": COMMIT,
        "split": "train",
        "layout": "beir",
    }
    snapshot = cache / "datasets--mteb--scifact" / "snapshots" / COMMIT
    places = ("corpus.jsonl", "queries.jsonl", "qrels/train.jsonl")
    assert about["files"] == {place: sha256(snapshot / place) for place in places}
    assert (tmp_path / "x" / "qrels" / "train.tsv").is_file()


def test_files_of_one_name_have_a_hash_each(cli: Cli, tmp_path: Path) -> None:
    corpora = {"corpus-human": raw_docs("human"), "0.2/corpus-llm": raw_docs("llm"), "1.0/corpus-llm": raw_docs("llm")}
    folder = write_paper(tmp_path / "paper", corpora=corpora)
    cli("data", "load", folder, "-o", tmp_path / "x")
    about = json.loads((tmp_path / "x" / "loaded.json").read_text())
    places = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert about["files"] == {place: sha256(folder / place) for place in places}
    assert len(places) == 5


def test_a_folder_is_written_in_beir_s_layout(cli: Cli, tmp_path: Path) -> None:
    folder = write_paper(tmp_path / "paper")
    assert cli("data", "load", folder, "-o", tmp_path / "new", "--quiet") == (0, "", "")
    assert load(tmp_path / "new") == load(folder)
    assert (tmp_path / "new" / "corpus.jsonl").exists()


def test_judged_documents_only_and_a_warning(cli: Cli, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "a", qrels=[("q1", "d2", 1)])
    code, _, err = cli("data", "load", folder, "-o", tmp_path / "b", "--docs", "judged")
    assert code == 0
    assert err.splitlines()[-1] == (
        "warning: 1 of 3 documents are kept: no unjudged one competes, so measures are not those of the whole "
        "collection"
    )
    assert load(tmp_path / "b").ids.to_list() == ["d2"]


@pytest.mark.parametrize("name", ["own.qrels", "own.tsv", "own.tsv.gz"])
def test_judgments_of_ones_own_are_saved_under_their_name(cli: Cli, tmp_path: Path, name: str) -> None:
    own = write(tmp_path / name, "q3 0 d1 1\n")
    cli("data", "load", write_beir(tmp_path / "a"), "-o", tmp_path / "b", "--qrels", own)
    assert sorted(p.name for p in (tmp_path / "b" / "qrels").iterdir()) == ["own.tsv"]
    assert load(tmp_path / "b").qrels.rows() == [("q3", "d1", 1)]


def test_the_same_again_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "a")
    for _ in range(2):
        assert cli("data", "load", folder, "-o", tmp_path / "b", "--quiet")[0] == 0
    other = write_beir(tmp_path / "c", docs=raw_docs("llm"))
    assert "holds another collection" in refused(cli, "data", "load", other, "-o", tmp_path / "b")


def test_a_named_collection_may_stand_where_a_folder_does(cli: Cli, cache: Path) -> None:
    cached(cache, "IR-Cocktail/scifact", cocktail_zip())
    code, out, _ = cli("check", "hub:IR-Cocktail/scifact", "--format", "csv")
    assert code in (0, 1)
    assert "pairs missing a side" in out


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (
            ["hub:nobody/nothing"],
            "hub:nobody/nothing: the hub cannot be reached (",
        ),
        (["none"], "none: no such folder"),
        (["none", "--docs", "judgd"], "Invalid value for '--docs': 'judgd' is not one of 'all', 'judged'."),
        (["none", "--split", "test", "--qrels", "x"], "name a split or a file of judgments, not both"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(
    cli: Cli, cache: Path, tmp_path: Path, arguments: list[str], start: str
) -> None:
    assert refused(cli, "data", "load", *arguments, "-o", tmp_path / "x").startswith(start)
    assert not (tmp_path / "x").exists()


def test_a_place_that_cannot_be_written_is_found_before_anything_is_fetched(cli: Cli, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    with no_permission(closed):
        assert "cannot be written" in refused(cli, "data", "load", "hub:nobody/nothing", "-o", closed / "x")


def test_without_judgments_no_check_is_advised(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "in")
    code, _, err = cli("data", "load", folder, "--qrels", "none", "-o", tmp_path / "out")
    assert (code, err) == (
        0,
        f"{tmp_path / 'out'}: Collection(3 human, 3 llm; 3 queries, 0 judgments), from {folder}\n",
    )
    assert not (tmp_path / "out" / "qrels").exists()
