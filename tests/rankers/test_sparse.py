"""Learned sparse retrieval: sentence-transformers' weights, searched exactly over their postings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Ranker, ranker
from ranktilt.rankers import sparse as module
from ranktilt.rankers.dense.search import InMemory
from ranktilt.rankers.sparse import Sparse
from tests.rankers.contract import Make, RankerContract
from tests.rankers.dense.test_retriever import collection, rows
from tests.rankers.tiny import _tokenizer, bert_config, tiny_model, write_json
from tests.refusals import refused
from tests.toy import toy

pytestmark = pytest.mark.neural
LENGTH = 24


@pytest.fixture(scope="session")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SPLADE of one layer and random weights, most of which its bias makes zero."""
    torch = pytest.importorskip("torch")
    from transformers import BertForMaskedLM

    folder = tmp_path_factory.mktemp("splade")
    torch.manual_seed(0)
    _tokenizer(folder)
    model = BertForMaskedLM(bert_config(num_hidden_layers=1, initializer_range=0.5)).eval()
    with torch.no_grad():
        model.cls.predictions.bias -= 6
    model.save_pretrained(folder)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "TokenizersBackend", "model_max_length": LENGTH,
               "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"})  # fmt: skip
    return folder


def reference(folder: Path, found: Any, similarity: str = "dot") -> np.ndarray[Any, Any]:
    """Scores of each query and document by the library's own products."""
    from sentence_transformers import SparseEncoder

    model = SparseEncoder(str(folder), device="cpu", similarity_fn_name=similarity)
    sides = [model.encode(list(side), convert_to_sparse_tensor=False) for side in (found.judged["text"], found.texts())]
    return np.asarray(model.similarity(*sides), dtype=np.float64)


class TestContract(RankerContract):
    @pytest.fixture
    def make(self, splade: Path) -> Make:
        def made(collection: Any, **options: Any) -> Ranker:
            return Sparse(str(splade), **options)

        return made


@pytest.mark.parametrize("k", [1, 7, 100])
def test_search_is_exact(splade: Path, k: int) -> None:
    found = collection()
    run, expected = Sparse(str(splade), k=k).rank(found), reference(splade, found)
    for query, chosen in enumerate(rows(run)):
        best = np.sort(expected[query][expected[query] > 0])[::-1][:k]
        assert run.scores[run.offsets[query] : run.offsets[query + 1]] == pytest.approx(best, rel=1e-5)
        assert expected[query, chosen] == pytest.approx(best, rel=1e-5)


def packed(*texts: dict[int, float]) -> np.ndarray[Any, Any]:
    """Texts by the weights of their terms, as the cache holds them."""
    made = np.zeros((len(texts), 6), dtype=np.float32)
    for row, weights in zip(made, texts, strict=True):
        row[: len(weights)], row[3 : 3 + len(weights)] = list(weights), list(weights.values())
    return made


@pytest.mark.parametrize(
    ("k", "cosine", "expected"),
    [(9, False, {0: 7.0, 1: 4.0, 3: 4.0}), (1, False, {0: 7.0}), (2, False, {0: 7.0, 1: 4.0, 3: 4.0}),
     (9, True, {0: 7 / 175**0.5, 1: 2 / 5**0.5, 3: 2 / 5**0.5})],
)  # fmt: skip
def test_a_text_that_shares_no_term_is_not_found(k: int, cosine: bool, expected: dict[int, float]) -> None:
    queries = packed({5: 1.0, 2: 2.0}, {9: 1.0})
    documents = InMemory(packed({2: 1.0, 5: 5.0, 7: 3.0}, {2: 2.0}, {7: 1.0, 3: 2.0}, {2: 2.0}, {}))
    first, second = module._search(queries, documents, k, cosine, "x")
    found = dict(zip(first[0].tolist(), first[1].tolist(), strict=True))
    assert found == pytest.approx(expected, rel=1e-6)
    assert len(second[0]) == 0


def test_the_models_own_similarity_is_used(splade: Path, tmp_path: Path) -> None:
    from sentence_transformers import SparseEncoder

    SparseEncoder(str(splade), similarity_fn_name="cosine").save_pretrained(str(tmp_path))
    found = collection()
    run, expected = Sparse(str(tmp_path)).rank(found), reference(tmp_path, found, "cosine")
    for query, chosen in enumerate(rows(run)):
        scores = run.scores[run.offsets[query] : run.offsets[query + 1]]
        assert scores == pytest.approx(expected[query, chosen], rel=1e-5)


def test_the_largest_weights_are_kept(splade: Path) -> None:
    found, few = collection(), 3
    stored, row = Sparse(str(splade), max_active_dims=few).encoder.encode(found.texts(), "document", "x")
    whole, other = Sparse(str(splade)).encoder.encode(found.texts(), "document", "x")
    kept, weights = stored.take(row)[:, few:], np.sort(whole.take(other)[:, whole.shape[1] // 2 :])[:, -few:]
    assert np.sort(kept) == pytest.approx(weights, abs=1e-5)
    assert (np.count_nonzero(weights, axis=1) == few).any()


def test_neither_parts_nor_other_documents_change_a_score(splade: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = collection(sources=("human", "llm"))
    whole = Sparse(str(splade), k=5).rank(found)
    monkeypatch.setattr(module, "_TEXTS_AT_ONCE", 4)
    assert Sparse(str(splade), k=5).rank(found) == whole


def test_the_run_says_how_it_was_made(splade: Path) -> None:
    spec = Sparse(str(splade), max_tokens=5).rank(toy()).spec
    assert spec["model"]["folder"] == str(splade)
    assert (spec["precision"], spec["truncated"]["limit"]) == ("float32", 5)


def test_what_would_be_made_sparse_by_random_weights_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    with refused(
        f"{folder}: no sparse encoder: expected a SparseEncoder of sentence-transformers, or a masked language model "
        "such as SPLADE"
    ):
        ranker(f"sparse:{folder}").rank(toy())
