"""Sizes that a user types: one parser and one unit, for options and keys alike."""

from __future__ import annotations

import pytest

from ranktilt.config import read_section
from ranktilt.data.faults.check_limits import CheckLimits
from ranktilt.measures.margin import read_margin
from ranktilt.sizes import read_points
from tests.refusals import refused

FIVE = ("5", "5%", "5 %", "5.0", " 5 points ", "5 percent", "0.5e1")


@pytest.mark.parametrize("text", FIVE)
def test_five_points_are_written_in_many_ways(text: str) -> None:
    assert read_points(text) == 5
    assert read_margin(text) == 5
    assert read_section("[check]", {"max_missing": text}, CheckLimits).max_missing == 5


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "five", "5 ranks", "%", "", "5,5"])
def test_other_texts_are_no_points(text: str) -> None:
    with refused(f"--max-loss: expected points of at least 0, such as 5 or 5%; got {text}"):
        read_points(text, "--max-loss")


def test_part_of_a_whole_has_at_most_100_points() -> None:
    assert read_points("100%", most=100) == 100
    with refused("--budget: expected points from 0 to 100, such as 5 or 5%; got 101"):
        read_points("101", "--budget", most=100)


def test_margin_may_have_the_unit_of_a_question() -> None:
    assert read_margin("2 ranks") == "2 ranks"
