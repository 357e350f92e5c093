"""The model of stories behind `transformers serve`, a real server of OpenAI's protocol on loopback."""

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


def test_the_server_tells_the_documented_story(server: str, stories: Path) -> None:
    model = llm(f"openai:{stories}", base_url=server, concurrency=1)
    [reply] = model.generate([Prompt(START)], temperature=0.0, max_tokens=STEPS - 5)
    assert reply.answer is not None, reply.failure
    told = START + reply.answer.text
    assert told.startswith(SENTENCES)
    assert told.endswith(END)
    assert (reply.answer.finish, reply.answer.completion_tokens) == ("length", STEPS - 5)
    assert reply.answer.prompt_tokens == 5
