"""What a dry run says is what a server is asked then: the very number, or no more than "at most"."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from ranktilt import ranker
from ranktilt.rankers.llm.base import LLMRanker
from ranktilt.registry import RANKERS, ranker_class
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge, ids, worths

EXACT = (
    "listwise(window=6,step=2)", "listwise(window=6,step=5)",
    "pairwise(method=allpairs)", "pointwise(method=yes-no)",
)  # fmt: skip
OPEN = (
    "listwise(window=3,step=2,shuffles=5)", "pairwise(method=heapsort,top=4)", "pairwise(method=sliding,top=4)",
    "pairwise(method=sliding,top=20)", "setwise(top=4)", "setwise(size=3)",
)  # fmt: skip
COUNT = 12


def moody(messages: list[dict[str, str]], body: dict[str, Any]) -> str:
    """Answer by chance, a fourth of the prompts in prose, so that no two comparisons agree with a first stage."""
    chance = random.Random(messages[-1]["content"])
    return Judge(value=lambda text: chance.random(), prose=0.25)(messages, body)


def amounts(text: str) -> tuple[int, int]:
    """The number that a line names, and the most that it names."""
    first, *most = re.findall(r"(?:^|at most )([\d,]+)", text)
    return int(first.replace(",", "")), int((most or [first])[0].replace(",", ""))


@pytest.mark.parametrize("answer", [Judge(), moody], ids=["worth", "moody"])
@pytest.mark.parametrize("method", [*EXACT, *OPEN])
def test_no_more_is_asked_than_a_dry_run_says(
    method: str, answer: Any, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, candidates = ranker(method.replace("(", ":openai:tiny(")), worths(COUNT)
    assert isinstance(stage, LLMRanker)
    with Server(answer=answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run, rehearsal = stage.rehearse(*candidates)
        assert not server.requests
        if not method.startswith("pointwise"):
            assert ids(run) == ids(candidates[1]), "nobody disagrees with the first stage"
        lines = dict(rehearsal.lines((1e6, 0.0)))
        stage.rank(*candidates)
        asked, (first, most) = len(server.requests), amounts(lines["requests"])
        if method in EXACT:
            assert (asked, "at most" in "".join(lines.values())) == (first, False)
        assert asked <= most <= 2 * stage.requests(COUNT) + 2
        read = sum(len(one["messages"][0]["content"].encode()) / 4 + 12 for one in server.answered)
        assert read <= 1.02 * amounts(lines["tokens in"])[1], "a prompt is about as long as those rehearsed"
        assert amounts(lines["price"]) == amounts(lines["tokens in"]), "at a price of 1 a token"
        again = dict(stage.rehearse(*candidates)[1].lines(None))["requests"]
        assert amounts(again) == (0, 0), "all answers are known, and so is what they lead to"


def test_every_ranker_that_asks_a_language_model_is_among_these() -> None:
    named = {name for name in RANKERS if issubclass(ranker_class(name), LLMRanker)}
    assert named == {method.partition("(")[0] for method in (*EXACT, *OPEN)}


def test_sliding_says_what_its_passes_may_ask_beyond_equal_prompts(own_cache: Path) -> None:
    """Four documents, two passes: 3 + 2 pairs in both orders; in order, the second pass repeats two of the first."""
    (_, rehearsal) = ranker("pairwise:openai:tiny(method=sliding,top=2)").rehearse(*worths(4, queries=1))
    assert (rehearsal.left, rehearsal.at_most) == (6, 10)
    assert dict(rehearsal.lines(None))["requests"] == ("6 (0 of 6 are answered already); at most 10, as the answers go")


def test_a_later_stage_may_be_asked_about_other_candidates(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of its answers is about candidates that the stage before may not leave."""
    candidates = worths(6)
    with Server(answer=Judge()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        later = ranker("pointwise:openai:tiny")
        later.rank(*candidates)
    assert isinstance(later, LLMRanker)
    sure, unsure = (later.rehearse(*candidates, certain=certain)[1] for certain in (True, False))
    assert (sure.left, sure.at_most, unsure.left, unsure.at_most) == (0, 0, 0, 12)
