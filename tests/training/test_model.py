"""The encoder of a cross-encoder: what can be one, and what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.training.model import cut_texts, new_cross_encoder, require_encoder, without_dropout
from tests.rankers.tiny import write_json

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


def load(folder: Path, seed: int = 0) -> Any:
    return new_cross_encoder(*require_encoder(str(folder), 10, 11), seed)


def test_an_encoder_gets_a_head_of_one_number_drawn_from_the_seed(tiny: Path) -> None:
    model = load(tiny)
    assert (model.num_labels, model.max_seq_length) == (1, 24)
    assert {str(weight.dtype) for weight in model.parameters()} == {"torch.float32"}
    one, same, other = (load(tiny, seed).state_dict() for seed in (0, 0, 1))
    assert all((one[name] == same[name]).all() for name in one)
    assert {name.rpartition("model.")[2] for name in one if (one[name] != other[name]).any()} == {"classifier.weight"}


def test_dropout_is_switched_off(changed: Changed) -> None:
    model = load(changed(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)).train()
    features = model.preprocess([("a b", "c d")])
    assert (model(dict(features))["scores"] != model(dict(features))["scores"]).any()
    without_dropout(model)
    assert (model(dict(features))["scores"] == model(dict(features))["scores"]).all()


def test_texts_are_cut_at_tokens(tiny: Path) -> None:
    tokenizer = load(tiny).tokenizer
    assert cut_texts(tokenizer, 3, ["ab cd ef", "ab", "", "a-b  c", "abcd"]) == ["ab c", "ab", "", "a-b", "abc"]
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc d-1."), size)) for size in rng.integers(0, 40, 200)]
    kept = cut_texts(tokenizer, 7, texts)
    assert max(len(ids) for ids in tokenizer(kept, add_special_tokens=False)["input_ids"]) == 7
    assert all(whole.startswith(part) for whole, part in zip(texts, kept, strict=True))
    assert cut_texts(None, 7, texts) == texts


def test_the_limit_counts_special_tokens(tiny: Path) -> None:
    assert require_encoder(str(tiny), 30, 31) == (tiny, 64)
    with pytest.raises(UserError) as caught:
        require_encoder(str(tiny), 30, 32)
    assert str(caught.value) == (
        f"{tiny}: has 64 places for tokens, and max_query_tokens=30, max_document_tokens=32 and 3 special tokens "
        "need 65; lower one of them"
    )


def test_an_encoder_in_a_folder_of_its_own_is_found(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "old" / "0_Transformer")
    kind = "sentence_transformers.models.Transformer"
    write_json(tmp_path / "old" / "modules.json", [{"idx": 0, "name": "0", "path": "0_Transformer", "type": kind}])
    inner = load(tmp_path / "old").state_dict()
    assert all((inner[name] == weight).all() for name, weight in load(tiny).state_dict().items())


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{folder}: ")
    return text.removeprefix(f"{folder}: ")


@pytest.mark.parametrize(
    ("gone", "said"),
    [("config.json", "config.json"), ("tokenizer.json", "no tokenizer"), ("model.safetensors", "no weights")],
)
def test_a_folder_that_lacks_a_part_is_refused(changed: Changed, gone: str, said: str) -> None:
    assert said in refused(changed(gone))


def test_custom_code_is_refused(changed: Changed) -> None:
    folder = changed(model_type="mine", auto_map={"AutoModel": "mine.Model"})
    assert "code of the model's own, which is never run" in refused(folder)


def test_more_layers_than_there_are_weights_are_refused(changed: Changed) -> None:
    said = refused(changed(num_hidden_layers=3))
    assert said.startswith("its weights lack encoder.layer.2.")


def test_a_tokenizer_that_cannot_pad_is_refused(changed: Changed, tiny: Path) -> None:
    folder = changed()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {k: v for k, v in config.items() if k != "pad_token"})
    assert "a padding token" in refused(folder)
