"""Training a cross-encoder: it learns, comes out the same each time, and survives a kill at any moment."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.io.files import sha256
from ranktilt.progress import listening
from ranktilt.training import cross_encoder, loop
from ranktilt.training.batches import Batches
from ranktilt.training.cross_encoder import train_cross_encoder
from ranktilt.training.options import RerankerTraining, Trained
from tests.toy import no_room
from tests.training.material import MARK, QUICK, WORDS, marked, marked_folder

pytestmark = pytest.mark.neural


def train(body: Path, folder: Path, options: RerankerTraining = QUICK, **more: Any) -> Trained:
    return train_cross_encoder(more.pop("collection", None) or marked(), body, folder, options=replace(options, **more))


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def learned(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training long enough to find the mark."""
    return train(tiny, tmp_path_factory.mktemp("learned") / "model", steps=60)


def test_the_loss_falls(learned: Trained) -> None:
    losses = learned.figures["loss"]
    assert len(losses) == 20
    assert losses[0] > 0.2
    assert max(losses[-5:]) < 0.02


def test_what_was_learned_holds_for_new_texts(learned: Trained) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = library.CrossEncoder(str(learned.folder), device="cpu")
    texts = [f"wxy {sign} {letter}" for sign in (MARK, "yy", "xx") for letter in "mnop"]
    scores = model.predict([("wxy", text) for text in texts], show_progress_bar=False)
    assert scores[:4].min() > scores[4:].max()


def test_the_record_says_how_it_was_made(learned: Trained, tiny: Path) -> None:
    record = json.loads((learned.folder / "training.json").read_text())
    assert record == json.loads(json.dumps(learned.record))
    assert record["from"] == str(tiny)
    names = ("kind", "steps", "negatives_per_positive", "seed", "precision", "device")
    assert {name: record["spec"][name] for name in names} == {
        "kind": "cross-encoder", "steps": 60, "negatives_per_positive": 3, "seed": 0, "precision": "float32",
        "device": "cpu",
    }  # fmt: skip
    figures = record["figures"]
    assert (figures["steps"], figures["queries"], figures["positives"]) == (60, len(WORDS), 2 * len(WORDS))
    assert figures["pairs"] == 60 * 8  # 40 positives make 20 batches of 2 groups of 4
    assert figures["epochs"] == 3.0
    assert set(record["spec"]["packages"]) == {"torch", "transformers", "tokenizers"}


def test_the_record_names_the_files_and_their_hashes(tiny: Path, tmp_path: Path) -> None:
    folder = marked_folder(tmp_path / "data")
    trained = train(tiny, tmp_path / "model", collection=load(folder, split="train"))
    said = trained.record["collection"]
    assert (said["path"], said["split"]) == (str(folder), "train")
    assert said["files"][str(folder / "qrels" / "train.tsv")] == sha256(folder / "qrels" / "train.tsv")
    assert len(said["files"]) == 3


def test_the_loss_is_that_of_a_choice_among_the_group(tiny: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    trained = train(tiny, tmp_path / "model", steps=1, rate=1e-12)
    model = AutoModelForSequenceClassification.from_pretrained(trained.folder)
    tokenizer = AutoTokenizer.from_pretrained(trained.folder)
    found = cross_encoder.training_set(marked(), QUICK)
    sizes = np.full(len(found.queries), 3), np.full(len(found.documents), 9)
    batch = next(loop.starting(Batches(found, *sizes, QUICK), 0))
    losses = []
    for query, documents in zip(batch.queries, batch.documents, strict=True):
        texts = [found.documents[d] for d in documents]
        given = tokenizer([found.queries[query].query] * 4, texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            scores = model(**given).logits[:, 0].double().numpy()
        losses.append(np.log(np.exp(scores).sum()) - scores[0])
    assert trained.figures["loss"] == [pytest.approx(np.mean(losses), abs=2e-4)]


def test_the_binary_loss_is_that_of_each_pair_by_itself(tiny: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    trained = train(tiny, tmp_path / "model", steps=1, rate=1e-12, loss="binary")
    model = AutoModelForSequenceClassification.from_pretrained(trained.folder)
    tokenizer = AutoTokenizer.from_pretrained(trained.folder)
    found = cross_encoder.training_set(marked(), QUICK)
    sizes = np.full(len(found.queries), 3), np.full(len(found.documents), 9)
    batch = next(loop.starting(Batches(found, *sizes, replace(QUICK, loss="binary")), 0))
    assert batch.documents.shape == (8, 1)  # pairs of any query, 8 at once
    losses = []
    for query, (document,), (relevant,) in zip(batch.queries, batch.documents, batch.relevant, strict=True):
        given = tokenizer(found.queries[query].query, found.documents[document], return_tensors="pt")
        with torch.inference_mode():
            score = float(model(**given).logits[0, 0])
        losses.append(np.log1p(np.exp(-score if relevant else score)))
    assert trained.figures["loss"] == [pytest.approx(np.mean(losses), abs=2e-4)]
    with pytest.raises(UserError, match=r"^unknown loss 'hinge'"):
        replace(QUICK, loss="hinge")


def test_epochs_make_steps(tiny: Path, tmp_path: Path) -> None:
    assert train(tiny, tmp_path / "model", steps=None, epochs=2).figures["epochs"] == 2.0


def test_only_the_chosen_source_is_learned_from(tiny: Path, tmp_path: Path) -> None:
    both = marked()
    human = both.docs.filter(pl.col("source") == "human")
    alone = type(both)(human, both.queries, both.qrels)
    one = train(tiny, tmp_path / "one", sources=("human",))
    two = train(tiny, tmp_path / "two", collection=alone)
    assert weights(one.folder) == weights(two.folder)
    assert weights(one.folder) != weights(train(tiny, tmp_path / "both").folder)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by half a second whenever it is asked."""
    ticks = itertools.count()
    for module in (cross_encoder, loop):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 2))


@pytest.mark.usefixtures("ticking")
def test_minutes_become_steps_that_give_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    # By this clock 8 steps take half a second and 1.5 s are over, so 12 more fit into 95 % of 2.4 s.
    timed = train(tiny, tmp_path / "timed", steps=None, minutes=0.04)
    assert timed.figures["steps"] == 12
    assert weights(train(tiny, tmp_path / "counted", steps=12).folder) == weights(timed.folder)


def test_no_time_for_a_step_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"reading and timing took .* s, and a step takes .* s: 1e-05 minutes leave no time for one"
    ):
        train(tiny, tmp_path / "model", steps=None, minutes=1e-5)
    assert not (tmp_path / "model").exists()


def test_the_callers_random_numbers_stay_as_they_were(tiny: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(tiny, tmp_path / "model")
    assert (torch.rand(3) == expected).all()


class Stopped(Exception):
    """Stands for whatever ends a training."""


@pytest.fixture
def at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY", 0.0)


def stop_at(step: int, body: Path, folder: Path, **more: Any) -> None:
    """Train until so many steps are reported."""

    def listener(label: str, done: int, total: int) -> None:
        if label.endswith(folder.name) and done == step:
            raise Stopped

    with listening(listener), pytest.raises(Stopped):
        train(body, folder, **more)


@pytest.mark.usefixtures("at_every_step")
@pytest.mark.parametrize("step", [1, 5])
def test_an_interrupted_training_ends_with_the_same_weights(tiny: Path, tmp_path: Path, step: int) -> None:
    stop_at(step, tiny, tmp_path / "model")
    assert not (tmp_path / "model" / "model.safetensors").exists()
    resumed = train(tiny, tmp_path / "model")
    whole = train(tiny, tmp_path / "whole")
    assert resumed.resumed == step
    assert weights(resumed.folder) == weights(whole.folder)
    assert resumed.figures["loss"] == whole.figures["loss"]
    assert resumed.figures["pairs"] == whole.figures["pairs"] == 48
    assert not (tmp_path / "model" / ".training").exists()


@pytest.mark.usefixtures("at_every_step")
def test_dropout_is_a_function_of_seed_and_step(tiny: Path, tmp_path: Path) -> None:
    stop_at(2, tiny, tmp_path / "model", dropout=True)
    resumed = train(tiny, tmp_path / "model", dropout=True)
    assert resumed.resumed == 2
    assert weights(resumed.folder) == weights(train(tiny, tmp_path / "whole", dropout=True).folder)
    assert weights(resumed.folder) != weights(train(tiny, tmp_path / "none").folder)


@pytest.mark.usefixtures("at_every_step", "ticking")
def test_a_timed_training_keeps_its_number_of_steps(tiny: Path, tmp_path: Path) -> None:
    stop_at(2, tiny, tmp_path / "model", steps=None, minutes=0.04)
    resumed = train(tiny, tmp_path / "model", steps=None, minutes=0.04)
    assert (resumed.resumed, resumed.figures["steps"]) == (2, 12)
    assert weights(resumed.folder) == weights(train(tiny, tmp_path / "whole", steps=12).folder)


def test_a_finished_training_is_not_made_again(tiny: Path, tmp_path: Path) -> None:
    first = train(tiny, tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    again = train(tiny, tmp_path / "model")
    assert (again.resumed, again.record) == (6, json.loads(json.dumps(first.record)))
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.usefixtures("at_every_step")
def test_other_judgments_are_refused(tiny: Path, tmp_path: Path) -> None:
    stop_at(2, tiny, tmp_path / "model")
    full = marked()
    fewer = type(full)(full.docs, full.queries, full.qrels.slice(3))
    with pytest.raises(UserError, match="holds an unfinished training with data '"):
        train(tiny, tmp_path / "model", collection=fewer)


def test_a_loss_that_is_no_number_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the loss is no number at step \d+; choose a lower rate than 1e\+30"):
        train(tiny, tmp_path / "model", rate=1e30)


@pytest.mark.usefixtures("at_every_step")
def test_a_full_disk_is_an_error_and_the_training_can_go_on(tiny: Path, tmp_path: Path) -> None:
    stop_at(2, tiny, tmp_path / "model")
    with no_room(50_000), pytest.raises(UserError, match="cannot be written: File too large"):
        train(tiny, tmp_path / "model")
    resumed = train(tiny, tmp_path / "model")
    assert resumed.resumed >= 2
    assert weights(resumed.folder) == weights(train(tiny, tmp_path / "whole").folder)


def test_without_weight_decay_it_is_adam(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    ours = train(tiny, tmp_path / "ours", weight_decay=0.0)
    decayed = train(tiny, tmp_path / "decayed", weight_decay=0.5)
    monkeypatch.setattr(torch.optim, "AdamW", torch.optim.Adam)
    assert weights(ours.folder) == weights(train(tiny, tmp_path / "adam", weight_decay=0.0).folder)
    assert weights(ours.folder) != weights(decayed.folder)


def test_a_device_that_is_not_there_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^train cross-encoder: no device 'abacus': "):
        train(tiny, tmp_path / "model", device="abacus")


def test_nothing_is_written_when_there_is_nothing_to_learn(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no document of source 'llm' is judged relevant"):
        train(tiny, tmp_path / "model", sources=("llm",))
    with pytest.raises(UserError, match="has 64 places for tokens"):
        train(tiny, tmp_path / "model", max_document_tokens=200)
    assert list(tmp_path.iterdir()) == []


def test_the_constraint_is_a_hinge_on_each_twin(tiny: Path, tmp_path: Path) -> None:
    """One step's loss grows by α times the logits by which twins exceed their originals."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    with pytest.MonkeyPatch.context() as patch:
        seen: list[Any] = []
        keep = loop.TrainingLoop.step
        patch.setattr(
            loop.TrainingLoop, "step", lambda self, batch, rate: seen.append(batch) or keep(self, batch, rate)
        )
        some = train(tiny, tmp_path / "some", steps=1, rate=1e-12, alpha=2.0)
    (batch,) = seen
    model = AutoModelForSequenceClassification.from_pretrained(some.folder)
    tokenizer = AutoTokenizer.from_pretrained(some.folder)
    found = cross_encoder.training_set(marked(), replace(QUICK, alpha=2.0))
    hinge = 0.0
    for query, positive in zip(batch.queries, batch.documents[:, 0], strict=True):
        twin = found.documents[found.twins[positive]]
        assert twin == found.documents[positive][:-1] + "l"
        texts = [found.documents[positive], twin]
        given = tokenizer([found.queries[query].query] * 2, texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            human, llm = model(**given).logits[:, 0].tolist()
        hinge += max(0.0, llm - human)
    assert hinge > 0
    plain = train(tiny, tmp_path / "human", steps=1, rate=1e-12, sources=("human",))
    assert some.figures["loss"][0] == pytest.approx(plain.figures["loss"][0] + 2 * hinge, abs=2e-4)


def test_a_constraint_without_twins_is_refused(tiny: Path, tmp_path: Path) -> None:
    both = marked()
    alone = type(both)(both.docs.filter(pl.col("source") == "human"), both.queries, both.qrels)
    with pytest.raises(UserError, match="no relevant document of source 'human' has a twin, and the constraint"):
        train(tiny, tmp_path / "model", collection=alone, alpha=0.1)
    with pytest.raises(UserError, match="expected an alpha of at least 0, got -1"):
        replace(QUICK, alpha=-1)
    assert list(tmp_path.iterdir()) == []
