"""The checks of an answer as a whole: cleaned, flagged, and held against its source."""

from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.generation.flags import RELATED, RewriteLimits, check_text, check_title, unrelated
from tests.generation.scripted import GOOD, TEXTS

STORY = "Mommy was so happy and thanked the little bird. From that day on they played together in the park every day."


def text(source: str, raw: str, finish: str = "stop", limits: RewriteLimits | None = None) -> tuple[str, list[str]]:
    found = check_text(limits or RewriteLimits())(
        *(pl.Series([value], dtype=pl.String) for value in (source, raw, finish))
    )
    return found["text"][0], found["flags"][0].to_list()


def title(source: str, raw: str, finish: str = "stop") -> tuple[str, list[str]]:
    found = check_title(*(pl.Series([value], dtype=pl.String) for value in (source, raw, finish)))
    return found["text"][0], found["flags"][0].to_list()


WORDS = " ".join(f"longword{n}" for n in range(20))
"""Twenty words of five letters or more."""


@pytest.mark.parametrize("name", TEXTS)
def test_a_rewrite_in_other_words_passes(name: str) -> None:
    assert text(TEXTS[name], GOOD[name]) == (GOOD[name], [])


def test_a_story_about_something_else_is_unrelated() -> None:
    source = f"{TEXTS['d1']} The trials followed thousands of soldiers, runners and skiers through several winters."
    assert text(source, STORY) == (STORY, ["unrelated"])


@pytest.mark.parametrize(
    ("shared", "expected"),
    [(0, True), (1, True), (2, False), (20, False)],
)
def test_a_tenth_of_the_longer_words_makes_a_text_related(shared: int, expected: bool) -> None:
    words = [f"LONGWORD{n}," for n in range(shared)] + [f"otherword{n}" for n in range(20 - shared)]
    assert unrelated(pl.Series([WORDS]), pl.Series([" ".join(words)])).to_list() == [expected]


@pytest.mark.parametrize(
    ("source", "came"),
    [
        ("seven words of more than five letters, hardly enough", "quite another matter"),
        (WORDS, ""),
        (WORDS, "Слова другого языка здесь"),
        ("这是一个很长的句子,包含许多不同的词语。" * 9, "完全不同的内容写在这里。" * 9),
        ("", "anything at all"),
    ],
)
def test_what_cannot_be_told_is_not_flagged(source: str, came: str) -> None:
    assert unrelated(pl.Series([source]), pl.Series([came])).to_list() == [False]


def test_a_summary_may_share_fewer_words() -> None:
    came = "Longword1 was found. " + "So it is. " * 3
    assert text(WORDS + ".", came, limits=RewriteLimits(shortest=0.5, longest=9))[1] == ["unrelated"]
    assert text(WORDS + ".", came, limits=RewriteLimits(shortest=0.1))[1] == []
    assert text(WORDS + ".", "Nothing. " * 8, limits=RewriteLimits(shortest=0))[1] == []


def test_flags_of_several_kinds_stand_together() -> None:
    flagged = text(WORDS + ".", "Quite another matter that")[1]
    assert flagged == ["cut off", "too short", "unrelated"]


def test_a_wrapper_is_gone_before_anything_is_looked_at() -> None:
    assert text(TEXTS["d1"], f"Sure, here is the rewritten text:\n\n{GOOD['d1']}") == (GOOD["d1"], [])


@pytest.mark.parametrize(
    ("source", "raw", "finish", "expected"),
    [
        ("Statin use", "The use of statins in adults after breast cancer", "stop", []),
        ("Vitamin C and colds: a review of trials", "Vitamin C and colds", "stop", []),
        ("Apples", "Apples", "stop", []),
        ("Apples", "", "stop", ["empty"]),
        ("Apples", "I'm sorry, but I cannot rewrite this title.", "stop", ["refusal"]),
        ("Apples", "On the apple and", "length", ["cut off"]),
        ("Apples", "", "content_filter", ["empty", "filtered"]),
        ("Apples", "One title\nOther title", "stop", ["several lines"]),
        ("Apples", "word " * 80, "stop", ["too long"]),
    ],
)
def test_titles_are_flagged_for_what_a_title_can_lack(source: str, raw: str, finish: str, expected: list[str]) -> None:
    assert title(source, raw, finish)[1] == expected


def test_quotes_around_a_title_are_removed() -> None:
    assert title("Apples", '"On apples"') == ("On apples", [])


@pytest.mark.data
def test_no_real_rewrite_is_unrelated(shared_data: Path) -> None:
    docs = rt.load(shared_data / "cocktail-nfcorpus").docs
    human = docs.filter(pl.col("source") == "human").select("origin", a="text")
    pairs = human.join(docs.filter(pl.col("source") != "human").select("origin", b="text"), on="origin")
    assert pairs.height == 3_633
    assert unrelated(pairs["a"], pairs["b"]).sum() == 0
    assert 0 < unrelated(pairs["a"], pairs["b"], least=2 * RELATED).sum() < 5
    others = unrelated(pairs["a"], pairs["b"].shift(50, fill_value=pairs["b"][0]))
    assert others.mean() > 0.5
