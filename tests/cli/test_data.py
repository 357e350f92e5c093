"""ranktilt data: collections loaded, mixed, described and built; what was read is written beside them."""

import json
from pathlib import Path

import orjson
import pytest

import ranktilt as rt
from ranktilt.datasets import natural_questions
from ranktilt.datasets.load import load
from ranktilt.datasets.natural_questions import build_nq320k
from ranktilt.io.files import sha256
from tests.cli.conftest import Cli, refused
from tests.datasets.hub_cache import COMMIT, cached, cocktail_zip, mteb, point_to
from tests.datasets.test_natural_questions import files
from tests.generation.questions import simplified
from tests.toy import jsonl, no_permission, raw_docs, toy, write, write_beir, write_cocktail, write_paper


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


def test_a_folder_is_written_in_beir_s_layout_and_its_files_have_a_hash_each(cli: Cli, tmp_path: Path) -> None:
    corpora = {"corpus-human": raw_docs("human"), "0.2/corpus-llm": raw_docs("llm"), "1.0/corpus-llm": raw_docs("llm")}
    folder = write_paper(tmp_path / "paper", corpora=corpora)
    assert cli("data", "load", folder, "-o", tmp_path / "new", "--quiet") == (0, "", "")
    assert load(tmp_path / "new") == load(folder)
    assert (tmp_path / "new" / "corpus.jsonl").exists()
    about = json.loads((tmp_path / "new" / "loaded.json").read_text())
    places = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert about["files"] == {place: sha256(folder / place) for place in places}
    assert len(places) == 5


@pytest.mark.parametrize("name", ["own.qrels", "own.tsv", "own.tsv.gz"])
def test_judgments_of_ones_own_are_saved_under_their_name(cli: Cli, tmp_path: Path, name: str) -> None:
    own, folder = write(tmp_path / name, "q3 0 d1 1\n"), write_beir(tmp_path / "a")
    _, _, err = cli("data", "load", folder, "-o", tmp_path / "b", "--qrels", own, "--docs", "judged")
    assert sorted(p.name for p in (tmp_path / "b" / "qrels").iterdir()) == ["own.tsv"]
    assert load(tmp_path / "b").qrels.rows() == [("q3", "d1", 1)]
    assert load(tmp_path / "b").ids.to_list() == ["d1"]
    assert err.splitlines()[-1].startswith("warning: 1 of 3 documents are kept: no unjudged one competes")


@pytest.mark.parametrize("verb", [("load", "hub:nobody/nothing"), ("build", "nq320k", "no-dev.jsonl")])
def test_a_place_that_cannot_be_written_is_found_before_anything_is_read(
    cli: Cli, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    (closed := tmp_path / "closed").mkdir()
    with no_permission(closed):
        assert "cannot be written" in refused(cli, "data", *verb, "-o", closed / "x")


def test_without_judgments_no_check_is_advised(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "in")
    code, _, err = cli("data", "load", folder, "--qrels", "none", "-o", tmp_path / "out")
    assert (code, err) == (
        0,
        f"{tmp_path / 'out'}: Collection(3 human, 3 llm; 3 queries, 0 judgments), from {folder}\n",
    )
    assert not (tmp_path / "out" / "qrels").exists()


def test_mix_unites_folders(cli: Cli, tmp_path: Path) -> None:
    one = write_cocktail(tmp_path / "one", corpora={"human": raw_docs("human")})
    two = write_cocktail(tmp_path / "two", corpora={"llm": raw_docs("llm")})
    code, out, err = cli("data", "mix", one, two, "-o", tmp_path / "mixed")
    mixed = rt.load(tmp_path / "mixed")
    assert (code, out) == (0, "")
    assert err == f"{tmp_path / 'mixed'}: {mixed!r}\n"
    assert mixed == toy()
    assert (tmp_path / "mixed" / "corpus.jsonl").is_file()


def test_mix_and_load_write_parts_and_read_them(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    assert cli("data", "load", toy_folder, "-o", tmp_path / "one", "--rows-per-file", 4, "--quiet") == (0, "", "")
    assert cli("data", "mix", tmp_path / "one", tmp_path / "one", "-o", tmp_path / "two", "--rows-per-file", 3) == (
        0, "", f"{tmp_path / 'two'}: {toy()!r}\n",
    )  # fmt: skip
    for name, number in (("one", 2), ("two", 2)):
        assert rt.load(tmp_path / name) == toy()
        assert len(list((tmp_path / name / "corpus").iterdir())) == number
        assert not (tmp_path / name / "corpus.jsonl").exists()


def test_a_collection_is_built_and_its_counts_are_told(cli: Cli, tmp_path: Path) -> None:
    paths = files(tmp_path)
    code, out, err = cli("data", "build", "nq320k", *paths, "-o", tmp_path / "nq")
    assert code == 0
    assert out.splitlines() == [
        "documents           3   109,739 expected   differs",
        "test queries        4   7,830 expected   differs",
        "mean words       7.67   199.79 expected   differs",
    ]
    assert err.splitlines() == [
        f"{tmp_path / 'nq'}: Collection(3 human; 4 queries, 4 judgments)",
        "Not as published: 3 training and 4 development questions were read, 307,373 and 7,830 there are.",
        "Texts begin with their title and are truncated; rewrites may not be: `ranktilt check` tells.",
        f"Next: ranktilt generate rewrite {tmp_path / 'nq'} --llm openai:MODEL --dry-run",
    ]
    assert load(tmp_path / "nq") == build_nq320k(paths).collection


def test_texts_are_cut_to_so_many_words_and_a_bad_line_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, place = ("data", "build", "nq320k"), tmp_path / "nq"
    monkeypatch.setattr(natural_questions, "PUBLISHED", {"documents": 3, "test queries": 4, "mean words": 2.0})
    code, out, err = cli(*build, *files(tmp_path), "-o", place, "--words", "2", "--quiet")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "documents           3   3 expected", "as published"
    assert load(place).docs["text"][0] == "Red Apple"
    train = write(tmp_path / "nq-train.jsonl", jsonl([simplified(1, "q", "T", "x")]) + "{oops\n")
    fault = refused(cli, *build, train, files(tmp_path)[0], "-o", tmp_path / "other")
    assert fault.startswith(f"{train}:2: expected one JSON object")
    assert not (tmp_path / "other").exists()


def questions(path: Path, n: int = 40) -> Path:
    rows = [
        {
            "question": f"What is known of topic {number}?",
            "human_answers": [f"I read about topic {number} in book {number % 7}."],
            "chatgpt_answers": [f"Topic {number} is a subject.", f"There are {number} facts on topic {number}."],
        }
        for number in range(n)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def test_a_folder_is_built_and_every_verb_reads_it(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "qa"
    files = [questions(tmp_path / "law.jsonl"), questions(tmp_path / "art.jsonl", 20)]
    code, out, err = cli("data", "build", "retrieval-qa", *files, "-o", place, "--run-depth", 5, "--triples", 3)
    assert code == 0
    assert out == (
        "law          40 questions: train 28, dev 1, test 11\n"
        "art          20 questions: train 14, dev 1, test 5\n"
        "judgments    300: train 210, dev 12, test 78\n"
        "human        60 answers; 0 empty answers left out, 0 questions without any\n"
        "chatgpt      120 answers; 0 empty answers left out, 0 questions without any\n"
        "asked again  20 questions, in the split of the first asking\n"
    )
    assert err.splitlines()[-1] == f"Next: ranktilt audit {place} --by source -r bm25 -m nDCG@10"
    about = orjson.loads((place / "built.json").read_bytes())
    assert set(about["inputs"]) == {"law.jsonl", "art.jsonl"}
    assert about["triples"] == {"negatives": 3, "seed": 0}
    assert (about["shares"], about["fields"]["llm"]) == ([69, 2.5, 28.5], "chatgpt_answers")
    for by in ("source", "domain"):
        shown = cli("audit", place, "--by", by, "-r", "bm25", "-m", "nDCG@10", "--resamples", 100)
        assert shown.code == 0
        assert "Groups are not twins" in shown.out
    assert cli("rank", place, "-r", "bm25@3", "--split", "train", "-o", tmp_path / "r.trec").code == 0
    run = place / "runs" / "bm25_human_test.trec.gz"
    judged = place / "msmarco" / "qrels_human_test.tsv"
    assert cli("audit", place, "--run", run, "--qrels", judged, "--by", "none", "-m", "AP@1000").code == 0


def test_options_say_fields_sizes_and_names(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    rows = [{"q": f"question {n}", "people": f"answer {n}", "bot": f"reply {n}", "of": "ab"[n % 2]} for n in range(20)]
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    place = tmp_path / "qa"
    fields = ["--question", "q", "--human-answers", "people", "--llm-answers", "bot", "--domain", "of"]
    more = ["--shares", "50,10,40", "--human-name", "people", "--llm-name", "gpt-4", "--run-depth", 0]
    done = cli("data", "build", "retrieval-qa", file, "-o", place, *fields, *map(str, more), "--seed", "3")
    assert done.code == 0
    assert done.out.splitlines()[:2] == [
        "a            10 questions: train 5, dev 1, test 4",
        "b            10 questions: train 5, dev 1, test 4",
    ]
    assert load(place).sources == ("people", "gpt-4")
