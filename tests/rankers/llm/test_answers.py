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


@pytest.mark.parametrize(
    ("answer", "kind", "order"),
    [
        ("[3] > [1] > [2]", OK, (2, 0, 1)),
        (" [3]>[1] >\n[2]. ", OK, (2, 0, 1)),
        ("3 > 1 > 2", OK, (2, 0, 1)),
        ('{"ranking": [3, 1, 2]}', OK, (2, 0, 1)),
        ("[3, 1, 2]", OK, (2, 0, 1)),
        ("Here is the ranking: [3] > [1] > [2]", REPAIRED, (2, 0, 1)),
        ("1. [3] > [1] > [2]", REPAIRED, (2, 0, 1)),
        ("```\n[3] > [1] > [2]\n```", REPAIRED, (2, 0, 1)),
        ("[3], [1], [2]", REPAIRED, (2, 0, 1)),
        ("1. [3]\n2. [1]\n3. [2]", REPAIRED, (2, 0, 1)),
        ("[3] > [1] > [2] > [4]", REPAIRED, (2, 0, 1)),
        ("[3] > [0] > [1] > [2]", REPAIRED, (2, 0, 1)),
        ("3] > [1] > [2]", REPAIRED, (2, 0, 1)),
        ("1. [3] > 2. [1] > 3. [2]", REPAIRED, (2, 0, 1)),
        ("1. [3] 2. [1] 3. [2]", REPAIRED, (2, 0, 1)),
        ("1000 > [3] > [1] > [2]", REPAIRED, (2, 0, 1)),
        ("3 > [1] > [3] > [2]", REPEATED, (2, 0, 1)),
        ("1. [1] > [2] 2. [1] > [3]", OFF_FORMAT, ()),
        ("[3] > [1]", MISSING, (2, 0)),
        ("[3]", MISSING, (2,)),
        ("[3] [1] [2]", REPAIRED, (2, 0, 1)),
        ("3] [1]\n[2], [3].", REPEATED, (2, 0, 1)),
        ("See [3] [1] [2]", OFF_FORMAT, ()),
        ("[3] > [9] > [8]", MISSING, (2,)),
        ("[3] > [1] > [3] > [2]", REPEATED, (2, 0, 1)),
        ("[3] > [3] > [3]", REPEATED, (2,)),
        ("[1, 1, 2]", REPEATED, (0, 1)),
        ("3 passages have been provided.", OFF_FORMAT, ()),
        ("20", OFF_FORMAT, ()),
        ("", OFF_FORMAT, ()),
        ("[7] > [8] > [9]", OFF_FORMAT, ()),
        ("e.g. [2] > [1]. The ranking: [3] > [1] > [2]", OFF_FORMAT, ()),
        ("[3] is better than [1], which beats [2].", OFF_FORMAT, ()),
        ('{"ranking": [3, 1], "other": [2]}', OFF_FORMAT, ()),
        ("[true, false]", OFF_FORMAT, ()),
        ("v1.2 > v1.1", OFF_FORMAT, ()),
        ("I'm sorry, but I cannot rank these passages.", REFUSED, ()),
        ("I cannot rank medical texts.", REFUSED, ()),
    ],
)
def test_rankings_are_told_from_other_answers(answer: str, kind: str, order: tuple[int, ...]) -> None:
    assert read_ranking(answer, 3) == Reading(kind, order)


@pytest.mark.parametrize(
    ("answer", "kind", "order"),
    [
        ("[2]", OK, (1,)),
        ("2", OK, (1,)),
        ("Passage 2.", OK, (1,)),
        ("[2] > [1]", OK, (1, 0)),
        ('{"choice": 2}', OK, (1,)),
        ("The most relevant is passage 2, by far.", REPAIRED, (1,)),
        ("The answer is [2]. I am sure that [2] is best", REPAIRED, (1,)),
        ("[2] rather than [1]", OFF_FORMAT, ()),
        ("Both are relevant.", OFF_FORMAT, ()),
        ("[9]", OFF_FORMAT, ()),
        ("2 of them", OFF_FORMAT, ()),
        ("I won't choose between them", REFUSED, ()),
    ],
)
def test_choices_are_told_from_other_answers(answer: str, kind: str, order: tuple[int, ...]) -> None:
    assert read_choice(answer, 3) == Reading(kind, order)


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


@pytest.mark.parametrize(
    ("answer", "kind", "score"),
    [
        ("Yes", OK, 1.25),
        (" yes.", OK, 1.25),
        ("NO\n", OK, 0.75),
        ("Yes, the passage says so; no other does.", REPAIRED, 1.25),
        ("No\n\nIt does not.", REPAIRED, 0.75),
        ("No idea", OFF_FORMAT, None),
        ("Yes and no", OFF_FORMAT, None),
        ("Yesterday", OFF_FORMAT, None),
        ("**Yes**", OFF_FORMAT, None),
        ("\nYes", OFF_FORMAT, None),
        ("The answer is yes", OFF_FORMAT, None),
        ("", OFF_FORMAT, None),
        ("I cannot judge medical texts.", REFUSED, None),
    ],
)
def test_yes_and_no_are_told_from_other_answers(answer: str, kind: str, score: float | None) -> None:
    assert read_yes_no(answer, math.log(0.25)) == Reading(kind, () if score is None else (0,), score)


def test_a_long_answer_is_read_to_its_limit_in_a_moment() -> None:
    assert read_ranking("[1] > " * 1_000_000, 3) == Reading(REPEATED, (0,))
    assert read_ranking("1 " * 1_000_000, 3) == Reading(OFF_FORMAT, ())
