"""Training a cross-encoder: it learns by the loss that it says, and goes on after an interruption."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.io.files import sha256
from ranktilt.training.batches import BatchSampler
from ranktilt.training.cross_encoder import epoch_rows, train_cross_encoder
from ranktilt.training.model import cut_texts, new_cross_encoder, require_encoder, without_dropout
from ranktilt.training.options import RerankerTraining, Trained
from ranktilt.training.training_set import reranker_set
from tests.rankers.tiny import write_json
from tests.toy import no_room
from tests.training.material import QUICK, WORDS, marked, marked_folder, stopped_at

pytestmark = pytest.mark.neural


def train(body: Path, folder: Path, options: RerankerTraining = QUICK, **more: Any) -> Trained:
    return train_cross_encoder(more.pop("collection", None) or marked(), body, folder, options=replace(options, **more))


@pytest.fixture(scope="module")
def learned(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training long enough to find the mark."""
    folder = tmp_path_factory.mktemp("learned")
    data = load(marked_folder(folder / "data"), split="train")
    return train(tiny, folder / "model", steps=60, collection=data)


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
    origin, data = record["collection"], learned.folder.parent / "data"
    assert (origin["path"], origin["split"], len(origin["files"])) == (str(data), "train", 3)
    assert origin["files"][str(data / "qrels" / "train.tsv")] == sha256(data / "qrels" / "train.tsv")


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


def test_minutes_end_a_training(tiny: Path, tmp_path: Path) -> None:
    timed = train(tiny, tmp_path / "timed", steps=None, minutes=0.02)
    assert timed.figures["steps"] > 0
    assert timed.figures["seconds"] >= 1.2


def test_an_interrupted_training_goes_on(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    folder, options = tmp_path / "model", replace(QUICK, dropout=True)
    with stopped_at(3, folder):
        train(tiny, folder, options)
    assert not (folder / "model.safetensors").exists()
    with pytest.raises(UserError, match="holds an unfinished training with seed 0, not 1"):
        train(tiny, folder, options, seed=1)
    with no_room(50_000), pytest.raises(UserError, match=f"^{folder}: the training cannot go on: "):
        train(tiny, folder, options)
    resumed, whole = train(tiny, folder, options), train(tiny, tmp_path / "whole", options)
    assert (resumed.resumed, resumed.figures["steps"], resumed.figures["pairs"]) == (2, 6, 48)
    assert resumed.figures["loss"] == pytest.approx(whole.figures["loss"], abs=1e-3)
    assert not (folder / ".checkpoints").exists()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    again = train(tiny, folder, options)
    assert (again.resumed, again.record) == (6, json.loads(json.dumps(resumed.record)))
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


def test_a_loss_that_is_no_number_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the loss is NaN or infinite at step \d+; choose a lower rate than 1e\+30"):
        train(tiny, tmp_path / "model", rate=1e30)


def test_nothing_is_written_when_there_is_nothing_to_learn(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no document of source 'llm' is judged relevant"):
        train(tiny, tmp_path / "model", sources=("llm",))
    with pytest.raises(UserError, match="has 64 places for tokens"):
        train(tiny, tmp_path / "model", max_document_tokens=200)
    assert list(tmp_path.iterdir()) == []


pytestmark = pytest.mark.neural
Changed = Callable[..., Path]


@pytest.fixture
def changed(tiny: Path, tmp_path: Path) -> Changed:
    """Copy the tiny encoder with files taken away, or with other values in a JSON file."""

    def change(*gone: str, **values: object) -> Path:
        folder = shutil.copytree(tiny, tmp_path / "body")
        for name in gone:
            (folder / name).unlink()
        if values:
            config = json.loads((folder / "config.json").read_text())
            write_json(folder / "config.json", {**config, **values})
        return folder

    return change


def made(folder: Path, seed: int = 0) -> Any:
    return new_cross_encoder(*require_encoder(str(folder), 10, 11), seed)


def test_an_encoder_gets_a_head_of_one_number_drawn_from_the_seed(tiny: Path) -> None:
    model = made(tiny)
    assert (model.num_labels, model.max_seq_length) == (1, 24)
    assert {str(weight.dtype) for weight in model.parameters()} == {"torch.float32"}
    one, same, other = (made(tiny, seed).state_dict() for seed in (0, 0, 1))
    assert all((one[name] == same[name]).all() for name in one)
    assert {name.rpartition("model.")[2] for name in one if (one[name] != other[name]).any()} == {"classifier.weight"}


def test_dropout_is_switched_off(changed: Changed) -> None:
    model = made(changed(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)).train()
    features = model.preprocess([("a b", "c d")])
    assert (model(dict(features))["scores"] != model(dict(features))["scores"]).any()
    without_dropout(model)
    assert (model(dict(features))["scores"] == model(dict(features))["scores"]).all()


def test_texts_are_cut_at_tokens(tiny: Path) -> None:
    tokenizer = made(tiny).tokenizer
    assert cut_texts(tokenizer, 3, ["ab cd ef", "ab", "", "a-b  c", "abcd"]) == ["ab c", "ab", "", "a-b", "abc"]
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc d-1."), size)) for size in rng.integers(0, 40, 200)]
    kept = cut_texts(tokenizer, 7, texts)
    assert max(len(ids) for ids in tokenizer(kept, add_special_tokens=False)["input_ids"]) == 7
    assert all(whole.startswith(part) for whole, part in zip(texts, kept, strict=True))
    assert cut_texts(None, 7, texts) == texts


def test_the_limit_counts_special_tokens(tiny: Path) -> None:
    assert require_encoder(str(tiny), 30, 31) == (tiny, 64)
    with pytest.raises(UserError, match=f"{tiny}: has 64 places for tokens, and .* and 3 special tokens need 65; "):
        require_encoder(str(tiny), 30, 32)


def test_an_encoder_in_a_folder_of_its_own_is_found(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "old" / "0_Transformer")
    kind = "sentence_transformers.models.Transformer"
    write_json(tmp_path / "old" / "modules.json", [{"idx": 0, "name": "0", "path": "0_Transformer", "type": kind}])
    inner = made(tmp_path / "old").state_dict()
    assert all((inner[name] == weight).all() for name, weight in made(tiny).state_dict().items())


@pytest.mark.parametrize(
    ("gone", "values", "message"),
    [
        (["config.json"], {}, "config.json"),
        (["tokenizer.json"], {}, "no tokenizer"),
        (["model.safetensors"], {}, "no weights"),
        ([], {"model_type": "mine", "auto_map": {"AutoModel": "mine.Model"}}, "own, which is never run"),
        ([], {"num_hidden_layers": 3}, "its weights lack encoder.layer.2."),
    ],
)
def test_what_is_no_encoder_is_refused(
    changed: Changed, gone: list[str], values: dict[str, object], message: str
) -> None:
    folder = changed(*gone, **values)
    with pytest.raises(UserError, match=rf"^{folder}: .*{message}"):
        made(folder)


def test_a_tokenizer_that_cannot_pad_is_refused(changed: Changed) -> None:
    folder = changed()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {k: v for k, v in config.items() if k != "pad_token"})
    with pytest.raises(UserError, match=f"^{folder}: .*a padding token"):
        made(folder)
