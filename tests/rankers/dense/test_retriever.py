"""Dense and learned sparse retrieval: exact search by the library's own vectors, and scores that do not tell copies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Collection, Ranker, Run, ranker
from ranktilt.models.catalogue import MODELS, Model
from ranktilt.rankers import sparse as sparse_module
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import InMemory
from ranktilt.rankers.lexical.bm25 import TFIDF
from ranktilt.rankers.sparse import Sparse
from tests.rankers.contract import Make, RankerContract
from tests.rankers.entries import scores as scores_of
from tests.rankers.tiny import _tokenizer, bert_config, tiny_model, write_json
from tests.refusals import refused
from tests.toy import collection_of, toy

neural = pytest.mark.neural
WORDS = ["red", "apples", "grow", "on", "old", "trees", "the", "river", "carries", "water", "clock", "shows", "hour"]


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
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "TokenizersBackend", "model_max_length": 24,
               "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"})  # fmt: skip
    return folder


def texts(n: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, size=draw.integers(1, 15))) for _ in range(n)]


def collection(*, docs: int = 30, queries: int = 9, sources: tuple[str, ...] = ("human",)) -> Collection:
    """Documents of random words, word for word the same in every source."""
    rows = [
        {"id": f"{n}-{source}", "text": text, "source": source, "origin": f"{n}"}
        for source in sources
        for n, text in enumerate(texts(docs))
    ]
    names = {f"q{n}": text for n, text in enumerate(texts(queries, seed=1))}
    relevant = {f"{n}-{source}": 1 for n in range(0, docs, 4) for source in sources}
    return collection_of(rows, names, dict.fromkeys(names, relevant))


def reference(folder: Path, found: Collection, similarity: str, *, sparse: bool = False) -> np.ndarray[Any, Any]:
    """Scores of every query and document by sentence-transformers and plain products in float64."""
    from sentence_transformers import SentenceTransformer, SparseEncoder

    model = (SparseEncoder if sparse else SentenceTransformer)(str(folder), device="cpu")
    options = {"convert_to_sparse_tensor": False} if sparse else {"convert_to_numpy": True}
    encoded = [model.encode(list(side), **options) for side in (found.judged["text"], found.texts())]
    sides = [np.asarray(side, dtype=np.float64) for side in encoded]
    if similarity == "cosine":
        sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    return sides[0] @ sides[1].T


def rows(run: Run) -> list[list[int]]:
    return [run.docs[a:b].tolist() for a, b in zip(run.offsets[:-1], run.offsets[1:], strict=True)]


class TestSparseContract(RankerContract):
    pytestmark = pytest.mark.neural

    @pytest.fixture
    def make(self, splade: Path) -> Make:
        def made(collection: Any, **options: Any) -> Ranker:
            return Sparse(str(splade), **options)

        return made


@neural
@pytest.mark.parametrize("kind", ["dense, cosine", "dense, dot", "sparse, cosine", "sparse, dot"])
def test_search_is_exact(kind: str, tiny: Path, splade: Path, tmp_path: Path) -> None:
    found, (name, similarity) = collection(), kind.split(", ")
    folder = tiny if name == "dense" else splade
    if kind == "sparse, cosine":
        from sentence_transformers import SparseEncoder

        SparseEncoder(str(splade), similarity_fn_name="cosine").save_pretrained(str(tmp_path))
        folder = tmp_path
    expected = reference(folder, found, similarity, sparse=name == "sparse")
    options = f"(similarity={similarity})" if name == "dense" else ""
    for k in (1, 7, 100):
        run = ranker(f"{name}:{folder}{options}@{k}").rank(found)
        for query, chosen in enumerate(rows(run)):
            every = expected[query] if name == "dense" else expected[query][expected[query] > 0]
            best = np.sort(every)[::-1][:k]
            assert run.scores[run.offsets[query] : run.offsets[query + 1]] == pytest.approx(best, rel=1e-5)
            assert expected[query, chosen] == pytest.approx(best, rel=1e-5)


@neural
def test_the_models_own_similarity_is_the_default(tiny: Path, tmp_path: Path) -> None:
    found = collection()
    dotted = tiny_model(tmp_path, similarity="dot")
    for folder, similarity in ((tiny, "cosine"), (dotted, "dot")):
        assert Dense(str(folder)).rank(found) == Dense(str(folder), similarity=similarity).rank(found)
    assert Dense(str(tiny)).rank(found) != Dense(str(tiny), similarity="dot").rank(found)


@neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_candidate_scores_as_in_a_search_of_everything(tiny: Path, similarity: str) -> None:
    found = collection(sources=("human", "llm"))
    searched = scores_of(Dense(str(tiny), similarity=similarity).rank(found))
    candidates = scores_of(TFIDF(k=9).rank(found))
    run = Dense(str(tiny), similarity=similarity).rank(found, TFIDF(k=9).rank(found))
    assert scores_of(run) == {q: {doc: searched[q][doc] for doc in docs} for q, docs in candidates.items()}


@neural
def test_a_reranked_run_says_where_it_comes_from_and_is_cut_where_a_depth_is_typed(tiny: Path, tmp_path: Path) -> None:
    found = collection(sources=("human", "llm"))
    candidates = TFIDF(k=9).rank(found)
    run = Dense(str(tiny), max_tokens=5).rank(found, candidates)
    assert run.name == f"dense:{tiny}(max_tokens=5)"
    assert (run.spec["candidates"]["ranker"], run.spec["precision"]) == ("tfidf@9", "float32")
    assert run.spec["model"]["folder"] == str(tiny)
    other = Dense(str(tiny_model(tmp_path, seed=1))).provenance()
    assert other["model"]["fingerprint"] != run.spec["model"]["fingerprint"]
    assert set(other["packages"]) == {"torch", "transformers", "sentence-transformers"}
    cut = run.spec["truncated"]
    assert (cut["limit"], set(cut["share"])) == (5, {"human", "llm"})
    assert cut["share"]["human"] == cut["share"]["llm"] > 0
    best = Dense(str(tiny), max_tokens=5, k=4).rank(found, candidates)
    assert rows(best) == [chosen[:4] for chosen in rows(run)]


@neural
@pytest.mark.parametrize(
    ("bare", "typed", "expected"),
    [
        pytest.param(True, {}, ("cls", False, "query: ", ""), id="a bare folder is used as the table says"),
        pytest.param(True, {"similarity": "cosine"}, ("cls", True, "query: ", ""), id="what is typed comes first"),
        pytest.param(True, {"pooling": "mean"}, ("mean", False, "query: ", ""), id="pooling too"),
        pytest.param(True, {"query_prefix": "", "document_prefix": "d "}, ("cls", False, "", "d "), id="and a prefix"),
        pytest.param(False, {}, ("auto", False, "query: ", ""), id="the folder's own pooling stays"),
    ],
)
def test_the_model_table_fills_in_what_files_do_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare: bool, typed: dict[str, Any], expected: Any
) -> None:
    folder = tiny_model(tmp_path)
    if bare:
        (folder / "modules.json").unlink()
    entry = Model(
        name=str(folder), kind="dense", hub="some/model", about="", licence="MIT", source="",
        pooling="cls", similarity="dot", query_prefix="query: ",
    )  # fmt: skip
    monkeypatch.setitem(MODELS, entry.spec, entry)
    made = Dense(str(folder), **typed)
    found = made.encoder
    assert (found.pooling, made.cosine, found.prefix("query"), found.prefix("document")) == expected
    assert len(made.rank(toy()).docs) == 18


@neural
def test_models_of_another_kind_are_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, similarity="euclidean")
    with refused(f"dense:{folder}: the model asks for 'euclidean', which is not supported; choose cosine or dot"):
        Dense(str(folder)).rank(toy())
    assert len(Dense(str(folder), similarity="dot").rank(toy()).docs) == 18
    with refused(
        f"{folder}: no sparse encoder: expected a SparseEncoder of sentence-transformers, or a masked language model "
        "such as SPLADE"
    ):
        ranker(f"sparse:{folder}").rank(toy())


# Sparse weights


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
    first, second = sparse_module._search(queries, documents, k, cosine, "x")
    assert dict(zip(first[0].tolist(), first[1].tolist(), strict=True)) == pytest.approx(expected, rel=1e-6)
    assert len(second[0]) == 0


@neural
def test_the_largest_weights_are_kept_and_the_run_says_how_it_was_made(splade: Path) -> None:
    found, few = collection(), 3
    stored, row = Sparse(str(splade), max_active_dims=few).encoder.encode(found.texts(), "document", "x")
    whole, other = Sparse(str(splade)).encoder.encode(found.texts(), "document", "x")
    largest = np.sort(whole.take(other)[:, whole.shape[1] // 2 :])[:, -few:]
    assert np.sort(stored.take(row)[:, few:]) == pytest.approx(largest, abs=1e-5)
    assert (np.count_nonzero(largest, axis=1) == few).any()
    spec = Sparse(str(splade), max_tokens=5).rank(toy()).spec
    assert spec["model"]["folder"] == str(splade)
    assert (spec["precision"], spec["truncated"]["limit"]) == ("float32", 5)


@neural
def test_parts_of_the_documents_do_not_change_a_sparse_score(splade: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = collection(sources=("human", "llm"))
    whole = Sparse(str(splade), k=5).rank(found)
    monkeypatch.setattr(sparse_module, "_TEXTS_AT_ONCE", 4)
    assert Sparse(str(splade), k=5).rank(found) == whole
