"""The examples of vector stores ask real ones, in memory or in a folder: Milvus, Qdrant, LangChain, LlamaIndex."""

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
    for name in ("milvus_index", "qdrant", "langchain_store", "llamaindex"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def expected(query: str, k: int) -> list[tuple[str, float]]:
    """The documents whose vectors have the largest product with the query's."""
    docs = toy().docs.select("id", "text").iter_rows()
    scores = {name: float(counts(text) @ counts(query)) for name, text in docs}
    return sorted(scores.items(), key=lambda found: -found[1])[:k]


def scores_of(name: str, k: int) -> dict[str, list[float]]:
    run = ranker(f"engine:{name}:search@{k}").rank(toy())
    return {query: run.scores[run.offsets[n] : run.offsets[n + 1]].tolist() for n, query in enumerate(run.queries)}


def encode_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `counts` stand for a model of sentence-transformers."""
    encoder = types.ModuleType("sentence_transformers")
    encoder.SentenceTransformer = lambda _: types.SimpleNamespace(encode=lambda text, **_: counts(text))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", encoder)


def test_milvus(examples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("milvus_lite")
    milvus = pytest.importorskip("pymilvus")
    address = str(tmp_path / "store.db")
    store = milvus.MilvusClient(address)
    store.create_collection(
        "docs", dimension=len(WORDS) + 1, id_type="string", max_length=50, vector_field_name="embedding",
        metric_type="COSINE",
    )  # fmt: skip
    texts = dict(toy().docs.select("id", "text").iter_rows())
    store.insert("docs", [{"id": name, "embedding": counts(text).tolist()} for name, text in texts.items()])
    encode_by_counts(monkeypatch)
    monkeypatch.setenv("MILVUS_URL", address)
    monkeypatch.setenv("MILVUS_COLLECTION", "docs")
    assert_best_chunks("milvus_index", {name: [text] for name, text in texts.items()})


def test_qdrant(examples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    from qdrant_client.models import Distance, PointStruct, VectorParams

    store = qdrant.QdrantClient(path=str(tmp_path / "store"))
    store.create_collection("docs", vectors_config=VectorParams(size=len(WORDS) + 1, distance=Distance.DOT))
    rows = enumerate(toy().docs.select("id", "text").iter_rows())
    points = [PointStruct(id=n, vector=counts(text).tolist(), payload={"doc_id": name}) for n, (name, text) in rows]
    store.upsert("docs", points)
    store.close()
    encode_by_counts(monkeypatch)
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

    assert_best_chunks("langchain_store", {name: text.split() for name, text in texts.items()})


def test_llamaindex_folds_chunks_to_their_documents(examples: None, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("llama_index.core")
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import TokenTextSplitter

    class Counts(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return counts(text).tolist()

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    documents = [core.Document(id_=name, text=text) for name, text in toy().docs.select("id", "text").iter_rows()]
    splitter = TokenTextSplitter(chunk_size=5, chunk_overlap=0, tokenizer=str.split)
    mine = types.ModuleType("my_index")
    mine.index = core.VectorStoreIndex.from_documents(documents, transformations=[splitter], embed_model=Counts())
    monkeypatch.setitem(sys.modules, "my_index", mine)
    chunks: dict[str, list[str]] = {document.id_: [] for document in documents}
    for node in splitter.get_nodes_from_documents(documents):
        chunks[node.ref_doc_id].append(node.text)
    assert min(map(len, chunks.values())) > 1
    assert_best_chunks("llamaindex", chunks)


def assert_best_chunks(example: str, chunks: dict[str, list[str]]) -> None:
    """Each query's scores are those of the documents' best chunks by cosine, best first."""

    def cosine(one: str, two: str) -> float:
        a, b = counts(one), counts(two)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    for query, found in scores_of(example, 6).items():
        best = [max(cosine(QUERIES[query], chunk) for chunk in some) for some in chunks.values()]
        assert found == pytest.approx(sorted(best, reverse=True)[: len(found)])
        assert len(found) > 1
