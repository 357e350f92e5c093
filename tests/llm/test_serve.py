"""The model of stories behind `transformers serve`, a real server of OpenAI's protocol on loopback."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.datasets.load import load
from ranktilt.llm.base import Prompt, llm
from tests.llm.stories import END, SENTENCES, STEPS

for package in ("openai", "transformers", "fastapi", "uvicorn"):
    pytest.importorskip(package)
pytestmark = [pytest.mark.neural, pytest.mark.data, pytest.mark.long]

PATIENCE = 120.0
START = "Once upon a time"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def server(stories: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server that has the model, and nothing else, and may not reach the network for more."""
    log, port = tmp_path_factory.mktemp("serve") / "log", free_port()
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(stories), "--device", "cpu"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **offline},
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + PATIENCE
        while not healthy(port):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, log.read_text(errors="replace")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.usefixtures("no_key")
def test_the_server_tells_the_documented_story(server: str, stories: Path) -> None:
    model = llm(f"openai:{stories}", base_url=server, concurrency=1)
    [reply] = model.generate([Prompt(START)], temperature=0.0, max_tokens=STEPS - 5)
    assert reply.answer is not None, reply.failure
    told = START + reply.answer.text
    assert told.startswith(SENTENCES)
    assert told.endswith(END)
    assert (reply.answer.finish, reply.answer.completion_tokens) == ("length", STEPS - 5)
    assert reply.answer.prompt_tokens == 5


COUNT, WORDS = 12, 35


@pytest.fixture(scope="module")
def short(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of short documents."""
    folder = tmp_path_factory.mktemp("short") / "short"
    (folder / "qrels").mkdir(parents=True)
    docs = load(shared_data / "cocktail-nfcorpus").docs
    texts = [" ".join(text.split()[:WORDS]) for text in docs.filter(docs["source"] == "human")["text"].head(COUNT)]
    lines = [json.dumps({"_id": f"d{n}", "title": "", "text": text}) for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "statins"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\nq\td1\t1\n")
    return folder


def rewrite(folder: Path, cache: Path, *more: str) -> subprocess.CompletedProcess[str]:
    code = "from ranktilt.cli.main import main; main()"
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    command = [sys.executable, "-c", code, "rewrite", str(folder), *more]
    return subprocess.run(
        command, env={**environment, "RANKTILT_CACHE": str(cache)}, capture_output=True, text=True, check=False
    )


def test_a_collection_is_rewritten_from_end_to_end(server: str, stories: Path, short: Path, tmp_path: Path) -> None:
    output = tmp_path / "mixed"
    asked = ["--llm", f"openai:{stories}", "--base-url", server, "--concurrency", "2"]
    done = rewrite(short, tmp_path / "cache", *asked, "-o", str(output), "--json", "-")
    [made] = json.loads(done.stdout)["made"]
    assert done.returncode == (1 if made["rewritten"] == 0 else 0), done.stderr
    lost = [json.loads(line)["_id"] for line in (output / "left-out.jsonl").read_text().splitlines()]
    docs = load(output).docs
    human, others = docs.filter(docs["source"] == "human"), docs.filter(docs["source"] != "human")
    assert human.height == COUNT
    assert sorted([*lost, *others["origin"]]) == sorted(human["id"])
    assert f"{made['fresh']} answers asked for" in done.stderr
    assert COUNT <= made["fresh"] <= 3 * COUNT

    again = rewrite(short, tmp_path / "cache", *asked, "-o", str(output), "--json", "-")
    [remade] = json.loads(again.stdout)["made"]
    assert (remade["fresh"], remade["rewritten"]) == (0, made["rewritten"])
    assert again.returncode == done.returncode
    assert [json.loads(line)["_id"] for line in (output / "left-out.jsonl").read_text().splitlines()] == lost
