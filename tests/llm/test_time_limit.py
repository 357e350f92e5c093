"""A request ends in time as a whole, and a server that asks for patience is quoted."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt, llm
from ranktilt.llm.batches import in_batches
from ranktilt.llm.journal import Journal, journalled
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.responses import retry_delay
from tests.llm.drip import Drip
from tests.llm.echo import COLD, requests
from tests.llm.server import Raw, Server

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STARTS = {
    "status": b"HTTP/1.1 200 ",
    "headers": HEAD + b"X-Filler: ",
    "body": HEAD + b"Content-Length: 99999\r\n\r\n{",
    "body without a length": HEAD + b"\r\n{",
    "error": b"HTTP/1.1 500 Error\r\nContent-Length: 99999\r\n\r\n",
}


@pytest.mark.parametrize("start", STARTS)
def test_a_server_that_drips_is_not_waited_for_without_an_end(start: str) -> None:
    with Drip(STARTS[start]) as server:
        model = OpenAI("tiny", base_url=server.url, timeout=0.1, retries=1, concurrency=1)
        with pytest.raises(UserError, match=r"no answer within 0\.1 s"):
            list(model.generate([Prompt(text="a")] * 20))
        with pytest.raises(UserError, match=r"no answer within 0\.1 s"):
            list(model.embed(["a"]))
    assert server.connections >= 2


def test_files_of_batches_end_in_time_too(tmp_path: Path) -> None:
    with Drip(STARTS["body"]) as server, Journal(tmp_path) as journal:
        model = in_batches(llm("openai:tiny", base_url=server.url, timeout=0.1, retries=0), 0.001)
        with pytest.raises(UserError, match=r"rejects the batch file: no answer within 1 s"):
            list(journalled(model, requests("a"), journal, sampling=COLD))


@pytest.mark.long
def test_waiting_for_a_turn_counts_to_no_time_limit() -> None:
    with (
        Server() as server
    ):  # one in three seconds, so that the third waits for longer than its time limit
        model = OpenAI("tiny", base_url=server.url, timeout=4.0, retries=0, requests_per_minute=20)
        replies = list(
            model.generate([Prompt(text=f"Rewrite: Cat {n} sat on the mat.") for n in range(3)])
        )
    assert [reply.failure for reply in replies] == [None] * 3


def after(days: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=days, seconds=5), usegmt=True)


def stated(value: str) -> str:
    """Return the value of a header; a day to come, as in the table, is a date from now."""
    days = re.fullmatch(r"in (-?\d+) days", value)
    return after(int(days[1])) if days else value


@pytest.mark.parametrize(
    ("header", "value", "words"),
    [
        ("Retry-After", "950400", "11 days"),
        ("Retry-After", "in 11 days", "11 days"),
        ("Retry-After", "7200", "2 hours"),
        ("Retry-After", "3600", "1 hour"),
        ("Retry-After", "300.4", "5 minutes"),
        ("Retry-After", "9" * 400, "more than 3,650 days"),
        ("Retry-After-Ms", "950400000", "11 days"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_to_wait_for_long_is_quoted(
    header: str, value: str, words: str, status: int
) -> None:
    patient = Raw(status, {"error": {"message": "Slow down."}}, {header: stated(value)})
    with Server(script=[None, *[patient] * 30]) as server:
        model = OpenAI("tiny", base_url=server.url, retries=1, concurrency=1)
        with pytest.raises(UserError) as caught:
            list(model.generate([Prompt(text="a")] * 20))
    message = (
        f"the server asks to wait {words} ({status}): Slow down; run the same command then: the "
        "answers so far are kept"
    )
    assert str(caught.value) == f"{server.url}: {message}"
    assert len(server.requests) <= 4


@pytest.mark.parametrize("value", ["0", "-5", "0.01", "nan", "soon", "", "1, 2", "in -3 days"])
def test_a_short_wait_or_none_is_a_passing_fault(value: str) -> None:
    with Server(
        script=[Raw(429, {"error": {"message": "Slow down."}}, {"Retry-After": stated(value)})]
    ) as server:
        (reply,) = OpenAI("tiny", base_url=server.url, retries=1).generate([Prompt(text="a")])
    assert reply.answer is not None


def test_a_wait_is_read_from_seconds_milliseconds_or_a_date() -> None:
    assert retry_delay({}) is None
    assert retry_delay({"retry-after": "90"}) == 90
    assert retry_delay({"retry-after": "nan"}) is None
    assert retry_delay({"retry-after": "90", "retry-after-ms": "1500"}) == 1.5
    assert retry_delay({"retry-after": after(1)}) == pytest.approx(86_400, abs=10)
