"""The α sweep: models in subfolders, on the same rows, held against α = 0."""

from dataclasses import replace
from pathlib import Path

import pytest

from ranktilt.auditing.audit import audit
from ranktilt.experiments.debias_sweep import debias_sweep, sweep_alphas
from ranktilt.experiments.tradeoff import reference_alone
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training import retriever
from tests.refusals import refused
from tests.training.material import marked, marked_mix
from tests.training.test_retriever import BM

pytestmark = pytest.mark.neural


def test_the_papers_strengths_go_with_the_models_scores() -> None:
    assert sweep_alphas(["0.5", "0"], None) == [0.0, 0.5]
    assert sweep_alphas(["paper"], 700.0) == [1e-4, 5e-4, 1e-3, 5e-3, 1e-2]
    assert sweep_alphas(["paper", "0", "0.07"], 1.0) == [0.0, 0.07, 0.35, 0.7, 3.5, 7.0]


def test_bad_strengths() -> None:
    with refused("--debias: expected a number of at least 0, or paper, got 'much'"):
        sweep_alphas(["much"], None)
    for text in ("-1", "nan", "inf"):
        with refused(f"training: expected alpha of at least 0, got {float(text)}"):
            sweep_alphas([text], None)


def test_a_sweep_is_its_models_on_a_bench(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    keep = retriever.BM25.rank
    monkeypatch.setattr(retriever.BM25, "rank", lambda *given: searched.append("bm25") or keep(*given))
    asked = replace(BM, device="cpu")
    found, trained = debias_sweep(
        marked(), marked_mix(), tiny, tmp_path / "models", alphas=[3.0, 0.1], options=asked,
        measures=("nDCG@3", "AP@3"), resamples=200,
    )  # fmt: skip
    assert searched == ["bm25"]  # mined once for all of them
    assert [one.folder.name for one in trained] == ["alpha-0", "alpha-0.1", "alpha-3"]
    assert [one.name for one in found.interventions] == ["α = 0", "α = 0.1", "α = 3"]
    assert found.baseline.name == "α = 0"
    assert found.pairs == (("human", "llm"),)
    assert found.over == ("all", "human")
    record = trained[2].record["spec"]
    assert (record["alpha"], record["mine"], record["steps"]) == (3.0, "bm25", 5)
    model = Dense(str(tmp_path / "models" / "alpha-3"), k=100, device="cpu")
    own = reference_alone(marked_mix())
    whole = audit(marked_mix(), model.rank(marked_mix()), "nDCG@3", confounds=False, resamples=200)
    only = audit(own, model.rank(own), "nDCG@10", by=None)
    assert found.tilt("α = 3", ("human", "llm")).value == pytest.approx(whole.tilts[0].value)
    assert found.mean("α = 3", "human").value == pytest.approx(float(only.values.mean()))


def test_what_the_bench_would_refuse_is_refused_before_any_training(tiny: Path, tmp_path: Path) -> None:
    with refused("expected a budget of at least 0 and below 1, such as 0.01 (1 point), got 5"):
        debias_sweep(marked(), marked_mix(), tiny, tmp_path / "m", alphas=[0.1], budget=5)
    with refused("a sweep compares sources, and the test collection has 'human' alone; mix it first"):
        debias_sweep(marked(), reference_alone(marked_mix()), tiny, tmp_path / "m", alphas=[0.1])
    with refused("a sweep needs an alpha above 0 beside the baseline"):
        debias_sweep(marked(), marked_mix(), tiny, tmp_path / "m", alphas=[0.0])
    assert not (tmp_path / "m").exists()
