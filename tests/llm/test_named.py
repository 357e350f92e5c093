import pytest

from ranktilt.errors import UserError
from ranktilt.llm.named import llm
from ranktilt.llm.openai import OpenAI


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def said(text: str, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        llm(text, **options)
    return str(caught.value)


def test_openai_by_name() -> None:
    model = llm("openai:gpt-4o-mini")
    assert isinstance(model, OpenAI)
    assert (model.name, model.identity) == ("gpt-4o-mini", "openai:gpt-4o-mini")


def test_a_name_may_hold_colons_and_slashes() -> None:
    assert llm("openai:meta/llama3:8b").name == "meta/llama3:8b"


def test_options_reach_the_class_and_none_is_the_default() -> None:
    model = llm("openai:tiny", base_url="http://localhost:8000/v1", concurrency=3, timeout=None, rpm=None)
    assert (model.concurrency, model.identity) == (3, "openai:tiny at http://localhost:8000/v1")


def test_an_unknown_kind_lists_the_kinds() -> None:
    assert said("opnai:x") == (
        "unknown language model 'opnai'; did you mean 'openai:…'? (valid: openai:…, transformers:…)"
    )


def test_a_bare_model_name_is_no_kind() -> None:
    assert said("gpt-4o-mini") == "unknown language model 'gpt-4o-mini' (valid: openai:…, transformers:…)"


@pytest.mark.parametrize("text", ["openai", "openai:", "openai:  "])
def test_a_kind_without_a_model(text: str) -> None:
    assert said(text) == "openai: names no model; expected something like openai:gpt-4o-mini"


def test_an_unknown_option_lists_those_of_the_kind() -> None:
    assert said("openai:tiny", device="cpu") == (
        "unknown option of openai 'device' (valid: base_url, concurrency, timeout, retries, rpm, tpm, pause, "
        "max_answer)"
    )
