"""Dense and sparse retrieval and vectors of a server: exact search, and scores that do not tell
copies.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Collection, Run, UserError, ranker
from ranktilt.llm.prompts import cut_tokens
from ranktilt.models.catalogue import MODELS, Model
from ranktilt.rankers import sparse as sparse_module
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import InMemory
from ranktilt.rankers.lexical.bm25 import TFIDF
from ranktilt.rankers.sparse import Sparse
from tests.llm.server import Raw, Server, vector
from tests.rankers.contract import Make, RankerContract
from tests.rankers.contract import scores as scores_of
from tests.rankers.tiny import tiny_model, tiny_splade
from tests.refusals import refused
from tests.toy import collection_of, toy, versions

neural = pytest.mark.neural
WORDS = [
    "red",
    "apples",
    "grow",
    "on",
    "old",
    "trees",
    "the",
    "river",
    "carries",
    "water",
    "clock",
    "shows",
    "hour",
]


@pytest.fixture(scope="session")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_splade(tmp_path_factory.mktemp("splade"))


def texts(n: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, size=draw.integers(1, 15))) for _ in range(n)]


def copied(
    *, docs: int = 30, queries: int = 9, sources: tuple[str, ...] = ("human",)
) -> Collection:
    """Documents of random words, word for word the same in every source."""
    rows = versions(dict.fromkeys(sources, texts(docs)))
    names = {f"q{n}": text for n, text in enumerate(texts(queries, seed=1))}
    relevant = {f"{n}-{source}": 1 for n in range(0, docs, 4) for source in sources}
    return collection_of(rows, names, dict.fromkeys(names, relevant))


def reference(
    folder: Path, collection: Collection, similarity: str, *, sparse: bool = False
) -> np.ndarray[Any, Any]:
    """Scores of every query and document by sentence-transformers and plain products in float64."""
    from sentence_transformers import SentenceTransformer, SparseEncoder

    model = (SparseEncoder if sparse else SentenceTransformer)(str(folder), device="cpu")
    options = {"convert_to_sparse_tensor": False} if sparse else {"convert_to_numpy": True}
    encoded = [
        model.encode(list(side), **options)
        for side in (collection.queries_with_judgments["text"], collection.texts())
    ]
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
        return lambda collection, **options: Sparse(str(splade), **options)


@neural
@pytest.mark.parametrize("kind", ["dense, cosine", "dense, dot", "sparse, cosine", "sparse, dot"])
def test_search_is_exact(kind: str, tiny: Path, splade: Path, tmp_path: Path) -> None:
    collection, (name, similarity) = copied(), kind.split(", ")
    folder = tiny if name == "dense" else splade
    if kind == "sparse, cosine":
        from sentence_transformers import SparseEncoder

        SparseEncoder(str(splade), similarity_fn_name="cosine").save_pretrained(str(tmp_path))
        folder = tmp_path
    expected = reference(folder, collection, similarity, sparse=name == "sparse")
    options = f"(similarity={similarity})" if name == "dense" else ""
    for k in (1, 7, 100):
        run = ranker(f"{name}:{folder}{options}@{k}").rank(collection)
        for query, chosen in enumerate(rows(run)):
            every = expected[query] if name == "dense" else expected[query][expected[query] > 0]
            best = np.sort(every)[::-1][:k]
            assert run.scores[run.offsets[query] : run.offsets[query + 1]] == pytest.approx(
                best, rel=1e-5
            )
            assert expected[query, chosen] == pytest.approx(best, rel=1e-5)


@neural
def test_the_models_own_similarity_is_the_default_and_models_of_another_kind_are_refused(
    tiny: Path, tmp_path: Path
) -> None:
    collection = copied()
    for folder, similarity, opposite in (
        (tiny, "cosine", "dot"),
        (tiny_model(tmp_path, similarity="dot"), "dot", "cosine"),
    ):
        run = Dense(str(folder)).rank(collection)
        assert run == Dense(str(folder), similarity=similarity).rank(collection)
        assert run != Dense(str(folder), similarity=opposite).rank(collection)
    folder = tiny_model(tmp_path / "other", similarity="euclidean")
    with refused(
        f"dense:{folder}: the model asks for 'euclidean', which is not supported; choose cosine or "
        "dot"
    ):
        Dense(str(folder)).rank(toy())
    assert len(Dense(str(folder), similarity="dot").rank(toy()).docs) == 18
    with refused(
        f"{folder}: no sparse encoder: expected a SparseEncoder of sentence-transformers, or a "
        "masked language model "
        "such as SPLADE"
    ):
        ranker(f"sparse:{folder}").rank(toy())


@neural
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_candidate_scores_as_in_a_search_of_everything(tiny: Path, similarity: str) -> None:
    collection = copied(sources=("human", "llm"))
    first = TFIDF(k=9).rank(collection)
    searched = scores_of(Dense(str(tiny), similarity=similarity).rank(collection))
    run = Dense(str(tiny), similarity=similarity).rank(collection, first)
    assert scores_of(run) == {
        q: {doc: searched[q][doc] for doc in docs} for q, docs in scores_of(first).items()
    }


@neural
def test_a_reranked_run_says_where_it_comes_from_and_is_cut_where_a_depth_is_typed(
    tiny: Path, tmp_path: Path
) -> None:
    collection = copied(sources=("human", "llm"))
    candidates = TFIDF(k=9).rank(collection)
    run = Dense(str(tiny), max_tokens=5).rank(collection, candidates)
    assert run.name == f"dense:{tiny}(max_tokens=5)"
    assert (run.spec["candidates"]["ranker"], run.spec["precision"]) == ("tfidf@9", "float32")
    assert run.spec["model"]["folder"] == str(tiny)
    second_model = Dense(str(tiny_model(tmp_path, seed=1))).provenance()
    assert second_model["model"]["fingerprint"] != run.spec["model"]["fingerprint"]
    assert set(second_model["packages"]) == {"torch", "transformers", "sentence-transformers"}
    share = run.spec["truncated"]["share"]
    assert share["human"] == share["llm"] > 0
    best = Dense(str(tiny), max_tokens=5, k=4).rank(collection, candidates)
    assert rows(best) == [chosen[:4] for chosen in rows(run)]


@neural
@pytest.mark.parametrize(
    ("bare", "typed", "expected"),
    [
        pytest.param(
            True, {}, ("cls", False, "query: ", ""), id="a bare folder is used as the table says"
        ),
        pytest.param(
            True,
            {"similarity": "cosine"},
            ("cls", True, "query: ", ""),
            id="what is typed comes first",
        ),
        pytest.param(True, {"pooling": "mean"}, ("mean", False, "query: ", ""), id="pooling too"),
        pytest.param(
            True,
            {"query_prefix": "", "document_prefix": "d "},
            ("cls", False, "", "d "),
            id="and a prefix",
        ),
        pytest.param(
            False, {}, ("auto", False, "query: ", ""), id="the folder's own pooling stays"
        ),
    ],
)
def test_the_model_table_fills_in_what_files_do_not_say(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bare: bool,
    typed: dict[str, Any],
    expected: Any,
) -> None:
    folder = tiny_model(tmp_path)
    if bare:
        (folder / "modules.json").unlink()
    table = {"pooling": "cls", "similarity": "dot", "query_prefix": "query: "}
    listed = Model(
        name=str(folder),
        kind="dense",
        hub="some/model",
        about="",
        licence="MIT",
        source="",
        **table,
    )
    monkeypatch.setitem(MODELS, listed.spec, listed)
    dense = Dense(str(folder), **typed)
    encoder = dense.encoder
    assert (
        encoder.pooling,
        dense.cosine,
        encoder.prefix("query"),
        encoder.prefix("document"),
    ) == expected
    assert len(dense.rank(toy()).docs) == 18


def packed(*texts: dict[int, float]) -> np.ndarray[Any, Any]:
    """Texts by the weights of their terms, as the cache holds them."""
    vectors = np.zeros((len(texts), 6), dtype=np.float32)
    for row, weights in zip(vectors, texts, strict=True):
        row[: len(weights)], row[3 : 3 + len(weights)] = list(weights), list(weights.values())
    return vectors


@pytest.mark.parametrize(
    ("k", "cosine", "expected"),
    [
        (9, False, {0: 7.0, 1: 4.0, 3: 4.0}),
        (1, False, {0: 7.0}),
        (2, False, {0: 7.0, 1: 4.0, 3: 4.0}),
        (9, True, {0: 7 / 175**0.5, 1: 2 / 5**0.5, 3: 2 / 5**0.5}),
    ],
)
def test_a_text_that_shares_no_term_is_not_found(
    k: int, cosine: bool, expected: dict[int, float]
) -> None:
    queries = packed({5: 1.0, 2: 2.0}, {9: 1.0})
    documents = InMemory(
        vectors=packed({2: 1.0, 5: 5.0, 7: 3.0}, {2: 2.0}, {7: 1.0, 3: 2.0}, {2: 2.0}, {})
    )
    first, second = sparse_module._search(queries, documents, k, cosine=cosine, label="x")
    assert dict(zip(first[0].tolist(), first[1].tolist(), strict=True)) == pytest.approx(
        expected, rel=1e-6
    )
    assert len(second[0]) == 0


@neural
def test_the_largest_weights_are_kept_whatever_the_parts_and_the_run_says_how_it_was_made(
    splade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, few = texts(30), 3
    stored, row = Sparse(str(splade), max_active_dims=few).encoder.encode(
        documents, "document", "x"
    )
    all_weights, rows = Sparse(str(splade)).encoder.encode(documents, "document", "x")
    largest = np.sort(all_weights.take(rows)[:, all_weights.shape[1] // 2 :])[:, -few:]
    assert np.sort(stored.take(row)[:, few:]) == pytest.approx(largest, abs=1e-5)
    assert (np.count_nonzero(largest, axis=1) == few).any()
    spec = Sparse(str(splade), max_tokens=5).rank(toy()).spec
    assert (spec["model"]["folder"], spec["precision"], spec["truncated"]["limit"]) == (
        str(splade),
        "float32",
        5,
    )
    collection = copied(sources=("human", "llm"))
    searched = Sparse(str(splade), k=5).rank(collection)
    monkeypatch.setattr(sparse_module, "_TEXTS_AT_ONCE", 4)
    assert Sparse(str(splade), k=5).rank(collection) == searched


KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def cache(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone, and no key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return own_cache


def dense_of(server: Server, **options: object) -> Dense:
    return Dense("openai:tiny", base_url=server.url, **options)  # type: ignore[arg-type]


def texts_sent(server: Server) -> list[str]:
    return [text for body in server.bodies for text in body["input"]]


def numbered(n: int) -> Collection:
    docs = versions(
        {source: [f"text {i} {source}" for i in range(n)] for source in ("human", "llm")}
    )
    queries = {f"q{i}": f"question {i}" for i in range(5)}
    return collection_of(docs, queries, {q: {"0-human": 1, "0-llm": 1} for q in queries})


def test_documents_are_ranked_by_the_servers_vectors_each_distinct_text_being_asked_for_once() -> (
    None
):
    collection = numbered(3)
    with Server() as server:
        run = dense_of(server).rank(collection)
        count = len(server.requests)
        assert sorted(texts_sent(server)) == sorted(
            [*collection.texts(), *collection.queries_with_judgments["text"]]
        )
        assert dense_of(server).rank(collection) == run
        copies = collection_of(
            [{"id": str(i), "text": "same"} for i in range(3)], {"q": "same"}, {"q": {"0": 1}}
        )
        assert len(set(dense_of(server).rank(copies).scores)) == 1
        assert (len(server.requests), texts_sent(server)[-2:]) == (count + 2, ["same", "same"]), (
            "document and query"
        )
    queries, documents = (
        np.array([vector(text) for text in texts])
        for texts in (collection.queries_with_judgments["text"], collection.texts())
    )
    for number, (products, ranked) in enumerate(zip(queries @ documents.T, rows(run), strict=True)):
        assert ranked == np.argsort(-products).tolist()
        scores = run.scores[run.offsets[number] : run.offsets[number + 1]]
        assert scores == pytest.approx(np.sort(products)[::-1], abs=1e-6)


def test_what_came_before_a_failure_is_kept_and_vectors_of_another_length_are_not() -> None:
    collection = numbered(150)
    with Server(script=[None, "401"]) as server:
        with pytest.raises(UserError, match="OPENAI_API_KEY"):
            dense_of(server).rank(collection)
        port = server.port
    with Server(port=port) as server:
        run = dense_of(server).rank(collection)
        assert len(texts_sent(server)) < 305
    with Server(port=port, script=["500"]) as server:
        assert dense_of(server).rank(collection) == run
        assert server.requests == []

    def ones(count: int, dimension: int) -> Raw:
        return Raw(
            200, {"data": [{"index": i, "embedding": [1.0] * dimension} for i in range(count)]}
        )

    collection = numbered(3)
    with Server(script=[ones(6, 4), ones(5, 4), ones(2, 8)]) as server:
        first = dense_of(server).rank(collection)
        with pytest.raises(
            UserError, match=r"now gives vectors of 8 numbers, and .* holds those of 4"
        ):
            dense_of(server).rank(numbered(4))
        assert dense_of(server).rank(collection) == first
        assert len(server.requests) == 3


def test_prefixes_are_put_before_texts_and_the_run_says_who_was_asked_and_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    with Server() as server:
        prefixed = dense_of(server, query_prefix="query: ", document_prefix="passage: ")
        assert prefixed.encoder.fingerprint != dense_of(server).encoder.fingerprint
        prefixed.rank(numbered(1))
        assert {text.split(": ")[0] for text in texts_sent(server)} == {"query", "passage"}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(key=KEY) as server:
        run = dense_of(server).rank(toy())
    assert (run.spec["model"]["model"], run.spec["model"]["base_url"]) == ("tiny", server.url)
    assert "openai" in run.spec["packages"]
    assert KEY not in repr(run.spec)
    assert not [p for p in cache.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]


def test_a_text_that_is_too_long_is_named_and_long_ones_are_cut_at_four_bytes_a_token() -> None:
    docs = [{"id": "a", "text": "short words"}, {"id": "b", "text": "word " * 400}]
    collection = collection_of(docs, {"q": "words"}, {"q": {"a": 1}})
    with Server(context=100) as server:
        with pytest.raises(UserError, match=r"400 words.*max_tokens"):
            dense_of(server).rank(collection)
        run = dense_of(server, max_tokens=50).rank(collection)
        assert max(len(text.encode()) for text in texts_sent(server)[-2:]) <= 200
    assert run.spec["truncated"] == {"limit": 50, "share": {"documents without a source": 0.5}}
    assert cut_tokens("twenty bytes exactly", 5) == "twenty bytes exactly"
    assert cut_tokens("twenty bytes exactly, and more", 5) == "twenty bytes exactly", (
        "no blank in the last tenth"
    )
    assert cut_tokens("nineteen bytes here and more", 5) == "nineteen bytes here"
    assert cut_tokens("x" * 30, 5) == "x" * 20
    assert cut_tokens("xü" * 30, 5) == "xüxüxüxüxüxüx", "never half a letter"
