import hashlib
import math
from collections.abc import Generator, Iterable

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Prompt, Reply, Sampling, llm
from tests.refusals import refused


class Echo(LLM):
    """Gives prompts back, two at a time, and keeps what it was told."""

    name, identity, concurrency = "echo", "echo:echo", 2

    def __init__(self) -> None:
        self.sampling: Sampling | None = None
        self.pulled = 0
        self.closed = False

    def arrivals(self, prompts: Iterable[Prompt], sampling: Sampling) -> Generator[list[Reply], None, None]:
        self.sampling = sampling
        batch: list[Reply] = []
        try:
            for number, prompt in enumerate(prompts):
                self.pulled += 1
                batch.append(Reply(number, Answer(prompt.text, "stop", 1, 1, "echo"), None, 1))
                if len(batch) == 2:
                    yield batch
                    batch = []
            if batch:
                yield batch
        finally:
            self.closed = True


def test_a_system_message_stands_first() -> None:
    messages = Prompt("a", system="Be brief.").messages()
    assert messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]


def test_digest_is_the_hash_of_the_messages_as_json() -> None:
    text = '[{"role":"user","content":"naïve"}]'
    assert Prompt("naïve").digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("other", [Prompt("b"), Prompt("a", system=""), Prompt("a", system="s")])
def test_other_messages_have_another_digest(other: Prompt) -> None:
    assert other.digest != Prompt("a").digest


def test_a_seed_is_no_part_of_the_digest() -> None:
    assert Prompt("a", seed=3).digest == Prompt("a").digest


def test_the_default_is_that_of_the_paper() -> None:
    assert Sampling() == Sampling(temperature=0.2, top_p=1.0, max_tokens=None, seed=None, logprobs=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -0.1}, "temperature must be 0 or more, got -0.1"),
        ({"temperature": math.nan}, "temperature must be 0 or more, got nan"),
        ({"temperature": math.inf}, "temperature must be 0 or more, got inf"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"top_p": math.nan}, "top_p must be above 0 and at most 1, got nan"),
        ({"max_tokens": 0}, "max_tokens must be 1 or more, got 0"),
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, float], message: str) -> None:
    with refused(message):
        Sampling(**given)  # type: ignore[arg-type]


def test_generate_gives_replies_one_by_one_and_builds_the_sampling() -> None:
    echo = Echo()
    replies = list(
        echo.generate([Prompt(t) for t in "abc"], temperature=1, top_p=0.5, max_tokens=7, seed=3, logprobs=True)
    )
    assert [(r.number, r.answer.text) for r in replies if r.answer] == [(0, "a"), (1, "b"), (2, "c")]
    assert echo.sampling == Sampling(temperature=1, top_p=0.5, max_tokens=7, seed=3, logprobs=True)


def test_closing_generate_closes_what_is_below() -> None:
    echo = Echo()
    stream = echo.generate(Prompt(str(n)) for n in range(100))
    next(stream)
    stream.close()
    assert echo.closed
    assert echo.pulled == 2


def test_a_model_makes_no_vectors_unless_it_says_so() -> None:
    with pytest.raises(UserError, match=r"^echo makes no vectors here: name a model behind a server"):
        Echo().embed(["a"])


def test_a_card_names_kind_and_model() -> None:
    assert Echo().spec == {"llm": "echo:echo", "model": "echo"}


@pytest.mark.parametrize("seed", [2**53 + 1, -(2**53) - 1, 10**30])
def test_a_seed_that_json_cannot_carry_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match=f"seed must be at most 9,007,199,254,740,992 either way, got {seed}"):
        Sampling(seed=seed)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def refusal(text: str, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        llm(text, **options)
    return str(caught.value)


def test_a_name_may_hold_colons_and_slashes() -> None:
    assert llm("openai:meta/llama3:8b").name == "meta/llama3:8b"


def test_options_reach_the_class_and_none_is_the_default() -> None:
    model = llm(
        "openai:tiny", base_url="http://localhost:8000/v1", concurrency=3, timeout=None, requests_per_minute=None
    )
    assert (model.concurrency, model.identity) == (3, "openai:tiny at http://localhost:8000/v1")


def test_an_unknown_kind_lists_the_kinds() -> None:
    assert refusal("opnai:x") == (
        "unknown language model 'opnai'; did you mean 'openai:…'? (valid: openai:…, transformers:…)"
    )


@pytest.mark.parametrize("text", ["openai", "openai:", "openai:  "])
def test_a_kind_without_a_model(text: str) -> None:
    assert refusal(text) == "openai: names no model; expected something like openai:gpt-4o-mini"


def test_an_unknown_option_lists_those_of_the_kind() -> None:
    assert refusal("openai:tiny", device="cpu") == (
        "unknown option of openai 'device' (valid: base_url, concurrency, timeout, retries, requests_per_minute)"
    )
