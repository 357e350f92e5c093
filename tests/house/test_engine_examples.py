"""The examples of engines, asked as their users would.

Those that speak HTTP, against a server on this machine that plays responses back and keeps what it
is asked: OpenSearch and Elasticsearch by their own clients; bodies and headers are those of their
search APIs (3, 9). Those of vector stores (Milvus, Qdrant, LangChain, LlamaIndex) ask real ones, in
memory or in a folder.
"""

import ast
import json
import re
import shlex
import sys
import textwrap
import threading
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from ranktilt import Run, ranker
from ranktilt.rankers.engines.function import Engine
from tests.house import tree
from tests.toy import QUERIES, toy

pytestmark = pytest.mark.filterwarnings("ignore")
ENGINES = tree.ROOT / "examples" / "engines"
ELASTIC = "application/vnd.elasticsearch+json;compatible-with=9"
PRODUCTS = {
    "opensearchpy": {"content-type": "application/json; charset=UTF-8"},
    "elasticsearch": {"content-type": ELASTIC, "X-elastic-product": "Elasticsearch"},
}
"""Of each client the headers that its server answers with."""
HITS = [("d1-human", 1.7917595), ("d2-llm", 0.98082924), ("d3-llm", 0.18232156)]
FOUND = {
    "took": 4,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {
        "total": {"value": 3, "relation": "eq"},
        "max_score": 1.7917595,
        "hits": [{"_index": "docs", "_id": name, "_score": score} for name, score in HITS],
    },
}


@dataclass
class Server:
    """A server on this machine that gives every request the same answer."""

    status: int
    body: Any
    headers: dict[str, str]
    requests: list[tuple[str, str, Mapping[str, str], Any]] = field(default_factory=list)
    """Method, path, headers and body of each."""

    @contextmanager
    def running(self) -> Iterator[str]:
        """Answer in a thread of its own; yield the address."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(
                    self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null"
                )
                server.requests.append((self.command, self.path, self.headers, request))
                answer = json.dumps(server.body).encode()
                self.send_response(server.status)
                for name, value in {**server.headers, "content-length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
            http.daemon_threads = True
            threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}).start()
            try:
                yield f"http://127.0.0.1:{http.server_port}"
            finally:
                http.shutdown()


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples' folder as the current one; its modules are forgotten afterwards."""
    monkeypatch.chdir(ENGINES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for page in ENGINES.glob("*.py"):
        sys.modules.pop(page.stem, None)


def rows_of(run: Run) -> list[Any]:
    return run.frame().select("query_id", "doc_id", "score").rows()


def test_an_http_api_is_asked_with_its_token(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(200, {"hits": [{"id": name, "score": score} for name, score in HITS]}, {})
    with server.running() as address:
        monkeypatch.setenv("SEARCH_URL", f"{address}/api")
        monkeypatch.setenv("SEARCH_TOKEN", "t")
        run = ranker("engine:http_api:search@3").rank(toy())
    paths = [f"/api?{urlencode({'q': text, 'size': 3})}" for text in QUERIES.values()]
    assert sorted(request[1] for request in server.requests) == sorted(paths)
    assert {request[2]["Authorization"] for request in server.requests} == {"Bearer t"}
    assert rows_of(run) == [(query, name, score) for query in QUERIES for name, score in HITS]


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("product", PRODUCTS)
def test_the_client_asks_for_ids_and_its_hits_are_the_ranking(
    product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client stands for what the example imports, as the example says."""
    client = pytest.importorskip(product)
    monkeypatch.setitem(sys.modules, "opensearchpy", client)
    if product != "opensearchpy":
        monkeypatch.setattr(client, "OpenSearch", client.Elasticsearch, raising=False)
    monkeypatch.setenv("SEARCH_INDEX", "docs")
    server = Server(200, FOUND, PRODUCTS[product])
    with server.running() as address:
        monkeypatch.setenv("SEARCH_URL", address)
        run = ranker("engine:opensearch:search@3").rank(toy())
    kind = ELASTIC if product == "elasticsearch" else "application/json"
    bodies = [
        {
            "query": {"multi_match": {"query": text, "fields": ["title", "text"]}},
            "size": 3,
            "_source": False,
        }
        for text in QUERIES.values()
    ]
    assert {request[:2] for request in server.requests} == {("POST", "/docs/_search")}
    assert {request[2]["Content-Type"].replace(" ", "") for request in server.requests} == {kind}
    assert sorted((request[3] for request in server.requests), key=str) == sorted(bodies, key=str)
    assert rows_of(run) == [(query, name, score) for query in QUERIES for name, score in HITS]


DOCS: dict[str, str] = dict(toy().docs.select("id", "text").iter_rows())
WORDS = sorted({word for text in (*QUERIES.values(), *DOCS.values()) for word in text.split()})


def counts(text: str) -> np.ndarray:
    """A text's vector: how often it holds each word of the toy collection, and a constant."""
    return np.array([1.0, *(text.split().count(word) for word in WORDS)])


def scores_of(name: str, k: int) -> dict[str, list[float]]:
    run = ranker(f"engine:{name}:search@{k}").rank(toy())
    return {
        query: run.scores[run.offsets[n] : run.offsets[n + 1]].tolist()
        for n, query in enumerate(run.queries)
    }


def encode_by_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = types.ModuleType("sentence_transformers")
    encoder.SentenceTransformer = lambda _: types.SimpleNamespace(
        encode=lambda text, **_: counts(text)
    )  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", encoder)


def test_milvus(examples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("milvus_lite")
    milvus = pytest.importorskip("pymilvus")
    address = str(tmp_path / "store.db")
    store = milvus.MilvusClient(address)
    store.create_collection(
        "docs",
        dimension=len(WORDS) + 1,
        id_type="string",
        max_length=50,
        vector_field_name="embedding",
        metric_type="COSINE",
    )
    store.insert(
        "docs", [{"id": name, "embedding": counts(text).tolist()} for name, text in DOCS.items()]
    )
    encode_by_counts(monkeypatch)
    monkeypatch.setenv("MILVUS_URL", address)
    monkeypatch.setenv("MILVUS_COLLECTION", "docs")
    assert_best_chunks("milvus_index", {name: [text] for name, text in DOCS.items()})
    # Clients share a connection that outlives them, and later writes to stderr in whatever test
    # comes then.
    milvus.client.connection_manager.ConnectionManager.get_instance().close_all()


def test_qdrant(examples: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    from qdrant_client.models import Distance, PointStruct, VectorParams

    store = qdrant.QdrantClient(path=str(tmp_path / "store"))
    store.create_collection(
        "docs", vectors_config=VectorParams(size=len(WORDS) + 1, distance=Distance.DOT)
    )
    rows = enumerate(DOCS.items())
    points = [
        PointStruct(id=n, vector=counts(text).tolist(), payload={"doc_id": name})
        for n, (name, text) in rows
    ]
    store.upsert("docs", points)
    store.close()
    encode_by_counts(monkeypatch)
    monkeypatch.setenv("QDRANT", str(tmp_path / "store"))
    monkeypatch.setenv("QDRANT_COLLECTION", "docs")
    scores = scores_of("qdrant", 4)
    for query, text in QUERIES.items():  # the largest products of vectors with the query's
        products = sorted(
            (float(counts(doc) @ counts(text)) for doc in DOCS.values()), reverse=True
        )
        assert scores[query] == pytest.approx(products[:4], rel=1e-5)
    sys.modules["qdrant"].model_and_client()[1].close()


def test_langchain_folds_chunks_to_their_documents(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = pytest.importorskip("langchain_core.vectorstores")
    from langchain_core.embeddings import Embeddings

    class Counts(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [counts(text).tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return counts(text).tolist()

    store = core.InMemoryVectorStore(Counts())
    chunks = [(name, word) for name, text in DOCS.items() for word in text.split()]
    store.add_texts(
        [word for _, word in chunks], metadatas=[{"doc_id": name} for name, _ in chunks]
    )
    mine = types.ModuleType("my_store")
    mine.store = store  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_store", mine)
    assert_best_chunks("langchain_store", {name: text.split() for name, text in DOCS.items()})


def test_llamaindex_folds_chunks_to_their_documents(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = pytest.importorskip("llama_index.core")
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import TokenTextSplitter

    class Counts(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return counts(text).tolist()

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    documents = [core.Document(id_=name, text=text) for name, text in DOCS.items()]
    splitter = TokenTextSplitter(chunk_size=5, chunk_overlap=0, tokenizer=str.split)
    mine = types.ModuleType("my_index")
    mine.index = core.VectorStoreIndex.from_documents(
        documents, transformations=[splitter], embed_model=Counts()
    )
    monkeypatch.setitem(sys.modules, "my_index", mine)
    chunks: dict[str, list[str]] = {document.id_: [] for document in documents}
    for node in splitter.get_nodes_from_documents(documents):
        chunks[node.ref_doc_id].append(node.text)
    assert min(map(len, chunks.values())) > 1
    assert_best_chunks("llamaindex", chunks)


def assert_best_chunks(example: str, chunks: dict[str, list[str]]) -> None:
    """Each query's scores are those of the documents' best chunks by cosine, best first."""

    def cosine(first: str, second: str) -> float:
        a, b = counts(first), counts(second)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    for query, scores_of_query in scores_of(example, 6).items():
        best = [
            max(cosine(QUERIES[query], chunk) for chunk in chunks_of_document)
            for chunks_of_document in chunks.values()
        ]
        assert scores_of_query == pytest.approx(sorted(best, reverse=True)[: len(scores_of_query)])
        assert len(scores_of_query) > 1


@pytest.mark.parametrize("page", sorted(ENGINES.glob("*.py")), ids=lambda page: page.stem)
def test_an_engine_is_short_and_says_how_it_is_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.partition("#")[0].strip()]
    assert len(code) <= 15
    early = [
        name
        for node in ast.parse(text).body
        for name in re.findall(r"^(?:from|import) (\w+)", ast.unparse(node))
    ]
    assert set(early) <= {"functools", "os"}, "a client is imported where it is used"
    [typed] = re.findall(r"^    ranktilt audit DIR -r (.+)$", text, re.MULTILINE)
    at_once = {"concurrency": 4} if "concurrency" in typed else {}
    assert ranker(shlex.split(typed)[0]) == Engine(f"{page.stem}:search", k=100, **at_once)


PGVECTOR = """
    import contextlib
    ASKED = []
    class ConnectionPool:
        def __init__(self, url, **options):
            assert url == "postgresql://somewhere/search"
        @contextlib.contextmanager
        def connection(self):
            yield self
        def execute(self, text, values):
            is_distance = text.startswith("SELECT id, 1 - ")
            ASKED.append((text.count("%(v)s"), values["v"], values["k"], is_distance))
            return self
        def fetchall(self):
            return HITS
    class SentenceTransformer:
        def __init__(self, name): ...
        def encode(self, text, *, show_progress_bar):
            return self
        def tolist(self):
            return [0.5, -1.0]
    """
"""Stands for psycopg's pool and a model: PostgreSQL is no package that tests could install."""


def test_the_database_is_asked_for_the_nearest_in_one_query(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = types.ModuleType("client")
    client.__dict__["HITS"] = HITS
    exec(textwrap.dedent(PGVECTOR), client.__dict__)
    for module in ("psycopg_pool", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, module, client)
    monkeypatch.setenv("DATABASE_URL", "postgresql://somewhere/search")
    run = ranker("engine:pgvector:search@3").rank(toy())
    assert client.__dict__["ASKED"] == [(2, "[0.5, -1.0]", 3, True)] * 3
    assert rows_of(run) == [(query, name, score) for query in QUERIES for name, score in HITS]
