"""Neural encoders: found, fingerprinted, run once a text, and cached."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.progress import listening
from ranktilt.rankers import encoder as module
from ranktilt.rankers.encoder import Encoder, encoder
from tests.rankers.tiny import LENGTH, tiny_model, write_json

neural = pytest.mark.neural
TEXTS = ["red apples", "river", "red apples", "", "old clock bell", "river"]
Calls = list[list[str]]


def found(folder: Path, **options: Any) -> Encoder:
    return encoder(str(folder), **{"max_tokens": None, "precision": "float32", "device": "cpu", **options})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Keep the texts of every forward pass."""
    made: Calls = []
    forward = Encoder._forward

    def counting(self: Encoder, texts: list[str], kind: Any) -> Any:
        made.append(texts)
        return forward(self, texts, kind)

    monkeypatch.setattr(Encoder, "_forward", counting)
    return made


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let any later loading of a model fail."""

    def load(self: Encoder) -> Any:
        raise RuntimeError("a model was loaded")

    return lambda: monkeypatch.setattr(Encoder, "_model", property(load))


@pytest.fixture
def broken(tiny: Path, tmp_path: Path) -> Callable[[str, bytes | None], Path]:
    """Copy the tiny model with one file changed, or taken away."""

    def change(name: str, content: bytes | None) -> Path:
        folder = shutil.copytree(tiny, tmp_path / "broken")
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_bytes(content)
        return folder

    return change


@neural
def test_each_distinct_text_is_encoded_once(tiny: Path, own_cache: Path, calls: Calls) -> None:
    vectors, row = found(tiny).encode(TEXTS, "document", "x")
    assert sorted(text for texts in calls for text in texts) == sorted(set(TEXTS))
    assert vectors.shape == (4, 32)
    assert vectors.dtype == np.float32
    assert row.tolist() == [0, 1, 0, 2, 3, 1]


@neural
def test_vectors_are_those_of_sentence_transformers(tiny: Path, own_cache: Path) -> None:
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(tiny), device="cpu").encode(TEXTS)
    vectors, row = found(tiny).encode(TEXTS, "document", "x")
    assert vectors[row] == pytest.approx(expected, abs=1e-5)


@neural
def test_queries_and_documents_have_their_own_prompts(tiny: Path, tmp_path: Path, own_cache: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = shutil.copytree(tiny, tmp_path / "prompted")
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "ask ", "document": "tell "}})
    plain = SentenceTransformer(str(tiny), device="cpu")
    for kind, prompt in (("query", "ask "), ("document", "tell ")):
        vectors, row = found(folder).encode(TEXTS, kind, "x")
        assert vectors[row] == pytest.approx(plain.encode([prompt + text for text in TEXTS]), abs=1e-5)


@neural
def test_a_second_run_loads_no_model(tiny: Path, own_cache: Path, no_model: Callable[[], None]) -> None:
    first, row = found(tiny).encode(TEXTS, "document", "x")
    no_model()
    second, again = found(tiny).encode(TEXTS[::-1], "document", "x")
    assert first[row].tobytes() == second[again][::-1].tobytes()


@neural
def test_only_what_is_missing_is_encoded(tiny: Path, own_cache: Path, calls: Calls) -> None:
    before, _ = found(tiny).encode(["red apples", "river"], "document", "x")
    calls.clear()
    after, row = found(tiny).encode(["bell", "river", "clock", "red apples"], "document", "x")
    assert sorted(text for texts in calls for text in texts) == ["bell", "clock"]
    assert after[row[[3, 1]]].tobytes() == before.tobytes()


@neural
def test_a_query_does_not_take_a_documents_vector(tiny: Path, own_cache: Path, calls: Calls) -> None:
    found(tiny).encode(["red apples"], "document", "x")
    found(tiny).encode(["red apples"], "query", "x")
    assert calls == [["red apples"], ["red apples"]]


@neural
def test_nothing_to_encode_is_no_trouble(tiny: Path, own_cache: Path, no_model: Callable[[], None]) -> None:
    no_model()
    vectors, row = found(tiny).encode([], "query", "x")
    assert (len(vectors), len(row)) == (0, 0)


@neural
@pytest.mark.parametrize("shard", [1, 2, 3, 100])
def test_shards_do_not_show(tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, shard: int) -> None:
    monkeypatch.setattr(module, "SHARD", shard)
    vectors, row = found(tiny).encode(TEXTS, "document", "x")
    files = list(own_cache.rglob("*.npy"))
    monkeypatch.setattr(module, "SHARD", 512)
    shutil.rmtree(own_cache)
    whole, _ = found(tiny).encode(TEXTS, "document", "x")
    assert vectors[row] == pytest.approx(whole[row], abs=1e-5)
    assert len(files) == -(-len(set(TEXTS)) // shard)


@neural
def test_the_longest_texts_come_first_and_progress_reaches_its_end(
    tiny: Path, own_cache: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD", 1)
    seen: list[tuple[str, int, int]] = []
    with listening(lambda *step: seen.append(step)):
        found(tiny).encode(["river", "red apples", "bell"], "document", "encoding")
    assert calls == [["red apples"], ["river"], ["bell"]]
    assert seen == [("encoding", done, 19) for done in (0, 10, 15, 19)]


@neural
def test_an_interruption_keeps_finished_shards(
    tiny: Path, own_cache: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD", 2)
    texts = [letter * 3 for letter in "abcdefg"]
    counting = Encoder._forward

    def interrupted(self: Encoder, some: list[str], kind: Any) -> Any:
        if len(calls) == 2:
            raise KeyboardInterrupt
        return counting(self, some, kind)

    monkeypatch.setattr(Encoder, "_forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found(tiny).encode(texts, "document", "x")
    finished = [text for part in calls for text in part]
    assert len(finished) == 4

    calls.clear()
    monkeypatch.setattr(Encoder, "_forward", counting)
    found(tiny).encode(texts, "document", "x")
    assert sorted(finished + [text for part in calls for text in part]) == texts


@neural
@pytest.mark.parametrize("length", [5, LENGTH])
def test_texts_are_cut_after_max_tokens(tiny: Path, own_cache: Path, length: int) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    room = length - 2  # [CLS] and [SEP]; every letter is a token
    vectors, _ = found(tiny, max_tokens=length).encode([letters, letters[:room], letters[: room - 1]], "document", "x")
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-5)
    assert not np.allclose(vectors[0], vectors[2], atol=1e-3)


@neural
def test_the_models_own_length_is_the_default(tiny: Path, own_cache: Path) -> None:
    letters = ["abcdefghijklmnopqrstuvwxyz"]
    default, _ = found(tiny).encode(letters, "document", "x")
    named, _ = found(tiny, max_tokens=LENGTH).encode(letters, "document", "x")
    assert default.tobytes() == named.tobytes()


@neural
def test_more_tokens_than_the_model_takes_is_one_clear_line(tiny: Path, own_cache: Path) -> None:
    with pytest.raises(UserError) as caught:
        found(tiny, max_tokens=1000).encode(["word " * 200], "document", "x")
    assert str(caught.value).startswith(f"{tiny}: cannot encode with max_tokens=1000: ")
    assert "\n" not in str(caught.value)


@neural
def test_a_lower_precision_is_near_and_not_the_same(tiny: Path, own_cache: Path) -> None:
    exact, _ = found(tiny).encode(TEXTS, "document", "x")
    low, _ = found(tiny, precision="bfloat16").encode(TEXTS, "document", "x")
    assert not np.array_equal(exact, low)
    cosine = (exact * low).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(low, axis=1)
    assert cosine.min() > 0.99


@neural
def test_vectors_that_are_no_numbers_are_refused(tiny: Path, tmp_path: Path, own_cache: Path) -> None:
    import torch
    from transformers import BertModel

    folder = shutil.copytree(tiny, tmp_path / "nan")
    model = BertModel.from_pretrained(tiny)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.bias[0] = float("nan")
    model.save_pretrained(folder)
    with pytest.raises(UserError, match=r"nan: the model gives NaN or infinite vectors$"):
        found(folder).encode(["red"], "document", "x")
    assert not list(own_cache.rglob("*.npy"))


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": LENGTH}, {"max_tokens": 5}, {"precision": "bfloat16"}, {"max_tokens": 5, "precision": "bfloat16"}],
)
def test_what_changes_vectors_changes_the_fingerprint(tmp_path: Path, options: dict[str, Any]) -> None:
    write_json(tmp_path / "config.json", {})
    assert found(tmp_path, **options).fingerprint != found(tmp_path).fingerprint


def test_the_fingerprint_is_that_of_the_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write_json(one / "config.json", {"a": 1})
    write_json(one / "1_Pooling" / "config.json", {})
    shutil.copytree(one, two)
    (two / "README.md").write_text("what people read changes no vector")
    assert found(one).fingerprint == found(two, device="cuda").fingerprint
    write_json(two / "1_Pooling" / "config.json", {"pooling_mode": "max"})
    assert found(one).fingerprint != found(two).fingerprint


def test_the_fingerprint_knows_names_from_contents(tmp_path: Path) -> None:
    for folder, name in (("one", "a.json"), ("two", "b.json")):
        write_json(tmp_path / folder / name, {})
    assert found(tmp_path / "one").fingerprint != found(tmp_path / "two").fingerprint


@neural
def test_a_cache_that_cannot_be_is_one_clear_error_before_any_encoding(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(UserError) as caught:
        found(tiny).encode(TEXTS, "document", "x")
    assert str(caught.value).startswith(f"{tmp_path / 'file' / 'below' / 'embeddings'}")
    assert str(caught.value).endswith(": cannot be written: Not a directory; choose another place")
    assert calls == []


@neural
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_is_one_clear_error_before_any_encoding(tiny: Path, own_cache: Path, calls: Calls) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o500)
    with pytest.raises(UserError, match=r"cannot be written: Permission denied; choose a place you may write to$"):
        found(tiny).encode(TEXTS, "document", "x")
    assert calls == []


@neural
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"broken"),
        ("model.safetensors", None),
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("config.json", None),
        ("tokenizer.json", b"{"),
        ("modules.json", b"[]"),
        ("1_Pooling/config.json", b"{"),
    ],
)
def test_a_broken_model_is_one_clear_line(
    broken: Callable[[str, bytes | None], Path], own_cache: Path, name: str, content: bytes | None
) -> None:
    folder = broken(name, content)
    with pytest.raises(UserError) as caught:
        found(folder).encode(["red"], "document", "x")
    assert str(caught.value).startswith(
        f"{folder}: cannot be loaded as a sentence-transformers model on device 'cpu': "
    )
    assert "\n" not in str(caught.value)


@neural
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "expected the model's configuration as JSON: "), (b"[]", "expected a JSON dict, got list")],
)
def test_a_broken_configuration_is_named(
    broken: Callable[[str, bytes | None], Path], content: bytes, message: str
) -> None:
    folder = broken("config_sentence_transformers.json", content)
    with pytest.raises(UserError) as caught:
        _ = found(folder).similarity
    assert str(caught.value).startswith(f"{folder / 'config_sentence_transformers.json'}: {message}")


@neural
def test_a_folder_that_is_no_model_is_one_clear_line(tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be loaded as a sentence-transformers model") as caught:
        found(tmp_path, device=None).encode(["red"], "document", "x")
    assert "\n" not in str(caught.value)


@neural
def test_a_device_that_is_not_there_is_one_clear_line(tiny: Path, own_cache: Path) -> None:
    with pytest.raises(UserError) as caught:
        found(tiny, device="abacus").encode(["red"], "document", "x")
    start = f"{tiny}: cannot be loaded as a sentence-transformers model on device 'abacus': "
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


@neural
def test_code_of_a_models_own_modules_is_never_run(tiny: Path, tmp_path: Path, own_cache: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "own code")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Module: ...\n")
    write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "own.Module"}])
    with pytest.raises(UserError) as caught:
        found(folder).encode(["red"], "document", "x")
    assert str(caught.value) == f"{folder}: its module 'own.Module' is code of the model's own, which is never run"
    assert not (tmp_path / "ran").exists()


@neural
def test_code_of_a_models_own_architecture_is_never_run(tiny: Path, tmp_path: Path, own_cache: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "own code")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: ...\nclass Model: ...\n")
    write_json(
        folder / "config.json",
        {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}},
    )
    with pytest.raises(UserError, match="cannot be loaded as a sentence-transformers model") as caught:
        found(folder).encode(["red"], "document", "x")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


@neural
@pytest.mark.parametrize(("written", "expected"), [(None, "cosine"), ("cosine", "cosine"), ("dot", "dot")])
def test_the_similarity_is_the_models_own(tmp_path: Path, written: str | None, expected: str) -> None:
    assert found(tiny_model(tmp_path, similarity=written)).similarity == expected
