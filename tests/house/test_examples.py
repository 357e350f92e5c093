"""The examples do what they say: the workflow in a repository of its own, the engines against a server or a client."""

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
from urllib.parse import parse_qs, urlsplit

import pytest

from ranktilt import Run, ranker
from ranktilt.rankers.engines.function import Engine
from tests.house import tree
from tests.toy import QUERIES, toy, write, write_cocktail

WORKFLOW = tree.ROOT / "examples" / "ci" / "ranktilt.yml"
STEP = re.compile(r"^      - name: (\w+).*?^        run: (.*?)(?=^      - |^      #|\Z)", re.DOTALL | re.MULTILINE)
SETTING = re.compile(r"^  ([A-Z_]+): \"?([^\"#\n]+?)\"?(?: +#.*)?$", re.MULTILINE)


def scripts() -> dict[str, str]:
    """Shell scripts of the steps, by name."""
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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose base branch holds a collection and the audit of its ranker."""
    words = [
        "apple",
        "river",
        "stone",
        "cloud",
        "tiger",
        "violin",
        "harbour",
        "lantern",
    ]  # of three queries no gate says
    write_cocktail(
        tmp_path / "toy",
        corpora={
            source: [{"_id": f"d{n}", "title": "", "text": f"{word} {end}"} for n, word in enumerate(words)]
            for source, end in (("human", "is seen here"), ("llm", "can be seen"))
        },
        queries=[{"_id": f"q{n}", "text": word} for n, word in enumerate(words)],
        qrels=[(f"q{n}", f"d{n}", 1) for n in range(len(words))],
    )
    command = write(tmp_path / "bin" / "ranktilt", f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt.cli.main "$@"\n')
    command.chmod(0o755)
    audit = scripts()["Audit"]
    done = shell(f"git init -q -b main .\n{audit}\nmv audit.json ranktilt-baseline.json", tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell("git add toy ranktilt-baseline.json\ngit commit -q -m first\ngit checkout -q -b change", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_baseline_is_the_one_of_the_base_branch(repository: Path) -> None:
    # The pull request brings a baseline of its own, which must not count.
    assert shell("echo {} > ranktilt-baseline.json; git commit -q -a -m mine", repository).returncode == 0
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="main", MAX_TILT="199")
    assert done.returncode == 0, done.stderr
    assert "no growth" not in done.stdout
    assert "growth of at most 5 points since the baseline" in done.stdout
    assert (repository / "ranktilt.xml").exists()
    assert (repository / "summary.md").read_text(encoding="utf-8").startswith("## ✅ RankTilt")


def test_without_a_baseline_the_limit_alone_counts(repository: Path) -> None:
    assert shell(scripts()["Audit"], repository).returncode == 0
    done = shell(scripts()["Gate"], repository, BASE="0" * 40, MAX_TILT="199")
    assert "no ranktilt-baseline.json at 0000" in done.stdout
    assert "since the baseline" not in done.stdout
    assert done.returncode == 0


def test_every_setting_is_used() -> None:
    text = "\n".join(scripts().values())
    assert set(settings()) == set(re.findall(r"\$([A-Z_]+)", text)) - {"BASE", "GITHUB_STEP_SUMMARY"}


ENGINES = sorted((tree.ROOT / "examples" / "engines").glob("*.py"))
DOCUMENTS = [("d1-human", 2.5), ("d2-llm", 1.5), ("d3-llm", 0.5)]


def named(page: Path) -> str:
    return page.stem


def code_lines(page: Path) -> int:
    """Lines of code, without the text at the top, comments and empty lines."""
    body = page.read_text(encoding="utf-8").split('"""', 2)[2]
    return sum(bool(line.partition("#")[0].strip()) for line in body.splitlines())


def imported_early(page: Path) -> set[str]:
    """Packages that are imported when the module is."""
    nodes = ast.parse(page.read_text(encoding="utf-8")).body
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in named}


def test_there_is_an_example_a_kind_of_engine() -> None:
    assert [page.stem for page in ENGINES] == ["http_api", "milvus_index", "opensearch", "pgvector"]


@pytest.mark.parametrize("page", ENGINES, ids=named)
def test_an_engine_is_short_and_says_how_it_is_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert code_lines(page) <= 16
    assert imported_early(page) <= {"functools", "os"}, "a client is imported where it is used"
    [typed] = re.findall(r"^    ranktilt audit DIR -r (.+)$", text, re.MULTILINE)
    assert ranker(shlex.split(typed)[0]) == Engine(
        f"{page.stem}:search", k=100, **({"concurrency": 4} if "concurrency" in typed else {})
    )


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
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            asked.append((url.path, parse_qs(url.query), self.headers["Authorization"]))
            hits = [{"id": name, "score": score} for name, score in DOCUMENTS]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"hits": hits}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("SEARCH_URL", f"http://127.0.0.1:{server.server_port}/api")
    monkeypatch.setenv("SEARCH_TOKEN", "t")
    try:
        run = ranker("engine:http_api:search@3").rank(toy())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert sorted(asked, key=str) == sorted(
        (("/api", {"q": [text], "size": ["3"]}, "Bearer t") for text in QUERIES.values()), key=str
    )
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
MODULES = {
    "milvus_index": ["pymilvus", "sentence_transformers"],
    "opensearch": ["opensearchpy"],
    "pgvector": ["psycopg_pool", "sentence_transformers"],
}
ASKS = {
    "milvus_index": [("docs", text, "embedding", 3) for text in QUERIES.values()],
    "opensearch": [("docs", text, 3, False) for text in QUERIES.values()],
    "pgvector": [(2, "[0.5, -1.0]", 3, True)] * 3,
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_asked_for_ids_and_scores(engines: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = types.ModuleType("client")
    client.__dict__["HITS"] = DOCUMENTS
    exec(textwrap.dedent(CLIENTS[name]), client.__dict__)
    for module in MODULES[name]:
        monkeypatch.setitem(sys.modules, module, client)
    for variable, value in (
        ("SEARCH_URL", "http://somewhere:9200"),
        ("SEARCH_INDEX", "docs"),
        ("MILVUS_COLLECTION", "docs"),
    ):
        monkeypatch.setenv(variable, value)
    for variable in ("DATABASE_URL", "MILVUS_URL"):
        monkeypatch.setenv(variable, "http://somewhere:9200")
    run = ranker(f"engine:{name}:search@3").rank(toy())
    assert sorted(client.__dict__["ASKED"]) == sorted(ASKS[name])
    assert first_of(run) == ["d1-human"] * 3
