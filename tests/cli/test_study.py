"""ranktilt study: several temperatures, each against the human side."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.study import read_zero_shot
from ranktilt.cli.train import read_amounts
from tests.cli.conftest import Cli, refused
from tests.experiments.answered import answered_folder
from tests.toy import raw_docs, write_cocktail

QUICK = ("-r", "bm25", "--resamples", "200")
SOURCES = ("llm-tmp0.2", "llm-tmp0.7", "llm-tmp1.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The toy with rewrites at three temperatures, of which the last loses its words."""
    texts = {source: raw_docs("llm") for source in SOURCES}
    texts["llm-tmp1.0"] = [{**row, "text": "nothing of the kind"} for row in raw_docs("llm")]
    return write_cocktail(tmp_path / "hot", corpora={"human": raw_docs(), **texts})


def test_the_options_reach_the_study(cli: Cli, folder: Path) -> None:
    options = ("--ties", "trec_eval", "--test", "t", "--correction", "bonferroni", "--level-margin", "7", "--seed", "3")
    result = cli(
        "study",
        folder,
        *QUICK,
        "-m",
        "nDCG@3",
        "--source",
        "llm-tmp0.2",
        *options,
        "--json",
        "-",
    )
    content = json.loads(result.out)
    assert content["arms"] == [{"source": "llm-tmp0.2", "series": "llm", "temperature": 0.2, "documents": 3}]
    expected = {"ties": "trec_eval", "test": "t", "correction": "bonferroni", "level": 7.0, "seed": 3, "resamples": 200}
    assert {key: content["spec"][key] for key in expected} == expected


def test_another_reference_takes_the_human_sides_place(cli: Cli, folder: Path) -> None:
    content = json.loads(
        cli(
            "study",
            folder,
            *QUICK,
            "--reference",
            "llm-tmp0.2",
            "-m",
            "nDCG@1",
            "--json",
            "-",
        ).out
    )
    assert content["reference"] == "llm-tmp0.2"
    assert [arm["source"] for arm in content["arms"]] == ["human", "llm-tmp0.7", "llm-tmp1.0"]


def test_sources_that_cover_different_documents_are_told_of(cli: Cli, tmp_path: Path) -> None:
    corpora = {"human": raw_docs(), "llm-tmp0.2": raw_docs("llm"), "llm-tmp1.0": raw_docs("llm")[:2]}
    judged = [("q1", "d1", 1), ("q2", "d2", 1)]
    folder = write_cocktail(tmp_path / "less", corpora=corpora, qrels=judged)
    out = cli("study", folder, *QUICK, "-m", "nDCG@3").out
    assert "warning: the sources do not cover the same documents: 2 of 3 rewritten documents are common to all" in out
    assert "(llm-tmp1.0 lacks 1)" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to study: name a ranker, such as -r bm25"),
        (("-r", "bm25", "--source", "gpt"), "unknown source 'gpt'"),
        (("-r", "bm25", "--reference", "man"), "unknown source 'man'"),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "study", folder, *arguments)


@pytest.mark.neural
def test_a_study_of_training_is_printed_and_written(
    cli: Cli, tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answered_folder(tmp_path / "qa")
    few = (
        "--steps",
        "2",
        "--batch",
        "8",
        "--max-query-tokens",
        "6",
        "--max-document-tokens",
        "16",
        "--rerank-depth",
        "9",
    )
    code, out, err = cli(
        "study", "qa", "--vary", "training", "--base-model", tiny, *few, "--test-queries", "3", "--seeds", "2",
        "--seed", "4", "--disjoint", "--preset", "paper", "--negatives", "random:20", "--positives", "all",
        "--warmup-steps", "1", "--resamples", "100", "-o", "s.html", "--json", "s.json",
    )  # fmt: skip
    assert code == 0
    assert "qa-test (6 queries, depth 9)" in out
    assert "Body already tuned for retrieval: " in out
    assert "each trained ranker is the mean of 2 trainings with other seeds" in out
    assert err.splitlines()[-1] == "qa-training: the trained models and their runs"
    content = json.loads((tmp_path / "s.json").read_text())
    assert [one["seed"] for one in content["rankers"]] == [4, 4, 5, 5]
    spec = content["spec"]
    assert (spec["training"]["rate"], spec["training"]["steps"], spec["training"]["loss"]) == (7e-6, 2, "binary")
    names = ("negatives", "positives", "warmup_steps", "negatives_per_positive")
    assert [spec["training"][name] for name in names] == ["random:20", "all", 1, 4]
    assert (spec["queries"], spec["disjoint"], spec["depth"]) == (3, True, 9)
    assert len(list((tmp_path / "qa-training" / "models").iterdir())) == 4
    assert "What training on either side does to the source bias" in (tmp_path / "s.html").read_text()
    table = cli("report", "s.json", "--layout", "askari-4").out
    assert "| qa-test (human responses) |" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to train: name an encoder to start from, such as --base-model minilm"),
        (("-r", "bm25"), "-r is for studies of temperature (--vary temperature)"),
        (
            ("--base-model", "x", "--test", "t"),
            "--test is for studies of temperature (--vary temperature)",
        ),
        (("--base-model", "x", "--preset", "no"), "unknown preset 'no' (valid: paper, notebook)"),
        (
            ("--base-model", "x", "--curve", "human"),
            "--curve: expected SOURCE=N, each source once, such as human=500,llm=500; got 'human'",
        ),
        (
            ("--base-model", "x", "--zero-shot", "a,b"),
            "--zero-shot expects a collection, then qrels=FILE, candidates=FILE or name=NAME; got 'b'",
        ),
        (
            ("--base-model", "x", "--zero-shot", ",name=a"),
            "--zero-shot expects a collection, such as a folder; got ',name=a'",
        ),
    ],
)
def test_refused_of_training(cli: Cli, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert refused(cli, "study", folder, "--vary", "training", *arguments) == message


@pytest.mark.parametrize("given", [("--base-model", "x"), ("--seeds", "3"), ("--disjoint",), ("--learning-rate", "1")])
def test_options_of_training_are_refused_elsewhere(cli: Cli, folder: Path, given: tuple[str, ...]) -> None:
    assert refused(cli, "study", folder, *QUICK, *given) == f"{given[0]} is for studies of training (--vary training)"


def test_what_is_named_behind_a_collection() -> None:
    assert read_zero_shot("irds:x/y") == ("irds:x/y", None, None, "")
    assert read_zero_shot("a,qrels=q,candidates=c,name=n") == ("a", "q", "c", "n")
    assert read_amounts(["human=100,llm=0"], "--curve") == {"human": 100, "llm": 0}
