"""The examples do what they say: workflow and action, engines, vector stores, notebooks."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from ranktilt import Run, ranker
from ranktilt.rankers.engines.function import Engine
from tests.house import tree
from tests.toy import QUERIES, TEXTS, toy, write, write_cocktail

WORKFLOW = tree.ROOT / "examples" / "ci" / "ranktilt.yml"
STEP = re.compile(r"^      - name: (\w+).*?^        run: (.*?)(?=^      - |^      #|\Z)", re.DOTALL | re.MULTILINE)
SETTING = re.compile(r"^  ([A-Z_]+): \"?([^\"#\n]+?)\"?(?: +#.*)?$", re.MULTILINE)


def scripts() -> dict[str, str]:
    found = STEP.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[2])
    return {name: textwrap.dedent(text.removeprefix("|\n")) for name, text in found}


def settings() -> dict[str, str]:
    """The values under `env` at the top."""
    return dict(SETTING.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[0]))


def shell(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a build server does."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **settings(), "AUDITED": "toy -r bm25", **names, **more, "PATH": path}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def prepare(folder: Path) -> None:
    """Write the collection that is audited, and the command."""
    words = ["apple", "river", "stone", "cloud", "tiger", "violin", "harbour", "lantern"]  # three would be too few
    ends = {"human": "is seen here", "llm": "can be seen"}
    write_cocktail(
        folder / "toy",
        corpora={s: [{"_id": f"d{n}", "text": f"{w} {end}"} for n, w in enumerate(words)] for s, end in ends.items()},
        queries=[{"_id": f"q{n}", "text": word} for n, word in enumerate(words)],
        qrels=[(f"q{n}", f"d{n}", 1) for n in range(len(words))],
    )
    command = write(folder / "bin" / "ranktilt", f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt.cli.main "$@"\n')
    command.chmod(0o755)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose base branch holds a collection and the audit of its ranker."""
    prepare(tmp_path)
    begun = f"git init -q -b main .\n{scripts()['Audit']}\nmv audit.json ranktilt-baseline.json"
    done = shell(f"{begun}\ngit add toy ranktilt-baseline.json\ngit commit -q -m first\ngit checkout -q -b x", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_baseline_is_the_one_of_the_base_branch_and_without_one_the_limit_alone_counts(repository: Path) -> None:
    # The pull request brings a baseline of its own, which must not count.
    assert shell("echo {} > ranktilt-baseline.json; git commit -q -a -m mine", repository).returncode == 0
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="main", MAX_TILT="199")
    assert done.returncode == 0, done.stderr
    assert "no growth" not in done.stdout
    assert "growth of at most 5 points since the baseline" in done.stdout
    assert (repository / "ranktilt.xml").exists()
    assert (repository / "summary.md").read_text(encoding="utf-8").startswith("## ✅ RankTilt")
    done = shell(scripts()["Gate"], repository, BASE="0" * 40, MAX_TILT="199")
    assert (done.returncode, "since the baseline" in done.stdout) == (0, False)
    assert "no ranktilt-baseline.json at 0000" in done.stdout


def test_every_setting_is_used() -> None:
    text = "\n".join(scripts().values())
    assert set(settings()) == set(re.findall(r"\$([A-Z_]+)", text)) - {"BASE", "GITHUB_STEP_SUMMARY"}


ENGINES = sorted((tree.ROOT / "examples" / "engines").glob("*.py"))
DOCUMENTS = [("d1-human", 2.5), ("d2-llm", 1.5), ("d3-llm", 0.5)]


def named(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", ENGINES, ids=named)
def test_an_engine_is_short_and_says_how_it_is_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.partition("#")[0].strip()]
    assert len(code) <= 16
    early = [name for node in ast.parse(text).body for name in re.findall(r"^(?:from|import) (\w+)", ast.unparse(node))]
    assert set(early) <= {"functools", "os"}, "a client is imported where it is used"
    [typed] = re.findall(r"^    ranktilt audit DIR -r (.+)$", text, re.MULTILINE)
    at_once = {"concurrency": 4} if "concurrency" in typed else {}
    assert ranker(shlex.split(typed)[0]) == Engine(f"{page.stem}:search", k=100, **at_once)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples' folder as the current one; its modules are forgotten afterwards."""
    monkeypatch.chdir(ENGINES[0].parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for page in ENGINES:
        sys.modules.pop(page.stem, None)


def first_of(run: Run) -> list[str]:
    return [run.ids[int(run.docs[start])] for start in run.offsets[:-1]]


def test_the_http_api_is_asked(engines: None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            calls.append((url.path, parse_qs(url.query), self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            hits = [{"id": name, "score": score} for name, score in DOCUMENTS]
            self.wfile.write(json.dumps({"hits": hits}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("SEARCH_URL", f"http://127.0.0.1:{server.server_port}/api")
        monkeypatch.setenv("SEARCH_TOKEN", "t")
        try:
            run = ranker("engine:http_api:search@3").rank(toy())
        finally:
            server.shutdown()
            thread.join()
    expected = [("/api", {"q": [text], "size": ["3"]}, "Bearer t") for text in QUERIES.values()]
    assert sorted(calls, key=str) == sorted(expected, key=str)
    assert first_of(run) == ["d1-human"] * 3
    assert run.scores.tolist() == [2.5, 1.5, 0.5] * 3


CLIENTS = {
    "milvus_index": """
        ASKED = []
        class MilvusClient:
            ids, distances = zip(*HITS)
            def __init__(self, url, *, token):
                assert url == "http://somewhere:9200"
            def search(self, name, *, data, anns_field, limit):
                ASKED.append((name, *data, anns_field, limit))
                return [self]
        class SentenceTransformer:
            def __init__(self, name): ...
            def encode(self, text, *, show_progress_bar):
                return text
        """,
    "opensearch": """
        ASKED = []
        class OpenSearch:
            def __init__(self, url):
                assert url == "http://somewhere:9200"
            def search(self, *, index, body):
                ASKED.append((index, body["query"]["multi_match"]["query"], body["size"], body["_source"]))
                return {"hits": {"hits": [{"_id": name, "_score": score} for name, score in HITS]}}
        """,
    "pgvector": """
        import contextlib
        ASKED = []
        class ConnectionPool:
            def __init__(self, url, **options):
                assert url == "http://somewhere:9200"
            @contextlib.contextmanager
            def connection(self):
                yield self
            def execute(self, text, values):
                ASKED.append((text.count("%(v)s"), values["v"], values["k"], text.startswith("SELECT id, 1 - ")))
                return self
            def fetchall(self):
                return HITS
        class SentenceTransformer:
            def __init__(self, name): ...
            def encode(self, text, *, show_progress_bar):
                return self
            def tolist(self):
                return [0.5, -1.0]
        """,
}
EXPECTED: dict[str, tuple[list[str], list[Any]]] = {
    "milvus_index": (
        ["pymilvus", "sentence_transformers"], [("docs", text, "embedding", 3) for text in QUERIES.values()]
    ),
    "opensearch": (["opensearchpy"], [("docs", text, 3, False) for text in QUERIES.values()]),
    "pgvector": (["psycopg_pool", "sentence_transformers"], [(2, "[0.5, -1.0]", 3, True)] * 3),
}  # fmt: skip
"""Of each example the modules that its client stands for, and what it is asked."""


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_asked_for_ids_and_scores(engines: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, (modules, calls) = types.ModuleType("client"), EXPECTED[name]
    client.__dict__["HITS"] = DOCUMENTS
    exec(textwrap.dedent(CLIENTS[name]), client.__dict__)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, client)
    for variable in ("SEARCH_URL", "DATABASE_URL", "MILVUS_URL"):
        monkeypatch.setenv(variable, "http://somewhere:9200")
    for variable in ("SEARCH_INDEX", "MILVUS_COLLECTION"):
        monkeypatch.setenv(variable, "docs")
    run = ranker(f"engine:{name}:search@3").rank(toy())
    assert sorted(client.__dict__["ASKED"]) == sorted(calls)
    assert first_of(run) == ["d1-human"] * 3


@pytest.mark.parametrize(("options", "code"), [("--max-tilt 199", 0), ("--max-tilt 199 --run-name none", 2)])
def test_the_steps_of_the_action_audit_gate_and_tell(tmp_path: Path, options: str, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load((tree.ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    audit, gate = (step["run"] for step in steps if re.search("ranktilt audit|gate", step.get("run", "")))
    prepare(tmp_path)
    summary = tmp_path / "summary"
    given = {"OPTIONS": options, "AUDITED": "toy -r bm25 --resamples 200", "GITHUB_STEP_SUMMARY": str(summary)}
    assert [shell(step, tmp_path, **given).returncode for step in (audit, gate)] == [0, code]
    assert (tmp_path / "ranktilt-report" / "report.html").exists()
    if code == 0:
        assert summary.read_text(encoding="utf-8").startswith("## ")


def test_the_dockerfile_holds_known_instructions_and_no_root() -> None:
    text = re.sub(r"\\\n", " ", (tree.ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert [line.split()[0] for line in lines].index("USER") < len(lines) - 2


_TEXTS = (*QUERIES.values(), *(text for side in TEXTS.values() for text in side.values()))
WORDS = sorted({word for text in _TEXTS for word in text.split()})


def counts(text: str) -> np.ndarray:
    """A text's vector: how often it holds each word of the toy collection, and a constant."""
    return np.array([1.0, *(text.split().count(word) for word in WORDS)])


def expected(query: str, k: int) -> list[tuple[str, float]]:
    docs = toy().docs.select("id", "text").iter_rows()
    scores = {name: float(counts(text) @ counts(query)) for name, text in docs}
    return sorted(scores.items(), key=lambda found: -found[1])[:k]


def scores_of(name: str, k: int) -> dict[str, list[float]]:
    run = ranker(f"engine:{name}:search@{k}").rank(toy())
    return {query: run.scores[run.offsets[n] : run.offsets[n + 1]].tolist() for n, query in enumerate(run.queries)}


@pytest.mark.filterwarnings("ignore")
def test_qdrant(engines: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.filterwarnings("ignore")
def test_langchain_folds_chunks_to_their_documents(engines: None, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("langchain_core.vectorstores")
    encoder = types.SimpleNamespace(
        embed_documents=lambda texts: [counts(text).tolist() for text in texts],
        embed_query=lambda text: counts(text).tolist(),
    )
    store = core.InMemoryVectorStore(encoder)
    texts = dict(toy().docs.select("id", "text").iter_rows())
    chunks = [(name, word) for name, text in texts.items() for word in text.split()]
    store.add_texts([word for _, word in chunks], metadatas=[{"doc_id": name} for name, _ in chunks])
    mine = types.ModuleType("my_store")
    mine.store = store  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_store", mine)

    def cosine(left: str, right: str) -> float:
        a, b = counts(left), counts(right)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    for query, found in scores_of("langchain_store", 6).items():
        best = [max(cosine(QUERIES[query], word) for word in text.split()) for text in texts.values()]
        assert found == pytest.approx(sorted(best, reverse=True)[: len(found)])
        assert len(found) > 1


NOTEBOOKS = sorted((tree.ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.long
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_and_shows_its_results(page: Path, tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    notebook = nbformat.read(page, 4)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == [], "stored without outputs"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
