"""Training a cross-encoder: it learns by the loss that it says, and goes on after an interruption."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.io.files import sha256
from ranktilt.progress import listening
from ranktilt.training.batches import BatchSampler
from ranktilt.training.cross_encoder import epoch_rows, train_cross_encoder
from ranktilt.training.options import RerankerTraining, Trained
from ranktilt.training.training_set import reranker_set
from tests.toy import no_room
from tests.training.material import QUICK, WORDS, marked, marked_folder

pytestmark = pytest.mark.neural


def train(body: Path, folder: Path, options: RerankerTraining = QUICK, **more: Any) -> Trained:
    return train_cross_encoder(more.pop("collection", None) or marked(), body, folder, options=replace(options, **more))


@pytest.fixture(scope="module")
def learned(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training long enough to find the mark."""
    return train(tiny, tmp_path_factory.mktemp("learned") / "model", steps=60)


def test_the_loss_falls(learned: Trained) -> None:
    losses = learned.figures["loss"]
    assert len(losses) == 20
    assert losses[0] > 0.2
    assert max(losses[-5:]) < 0.02


def test_the_record_says_how_it_was_made(learned: Trained, tiny: Path) -> None:
    record = json.loads((learned.folder / "training.json").read_text())
    assert record == json.loads(json.dumps(learned.record))
    assert record["base_model"] == str(tiny)
    names = ("kind", "steps", "negatives_per_positive", "seed", "precision", "device")
    assert {name: record["spec"][name] for name in names} == {
        "kind": "cross-encoder", "steps": 60, "negatives_per_positive": 3, "seed": 0, "precision": "float32",
        "device": None,
    }  # fmt: skip
    figures = record["figures"]
    assert (figures["steps"], figures["queries"], figures["positives"]) == (60, len(WORDS), 2 * len(WORDS))
    assert figures["pairs"] == 60 * 8  # 40 positives make 20 batches of 2 groups of 4
    assert figures["epochs"] == 3.0
    assert set(record["packages"]) == {"torch", "transformers", "sentence-transformers", "accelerate"}


def test_the_record_names_the_files_and_their_hashes(tiny: Path, tmp_path: Path) -> None:
    folder = marked_folder(tmp_path / "data")
    trained = train(tiny, tmp_path / "model", collection=load(folder, split="train"))
    said = trained.record["collection"]
    assert (said["path"], said["split"]) == (str(folder), "train")
    assert said["files"][str(folder / "qrels" / "train.tsv")] == sha256(folder / "qrels" / "train.tsv")
    assert len(said["files"]) == 3


@pytest.mark.parametrize("loss", ["softmax", "binary"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_the_first_loss_by_hand(tiny: Path, tmp_path: Path, loss: str, alpha: float) -> None:
    """Of a choice in each group, or of each pair; and α times the logits by which twins exceed their originals."""
    library = pytest.importorskip("sentence_transformers")
    asked = replace(QUICK, steps=1, rate=1e-12, loss=loss, alpha=alpha)
    trained = train(tiny, tmp_path / "model", asked)
    model = library.CrossEncoder(str(trained.folder), device="cpu")
    rows = epoch_rows(reranker_set(marked(), asked), asked, model.tokenizer)
    batch = next(iter(BatchSampler(rows, None, asked.rows)))
    columns = rows.columns({"row": batch})

    def scores(name: str) -> Any:
        pairs = list(zip(columns["query"], columns[name], strict=True))
        return model.predict(pairs, show_progress_bar=False).astype(np.float64)

    human = scores("document")
    if loss == "binary":
        assert len(batch) == 8  # pairs of any query
        expected = np.log1p(np.exp(np.where(columns["label"], -human, human))).mean()
    else:
        every = np.stack([human, *(scores(f"negative{n}") for n in (1, 2, 3))])
        expected = (np.log(np.exp(every).sum(axis=0)) - every[0]).mean()
    if alpha:
        has = np.array([bool(text) for text in columns["twin"]])
        assert has.tolist() == ([label == 1 for label in columns["label"]] if loss == "binary" else [True, True])
        hinges = np.maximum(scores("twin") - human, 0)[has].sum()
        expected += alpha * hinges
    assert trained.figures["loss"] == [pytest.approx(expected, abs=2e-4)]


def test_only_the_chosen_source_is_learned_from(tiny: Path, tmp_path: Path) -> None:
    both = marked()
    alone = type(both)(both.docs.filter(pl.col("source") == "human"), both.queries, both.qrels)
    one, two = train(tiny, tmp_path / "one", sources=("human",)), train(tiny, tmp_path / "two", collection=alone)
    assert one.figures["loss"] == two.figures["loss"] != train(tiny, tmp_path / "both").figures["loss"]


def test_minutes_end_a_training(tiny: Path, tmp_path: Path) -> None:
    timed = train(tiny, tmp_path / "timed", steps=None, minutes=0.02)
    assert timed.figures["steps"] > 0
    assert timed.figures["seconds"] >= 1.2


def stop_at(step: int, body: Path, folder: Path, **more: Any) -> None:
    """Train until so many steps are reported."""

    def listener(label: str, done: int, total: int) -> None:
        if label.endswith(folder.name) and done == step:
            raise KeyboardInterrupt

    with listening(listener), pytest.raises(KeyboardInterrupt):
        train(body, folder, **more)


@pytest.fixture
def at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)


@pytest.mark.usefixtures("at_every_step")
@pytest.mark.parametrize("dropout", [False, True])
def test_an_interrupted_training_goes_on(tiny: Path, tmp_path: Path, dropout: bool) -> None:
    stop_at(3, tiny, tmp_path / "model", dropout=dropout)
    assert not (tmp_path / "model" / "model.safetensors").exists()
    with pytest.raises(UserError, match="holds an unfinished training with seed 0, asked is 1"):
        train(tiny, tmp_path / "model", dropout=dropout, seed=1)
    resumed = train(tiny, tmp_path / "model", dropout=dropout)
    whole = train(tiny, tmp_path / "whole", dropout=dropout)
    assert (resumed.resumed, resumed.figures["steps"], resumed.figures["pairs"]) == (2, 6, 48)
    assert resumed.figures["loss"] == pytest.approx(whole.figures["loss"], abs=1e-3)
    assert not (tmp_path / "model" / ".checkpoints").exists()


def test_a_finished_training_is_not_made_again(tiny: Path, tmp_path: Path) -> None:
    first = train(tiny, tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    again = train(tiny, tmp_path / "model")
    assert (again.resumed, again.record) == (6, json.loads(json.dumps(first.record)))
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_a_loss_that_is_no_number_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the loss is no number at step \d+; choose a lower rate than 1e\+30"):
        train(tiny, tmp_path / "model", rate=1e30)


@pytest.mark.usefixtures("at_every_step")
def test_a_full_disk_is_an_error_and_the_training_can_go_on(tiny: Path, tmp_path: Path) -> None:
    stop_at(3, tiny, tmp_path / "model")
    with no_room(50_000), pytest.raises(UserError, match=f"^{tmp_path / 'model'}: the training cannot go on: "):
        train(tiny, tmp_path / "model")
    assert train(tiny, tmp_path / "model").resumed == 2


def test_nothing_is_written_when_there_is_nothing_to_learn(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no document of source 'llm' is judged relevant"):
        train(tiny, tmp_path / "model", sources=("llm",))
    with pytest.raises(UserError, match="has 64 places for tokens"):
        train(tiny, tmp_path / "model", max_document_tokens=200)
    assert list(tmp_path.iterdir()) == []


def test_a_constraint_without_twins_is_refused(tiny: Path, tmp_path: Path) -> None:
    both = marked()
    alone = type(both)(both.docs.filter(pl.col("source") == "human"), both.queries, both.qrels)
    with pytest.raises(UserError, match="no relevant document that is learned from has a twin, and the constraint"):
        train(tiny, tmp_path / "model", collection=alone, alpha=0.1)
    with pytest.raises(UserError, match="expected alpha of at least 0, got -1"):
        replace(QUICK, alpha=-1)
    assert list(tmp_path.iterdir()) == []
