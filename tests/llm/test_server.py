"""Who is asked: addresses in one form, without secrets, and a key that is taken out of texts."""

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.server import Server, base_url, redactor

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
