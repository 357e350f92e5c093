"""Models of sentence-transformers in memory: the scores of their folders, as they are now."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktilt as rt
from tests.rankers.tiny import tiny_model, tiny_splade, with_weights
from tests.rankers.tiny_rerankers import tiny_classifier
from tests.refusals import refused
from tests.toy import toy

torch = pytest.importorskip("torch")
library = pytest.importorskip("sentence_transformers")


@pytest.fixture
def model(tmp_path: Path) -> Any:
    return library.SentenceTransformer(str(tiny_model(tmp_path / "org" / "tiny", similarity="dot")))


def assert_same_run(run: rt.Run, expected: rt.Run) -> None:
    assert run.queries == expected.queries
    assert run.docs.tolist() == expected.docs.tolist()
    assert run.scores == pytest.approx(expected.scores, abs=1e-6)


def test_sentence_transformer_scores_as_its_folder(model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "org" / "tiny"
    for options, written in (
        ({}, f"dense:{folder}"),
        ({"k": 3}, f"dense:{folder}@3"),
        (
            {"similarity": "cosine", "query_prefix": "query: "},
            f'dense:{folder}(similarity=cosine,query_prefix="query: ")',
        ),
    ):
        assert_same_run(rt.ranker(model, **options).rank(toy()), rt.ranker(written).rank(toy()))
    behind = rt.ranker("bm25") >> rt.ranker(model)
    assert_same_run(behind.rank(toy()), rt.ranker(f"bm25>>dense:{folder}").rank(toy()))


def test_prompts_of_the_object_are_put_before_texts(model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "org" / "tiny"
    model.prompts = {"query": "find: ", "passage": "text: "}
    prefixes = 'query_prefix="find: ",document_prefix="text: "'
    assert_same_run(
        rt.ranker(model).rank(toy()), rt.ranker(f"dense:{folder}({prefixes})").rank(toy())
    )


def test_spec_names_class_versions_and_weights(model: Any) -> None:
    ranker = rt.ranker(model, k=5)
    assert repr(ranker) == "SentenceTransformer:org/tiny@5"
    spec = ranker.rank(toy()).spec
    assert spec["ranker"] == repr(ranker)
    assert spec["object"]["class"].endswith(".SentenceTransformer")
    assert spec["packages"]["sentence-transformers"] == library.__version__
    assert spec["model"]["name"] == "org/tiny"
    assert spec["precision"] == "float32"
    assert spec["truncated"]["limit"] == model.max_seq_length
    again = library.SentenceTransformer(model[0].auto_model.config.name_or_path)
    assert rt.ranker(again).rank(toy()).spec["model"] == spec["model"]
    assert rt.ranker(model) == rt.ranker(model) != rt.ranker(again)


def test_model_in_training_is_seen_as_it_is(model: Any, tmp_path: Path) -> None:
    ranker = rt.ranker(model)
    before = ranker.rank(toy())
    weights = model[0].auto_model.embeddings.word_embeddings.weight
    with torch.no_grad():
        weights.copy_(weights.flip(0))
    after = ranker.rank(toy())
    assert after.spec["model"]["fingerprint"] != before.spec["model"]["fingerprint"]
    assert np.abs(after.scores - before.scores).max() > 0.1
    name = "embeddings.word_embeddings.weight"
    folder = tmp_path / "org" / "tiny"
    with_weights(folder, lambda stored: {**stored, name: stored[name].flip(0).contiguous()})
    assert_same_run(after, rt.ranker(f"dense:{folder}").rank(toy()))


def test_hook_that_changes_vectors_is_seen_though_weights_are_the_same(model: Any) -> None:
    ranker = rt.ranker(model)
    before = ranker.rank(toy())
    model.register_forward_hook(
        lambda module, inputs, output: {
            **output,
            "sentence_embedding": output["sentence_embedding"].flip(0, 1).roll(1, 1) * 2,
        }
    )
    after = ranker.rank(toy())
    assert after.spec["model"]["fingerprint"] != before.spec["model"]["fingerprint"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"labels": 2},
        {"labels": 2, "id2label": {0: "relevant", 1: "other"}, "label2id": {"relevant": 0}},
    ],
    ids=["one label", "two labels", "relevant first"],
)
def test_cross_encoder_scores_as_its_folder(tmp_path: Path, options: Any) -> None:
    folder = tiny_classifier(tmp_path / "org" / "tiny", **options)
    model = library.CrossEncoder(str(folder))
    ranker = rt.ranker("bm25") >> rt.ranker(model)
    assert repr(ranker) == "bm25>>CrossEncoder:org/tiny"
    run = ranker.rank(toy())
    assert_same_run(run, rt.ranker(f"bm25>>cross-encoder:{folder}").rank(toy()))
    assert run.spec["object"]["class"].endswith(".CrossEncoder")
    assert run.spec["packages"]["sentence-transformers"] == library.__version__
    short = rt.ranker("bm25") >> rt.ranker(model, max_document_tokens=3, k=2)
    written = f"bm25>>cross-encoder:{folder}(max_document_tokens=3)@2"
    assert_same_run(short.rank(toy()), rt.ranker(written).rank(toy()))


def test_activation_of_the_object_counts(tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path / "org" / "tiny")
    model = library.CrossEncoder(str(folder), activation_fn=torch.nn.Identity())
    run = (rt.ranker("bm25") >> rt.ranker(model)).rank(toy())
    probability = rt.ranker(f"bm25>>cross-encoder:{folder}").rank(toy())
    assert 1 / (1 + np.exp(-run.scores)) == pytest.approx(probability.scores)
    model.activation_fn = torch.nn.ReLU()
    with refused(
        "CrossEncoder:org/tiny: its activation ReLU is not supported (valid: Sigmoid, Identity, "
        "Tanh)"
    ):
        (rt.ranker("bm25") >> rt.ranker(model)).rank(toy())


def test_cross_encoder_of_many_labels_is_refused(tmp_path: Path) -> None:
    model = library.CrossEncoder(str(tiny_classifier(tmp_path / "org" / "tiny", labels=3)))
    with refused("CrossEncoder:org/tiny: expected a model with 1 or 2 labels, got 3"):
        rt.ranker(model).check()


def test_sparse_encoder_scores_as_its_folder(tmp_path: Path) -> None:
    folder = tiny_splade(tmp_path / "org" / "tiny")
    model = library.SparseEncoder(str(folder))
    run = rt.ranker(model, k=4).rank(toy())
    assert_same_run(run, rt.ranker(f"sparse:{folder}@4").rank(toy()))
    assert run.spec["ranker"] == "SparseEncoder:org/tiny@4"


def test_what_the_object_decides_is_no_option(model: Any) -> None:
    with refused("unknown option of SentenceTransformer 'device' (valid: …"):
        rt.ranker(model, device="cpu")
    with refused("SentenceTransformer: expected a depth of at least 1, got @0"):
        rt.ranker(model, k=0)
