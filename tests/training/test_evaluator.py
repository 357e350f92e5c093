"""The evaluator says what ranking and auditing by hand say, and runs inside sentence-transformers' own trainers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Collection, audit, ranker
from ranktilt.training import DebiasedLoss, SourceBiasEvaluator
from tests.house import tree
from tests.rankers.tiny import tiny_model
from tests.rankers.tiny_rerankers import tiny_classifier
from tests.refusals import refused
from tests.training.material import WORDS, human_part, marked, marked_mix

pytestmark = pytest.mark.neural
library = pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def mixed() -> Collection:
    return marked_mix()


def by_hand(mixed: Collection, text: str) -> dict[str, float]:
    found = audit(mixed, ranker(text).rank(mixed), "nDCG@10", pairs=[("human", "llm")], resamples=2000)
    alone = audit(human_part(mixed), ranker(text).rank(human_part(mixed)), "nDCG@10", by=None)
    (effect,) = found.tilts
    means = dict(found.by_group().select("group", "mean").iter_rows())
    return {
        "dev_nDCG@10_human": means["human"],
        "dev_nDCG@10_llm": means["llm"],
        "dev_relative_delta_nDCG@10_llm": effect.value,
        "dev_relative_delta_nDCG@10_llm_low": effect.low,
        "dev_relative_delta_nDCG@10_llm_high": effect.high,
        "dev_nDCG@10_human_only": alone.by_group()["mean"][0],
    }


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_bi_encoder_is_measured_as_its_folder_would_be(mixed: Collection, tmp_path: Path, similarity: str) -> None:
    folder = tiny_model(tmp_path / "model", similarity=similarity)
    model = library.SentenceTransformer(str(folder), device="cpu")
    found = SourceBiasEvaluator(mixed, name="dev")(model)
    assert found == pytest.approx(by_hand(mixed, f"dense:{folder}@100"), abs=1e-6)
    assert 0 < found["dev_nDCG@10_human"] <= found["dev_nDCG@10_human_only"] < 1


def test_a_cross_encoder_re_ranks_what_bm25_finds(mixed: Collection, tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path / "model")
    model = library.CrossEncoder(str(folder), device="cpu")
    found = SourceBiasEvaluator(mixed, name="dev", depth=9)(model)
    assert found == pytest.approx(by_hand(mixed, f"bm25@9>>cross-encoder:{folder}"), abs=1e-6)
    assert 0 < found["dev_nDCG@10_human"] <= found["dev_nDCG@10_human_only"] < 1


def test_every_measure_has_its_numbers_and_the_first_one_is_primary(mixed: Collection, tiny: Path) -> None:
    evaluator = SourceBiasEvaluator(mixed, measures=("nDCG@3", "AP@5"))
    found = evaluator(library.SentenceTransformer(str(tiny), device="cpu"))
    assert evaluator.primary_metric == "nDCG@3_human_only"
    assert {"nDCG@3_human_only", "AP@5_human_only", "relative_delta_AP@5_llm_low"} < set(found)
    assert evaluator.get_config_dict()["measures"] == ["nDCG@3", "AP@5"]


def test_what_cannot_be_evaluated_is_refused(mixed: Collection, tiny: Path) -> None:
    with refused("unknown source 'humna'; did you mean 'human'? (valid: human, llm)"):
        SourceBiasEvaluator(mixed, source="humna")
    with refused("SourceBiasEvaluator: the collection has one source (human); mix it with rewrites first"):
        SourceBiasEvaluator(human_part(mixed))
    with refused("SourceBiasEvaluator: NDSR@20 is no measure of relevance; expected one such as nDCG@10"):
        SourceBiasEvaluator(mixed, measures=["NDSR@20"])
    with refused("SourceBiasEvaluator: no document of source 'llm' is judged relevant"):
        SourceBiasEvaluator(marked(), source="llm")


def test_a_model_that_cannot_be_compared_is_refused(mixed: Collection, tiny: Path, tmp_path: Path) -> None:
    evaluator = SourceBiasEvaluator(mixed, depth=5)
    with refused("SourceBiasEvaluator: the model compares by 'euclidean'; expected cosine or dot"):
        evaluator(library.SentenceTransformer(str(tiny), device="cpu", similarity_fn_name="euclidean"))
    both = library.CrossEncoder(str(tiny_classifier(tmp_path / "two", labels=2)), device="cpu")
    with refused("SourceBiasEvaluator: expected a model with one score for a pair, got 2"):
        evaluator(both)
    one = library.CrossEncoder(str(tiny_classifier(tmp_path / "one")), device="cpu")
    one[0].auto_model.classifier.bias.data[:] = float("inf")
    with refused("SourceBiasEvaluator: the model gives NaN or infinite scores"):
        evaluator(one)


def rows_of(mixed: Collection) -> dict[str, list[Any]]:
    """A row a word: its query, a marked human document, and the other source's version of it."""
    texts = dict(zip(mixed.ids, mixed.texts(), strict=True))
    return {"query": WORDS} | {side: [texts[f"{word}0-{side}"] for word in WORDS] for side in ("human", "llm")}


@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder"])
def test_the_constraint_turns_a_model_in_an_unmodified_trainer(mixed: Collection, tmp_path: Path, kind: str) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("accelerate")
    bi = kind == "bi-encoder"
    folder = (tiny_model if bi else tiny_classifier)(tmp_path / "model")
    deltas = {}
    for alpha in (0, 30):
        model = (library.SentenceTransformer if bi else library.CrossEncoder)(str(folder), device="cpu")
        losses = library.sentence_transformer.losses if bi else library.cross_encoder.losses
        inner = losses.MultipleNegativesRankingLoss(model)
        prefix = "SentenceTransformer" if bi else "CrossEncoder"
        arguments = getattr(library, f"{prefix}TrainingArguments")(
            str(tmp_path / str(alpha)), max_steps=20, per_device_train_batch_size=5, learning_rate=3e-3, seed=0,
            eval_strategy="steps", eval_steps=20, report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        trainer = getattr(library, f"{prefix}Trainer")(
            model, arguments, datasets.Dataset.from_dict(rows_of(mixed)),
            loss=DebiasedLoss(model, inner, alpha=alpha), evaluator=SourceBiasEvaluator(mixed, name="dev", depth=20),
        )  # fmt: skip
        trainer.train()
        (logged,) = [row for row in trainer.state.log_history if "eval_dev_nDCG@10_human_only" in row]
        deltas[alpha] = logged["eval_dev_relative_delta_nDCG@10_llm"]
    assert deltas[30] > deltas[0] + 5


@pytest.mark.long
def test_the_example_trains(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    pytest.importorskip("accelerate")
    script = tree.ROOT / "examples" / "train_debiased.py"
    command = [sys.executable, "-W", "ignore", str(script), "--model", str(tiny), "--steps", "2"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    logged = [line for line in done.stdout.splitlines() if "eval_dev_relative_delta_nDCG@10_claude_low" in line]
    assert len(logged) == 2
    assert json.loads((tmp_path / "debiased" / "config_sentence_transformers.json").read_text())
    card = (tmp_path / "debiased" / "README.md").read_text()
    assert "DebiasedLoss" in card
    assert "dev_nDCG@10_human_only" in card
