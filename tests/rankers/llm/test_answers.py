"""Answers are read strictly, as asked for; as published code reads them, any answer is a ranking."""

import math

import pytest

from ranktilt.rankers.llm.answers import (
    MISSING,
    OFF_FORMAT,
    OK,
    REFUSED,
    REPAIRED,
    REPEATED,
    Reading,
    published_ranking,
    read_choice,
    read_ranking,
    read_yes_no,
)

RANKINGS: dict[str, dict[str, tuple[int, ...]]] = {
    OK: dict.fromkeys(
        ("[3] > [1] > [2]", " [3]>[1] >\n[2]. ", "3 > 1 > 2", '{"ranking": [3, 1, 2]}', "[3, 1, 2]"), (2, 0, 1)
    ),
    REPAIRED: dict.fromkeys(
        (
            "Here is the ranking: [3] > [1] > [2]", "```\n[3] > [1] > [2]\n```", "[3], [1], [2]", "[3] [1] [2]",
            "1. [3]\n2. [1]\n3. [2]", "1. [3] > 2. [1] > 3. [2]", "3] > [1] > [2]", "[3] > [1] > [2] > [4]",
            "1000 > [3] > [1] > [2]",
        ),
        (2, 0, 1),
    ),
    MISSING: {"[3] > [1]": (2, 0), "[3]": (2,), "[3] > [9] > [8]": (2,)},
    REPEATED: {
        "3 > [1] > [3] > [2]": (2, 0, 1), "3] [1]\n[2], [3].": (2, 0, 1), "[3] > [3] > [3]": (2,), "[1, 1, 2]": (0, 1)
    },
    OFF_FORMAT: dict.fromkeys(
        (
            "3 passages have been provided.", "20", "", "[7] > [8] > [9]", "See [3] [1] [2]", "[true, false]",
            "1. [1] > [2] 2. [1] > [3]", "e.g. [2] > [1]. The ranking: [3] > [1] > [2]", "v1.2 > v1.1",
            "[3] is better than [1], which beats [2].", '{"ranking": [3, 1], "other": [2]}',
        ),
        (),
    ),
    REFUSED: dict.fromkeys(("I'm sorry, but I cannot rank these passages.", "I cannot rank medical texts."), ()),
}  # fmt: skip


@pytest.mark.parametrize("kind", RANKINGS)
def test_rankings_are_told_from_other_answers(kind: str) -> None:
    for answer, order in RANKINGS[kind].items():
        assert read_ranking(answer, 3) == Reading(kind, order), answer


CHOICES = {
    OK: ("[2]", "2", "Passage 2.", '{"choice": 2}'),
    REPAIRED: ("The most relevant is passage 2, by far.", "The answer is [2]. I am sure that [2] is best"),
    OFF_FORMAT: ("[2] rather than [1]", "Both are relevant.", "[9]", "2 of them"),
    REFUSED: ("I won't choose between them",),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_choices_are_told_from_other_answers(kind: str) -> None:
    for answer in CHOICES[kind]:
        assert read_choice(answer, 3) == Reading(kind, (1,) if kind in (OK, REPAIRED) else ()), answer
    assert read_choice("[2] > [1]", 3) == Reading(OK, (1, 0))


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ("[3] > [1] > [2]", (2, 0, 1)),
        ("3 passages have been provided.", (2, 0, 1)),
        ("[2] > [2] > [9]", (1, 0, 2)),
        ("no idea", (0, 1, 2)),
        ("0 03 " + "1" * 5_000, (2, 0, 1)),
    ],
)
def test_published_code_takes_any_number_for_a_ranking(answer: str, order: tuple[int, ...]) -> None:
    assert published_ranking(answer, 3) == order


YES_NO = {
    (OK, 1.25): ("Yes", " yes."),
    (OK, 0.75): ("NO\n",),
    (REPAIRED, 1.25): ("Yes, the passage says so; no other does.",),
    (REPAIRED, 0.75): ("No\n\nIt does not.",),
    (OFF_FORMAT, None): ("No idea", "Yes and no", "Yesterday", "**Yes**", "\nYes", "The answer is yes", ""),
    (REFUSED, None): ("I cannot judge medical texts.",),
}


@pytest.mark.parametrize(("kind", "score"), YES_NO)
def test_yes_and_no_are_told_from_other_answers(kind: str, score: float | None) -> None:
    for answer in YES_NO[kind, score]:
        assert read_yes_no(answer, math.log(0.25)) == Reading(kind, () if score is None else (0,), score), answer


def test_a_long_answer_is_read_to_its_limit_in_a_moment() -> None:
    assert read_ranking("[1] > " * 1_000_000, 3) == Reading(REPEATED, (0,))
    assert read_ranking("1 " * 1_000_000, 3) == Reading(OFF_FORMAT, ())
