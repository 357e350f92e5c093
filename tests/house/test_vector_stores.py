"""The examples of vector stores ask real ones, in memory or in a folder: Qdrant's, and LangChain's with chunks."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from ranktilt import ranker
from tests.house import tree
from tests.toy import QUERIES, TEXTS, toy

pytestmark = pytest.mark.filterwarnings("ignore")
_TEXTS = (*QUERIES.values(), *(text for side in TEXTS.values() for text in side.values()))
WORDS = sorted({word for text in _TEXTS for word in text.split()})


def counts(text: str) -> np.ndarray:
    """A text's vector: how often it holds each word of the toy collection, and a constant."""
    return np.array([1.0, *(text.split().count(word) for word in WORDS)])


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.ROOT / "examples" / "engines")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("qdrant", "langchain_store"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def expected(query: str, k: int) -> list[tuple[str, float]]:
    """The documents whose vectors have the largest product with the query's."""
    docs = toy().docs.select("id", "text").iter_rows()
    scores = {name: float(counts(text) @ counts(query)) for name, text in docs}
    return sorted(scores.items(), key=lambda found: -found[1])[:k]


def scores_of(name: str, k: int) -> dict[str, list[float]]:
    run = ranker(f"engine:{name}:search@{k}").rank(toy())
    return {query: run.scores[run.offsets[n] : run.offsets[n + 1]].tolist() for n, query in enumerate(run.queries)}


def test_qdrant(examples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    from qdrant_client.models import Distance, PointStruct, VectorParams

    store = qdrant.QdrantClient(path=str(tmp_path / "store"))
    store.create_collection("docs", vectors_config=VectorParams(size=len(WORDS) + 1, distance=Distance.DOT))
    rows = enumerate(toy().docs.select("id", "text").iter_rows())
    points = [PointStruct(id=n, vector=counts(text).tolist(), payload={"doc_id": name}) for n, (name, text) in rows]
    store.upsert("docs", points)
    store.close()
    encoder = types.ModuleType("sentence_transformers")
    encoder.SentenceTransformer = lambda _: types.SimpleNamespace(encode=lambda text, **_: counts(text))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", encoder)
    monkeypatch.setenv("QDRANT", str(tmp_path / "store"))
    monkeypatch.setenv("QDRANT_COLLECTION", "docs")
    found = scores_of("qdrant", 4)
    for query, text in QUERIES.items():
        assert found[query] == pytest.approx([score for _, score in expected(text, 4)], rel=1e-5)
    sys.modules["qdrant"].model_and_client()[1].close()


def test_langchain_folds_chunks_to_their_documents(examples: None, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("langchain_core.vectorstores")
    from langchain_core.embeddings import Embeddings

    class Counts(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [counts(text).tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return counts(text).tolist()

    store = core.InMemoryVectorStore(Counts())
    texts = dict(toy().docs.select("id", "text").iter_rows())
    chunks = [(name, word) for name, text in texts.items() for word in text.split()]
    store.add_texts([word for _, word in chunks], metadatas=[{"doc_id": name} for name, _ in chunks])
    mine = types.ModuleType("my_store")
    mine.store = store  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_store", mine)

    def cosine(one: str, two: str) -> float:
        a, b = counts(one), counts(two)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    for query, found in scores_of("langchain_store", 6).items():
        best = [max(cosine(QUERIES[query], word) for word in text.split()) for text in texts.values()]
        assert found == pytest.approx(sorted(best, reverse=True)[: len(found)])
        assert len(found) > 1
