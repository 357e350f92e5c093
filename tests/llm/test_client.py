"""One request to a server: its address, and what is posted."""

import asyncio
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt, Sampling
from ranktilt.llm.client import Address, ChatClient, estimated_tokens
from ranktilt.llm.responses import RequestContext
from ranktilt.llm.retry import RateLimiter, Retrier, RetryPolicy
from tests.refusals import refused

pytest.importorskip("openai")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize(
    ("given", "url", "loopback"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1", True),
        (" http://127.0.0.1:8000/v1/ ", "http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9/v1", "http://127.9.9.9/v1", True),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1", True),
        ("http://box.localhost/v1", "http://box.localhost/v1", True),
        ("HTTPS://API.Example.com/V1//", "https://api.example.com/V1", False),
        ("http://10.0.0.3:8000/v1", "http://10.0.0.3:8000/v1", False),
        ("http://localhost.example.com/v1", "http://localhost.example.com/v1", False),
    ],
)
def test_a_url_is_brought_into_one_form(given: str, url: str, loopback: bool) -> None:
    address = Address.of(given)
    assert (address.url, address.loopback, address.where) == (url, loopback, url)


@pytest.mark.parametrize("given", [None, "", "  "])
def test_no_url_is_openai_s_own_server(given: str | None) -> None:
    assert Address.of(given) == Address(None, False)
    assert Address.of(given).where == "the OpenAI API"


def test_the_environment_fills_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert Address.of(None).url == "http://localhost:1/v1"
    assert Address.of("http://localhost:2/v1").url == "http://localhost:2/v1"


@pytest.mark.parametrize(
    "given",
    [
        "http://me:sk-secret@host/v1",
        "http://sk-secret@host/v1",
        "http://host/v1?api_key=sk-secret",
        "http://host/v1#sk-secret",
        "http://host:port@sk-secret/v1?",
    ],
)
def test_what_could_be_a_secret_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(UserError) as caught:
        Address.of(given)
    assert "sk-secret" not in str(caught.value)
    assert str(caught.value).startswith("base_url must ")


@pytest.mark.parametrize(
    "given", ["localhost:8000/v1", "ftp://host/v1", "http://", "/v1", "http://host:port/v1", "http://a b/v1", "x"]
)
def test_what_is_no_url_is_shown(given: str) -> None:
    with refused(f"base_url must be a URL such as http://localhost:8000/v1, got {given!r}"):
        Address.of(given)


def test_the_variable_is_named_where_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "nowhere")
    with pytest.raises(UserError, match=r"^OPENAI_BASE_URL must be a URL such as"):
        Address.of(None)


@pytest.mark.parametrize("text", ["https://api.openai.com/v1", "HTTPS://API.OpenAI.com/v1/"])
def test_openai_s_own_server_is_one_whether_it_is_named_or_not(text: str) -> None:
    assert Address.of(text) == Address(None, False)


class Client:
    """Keeps what is posted, and answers it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    async def post(self, path: str, *, cast_to: object, body: dict[str, Any]) -> Any:
        self.bodies.append(body)

        class Response:
            content = b'{"choices": [{"message": {"content": "yes"}}], "usage": {"total_tokens": 9}}'

        return Response


def context(*, sent: Any, answered: bool) -> RequestContext:
    return RequestContext(model="tiny", where="h", keyed=False, sent=sent, answered=answered, clean=str)


def asked(prompt: Prompt, *, own: bool, limits: RateLimiter | None = None, **sampling: Any) -> dict[str, Any]:
    """Send one prompt, and return the body that was posted."""
    retrier = Retrier(RetryPolicy(timeout=5.0, attempts=1, pause=0.0), limits)
    client = Client()
    chat = ChatClient(client, retrier, context, sampling=Sampling(**sampling), own=own)
    assert asyncio.run(chat.serve(0, prompt)).answer is not None
    (body,) = client.bodies
    return body


def test_other_servers_get_every_value_by_its_old_name() -> None:
    assert asked(Prompt("a"), own=False, temperature=1.0, max_tokens=5) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a"}],
        "temperature": 1.0,
        "top_p": 1.0,
        "max_tokens": 5,
    }


def test_openai_s_own_server_gets_no_default_that_some_models_refuse() -> None:
    assert asked(Prompt("a"), own=True, temperature=1.0, max_tokens=5) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a"}],
        "max_completion_tokens": 5,
    }


def test_openai_s_own_server_gets_what_is_not_the_default() -> None:
    body = asked(Prompt("a"), own=True, temperature=0.2, top_p=0.9)
    assert (body["temperature"], body["top_p"]) == (0.2, 0.9)


def test_a_token_is_taken_for_four_bytes() -> None:
    assert (estimated_tokens("abcd" * 3), estimated_tokens("é"), estimated_tokens("")) == (3.0, 0.5, 0.0)


@pytest.mark.parametrize(("most", "estimate"), [(None, 20 + 20), (50, 20 + 50)])
def test_an_answer_is_expected_as_long_as_its_prompt_or_its_limit(most: int | None, estimate: int) -> None:
    class Told(RateLimiter):
        def take(self, tokens: float = 0) -> list[float] | None:
            told.append(tokens)
            return super().take(tokens)

    told: list[float] = []
    prompt = Prompt("x" * 60, system="y" * 20)
    asked(prompt, own=False, limits=Told(None, 1000, clock=lambda: 0.0), max_tokens=most)
    assert told == [estimate]
