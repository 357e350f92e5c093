"""Killed three times over a faulty server, and resumed: nothing is lost, doubled or paid for twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ranktilt.llm.journal import JOURNAL
from tests.house.tree import ROOT
from tests.llm.echo import contents
from tests.toy import write_beir

pytestmark = pytest.mark.long

DOCUMENTS, CONCURRENCY, SHARE = 120, 32, 0.3
KINDS = ",".join(["500", "503", "drop", "malformed", "empty-choices"] * 4 + ["429-retry-after"])
"""Few of the last, because each holds all requests back for a while."""


WORDS = [
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "granite", "harbour", "island", "juniper", "kelp", "lagoon",
    "meadow", "nectar", "orchard", "pebble", "quarry", "ridge", "summit", "tundra", "upland", "valley", "willow",
]  # fmt: skip


def text(number: int) -> str:
    """Two sentences that no other document has."""
    words = [WORDS[(number * 7 + step * (1 + number % 5)) % len(WORDS)] for step in range(16)]
    return f"Number {number} tells of {', '.join(words[:8])}. Later it tells of {' and '.join(words[8:])}."


def until(done: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 60
    while not done() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    assert done(), process.communicate()[1] if process.poll() is not None else "too slow"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.fixture
def url(log: Path) -> Iterator[str]:
    """A server in a process of its own, where three requests of ten fail."""
    options = ["--faults", str(SHARE), "--kinds", KINDS, "--seed", "5", "--delay", "0.01", "--log", str(log)]
    command = [sys.executable, "-m", "tests.llm.server", "--port", "0", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@pytest.fixture
def start(tmp_path: Path, url: str) -> Callable[[], subprocess.Popen[str]]:
    docs = [{"_id": f"d{n}", "text": text(n)} for n in range(DOCUMENTS)]
    given = write_beir(tmp_path / "in", docs=docs, qrels=[("q1", "d0", 1)])
    options = ["--llm", "openai:tiny", "--base-url", url, "--concurrency", str(CONCURRENCY), "--retries", "30"]
    code = "from ranktilt.cli.main import main; main()"
    command = [sys.executable, "-c", code, "generate", "rewrite", str(given), *options, "-o", str(tmp_path / "out")]
    environment = {**os.environ, "RANKTILT_CACHE": str(tmp_path / "cache")}
    return lambda: subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def journal(folder: Path) -> list[str]:
    """Prompts' hashes of the records of the journal, one an answer."""
    return [line["prompt"] for file in (folder / "cache").rglob(JOURNAL) for line in contents(file.parent)]


def requests(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def digest(request: dict[str, Any]) -> str:
    from ranktilt.llm.base import Prompt

    return Prompt(request["body"]["messages"][-1]["content"]).digest


def test_three_kills_lose_nothing_and_cost_little(
    start: Callable[[], subprocess.Popen[str]], log: Path, tmp_path: Path
) -> None:
    known = list[tuple[int, set[str]]]()
    killed_at = [int(share * DOCUMENTS) for share in (0.15, 0.45, 0.75)]
    for answers in killed_at:
        process = start()
        until(lambda answers=answers: len(journal(tmp_path)) >= answers, process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (tmp_path / "out").exists()
        time.sleep(0.1)  # what the server has received by then was sent before the kill
        known.append((len(requests(log)), set(journal(tmp_path))))
    process = start()
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told

    rows = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    made = Counter(row["origin"] for row in rows if row["source"] == "tiny-tmp0.2")
    assert made == Counter(f"d{n}-human" for n in range(DOCUMENTS))

    all_requests = requests(log)
    for sent, answered in known:
        assert not answered & {digest(request) for request in all_requests[sent:]}
    assert max(Counter(journal(tmp_path)).values()) == 1

    faulty = sum(request["fault"] is not None for request in all_requests)
    least = DOCUMENTS + faulty
    assert faulty > 0.2 * len(all_requests)
    assert len(all_requests) <= least + len(killed_at) * CONCURRENCY + 0.01 * least


def test_two_commands_never_write_one_folder(start: Callable[[], subprocess.Popen[str]], log: Path) -> None:
    first = start()
    until(lambda: log.is_file() and log.stat().st_size > 0, first)
    second = start()
    message = second.communicate(timeout=60)[1].strip()
    assert second.returncode == 2
    assert message.endswith(": another command is writing it; wait for it, or name another folder")
    first.communicate(timeout=60)
    assert first.returncode == 0
