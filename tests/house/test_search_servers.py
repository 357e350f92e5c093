"""The examples that speak HTTP, against a server on this machine that plays responses back and keeps what it is asked.

OpenSearch and Elasticsearch are asked by their own clients; bodies and headers are those of their search APIs (3, 9).
"""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

import pytest

from ranktilt import Run, UserError, ranker
from tests.house import tree
from tests.toy import QUERIES, toy

pytestmark = pytest.mark.filterwarnings("ignore")
ELASTIC = "application/vnd.elasticsearch+json;compatible-with=9"
PRODUCTS = {
    "opensearchpy": {"content-type": "application/json; charset=UTF-8"},
    "elasticsearch": {"content-type": ELASTIC, "X-elastic-product": "Elasticsearch"},
}
"""Of each client the headers that its server answers with."""
HITS = [("d1-human", 1.7917595), ("d2-llm", 0.98082924), ("d3-llm", 0.18232156)]
FOUND = {
    "took": 4, "timed_out": False, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {
        "total": {"value": 3, "relation": "eq"}, "max_score": 1.7917595,
        "hits": [{"_index": "docs", "_id": name, "_score": score} for name, score in HITS],
    },
}  # fmt: skip
_CAUSE = {
    "type": "index_not_found_exception", "reason": "no such index [docs]", "resource.type": "index_or_alias",
    "resource.id": "docs", "index_uuid": "_na_", "index": "docs",
}  # fmt: skip
MISSING = {"error": {"root_cause": [_CAUSE], **_CAUSE}, "status": 404}


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
                asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
                server.requests.append((self.command, self.path, self.headers, asked))
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
    monkeypatch.chdir(tree.ROOT / "examples" / "engines")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in ("opensearch", "http_api"):
        sys.modules.pop(name, None)


def rows_of(run: Run) -> list[Any]:
    return run.frame().select("query_id", "doc_id", "score").rows()


def test_an_http_api_is_asked_with_its_token(examples: None, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(200, {"hits": [{"id": name, "score": score} for name, score in HITS]}, {})
    with server.running() as address:
        monkeypatch.setenv("SEARCH_URL", f"{address}/api")
        monkeypatch.setenv("SEARCH_TOKEN", "t")
        run = ranker("engine:http_api:search@3").rank(toy())
    paths = [f"/api?{urlencode({'q': text, 'size': 3})}" for text in QUERIES.values()]
    assert sorted(request[1] for request in server.requests) == sorted(paths)
    assert {request[2]["Authorization"] for request in server.requests} == {"Bearer t"}
    assert rows_of(run) == [(query, name, score) for query in QUERIES for name, score in HITS]


@pytest.fixture(params=PRODUCTS)
def product(request: pytest.FixtureRequest, examples: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A client's name, where the client stands for what the example imports, as the example says."""
    client = pytest.importorskip(request.param)
    monkeypatch.setitem(sys.modules, "opensearchpy", client)
    if request.param != "opensearchpy":
        monkeypatch.setattr(client, "OpenSearch", client.Elasticsearch, raising=False)
    monkeypatch.setenv("SEARCH_INDEX", "docs")
    name: str = request.param
    return name


def test_the_client_asks_for_ids_alone_and_its_hits_are_the_ranking(
    product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(200, FOUND, PRODUCTS[product])
    with server.running() as address:
        monkeypatch.setenv("SEARCH_URL", address)
        run = ranker("engine:opensearch:search@3").rank(toy())
    kind = ELASTIC if product == "elasticsearch" else "application/json"
    bodies = [
        {"query": {"multi_match": {"query": text, "fields": ["title", "text"]}}, "size": 3, "_source": False}
        for text in QUERIES.values()
    ]
    assert {request[:2] for request in server.requests} == {("POST", "/docs/_search")}
    assert {request[2]["Content-Type"].replace(" ", "") for request in server.requests} == {kind}
    assert sorted((request[3] for request in server.requests), key=str) == sorted(bodies, key=str)
    assert rows_of(run) == [(query, name, score) for query in QUERIES for name, score in HITS]


def test_an_index_that_is_not_there_is_told_in_the_server_s_words(
    product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(404, MISSING, PRODUCTS[product]).running() as address:
        monkeypatch.setenv("SEARCH_URL", address)
        with pytest.raises(UserError, match=r"no such index \[docs\]"):
            ranker("engine:opensearch:search@3").rank(toy())
