"""The client against a real server on loopback: every fault one by one, then a mixture."""

import logging
import signal
import subprocess
import sys
import time
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

from ranktilt.errors import DataWarning, UserError
from ranktilt.llm.base import Answer, Prompt, Reply, Sampling, llm
from ranktilt.llm.openai import OpenAI, sampling_fields
from tests.llm.server import PASSING, Faults, Raw, Server, vector

pytest.importorskip("openai")

KEY = "sk-test-0123456789abcdef"
SENTENCE = "Please rewrite the following text: The cat sat on the mat, and it slept."
ANSWER = "And it slept, The cat sat on the mat."


def model(server: Server, name: str = "tiny", **options: object) -> OpenAI:
    settings = {"timeout": 5.0, "retries": 4, "concurrency": 4, **options}
    return OpenAI(name, base_url=server.url, **settings)  # type: ignore[arg-type]


def prompts(count: int) -> list[Prompt]:
    return [Prompt(text=f"Rewrite: Cat {n} sat on the mat, and it slept.") for n in range(count)]


def only_reply(server: Server, **options: object) -> Reply:
    (reply,) = model(server, **options).generate([Prompt(text=SENTENCE)])
    return reply


def trouble(server: Server, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        list(model(server, **options).generate(prompts(40)))
    return str(caught.value)


def test_requests_and_answers_are_exact_and_redirects_not_followed() -> None:
    with Server() as server:
        plain = only_reply(server)
        sent = [Prompt(text=SENTENCE, system="Be brief."), Prompt(text=SENTENCE, seed=1)]
        full = list(
            model(server, concurrency=1).generate(
                sent, top_p=0.9, max_tokens=3, seed=7, logprobs=True
            )
        )
    answer = Answer(
        text=ANSWER,
        finish="stop",
        prompt_tokens=14,
        completion_tokens=9,
        model="tiny",
        revision="fp_tiny",
    )
    assert plain == Reply(number=0, answer=answer)
    assert server.bodies[1] == {
        "model": "tiny",
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 3,
        "seed": 7,
        "logprobs": True,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": SENTENCE},
        ],
    }
    assert server.bodies[2]["seed"] == 1, "a prompt's own goes before the common one"
    answer = full[1].answer
    assert answer is not None
    assert (answer.text, answer.finish, answer.logprobs) == (
        "And it slept,",
        "length",
        (-0.5, -0.5, -0.5),
    )
    with (
        Server() as second_server,
        Server(
            script=[Raw(308, "", {"Location": f"{second_server.url}/chat/completions"})] * 9
        ) as server,
    ):
        message = trouble(server, concurrency=1)
    assert second_server.connections == 0, "not even a question without a text"
    assert message.startswith(f"{server.url} redirects elsewhere (308)")
    assert len(server.requests) == 1


INSIDE = Raw(200, {"error": {"message": "upstream is busy", "code": 502}})


@pytest.mark.parametrize(
    "fault", ["429-retry-after", "503", "drop", "malformed", "empty-choices", INSIDE]
)
def test_a_passing_fault_is_asked_again(fault: str | Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "429-retry-after":  # the server's word comes before the client's own pause
        monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 3600.0)
    with Server(script=[fault, fault]) as server:
        reply = only_reply(server)
    assert reply.answer is not None
    assert (reply.answer.text, len(server.requests)) == (ANSWER, 3)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("500", "error of the server (500): The server had an error"),
        ("empty-choices", "no choice in the answer"),
        ("drop", "connection failed: "),
        ("hang", "no answer within 1 s"),
        (
            Raw(200, f"You sent {' ' * 30} Bearer {KEY} to me"),
            "malformed JSON: 'You sent Bearer [key] to me'",
        ),
    ],
)
def test_a_lasting_fault_leaves_a_prompt_out(
    fault: str | Raw, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(script=[None, fault, fault, fault]) as server:
        first, failed, last = model(server, concurrency=1, retries=2, timeout=1.0).generate(
            prompts(3)
        )
    assert first.answer is not None
    assert last.answer is not None
    assert failed.failure is not None
    assert (failed.failure.kind, len(server.requests)) == ("unavailable", 5)
    assert failed.failure.message.startswith(message)


def test_long_prompt_is_left_out_and_content_filter_is_an_answer() -> None:
    with Server(context=8) as server:
        replies = list(
            model(server, concurrency=1).generate(
                [Prompt(text="a b c"), Prompt(text="word " * 9), Prompt(text="d e f")]
            )
        )
    assert [reply.failure.kind if reply.failure else None for reply in replies] == [
        None,
        "too long",
        None,
    ]
    assert len(server.requests) == 3
    for fault in ("content-filter", "content-filter-400"):
        with Server(script=[fault]) as server:
            reply = only_reply(server)
        assert reply.answer is not None
        assert (reply.answer.text, reply.answer.finish) == ("", "content_filter")


REFUSAL = Raw(400, {"error": {"message": "Unsupported parameter: 'top_p'."}})


@pytest.mark.parametrize(
    ("fault", "message", "most"),
    [
        ("401", "OPENAI_API_KEY) (401): Incorrect API key provided: [key]", 4),
        ("429-quota", "the quota of the key", 6),
        (REFUSAL, " answers nobody: not taken by the server (400): Unsupported parameter", 14),
        ("500", " answers nobody: ", 20),
    ],
)
def test_what_stays_ends_everything(
    fault: str | Raw, message: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(script=[fault] * 40) as server:
        assert message in trouble(server, retries=1, concurrency=2)
    assert len(server.requests) <= most


@pytest.mark.parametrize(
    ("host", "proxy"), [("localhost", "http://127.0.0.1:9"), ("127.0.0.1", "socks5://127.0.0.1:9")]
)
def test_loopback_needs_no_proxy_and_is_down_at_once(
    monkeypatch: pytest.MonkeyPatch, host: str, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with Server() as server:
        url = f"http://{host}:{server.port}/v1"
        (reply,) = OpenAI("tiny", base_url=url, retries=0).generate([Prompt(text=SENTENCE)])
    assert reply.answer is not None
    pulled = []
    source = (pulled.append(prompt) or prompt for prompt in prompts(2000))
    with pytest.raises(
        UserError, match=rf"^cannot reach {url}: connection failed: .*a model named 'tiny'\?$"
    ):
        list(OpenAI("tiny", base_url=url, concurrency=4, retries=3).generate(source))
    assert len(pulled) <= 10


def test_everything_completes_at_30_percent_of_faults() -> None:
    # All hangs at the beginning: each costs the whole time limit, which must be long enough for a
    # busy machine.
    kinds = [kind for kind in PASSING if kind != "hang"]
    faults = Faults(seed=1, share=0.3, kinds=kinds)
    with Server(script=["hang"] * 5, faults=faults, retry_after="0.001") as server:
        replies = list(
            model(server, concurrency=16, timeout=1.5, retries=12).generate(prompts(150))
        )
    assert sorted(reply.number for reply in replies if reply.answer) == list(range(150))
    assert len(server.answered) == 150
    assert server.peak <= 16 + 5  # a hang given up may be under way on the server a moment longer
    assert sum(fault is not None for fault in server.faulted) == len(server.requests) - 150 > 40


def test_every_request_waits_its_turn_over_calls_and_repetitions_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits, turns = list[tuple[float, ...]](), list[int]()

    class Limiter:
        def __init__(self, *limit: float) -> None:
            limits.append(limit)
            turns.append(0)

        async def acquire(self) -> None:
            turns[-1] += 1

    monkeypatch.setitem(sys.modules, "aiolimiter", SimpleNamespace(AsyncLimiter=Limiter))
    with Server(script=["500"]) as server:
        limited = model(server, requests_per_minute=20)
        assert [len(list(limited.generate(prompts(count)))) for count in (3, 2)] == [3, 2]
    assert limits == [(1, 3.0), (1, 3.0)], "one every three seconds"
    assert turns == [4, 1 + 2], "the second call begins where the first has used its turn"


CTRL_C = """
import sys, polars
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.base import Prompt
try:
    print("asking", flush=True)
    list(OpenAI("tiny", base_url=sys.argv[1], timeout=60).generate([Prompt("a")]))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_ends_a_wait_for_a_server_that_hangs() -> None:
    with Server(script=["hang"] * 9) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", CTRL_C, server.url], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "asking\n"
        while not server.requests:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert (out, child.returncode) == ("stopped\n", 0)


def test_the_key_shows_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with Server(script=[None, "401"]) as server:
        client = model(server, concurrency=1)
        with pytest.raises(UserError) as caught:
            list(client.generate(prompts(5)))
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    texts = [
        repr(client),
        str(vars(client)),
        client.identity,
        str(client.spec),
        repr(caught.value),
        caplog.text,
    ]
    assert server.keys == [KEY, KEY]
    assert [text for text in [*texts, "".join(trace.format())] if KEY in text] == []
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    choice = {"message": {"content": f"text {KEY}"}, "finish_reason": KEY}
    echo = Raw(200, {"model": f"tiny-{KEY}", "system_fingerprint": KEY, "choices": [choice]})
    with Server(script=[echo]) as server, pytest.warns(DataWarning) as warned:
        reply = only_reply(server)
    answer = Answer(
        text="text [key]",
        finish="[key]",
        prompt_tokens=None,
        completion_tokens=None,
        model="tiny-[key]",
        revision="[key]",
    )
    assert reply == Reply(number=0, answer=answer)
    assert [str(warning.message) for warning in warned if KEY in str(warning.message)] == []


@pytest.mark.parametrize(
    ("name", "url"), [(KEY, "http://127.0.0.1:1/v1"), ("tiny", f"http://127.0.0.1:1/{KEY}/v1")]
)
def test_a_key_in_what_is_kept_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(UserError, match="is part of the model's name or base URL") as caught:
        OpenAI(name, base_url=url).check()
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "foo://user:password@127.0.0.1:9"), ("SSL_CERT_FILE", "/nowhere/cert.pem")],
)
def test_a_proxy_or_certificate_of_no_use_is_said(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        UserError, match=r"^the environment's proxy or certificate cannot be used"
    ) as caught:
        list(OpenAI("tiny", base_url="http://gpu.example/v1").generate(prompts(1)))
    assert "password" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "openai:gpt-4o-mini needs a key: set the environment variable OPENAI_API_KEY"),
        ("  \n", "needs a key"),
        ("sk-ключ", "holds characters that no key has"),
        ("sk a", "holds characters that no key has"),
    ],
)
def test_a_server_elsewhere_wants_a_key(
    monkeypatch: pytest.MonkeyPatch, value: str | None, message: str
) -> None:
    if value is not None:
        monkeypatch.setenv("OPENAI_API_KEY", value)
    gpt = OpenAI("gpt-4o-mini")
    for act in (gpt.check, lambda: next(gpt.generate(prompts(1))), lambda: next(gpt.embed(["a"]))):
        with pytest.raises(UserError, match=message):
            act()


def test_identity_and_card_name_model_and_server() -> None:
    assert OpenAI("gpt-4o-mini").identity == "openai:gpt-4o-mini"
    local = llm(
        "openai:meta/llama3:8b", base_url="HTTP://LocalHost:8000/v1/", concurrency=3, timeout=None
    )
    url, name = "http://localhost:8000/v1", "meta/llama3:8b"
    assert (local.concurrency, local.identity) == (3, f"openai:{name} at {url}")
    assert local.spec == {"llm": f"openai:{name}", "model": name, "base_url": url}
    assert sampling_fields(Sampling(temperature=1.0, max_tokens=5), is_openai=True) == {
        "max_completion_tokens": 5
    }
    assert sampling_fields(Sampling(temperature=0.2, top_p=0.9), is_openai=True) == {
        "temperature": 0.2,
        "top_p": 0.9,
    }


@pytest.mark.parametrize(
    "option", [{"concurrency": 0}, {"retries": -1}, {"requests_per_minute": 0}, {"timeout": 0.0}]
)
def test_options_out_of_range(option: dict[str, int]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(option))} must be"):
        OpenAI("tiny", **option)  # type: ignore[arg-type]


TEXTS = [f"text number {n}" for n in range(150)]


def vectors_of(client: OpenAI, texts: list[str]) -> np.ndarray:
    gathered = np.full((len(texts), 16), np.nan, np.float32)
    for positions, vectors in client.embed(texts):
        assert vectors.dtype == np.float32
        assert np.isnan(gathered[positions]).all()
        gathered[positions] = vectors
    return gathered


def test_texts_get_vectors_after_passing_faults_and_lasting_ones_end() -> None:
    for fault in (None, "429", "empty"):
        with Server(script=[fault]) as server:
            vectors = vectors_of(model(server), ["", *TEXTS[1:]])
        assert vectors.tolist() == [vector(text) for text in (" ", *TEXTS[1:])]
        assert len(server.requests) == 3 + (fault is not None)
    message = r"gave no vectors of model 'tiny': expected 2 vectors "
    with Server(script=["empty"] * 40) as server, pytest.raises(UserError, match=message):
        vectors_of(model(server, retries=1), ["a", "b"])
    message = (
        r"does not take text 1 \(30 words\): longer than the model's context .*; cut texts, "
        r"as dense:openai:MODEL"
    )
    with Server(context=20) as server, pytest.raises(UserError, match=message):
        vectors_of(model(server), ["a b", "word " * 30, "c"])
    with Server(context=64) as server:
        vectors = vectors_of(model(server), TEXTS)
    assert vectors.tolist() == [vector(text) for text in TEXTS]
    assert max(len(body["input"]) for body in server.answered) <= 21
