"""Batches over a real server: nothing is submitted twice, what expired or failed is submitted
again.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.generation.answer.answer import answer, prepare_answers
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.settings import Answering
from ranktilt.judging.grading.grading import grade
from ranktilt.llm import batches
from ranktilt.llm.base import Prompt, Reply, llm
from ranktilt.llm.batches import in_batches
from ranktilt.llm.journal import Journal, journalled, request_key
from ranktilt.llm.spec import read_model
from tests.llm.batch_server import BatchServer
from tests.llm.echo import COLD, contents, requests
from tests.llm.server import Raw, Server
from tests.toy import toy, write_beir

TEXTS = [f"word{number} tells of rivers, and of the sea" for number in range(5)]
SERVER_ERROR = Raw(500, {"error": {"message": "The server had an error."}})
Ask = Callable[..., list[Reply]]
Serve = Callable[..., BatchServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers with these options."""
    with ExitStack() as stack:

        def start(**options: Any) -> BatchServer:
            server = BatchServer(**options)
            stack.enter_context(server)
            return server

        yield start


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Ask texts in batches, with a journal of this test; replies by the order of the texts."""

    def run(server: Server, texts: list[str] = TEXTS, *, retries: int = 2) -> list[Reply]:
        model = in_batches(llm("openai:tiny", base_url=server.url, retries=retries), 0.01)
        with Journal(tmp_path / "journal") as journal:
            replies = list(journalled(model, requests(*texts), journal, sampling=COLD))
        return sorted(replies, key=lambda reply: reply.number)

    return run


def texts_of(replies: list[Reply]) -> list[str | None]:
    return [reply.answer.text if reply.answer else None for reply in replies]


def test_answers_come_from_one_file_by_the_keys_of_the_journal(
    ask: Ask, serve: Serve, tmp_path: Path
) -> None:
    server = serve(looks=3)
    replies = ask(server)
    model = llm("openai:tiny", base_url=server.url)
    assert server.submitted == [[request_key(model, Prompt(text=text), COLD) for text in TEXTS]]
    (lines,) = (lines for name, lines in server.files.items() if name == "file-0")
    assert lines[0]["body"] == {
        "model": "tiny",
        "temperature": 0.0,
        "top_p": 1.0,
        "messages": [{"role": "user", "content": TEXTS[0]}],
    }
    assert (lines[0]["method"], lines[0]["url"]) == ("POST", "/v1/chat/completions")
    assert {batch["completion_window"] for batch in server.batches} == {"24h"}
    assert texts_of(replies) == [
        f"And of the sea, word{number} tells of rivers." for number in range(5)
    ]
    assert [reply.number for reply in replies if reply.fresh] == [0, 1, 2, 3, 4]
    sent = len(server.requests)
    with Journal(tmp_path / "journal") as journal:  # the same journal as without batches
        again = list(journalled(model, requests(*TEXTS), journal, sampling=COLD))
    assert texts_of(sorted(again, key=lambda reply: reply.number)) == texts_of(replies)
    assert len(server.requests) == sent


def test_what_failed_expired_or_was_not_taken_is_submitted_again_alone_or_a_failure(
    ask: Ask, serve: Serve
) -> None:
    server = serve(ends=["partly", "expired", "failed"])
    replies = ask(server)
    assert None not in texts_of(replies)
    first, second, third, fourth = server.submitted
    assert (len(first), len(second)) == (5, 2)
    assert second == [first[1], first[3]]
    assert third == fourth == second[1:]
    assert len(server.paid) == 5, "none was answered, and paid, twice"
    server = serve(ends=["expired", "partly", "partly"])
    replies = ask(server, TEXTS[:2], retries=0)
    assert [reply.failure.kind if reply.failure else None for reply in replies] == [
        None,
        "unavailable",
    ]
    assert replies[1].failure
    assert replies[1].failure.message == "This request could not be executed: batch expired"
    refused = ask(serve(ends=["refused"]), ["other"])
    assert [reply.failure.kind if reply.failure else None for reply in refused] == ["too long"]


def test_a_batch_that_ends_for_good_says_so_and_its_answers_are_kept(
    ask: Ask, serve: Serve
) -> None:
    cancelled = "batch batch-0 was cancelled; run the same command to submit what it did not answer"
    for end, words, answered in (("cancelled", cancelled, 2), ("quota", "the quota of the key", 1)):
        server, texts = serve(ends=[end]), [f"{end} {text}" for text in TEXTS]
        with pytest.raises(UserError, match=words):
            ask(server, texts)
        assert None not in texts_of(ask(server, texts))
        assert server.submitted[1] == server.submitted[0][answered:]
    server = serve(ends=["failed", "failed"])
    with pytest.raises(UserError, match=r"rejects batch batch-1: Enqueued token limit reached\."):
        ask(server, ["never"])
    assert len(server.batches) == 2


def test_errors_in_a_wait_are_survived_silence_ends_it_and_no_batch_starts_twice(
    ask: Ask, serve: Serve
) -> None:
    looks = [None, None, *[SERVER_ERROR] * 8, None]
    server = serve(script=looks, looks=2)
    assert None not in texts_of(ask(server))
    assert len(server.batches) == 1
    server = serve(script=[None, None, *[SERVER_ERROR] * 24])
    with pytest.raises(UserError, match=r"says nothing about batch batch-0: .*run this again"):
        ask(server, ["silent"])
    server.script = []
    assert None not in texts_of(ask(server, ["silent"]))
    assert len(server.batches) == 1
    server = serve(script=[None, "drop"])
    server.batches += [{"id": f"old-{number}", "input_file_id": "other"} for number in range(3)]
    assert None not in texts_of(ask(server))
    assert len(server.batches) == 4
    server = serve(script=[None, SERVER_ERROR])
    assert None not in texts_of(ask(server, ["other"]))
    assert len(server.batches) == 1


def test_files_are_split_at_the_servers_limits(
    ask: Ask, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_REQUESTS", 2)
    server = serve(ends=["failed"])
    assert None not in texts_of(ask(server))
    assert [len(keys) for keys in server.submitted] == [2, 2, 1, 2], (
        "the one that failed waits for the others"
    )
    monkeypatch.setattr(batches, "MOST_BYTES", 300)
    server = serve()
    ask(server, [f"bytes {text}" for text in TEXTS])
    assert [len(keys) for keys in server.submitted] == [1, 1, 1, 1, 1]


def test_an_earlier_larger_batch_is_waited_for_and_kept_whole(
    ask: Ask, serve: Serve, tmp_path: Path
) -> None:
    server = serve(script=[None, None, *[SERVER_ERROR] * 24])
    with pytest.raises(UserError, match="says nothing about batch"):
        ask(server)
    server.script = []
    assert None not in texts_of(ask(server, [TEXTS[1], "new"]))
    assert [len(keys) for keys in server.submitted] == [5, 1]
    assert len(contents(tmp_path / "journal")) == 6


def test_models_and_servers_without_batches_are_refused(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"takes no batches \(--batch\): only openai:MODEL"):
        in_batches(llm(f"transformers:{tmp_path}"))
    with pytest.raises(UserError, match="interval must be above 0"):
        in_batches(llm("openai:tiny"), 0)
    with Server(script=[Raw(404, {"detail": "Not Found"})]) as plain:
        with pytest.raises(
            UserError,
            match=rf"^{plain.url} rejects the batch file: error 404: Not Found; omit --batch$",
        ):
            ask(plain)
        assert len(plain.requests) == 1


def test_all_writers_take_batches(serve: Serve, tmp_path: Path) -> None:
    server = serve(
        answer=lambda messages, _: (
            "##final score: 2" if "score" in messages[0]["content"] else "It is so."
        )
    )
    model = in_batches(llm("openai:tiny", base_url=server.url), 0.01)
    grades = grade(toy(), model, journal=Journal(tmp_path / "journal"))
    assert (grades.counts.readable, len(server.batches)) == (10, 1)
    written = answer(toy(), model, Answering(), journal=Journal(tmp_path / "journal"))
    assert (written.summaries[0].rewritten, len(server.batches)) == (3, 2)


def test_the_dry_run_of_a_batch_costs_half(tmp_path: Path) -> None:
    def cost(text: str, *, batch: bool) -> CostEstimate:
        model = read_model(text).connect(batch=batch)
        planned = prepare_answers(toy(), model, Answering())
        return estimate(
            planned, model, price=(1000.0, 2000.0), journal=Journal(tmp_path / "journal")
        )

    batch = dict(cost("openai:tiny", batch=True).lines)
    single = cost("openai:tiny", batch=False)
    patient = cost("openai:tiny(poll_interval=9)", batch=True)
    assert patient.price == pytest.approx((single.price or 0) / 2)
    assert (batch["price"], batch["time"]) == (
        "0.64, at half price, as a batch",
        "within 24 hours, as a batch",
    )
    with pytest.raises(UserError, match=r"^poll_interval of openai:tiny needs --batch$"):
        cost("openai:tiny(poll_interval=9)", batch=False)


COMMAND = [
    sys.executable,
    "-c",
    "from ranktilt.cli.main import main; main()",
    "generate",
    "rewrite",
]


@pytest.mark.long
def test_a_killed_command_submits_nothing_twice(serve: Serve, tmp_path: Path) -> None:
    server = serve(looks=10**6)
    docs = [{"_id": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
    folder = write_beir(tmp_path / "in", docs=docs, qrels=[("q1", "d0", 1)])
    options = [
        "--llm",
        f"openai:tiny(base_url={server.url},poll_interval=0.05)",
        "--batch",
    ]
    command = [*COMMAND, str(folder), *options, "-o", str(tmp_path / "out")]
    environment = {**os.environ, "RANKTILT_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        limit = time.monotonic() + 60
        while not server.looked and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    server.looks = 1
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert max(Counter(chain.from_iterable(server.submitted)).values()) == 1
    assert (
        len(server.batches)
        == len([path for path, body, _ in server.requests if "input_file_id" in body])
        == 1
    )
    rows = [
        json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    ]
    assert sum(row["source"] == "tiny-tmp0.2" for row in rows) == 5
