import hashlib
import math
from collections.abc import Generator, Iterable

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt, Reply, Sampling, llm
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
        ("openai: ", {}, "openai: names no model; expected openai:MODEL or transformers:FOLDER"),
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
