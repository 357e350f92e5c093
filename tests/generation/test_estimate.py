"""The estimate: requests, tokens, price and time by hand, with nothing asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.rewrite.plan import plan
from ranktilt.generation.rewrite.rewrite import rewrite
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.journal import Journal
from tests.generation.scripted import TEXTS, Scripted, humans

WORDS = {"d1": "abcd " * 19 + "abcd.", "d2": "abcd " * 39 + "abcd."}
"""25 and 50 tokens of four bytes."""


@pytest.fixture
def guess(tmp_path: Path) -> Any:
    """CostEstimate with a journal of this test."""

    def run(llm: Scripted | None = None, texts: dict[str, str] | None = None, **how: Any) -> CostEstimate:
        rates = {name: how.pop(name) for name in ("price", "requests_per_minute") if name in how}
        model = llm or Scripted()
        planned = plan(humans(texts), model, Rewriting(**how))
        return estimate(planned, model, journal=Journal(tmp_path / "journal"), **rates)

    return run


def test_tokens_and_price_by_hand(guess: Any) -> None:
    llm = Scripted()
    found = guess(llm, WORDS, price=(2.0, 10.0))
    assert (llm.prompts, llm.checked) == ([], 0)  # nothing is asked, and no key is needed
    # "Please rewrite the following text: " has 35 bytes: 135/4 and 235/4 rounded up, and 12 of the chat template each
    assert found.tokens_in == 34 + 59 + 24
    assert found.tokens_out == 25 + 50
    assert found.price == pytest.approx((117 * 2 + 75 * 10) / 1e6)
    assert found.counted == "estimated, one token for 4 bytes of UTF-8"
    assert guess(texts=WORDS, max_tokens=30).tokens_out == 25 + 30
    with pytest.raises(UserError, match=r"^a price must be 0 or more, got -1,2$"):
        guess(price=(-1.0, 2.0))


def test_what_is_journalled_costs_nothing(guess: Any, tmp_path: Path) -> None:
    rewrite(humans(), Scripted(), Rewriting(first=2), journal=Journal(tmp_path / "journal"))
    found = guess(price=(1.0, 1.0))
    assert (found.requests, found.journalled) == (3, 2)
    assert found.tokens_out == -(-len(TEXTS["d3"]) // 4)
    assert guess(temperatures=(0.2, 1.0)).journalled == 2
    assert guess(temperatures=(0.2, 1.0)).requests == 6


class Local(Scripted):
    """Counts a token a word, as a model on this machine does with its own tokenizer."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def test_a_local_model_counts_its_own_tokens_and_its_time_is_not_known(guess: Any) -> None:
    found = guess(Local(), WORDS)
    assert (found.tokens_in, found.tokens_out) == (25 + 45 + 24, 60)
    assert found.counted == "counted by the model's own tokenizer"
    assert found.seconds is None
    assert found.lines[-1] == ("time", "unknown for a model on this machine; try some documents with --limit")


def test_time_by_concurrency_says_what_it_assumes(guess: Any) -> None:
    found = guess(texts=WORDS)
    each = 0.5 + 75 / 2 / 50
    assert found.seconds == pytest.approx(each)  # both at once
    assert guess(texts=WORDS, llm=Scripted(concurrency=1)).seconds == pytest.approx(each * 2)
    assert found.lines[-1] == ("time", f"1 s, 4 at a time, if an answer takes {each:.1f} s")


@pytest.mark.parametrize(
    ("rates", "seconds", "text"),
    [
        ({"requests_per_minute": 6}, 20.0, "20 s, by 6 requests a minute"),
        ({"requests_per_minute": 1}, 120.0, "2 min, by 1 requests a minute"),
        ({"requests_per_minute": 60_000}, 1.25, "1 s, 4 at a time, if an answer takes 1.2 s"),
    ],
)
def test_time_is_that_of_the_narrowest_limit(guess: Any, rates: dict[str, int], seconds: float, text: str) -> None:
    found = guess(texts=WORDS, **rates)
    assert found.seconds == pytest.approx(seconds)
    assert found.lines[-1] == ("time", text)


def test_requests_are_those_of_texts_titles_and_flagged_answers(guess: Any) -> None:
    found = guess(texts={**TEXTS, "empty": " "})
    assert (found.documents, found.empty, found.requests) == (4, 1, 3)
    assert found.lines[0] == ("documents", "4 documents (not asked for: 1 empty)")
    assert guess(titles="rewrite").requests == 6
    lines = dict(guess().lines)
    assert lines["requests"] == "3 (0 of 3 are answered already); up to 2 more for each text whose answers are flagged"
    assert dict(guess(attempts=1).lines)["requests"] == "3 (0 of 3 are answered already)"
    assert lines["price"] == "give one with --price IN,OUT per million tokens"
