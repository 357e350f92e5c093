"""Who is asked and what: models by their text, prompts, addresses in one form, and a key that is taken out of texts."""

import hashlib
import math
from collections.abc import Generator, Iterable

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt, Reply, Sampling, llm
from ranktilt.llm.server import Server, base_url, redactor
from tests.llm.echo import Echo


class Told(Echo):
    """Keeps the sampling."""

    def arrivals(self, prompts: Iterable[Prompt], sampling: Sampling) -> Generator[list[Reply], None, None]:
        self.sampling = sampling
        return super().arrivals(prompts, sampling)


def test_a_system_message_stands_first() -> None:
    messages = Prompt("a", system="Be brief.").messages()
    assert messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]


def test_a_digest_is_that_of_the_messages_alone() -> None:
    text = '[{"role":"user","content":"naïve"}]'
    assert Prompt("naïve").digest == Prompt("naïve", seed=3).digest == hashlib.sha256(text.encode()).hexdigest()
    assert len({one.digest for one in (Prompt("a"), Prompt("b"), Prompt("a", system=""), Prompt("a", system="s"))}) == 4


@pytest.mark.parametrize(
    "given",
    [{"temperature": -0.1}, {"temperature": math.inf}, {"top_p": 0.0}, {"top_p": math.nan}, {"max_tokens": 0},
     {"seed": 2**53 + 1}],
)  # fmt: skip
def test_values_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(given))} must be"):
        Sampling(**given)  # type: ignore[arg-type]


def test_a_text_makes_a_model_with_options_of_its_kind() -> None:
    model = llm("openai:meta/llama3:8b", base_url="http://localhost:8000/v1", concurrency=3, timeout=None)
    assert (model.concurrency, model.identity) == (3, "openai:meta/llama3:8b at http://localhost:8000/v1")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("opnai:x", {}, "unknown language model 'opnai'; did you mean 'openai:…'"),
        ("openai: ", {}, "openai: no model is named; expected openai:MODEL or transformers:FOLDER"),
        ("openai:tiny", {"device": "cpu"}, "unknown option of openai 'device' .valid: base_url, concurrency"),
    ],
)
def test_what_names_no_model_is_refused(text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        llm(text, **options)


def test_generate_gives_replies_one_by_one_and_builds_the_sampling() -> None:
    echo = Told()
    asked = echo.generate([Prompt(t) for t in "abc"], temperature=1, top_p=0.5, max_tokens=7, seed=3, logprobs=True)
    assert sorted((r.number, r.answer.text) for r in asked if r.answer) == [(0, "A"), (1, "B"), (2, "C")]
    assert echo.sampling == Sampling(temperature=1, top_p=0.5, max_tokens=7, seed=3, logprobs=True)


def test_closing_generate_closes_what_is_below() -> None:
    echo = Echo(concurrency=2)
    stream = echo.generate(Prompt(str(n)) for n in range(100))
    next(stream)
    stream.close()
    assert (echo.closed, len(echo.asked)) == (1, 2)


KEY = "sk-secret-1234567890"


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
    server = Server(model="tiny", url=base_url(given))
    assert (server.url, server.loopback, server.where) == (url, loopback, url)


@pytest.mark.parametrize(
    "given",
    ["http://me:sk-secret@host/v1", "http://host/v1?api_key=sk-secret", "http://host/v1#sk-secret",
     "http://host:port@sk-secret/v1?", "localhost:8000/v1", "http://", "http://host:port/v1", "http://a b/v1"],
)  # fmt: skip
def test_what_is_no_url_or_could_be_a_secret_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^base_url must ") as caught:
        base_url(given)
    assert "sk-secret" not in str(caught.value)
    monkeypatch.setenv("OPENAI_BASE_URL", given)
    with pytest.raises(UserError, match=r"^OPENAI_BASE_URL must "):
        base_url(None)


def test_openai_s_own_server_is_one_whether_it_is_named_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (None, "  ", "https://api.openai.com/v1", "HTTPS://API.OpenAI.com/v1/"):
        assert base_url(text) is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert base_url(None) == "http://localhost:1/v1"
    assert base_url("http://localhost:2/v1") == "http://localhost:2/v1"


@pytest.mark.parametrize(
    ("key", "text", "clean"),
    [
        ("k", "k is a key: k.", "[key] is a key: [key]."),
        ("sk.a*b+c", "sk.a*b+c skxa*b+c", "[key] skxa*b+c"),
        (KEY, f"x{KEY}y", "x[key]y"),
        (KEY, f"{KEY.upper()} {KEY.swapcase()} {KEY.title()}", "[key] [key] [key]"),
        (None, "none", "none"),
    ],
)
def test_a_key_is_taken_out_of_a_text(key: str | None, text: str, clean: str) -> None:
    assert redactor(key)(text) == clean
    assert redactor("anything", least=16)("it takes anything") == "it takes anything", "a word of the text"
