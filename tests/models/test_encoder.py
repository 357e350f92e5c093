"""Neural encoders: found, fingerprinted, run once a text, and cached."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import ranker
from ranktilt.data.cache import Vectors
from ranktilt.errors import UserError
from ranktilt.models import batching
from ranktilt.models.encoder import Encoder, encoder
from ranktilt.progress import listening
from ranktilt.rankers.dense.retriever import Dense
from tests.conftest import ROOT
from tests.rankers.tiny import LENGTH, Weights, with_weights, write_json
from tests.rankers.tiny_rerankers import change, tiny_classifier
from tests.refusals import refused
from tests.toy import toy

neural = pytest.mark.neural
TEXTS = ["red apples", "river", "red apples", "", "old clock bell", "river"]
Calls = list[list[str]]
LOADING = ": cannot be loaded as a sentence-transformers model on device 'cpu': "


def encoder_of(folder: Path, **options: Any) -> Encoder:
    return encoder(
        str(folder), **{"max_tokens": None, "precision": "float32", "device": "cpu", **options}
    )


def encoded(model: Encoder, texts: list[str], kind: Any = "document") -> Vectors:
    stored, row = model.encode(texts, kind, "x")
    return stored.take(row)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Keep the texts of every forward pass."""
    batches: Calls = []
    encode = Encoder._encoded
    monkeypatch.setattr(
        Encoder,
        "_encoded",
        lambda self, texts, kind: batches.append(texts) or encode(self, texts, kind),
    )
    return batches


@neural
def test_each_distinct_text_is_encoded_once_and_the_same_in_half(
    tiny: Path, own_cache: Path, calls: Calls
) -> None:
    stored, row = encoder_of(tiny).encode(TEXTS, "document", "x")
    assert sorted(text for texts in calls for text in texts) == sorted(set(TEXTS))
    assert stored.shape == (4, 32)
    assert sorted(set(row.tolist())) == [0, 1, 2, 3]
    assert [TEXTS[row.tolist().index(r)] for r in row] == TEXTS
    exact = encoded(encoder_of(tiny), TEXTS)
    first = encoded(encoder_of(tiny, store="float16"), TEXTS)
    second = encoded(encoder_of(tiny, store="float16"), TEXTS)
    assert (
        first.tobytes() == second.tobytes() == exact.astype(np.float16).astype(np.float32).tobytes()
    )
    assert first.tobytes() != exact.tobytes()


@neural
def test_weights_kept_in_half_compute_in_float32(
    tiny: Path, own_cache: Path, tmp_path: Path
) -> None:
    low = tmp_path / "low"
    library = pytest.importorskip("sentence_transformers").SentenceTransformer
    rounded = library(str(tiny), device="cpu").bfloat16()
    rounded.save_pretrained(str(low))
    expected = rounded.float().encode(TEXTS)
    assert encoded(encoder_of(low), TEXTS) == pytest.approx(expected, abs=1e-5)


@neural
@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.05), ("float16", 0.01)]
)
def test_company_and_order_change_a_vector_within_the_stated_tolerance(
    tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, precision: str, tolerance: float
) -> None:
    texts = ["ab" * (number % 13) + " river" * (number % 3) + str(number) for number in range(90)]
    model = encoder_of(tiny, precision=precision)
    uncut = encoded(model, texts)
    assert np.abs(uncut).max() > 0.5
    for size in (1, 3):
        monkeypatch.setenv("RANKTILT_CACHE", str(own_cache / f"pieces of {size}"))
        monkeypatch.setattr(batching, "MOST_ROWS", size)
        monkeypatch.setattr(batching, "WRITE_EVERY", size)
        assert encoded(model, texts[:20]) == pytest.approx(uncut[:20], abs=tolerance)
    monkeypatch.setenv("RANKTILT_CACHE", str(own_cache / "away"))
    assert encoded(model, texts[70:][::-1])[::-1] == pytest.approx(uncut[70:], abs=tolerance)


@neural
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_weights_have_the_precision_and_sums_over_tokens_are_float32(
    tiny: Path, own_cache: Path, precision: str
) -> None:
    import torch

    model = encoder_of(tiny, precision=precision)
    vectors = encoded(model, TEXTS)
    weights = [value.dtype for value in model.module[0].parameters() if value.is_floating_point()]
    assert set(weights) == {getattr(torch, precision)}
    rounded = torch.from_numpy(vectors).to(getattr(torch, precision)).float().numpy()
    assert (rounded != vectors).mean() > 0.5
    assert vectors == pytest.approx(encoded(encoder_of(tiny), TEXTS), abs=0.05)


@neural
def test_long_texts_come_first(
    tiny: Path, own_cache: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, int, int]] = []
    monkeypatch.setattr(batching, "MOST_ROWS", 1)
    encoder_of(tiny).encode(["bell"], "document", "encoding")
    with listening(lambda *step: steps.append(step)):
        encoder_of(tiny).encode(["river", "red apples", "bell", "x" * 90], "document", "encoding")
    assert calls == [["bell"], ["x" * 90], ["red apples"], ["river"]]
    # A letter is a token, two are around every text, and the model cuts after 24.
    assert [step for step in steps if step[0] == "encoding"] == [
        ("encoding", done, 42) for done in (0, 24, 35, 42)
    ]
    assert [step[0] for step in steps if step[0] != "encoding"] == ["encoding (counting tokens)"]


@neural
def test_more_tokens_than_the_model_takes_or_a_reranker_is_refused(
    tiny: Path, own_cache: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"\A{tiny}: cannot encode with max_tokens=1000: [^\n]*\Z"):
        encoder_of(tiny, max_tokens=1000).encode(["word " * 200], "document", "x")
    folder = tiny_classifier(tmp_path)
    with refused(
        f"{folder}: a BertForSequenceClassification is a re-ranker; cross-encoder:{folder} takes it"
    ):
        encoder_of(folder)


@neural
def test_vectors_that_are_no_numbers_are_refused(
    tiny: Path, tmp_path: Path, own_cache: Path
) -> None:
    import torch
    from transformers import BertModel

    folder = shutil.copytree(tiny, tmp_path / "nan")
    model = BertModel.from_pretrained(tiny)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.bias[0] = float("nan")
    model.save_pretrained(folder)
    with pytest.raises(UserError, match=r"nan: the model gives NaN or infinite vectors$"):
        encoder_of(folder).encode(["red"], "document", "x")
    assert not list(own_cache.rglob("embeddings/*/*.vectors"))


@pytest.mark.parametrize(
    "option",
    [
        ("max_tokens", LENGTH),
        ("precision", "bfloat16"),
        ("store", "float16"),
        ("pooling", "cls"),
        ("backend", "onnx"),
        ("query_prefix", "x "),
        ("document_prefix", "x "),
    ],
    ids=lambda option: option[0],
)
def test_what_changes_vectors_changes_the_fingerprint(
    tmp_path: Path, option: tuple[str, Any]
) -> None:
    write_json(tmp_path / "config.json", {})
    assert encoder_of(tmp_path, **dict([option])).fingerprint != encoder_of(tmp_path).fingerprint


@neural
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"broken", LOADING),
        ("model.safetensors", None, LOADING),
        ("config.json", None, LOADING),
        ("modules.json", b"[]", LOADING),
        ("config.json", b"{", "/config.json: expected the model's configuration as JSON: "),
        (
            "1_Pooling/config.json",
            b"{",
            "/1_Pooling/config.json: expected the model's configuration as JSON: ",
        ),
        ("tokenizer.json", b"{", "/tokenizer.json: cannot be read as a tokenizer: "),
        (
            "tokenizer.json",
            None,
            ": no tokenizer: expected a tokenizer.json, or the vocabulary of one",
        ),
    ],
)
def test_a_broken_model_is_one_clear_line(
    tiny: Path, tmp_path: Path, own_cache: Path, name: str, content: bytes | None, message: str
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "broken")
    for file in folder.glob("tokenizer*") if name == "tokenizer.json" else [folder / name]:
        file.unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"\A{folder}{message}[^\n]*\Z"):
        encoder_of(folder).encode(["red"], "document", "x")


@neural
@pytest.mark.parametrize(
    ("weights", "layers", "message"),
    [
        (
            lambda w: {f"other.{k}": v for k, v in w.items()},
            2,
            "lack embeddings.LayerNorm.bias and 36 more",
        ),
        (lambda w: {k: v for k, v in w.items() if "layer.1." not in k}, 2, "lack encoder.layer.1."),
        (lambda w: w, 3, "lack encoder.layer.2."),
        (
            lambda w: w,
            1,
            "hold encoder.layer.1.attention.output.LayerNorm.bias and 15 more, which the Bert",
        ),
    ],
)
def test_weights_that_are_not_the_models_are_refused_each_time(
    tiny: Path, tmp_path: Path, own_cache: Path, weights: Weights, layers: int, message: str
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    with_weights(folder, weights)
    change(folder / "config.json", num_hidden_layers=layers)
    for _ in range(2):
        with pytest.raises(UserError, match=rf"\A{folder}: its weights {message}[^\n]*\Z"):
            encoder_of(folder).encode(["red"], "document", "x")
    assert not list(own_cache.rglob("embeddings/*/*.vectors"))


@neural
def test_what_is_not_used_may_be_missing_and_own_code_is_never_run(
    tiny: Path, tmp_path: Path, own_cache: Path
) -> None:
    import torch

    def renamed(weights: dict[str, Any]) -> dict[str, Any]:
        used = {f"bert.{name}": weight for name, weight in weights.items() if "pooler" not in name}
        return {**used, "cls.bias": torch.zeros(3)}

    folder = shutil.copytree(tiny, tmp_path / "model")
    with_weights(folder, renamed)
    assert (
        encoded(encoder_of(folder), TEXTS).tobytes() == encoded(encoder_of(tiny), TEXTS).tobytes()
    )
    folder = shutil.copytree(tiny, tmp_path / "own code")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Module: ...\n")
    write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "own.Module"}])
    with refused(f"{folder}: its module 'own.Module' is the model's own code, which is never run"):
        encoder_of(folder).encode(["red"], "document", "x")
    assert not (tmp_path / "ran").exists()


def by_hand(folder: Path, text: str, pooling: str) -> Any:
    """A text's vector, made with transformers alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    features = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        tokens = AutoModel.from_pretrained(folder)(**features).last_hidden_state[0]
    return {"mean": tokens.mean(dim=0), "cls": tokens[0], "lasttoken": tokens[-1]}[pooling].numpy()


@neural
@pytest.mark.parametrize(
    ("pooling", "bare"),
    [("auto", True), ("auto", False), ("cls", True), ("mean", False), ("lasttoken", False)],
)
def test_a_vector_is_pooled_as_asked_for(
    tiny: Path, tmp_path: Path, own_cache: Path, pooling: str, bare: bool
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    if bare:
        for name in ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json"):
            (folder / name).unlink()
    texts = ["red apples", "river bell old", "a"]
    expected = [by_hand(folder, text, "mean" if pooling == "auto" else pooling) for text in texts]
    assert encoded(encoder_of(folder, pooling=pooling), texts) == pytest.approx(
        np.array(expected), abs=1e-5
    )


@neural
def test_the_models_prompts_or_the_users_stand_before_texts(
    tiny: Path, tmp_path: Path, own_cache: Path
) -> None:
    folder, plain = shutil.copytree(tiny, tmp_path / "prompted"), encoder_of(tiny)
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "ask ", "document": "tell "}},
    )
    prefixed = encoder_of(folder, query_prefix="q ", document_prefix="")
    for model, kind, text in (
        (encoder_of(folder), "query", "ask red"),
        (encoder_of(folder), "document", "tell red"),
        (prefixed, "query", "q red"),
        (prefixed, "document", "red"),
    ):
        assert encoded(model, ["red"], kind) == pytest.approx(encoded(plain, [text]), abs=1e-5)
    assert prefixed.tokens.prompt == ""


@pytest.mark.parametrize(
    ("prompts", "query", "document"),
    [
        ({}, "", ""),
        ({"query": "q: ", "passage": "p: "}, "q: ", "p: "),
        ({"document": "", "corpus": "c: "}, "", "c: "),
        ({"document": "d: ", "passage": "p: "}, "", "d: "),
        (None, "", ""),
    ],
)
def test_the_models_own_prefixes(
    tmp_path: Path, prompts: dict[str, str] | None, query: str, document: str
) -> None:
    write_json(tmp_path / "config_sentence_transformers.json", {"prompts": prompts})
    model = encoder_of(tmp_path)
    assert (model.prefix("query"), model.prefix("document")) == (query, document)


CACHED = """
import sys
from ranktilt import ranker
from tests.toy import toy

run = ranker(sys.argv[1]).rank(toy())
heavy = {"torch", "transformers", "sentence_transformers", "tokenizers"} & set(sys.modules)
print(sorted(heavy), run.scores.tolist())
"""


@neural
def test_when_all_vectors_are_cached_nothing_heavy_is_imported(tiny: Path, own_cache: Path) -> None:
    spec = repr(Dense(str(tiny)))
    first = ranker(spec).rank(toy())
    command = [sys.executable, "-c", CACHED, spec]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == f"[] {first.scores.tolist()}"
