"""The encoder of a cross-encoder: what can be one, what is refused, and what is saved."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.training.model import TrainableModel
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


def load(folder: Path, seed: int = 0) -> TrainableModel:
    return TrainableModel.load(str(folder), "cpu", seed)


def test_an_encoder_gets_a_head_of_one_number(tiny: Path) -> None:
    body = load(tiny)
    features = body.features(["a b"] * 2, ["c d", "e"], 24)
    assert body.model(**features).logits.shape == (2, 1)
    assert {str(w.dtype) for w in body.model.parameters()} == {"torch.float32"}


def test_the_seed_gives_the_head_and_nothing_else(tiny: Path) -> None:
    one, same, other = (load(tiny, seed).model.state_dict() for seed in (0, 0, 1))
    assert all((one[name] == same[name]).all() for name in one)
    assert {name for name in one if (one[name] != other[name]).any()} == {"classifier.weight"}


def test_there_is_no_dropout(changed: Changed) -> None:
    body = load(changed(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2))
    features = body.features(["a b"], ["c d"], 24)
    assert body.model.training
    assert (body.model(**features).logits == body.model(**features).logits).all()


def test_a_pair_is_read_as_the_tokenizer_makes_it(tiny: Path) -> None:
    body = load(tiny)
    ids = body.features(["a b", "a"], ["c", "c d"], 24)
    tokens = [body.tokenizer.convert_ids_to_tokens(row) for row in ids["input_ids"]]
    assert tokens == [
        ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"],
        ["[CLS]", "a", "[SEP]", "c", "d", "[SEP]"],
    ]
    assert ids["attention_mask"].tolist() == [[1] * 6] * 2


def test_texts_are_cut_at_tokens(tiny: Path) -> None:
    texts = ["ab cd ef", "ab", "", "a-b  c", "abcd"]
    kept, counts = load(tiny).cut(texts, 3, "cutting")
    assert kept == ["ab c", "ab", "", "a-b", "abc"]
    assert counts.tolist() == [3, 2, 0, 3, 3]


def test_cut_texts_have_the_tokens_that_were_counted(tiny: Path) -> None:
    body = load(tiny)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc d-1."), size)) for size in rng.integers(0, 40, 200)]
    kept, counts = body.cut(texts, 7, "cutting")
    again = body.tokenizer(kept, add_special_tokens=False)["input_ids"]
    assert [len(ids) for ids in again] == counts.tolist()
    assert all(whole.startswith(part) for whole, part in zip(texts, kept, strict=True))


def test_the_limit_counts_special_tokens(tiny: Path) -> None:
    body = load(tiny)
    assert body.limit(10, 20) == 33
    assert body.limit(30, 31) == 64
    with pytest.raises(UserError) as caught:
        body.limit(30, 32)
    assert str(caught.value) == (
        f"{tiny}: has 64 places for tokens, and max_query_tokens=30, max_document_tokens=32 and 3 special tokens "
        "need 65; lower one of them"
    )


def test_the_saved_model_is_sentence_transformers_own(tiny: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    body = load(tiny)
    pairs = [("ab c", "cd ef"), ("x", "y z 1 2 3"), ("ab", "")]
    with torch.inference_mode():
        logits = body.model.eval()(**body.features(*zip(*pairs, strict=True), 24)).logits[:, 0]  # type: ignore[call-arg]
    body.save(tmp_path / "saved", 24)
    theirs = library.CrossEncoder(str(tmp_path / "saved"), device="cpu")
    assert theirs.max_seq_length == 24
    assert theirs.predict(pairs, show_progress_bar=False) == pytest.approx(logits.numpy(), abs=1e-6)


def test_the_saved_tokenizer_keeps_nothing_of_the_last_batch(tiny: Path, tmp_path: Path) -> None:
    body = load(tiny)
    body.features(["a"], ["b"], 5)
    body.save(tmp_path / "saved", 24)
    saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())
    assert (saved["truncation"], saved["padding"]) == (None, None)


def test_an_encoder_in_a_folder_of_its_own_is_found(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "old" / "0_Transformer")
    kind = "sentence_transformers.models.Transformer"
    write_json(tmp_path / "old" / "modules.json", [{"idx": 0, "name": "0", "path": "0_Transformer", "type": kind}])
    inner = load(tmp_path / "old").model.state_dict()
    assert all((inner[name] == weight).all() for name, weight in load(tiny).model.state_dict().items())


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{folder}: ")
    return text.removeprefix(f"{folder}: ")


def test_a_folder_without_configuration_is_refused(changed: Changed) -> None:
    assert refused(changed("config.json")) == "expected an encoder's folder, got one without config.json"


def test_a_body_without_tokenizer_is_refused(changed: Changed) -> None:
    said = refused(changed("tokenizer.json"))
    assert said == "has no tokenizer (expected tokenizer.json); put the encoder's own beside its weights"


def test_a_body_without_weights_is_refused(changed: Changed) -> None:
    assert refused(changed("model.safetensors")).startswith("cannot be made a cross-encoder: ")


def test_custom_code_is_refused(changed: Changed) -> None:
    folder = changed(model_type="mine", auto_map={"AutoModel": "mine.Model"})
    assert "code of the model's own, which is never run" in refused(folder)


def test_more_layers_than_there_are_weights_are_refused(changed: Changed) -> None:
    said = refused(changed(num_hidden_layers=3))
    assert said.startswith("its weights are not a 'bert' encoder's: bert.encoder.layer.2.")


def test_a_tokenizer_that_cannot_pad_is_refused(changed: Changed, tiny: Path) -> None:
    folder = changed()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {k: v for k, v in config.items() if k != "pad_token"})
    assert refused(folder) == "its tokenizer has no padding token, so texts cannot share a batch"
