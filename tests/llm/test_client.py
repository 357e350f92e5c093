"""Who is asked and what, by a client that gives a server up, and how its words and answers are
read.
"""

import asyncio
import hashlib
import math
import re
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.llm.base import Answer, Failure, FailureKind, Prompt, Reply, Sampling, llm
from ranktilt.llm.event_loop import flow
from ranktilt.llm.openai import ServerMonitor
from ranktilt.llm.responses import (
    FailedRequest,
    classify_error,
    error_text,
    json_body,
    read_answer,
    read_vectors,
    same_model,
)
from ranktilt.llm.server import Server, base_url, redactor
from tests.llm.echo import Echo


def test_digest_is_of_messages_alone_and_generate_closes_below() -> None:
    text = '[{"role":"user","content":"naïve"}]'
    assert (
        Prompt(text="naïve").digest
        == Prompt(text="naïve", seed=3).digest
        == hashlib.sha256(text.encode()).hexdigest()
    )
    others = (
        Prompt(text="a"),
        Prompt(text="b"),
        Prompt(text="a", system=""),
        Prompt(text="a", system="s"),
    )
    assert len({prompt.digest for prompt in others}) == 4
    echo = Echo(concurrency=2)
    options = {"temperature": 1, "top_p": 0.5, "max_tokens": 7, "seed": 3, "logprobs": True}
    stream = echo.generate((Prompt(text=str(n)) for n in range(100)), **options)
    assert next(stream).answer is not None, "replies come one by one"
    stream.close()
    assert (echo.sampling, echo.closed, len(echo.asked_texts)) == (Sampling(**options), 1, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -0.1},
        {"temperature": math.inf},
        {"top_p": 0.0},
        {"top_p": math.nan},
        {"max_tokens": 0},
        {"max_tokens": 10**20},
        {"seed": 2**53 + 1},
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(options))} must be"):
        Sampling(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("opnai:x", {}, "unknown language model 'opnai'; did you mean 'openai:…'"),
        ("openai: ", {}, "openai: no model is named; expected openai:MODEL or transformers:FOLDER"),
        ("openai:tiny", {"concurrency": 10**20}, "concurrency must be at most 9,007,199,254,740"),
        (
            "openai:tiny",
            {"device": "cpu"},
            "unknown option of openai 'device' .valid: base_url, concurrency",
        ),
    ],
)
def test_what_names_no_model_is_refused(
    text: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        llm(text, **options)


KEY = "sk-secret-1234567890"


def test_urls_have_one_form_and_openais_own_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for typed, url, loopback in (
        ("http://localhost:8000/v1", "http://localhost:8000/v1", True),
        (" http://127.0.0.1:8000/v1/ ", "http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9/v1", "http://127.9.9.9/v1", True),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1", True),
        ("http://box.localhost/v1", "http://box.localhost/v1", True),
        ("HTTPS://API.Example.com/V1//", "https://api.example.com/V1", False),
        ("http://10.0.0.3:8000/v1", "http://10.0.0.3:8000/v1", False),
        ("http://localhost.example.com/v1", "http://localhost.example.com/v1", False),
    ):
        server = Server(model="tiny", url=base_url(typed))
        assert (server.url, server.loopback, server.where) == (url, loopback, url)
    for text in (None, "  ", "https://api.openai.com/v1", "HTTPS://API.OpenAI.com/v1/"):
        assert base_url(text) is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert base_url(None) == "http://localhost:1/v1"
    assert base_url("http://localhost:2/v1") == "http://localhost:2/v1"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:sk-secret@host/v1",
        "http://host/v1?api_key=sk-secret",
        "http://host/v1#sk-secret",
        "http://host:port@sk-secret/v1?",
        "localhost:8000/v1",
        "http://",
        "http://host:port/v1",
        "http://a b/v1",
    ],
)
def test_what_is_no_url_or_could_be_a_secret_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"^base_url must ") as caught:
        base_url(url)
    assert "sk-secret" not in str(caught.value)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UserError, match=r"^OPENAI_BASE_URL must "):
        base_url(None)


def test_key_is_taken_out_of_texts_and_messages() -> None:
    for key, text, clean in (
        ("k", "k is a key: k.", "[key] is a key: [key]."),
        ("sk.a*b+c", "sk.a*b+c skxa*b+c", "[key] skxa*b+c"),
        (KEY, f"x{KEY}y", "x[key]y"),
        (KEY, f"{KEY.upper()} {KEY.swapcase()} {KEY.title()}", "[key] [key] [key]"),
        (None, "none", "none"),
    ):
        assert redactor(key)(text) == clean
    assert redactor("anything", least=16)("it takes anything") == "it takes anything", (
        "a word of the text"
    )
    for status in (400, 401, 404, 429, 500):
        message = str(verdict(status, error(f"key {KEY} in Bearer {KEY}, x={KEY}y" + "x" * 5000)))
        assert KEY not in message
        assert "[key]" in message
        assert len(message) < 400


class Worker:
    """Doubles items, all but 999, and keeps the most that were under way at once."""

    def __init__(self, wait: float = 0.0) -> None:
        self.wait = wait
        self.now = self.peak = self.started = 0
        self.closed = threading.Event()

    async def serve(self, number: int, work: int) -> object:
        self.started += 1
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(self.wait)
            if work == 999:
                raise ValueError("999 is refused")
            return number, 2 * work
        finally:
            self.now -= 1

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["Worker", None]:
        try:
            yield self
        finally:
            self.closed.set()


def test_items_come_back_once_and_closing_stops_the_rest() -> None:
    worker, idle, threads = Worker(wait=0.001), Worker(), threading.active_count()
    assert list(flow(idle.opened, [], 4)) == []
    assert (threading.active_count(), idle.closed.is_set()) == (threads, False)
    results = [result for batch in flow(worker.opened, range(200), 16) for result in batch]
    assert sorted(results) == [(n, n * 2) for n in range(200)]
    assert worker.closed.is_set()
    worker = Worker(wait=0.005)
    stream = flow(worker.opened, range(900), 4)
    next(stream)
    stream.close()
    assert worker.closed.is_set()
    assert worker.now == 0
    assert worker.started < 20


def test_items_are_pulled_on_demand_in_the_callers_thread() -> None:
    pulled = Counter[int]()

    def items() -> Iterator[int]:
        for n in range(900):
            pulled[threading.get_ident()] += 1
            yield n

    taken, worker = 0, Worker(wait=0.0001)
    for batch in flow(worker.opened, items(), 8):
        taken += len(batch)
        assert pulled.total() <= taken + 10
    assert (taken, worker.peak, pulled) == (900, 8, {threading.get_ident(): 900})


def test_error_ends_everything_after_what_was_ready() -> None:
    worker, results = Worker(wait=0.001), list[object]()
    with pytest.raises(ValueError, match="999 is refused"):
        results.extend(
            result
            for batch in flow(worker.opened, [1, 2, 3, 999, *range(96)], 1)
            for result in batch
        )
    assert results == [(0, 2), (1, 4), (2, 6)]
    assert worker.closed.wait(5)
    assert worker.started == 4

    @asynccontextmanager
    async def closed() -> AsyncGenerator[Worker, None]:
        raise OSError("no door")
        yield Worker()

    with pytest.raises(OSError, match="no door"):
        list(flow(closed, range(3), 2))


GOOD = Reply(
    number=0,
    answer=Answer(text="a", finish="stop", prompt_tokens=1, completion_tokens=1, model="tiny"),
)


def failed(kind: FailureKind = "unavailable") -> Reply:
    return Reply(number=0, failure=Failure(kind=kind, message="busy"))


def monitor(concurrency: int = 1) -> ServerMonitor:
    return ServerMonitor("tiny", "http://h/v1", concurrency)


def test_failures_in_a_row_are_limited_and_exceptions_do_not_count() -> None:
    for concurrency, most in ((1, 8), (8, 8), (20, 20)):
        server = monitor(concurrency)
        server.check_replies([failed()] * (most - 1), reached=True)
        with pytest.raises(UserError, match=r"^http://h/v1 answers nobody: busy"):
            server.check_replies([failed()], reached=True)
    server, seven = monitor(), [failed()] * 7
    server.check_replies([*seven, GOOD, *seven, *[failed("too long")] * 100, *seven], reached=True)
    with pytest.raises(UserError, match="answers nobody: busy"):
        server.check_replies([failed()], reached=True)
    monitor().check_replies([GOOD] + [failed("refused")] * 100, reached=True)
    with pytest.raises(UserError, match="answers nobody"):
        monitor().check_replies([failed("refused")] * 8, reached=True)


def verdict(status: int, body: object, *, key: str | None = KEY) -> FailedRequest | UserError:
    inner = body.get("error", body) if isinstance(body, dict) else body  # as the client gives it
    return classify_error(status, inner, Server(model="tiny", url="http://h/v1", key=key))


def kind(status: int, body: object) -> str | None:
    """Of the failure of one request; None where everything ends."""
    failure = verdict(status, body)
    return failure.kind if isinstance(failure, FailedRequest) else None


def error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


def test_lasting_errors_end_everything_and_passing_ones_are_retried() -> None:
    for status, body, message in (
        (
            401,
            error("Incorrect."),
            "does not accept the key for model 'tiny' .*OPENAI_API_KEY. .401.: Incorrect",
        ),
        (
            403,
            error("No access."),
            "does not accept the key for model 'tiny' .*OPENAI_API_KEY. .403.: No access",
        ),
        (
            429,
            error("Exceeded.", code="insufficient_quota"),
            "the quota of the key .* is used up at http://h/v1 .429.",
        ),
        (
            402,
            error("Insufficient Balance"),
            "the quota of the key .* is used up at http://h/v1 .402.",
        ),
        (
            404,
            error("The model `tiny` does not exist."),
            "has no model 'tiny' .404.: .*; name one that it serves",
        ),
        (
            404,
            {"detail": "Not Found"},
            "has no model 'tiny' .404.: Not Found.*base URL that usually ends in /v1",
        ),
        (308, "", "redirects elsewhere .308.; redirects are not followed"),
    ):
        failure = verdict(status, body)
        assert isinstance(failure, UserError)
        assert re.search(message, str(failure))
    assert "asks for a key" in str(verdict(401, error("No key."), key=None))
    for status in (408, 429, 500, 503, 529):
        failure = verdict(status, error("You exceeded your current quota"))
        assert isinstance(failure, FailedRequest)
        assert (failure.kind, failure.message[:27]) == (
            "unavailable",
            f"error of the server ({status}): ",
        )
    assert kind(400, error("Invalid role in messages: expected context")) == "refused"


def test_error_words_are_read_in_every_shape_and_content_filters() -> None:
    for body, words in (
        ({"message": "a\n  b"}, "a b"),
        ({"detail": "FastAPI"}, "FastAPI"),
        (
            {"detail": [{"loc": ["body", "x"], "msg": "bad"}]},
            "[{'loc': ['body', 'x'], 'msg': 'bad'}]",
        ),
        ("<html><h1>502 Bad Gateway</h1><hr>nginx</html>", "502 Bad Gateway nginx"),
        ("Internal Server Error", "Internal Server Error"),
        ("", ""),
        ({"message": None, "code": 7}, ""),
    ):
        assert error_text(body)[0] == words
    for status, body in (
        (400, error("Filtered.", code="content_filter")),
        (
            400,
            error(
                "The response was filtered due to the prompt triggering our content management "
                "policy."
            ),
        ),
        (400, error("Input may be inappropriate.", code="data_inspection_failed")),
        (403, error("Flagged: content policy.", code="content_policy_violation")),
    ):
        assert kind(status, body) == "filtered"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("The maximum is 8192 tokens.", code="context_length_exceeded")),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 6048 tokens. However, you "
                "requested 6616 tokens (568 in the messages, 6048 in the completion).",
                "code": 400,
            },
        ),
        (
            400,
            error(
                "'max_tokens' or 'max_completion_tokens' is too large: 600. This model's maximum "
                "context length is "
                "512 tokens and your request has 100 input tokens."
            ),
        ),
        (
            400,
            error(
                "request (4390 tokens) exceeds the available context size (4096 tokens), try "
                "increasing it",
                type="exceed_context_size_error",
                n_ctx=4096,
            ),
        ),
        (500, error("Context size has been exceeded.", code=500, type="server_error")),
        (
            400,
            {
                "message": "max_tokens must be at least 1, got -186.",
                "type": "BadRequestError",
                "code": 400,
            },
        ),
        (413, {"error": "Payload Too Large"}),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum")),
    ],
)
def test_longer_than_the_context(status: int, body: object) -> None:
    assert kind(status, body) == "too long"


def completion(**choice: object) -> dict[str, object]:
    first = {"message": {"content": "Hi."}, "finish_reason": "stop", **choice}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return {
        "model": "tiny-2024-07-18",
        "system_fingerprint": "fp",
        "choices": [first],
        "usage": usage,
    }


def rows(*indexed_vectors: tuple[int, list[float]]) -> dict[str, object]:
    return {"data": [{"index": index, "embedding": values} for index, values in indexed_vectors]}


def test_an_answer_is_read_whole_or_bare() -> None:
    tokens = {"content": [{"token": "Hi", "logprob": -0.5}, {"token": ".", "logprob": -1}]}
    read = read_answer(completion(logprobs=tokens, finish_reason="length"), "tiny")
    assert read == Answer(
        text="Hi.",
        finish="length",
        prompt_tokens=3,
        completion_tokens=2,
        model="tiny-2024-07-18",
        revision="fp",
        logprobs=(-0.5, -1.0),
        tokens=("Hi", "."),
    )
    for message, text in (
        ({"content": ""}, ""),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, "a b"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]},
                    {"text": "b"},
                ]
            },
            "b",
        ),
        ({"content": "b", "reasoning_content": "a"}, "b"),
        ({"content": "half \ud83d"}, "half ?"),
    ):
        read = read_answer(
            {"choices": [{"message": message, "logprobs": {"content": None}}]}, "tiny"
        )
        assert read == Answer(
            text=text, finish="stop", prompt_tokens=None, completion_tokens=None, model="tiny"
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty body"),
        (b"<html>\n<p>login", "malformed JSON: '<html> <p>login'"),
        (b"[" * 100_000, "malformed JSON: '" + "[" * 60 + "'"),
        (b"[]", "expected a JSON object, got list"),
        (b'{"choices": []}', "no choice in the answer"),
        (b'{"choices": ["x"]}', "no message in the answer"),
        (b'{"choices": [{"text": "old style"}]}', "no message in the answer"),
    ],
)
def test_what_is_no_answer_is_asked_again(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_answer(json_body(content), "tiny")
    beside_the_standard = b'{"a": [-Infinity, "half \\ud83d"]}'
    assert json_body(beside_the_standard) == {"a": [-np.inf, "half \ud83d"]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "expected 2 vectors by their index"),
        (rows((0, [1.0]), (2, [1.0])), "expected 2 vectors by their index"),
        (rows((0, [1.0]), (1, [1.0]), (2, [1.0])), "expected 2 vectors of finite numbers, got 3"),
        (rows((0, [1.0]), (1, [1.0, 2.0])), "of one dimension"),
        (rows((0, [1.0]), (1, [1e300])), "of finite numbers"),
    ],
)
def test_vectors_are_one_a_text_in_the_order_of_their_index(
    data: dict[str, object], message: str
) -> None:
    vectors = read_vectors(rows((1, [3.0, 4.0]), (0, [1.0, 2.0])), 2)
    assert (vectors.dtype, vectors.tolist()) == (np.float32, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match=message):
        read_vectors(data, 2)


def test_dated_version_is_the_same_model_and_others_are_warned_once() -> None:
    for requested, same, different in (
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4o"),
        ("gpt-4o", "gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("mistral-large", "mistral-large-latest", "another-model"),
        ("llama3", "llama3:latest", "llama3:70b"),
        ("openai/gpt-4", "gpt-4-0613", "openai/gpt-4o"),
        ("/models/Stories", "/models/stories@main", "/models/tales"),
    ):
        assert same_model(requested, same)
        assert not same_model(requested, different)
    server = monitor()
    names = ("tiny", "huge", "huge", "tiny-2024-07-18", "vast")
    with pytest.warns(DataWarning) as warned:
        assert [server.warn_of_other_model(name) for name in names] == [None] * 5
    message = "asked http://h/v1 for model 'tiny', and '{}' answered: both names are recorded"
    assert [str(warning.message) for warning in warned] == [
        message.format(name) for name in ("huge", "vast")
    ]
