"""Killed twice over a faulty server, and resumed: no prompt that was answered is asked for again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.generation.test_killed import CONCURRENCY, digest, journal, requests, until
from tests.generation.test_killed import log as log
from tests.generation.test_killed import url as url
from tests.toy import write_beir

QUERIES, DEPTH = 50, 7


@pytest.mark.long
def test_two_kills_over_2000_faulty_requests_ask_nothing_twice_that_was_answered(
    tmp_path: Path, url: str, log: Path
) -> None:
    docs = [{"_id": f"d{n}", "text": f"common words and number {n}"} for n in range(DEPTH)]
    names = [f"q{n}" for n in range(QUERIES)]
    queries = [{"_id": name, "text": f"common number {name}"} for name in names]
    folder = write_beir(tmp_path / "in", docs=docs, queries=queries, qrels=[(name, "d0", 1) for name in names])
    options = f"method=allpairs,retries=30,concurrency={CONCURRENCY}"
    spec = f"bm25@{DEPTH}>>pairwise:openai:tiny({options})"
    code = "from ranktilt.cli.main import main; main()"
    command = [sys.executable, "-c", code, "rank", str(folder), "-r", spec, "-o", str(tmp_path / "run.trec")]
    environment = {**os.environ, "RANKTILT_CACHE": str(tmp_path / "cache"), "OPENAI_BASE_URL": url}
    known = list[tuple[int, set[str]]]()
    for answers in (400, 1_200):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        until(lambda answers=answers: len(journal(tmp_path)) >= answers, process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.1)  # what the server has received by then was sent before the kill
        known.append((len(requests(log)), set(journal(tmp_path))))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    everything = requests(log)
    for sent, answered in known:
        assert len(answered) >= 400
        assert not answered & {digest(one) for one in everything[sent:]}
    assert max(Counter(journal(tmp_path)).values()) == 1
    answers = json.loads((tmp_path / "run.trec.json").read_text())["llm_answers"]
    assert answers["requests"] == len(journal(tmp_path)) == DEPTH * (DEPTH - 1) * QUERIES > 2_000
    assert 0 < answers["fresh"] < answers["requests"] - 1_000
