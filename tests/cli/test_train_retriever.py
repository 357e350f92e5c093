"""ranktilt train retriever: one model, or a sweep with its bench; one line for each mistake."""

import json
from pathlib import Path

import pytest

from ranktilt.datasets.save import save
from ranktilt.experiments.tradeoff_result import Bench
from tests.cli.conftest import Cli, refused
from tests.rankers.tiny import tiny_model
from tests.toy import tsv, write
from tests.training.material import marked, marked_mix

pytestmark = pytest.mark.neural
FEW = (
    "--steps", "5", "--batch", "8", "--max-query-tokens", "8", "--max-document-tokens", "16", "--learning-rate", "2e-3",
    "--precision", "float32",
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both sides judged to test and dev on, the human one to learn from."""
    folder = save(marked_mix(), tmp_path / "data")
    write(folder / "qrels" / "train.tsv", tsv(marked().qrels.rows()))
    write(folder / "qrels" / "dev.tsv", (folder / "qrels" / "test.tsv").read_text())
    return folder


def test_one_model(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    code, out, err = cli(
        "train", "retriever", folder, "-o", tmp_path / "model", "--base-model", tiny, *FEW, "--debias", "0.5"
    )
    assert (code, out) == (0, "")
    first, following = err.splitlines()
    assert first.startswith(
        f"{tmp_path / 'model'}: learned from 40 of the pairs that 20 queries allow in 5 steps; its loss went from "
    )
    assert following == f"Next: ranktilt audit {folder} -r dense:{tmp_path / 'model'}"
    assert json.loads((tmp_path / "model" / "training.json").read_text())["spec"]["alpha"] == 0.5
    code, out, _ = cli("audit", folder, "-r", f"dense:{tmp_path / 'model'}", "-m", "nDCG@3", "--resamples", "200")
    assert code == 0
    assert "Relative Δ" in out


def test_options_reach_the_training(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    options = (
        "--mine", "bm25", "--negatives-per-positive", "1", "--loss", "TripletLoss(triplet_margin=1)", "--dev", "dev",
        "--patience", "3", "--twins", "llm", "--sources", "human", "--seed", "4", "--text", "text",
    )  # fmt: skip
    assert cli("train", "retriever", folder, "-o", tmp_path / "m", "--base-model", tiny, *FEW, *options).code == 0
    spec = json.loads((tmp_path / "m" / "training.json").read_text())["spec"]
    names = ("mine", "negatives_per_positive", "loss", "patience", "twins", "seed", "text")
    assert {name: spec[name] for name in names} == {
        "mine": "bm25", "negatives_per_positive": 1, "loss": "TripletLoss(triplet_margin=1)", "patience": 3,
        "twins": "llm",
        "seed": 4, "text": "text",
    }  # fmt: skip
    assert spec["sources"] == ["human"]


def test_a_sweep(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    command = ("train", "retriever", folder, "-o", models, "--base-model", tiny, *FEW)
    code, out, err = cli(*command, "--debias", "0", "--debias", "paper", "--budget", "0.02")
    assert code == 0
    assert "α of the paper, for ANCE's scores of about 700: 0.0001, 0.0005, 0.001, 0.005, 0.01. " in err
    assert f"Next: ranktilt report {models / 'bench.json'} -o {models / 'bench.html'}" in err.splitlines()
    found = Bench.load(models / "bench.json")
    assert len(found.interventions) == 6
    assert found.budget == 0.02
    assert all((models / f"alpha-{one.strength:g}" / "training.json").is_file() for one in found.interventions)
    assert found.choose().headline in out
    page = models / "bench.html"
    assert cli("report", models / "bench.json", "-o", page).code == 0
    assert "α = 0" in page.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--debias", "-1"), "training: expected alpha of at least 0, got -1.0"),
        (("--debias", "nan"), "training: expected alpha of at least 0, got nan"),
        (("--debias", "x", "--debias", "paper"), "--debias: expected a number of at least 0, or paper, got 'x'"),
        (("--patience", "1"), "train retriever: patience needs dev queries to judge each epoch by"),
        (("--split", "other"), "unknown split 'other'"),
        (("--dev", "other"), "unknown split 'other'"),
    ],
)
def test_mistakes(cli: Cli, folder: Path, tiny: Path, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    command = ("train", "retriever", folder, "-o", tmp_path / "model", "--base-model", tiny, *FEW)
    assert said in refused(cli, *command, *options)
    assert not (tmp_path / "model").exists()


def test_no_twins_names_the_command_that_writes_them(cli: Cli, folder: Path, tiny: Path, tmp_path: Path) -> None:
    rows = (folder / "corpus.jsonl").read_text().splitlines()
    write(folder / "corpus.jsonl", "".join(f"{row}\n" for row in rows if json.loads(row)["source"] == "human"))
    said = refused(cli, "train", "retriever", folder, "-o", tmp_path / "m", "--base-model", tiny, *FEW, "--debias", "1")
    assert f"write them: ranktilt generate rewrite {folder} --split train --llm MODEL -o NEW" in said
