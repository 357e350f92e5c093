"""ranktilt study: several temperatures, each against the human side."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.study import read_zero_shot
from ranktilt.cli.train import read_amounts
from tests.cli.conftest import Cli
from tests.experiments.trained import answered_folder
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
    result = cli("study", folder, *QUICK, "-m", "nDCG@3", "--source", "llm-tmp0.2", *options, "--json", "-")
    content = json.loads(result.out)
    assert content["arms"] == [{"source": "llm-tmp0.2", "series": "llm", "temperature": 0.2, "documents": 3}]
    expected = {"ties": "trec_eval", "test": "t", "correction": "bonferroni", "level": 7.0, "seed": 3, "resamples": 200}
    assert {key: content["spec"][key] for key in expected} == expected


def test_another_reference_takes_the_human_sides_place(cli: Cli, folder: Path) -> None:
    options = ("--reference", "llm-tmp0.2", "-m", "nDCG@1", "--json", "-")
    content = json.loads(cli("study", folder, *QUICK, *options).out)
    assert content["reference"] == "llm-tmp0.2"
    assert [arm["source"] for arm in content["arms"]] == ["human", "llm-tmp0.7", "llm-tmp1.0"]


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
        "study", "qa", "--vary", "training", "--base-model", tiny, *few, "--rerank-depth", "9", "--test-queries", "3",
        "--seeds", "2", "--seed", "4", "--disjoint", "--preset", "paper", "--negatives", "random:20",
        "--positives", "all", "--warmup-steps", "1", "--resamples", "100", "-o", "s.html", "--json", "s.json",
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


def test_what_is_named_behind_a_collection() -> None:
    assert read_zero_shot("irds:x/y") == ("irds:x/y", None, None, "")
    assert read_zero_shot("a,qrels=q,candidates=c,name=n") == ("a", "q", "c", "n")
    assert read_amounts(["human=100,llm=0"], "--curve") == {"human": 100, "llm": 0}
