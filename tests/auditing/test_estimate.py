"""One answer of the card: which side it leans to, from the other side, in a file, and against the others."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ranktilt.auditing.effects import Effect, conflicts
from tests.effects import answer


class TestTheSideItLeansTo:
    @pytest.mark.parametrize(
        ("low", "high", "fields", "leans"),
        [
            (0.1, 0.3, {}, "a"),
            (-0.3, -0.1, {}, "b"),
            (-0.1, 0.2, {}, ""),
            (0.0, 0.2, {}, ""),
            (math.nan, math.nan, {}, ""),
            # Shares of .7 and .3: .4 is level, so .5 favours a and .2 favours b.
            (0.45, 0.55, {"band_low": 0.36, "band_high": 0.44}, "a"),
            (0.15, 0.25, {"band_low": 0.36, "band_high": 0.44}, "b"),
            # A Relative Δ between groups that are not twins has the band's middle as its level.
            (5.0, 15.0, {"band_low": 10.0, "band_high": 30.0}, "b"),
        ],
    )
    def test_the_whole_interval_beyond_the_level(
        self, low: float, high: float, fields: dict[str, float], leans: str
    ) -> None:
        found = answer(low, high, **fields)
        assert found.leans == leans
        assert found.favours == leans
        assert found.side(found.leans) == {"a": "human", "b": "llm", "": ""}[leans]

    @pytest.mark.parametrize(("p", "favours"), [(0.049, "a"), (0.05, ""), (0.9, ""), (math.nan, "")])
    def test_it_is_favoured_where_the_corrected_p_says_so_too(self, p: float, favours: str) -> None:
        found = answer(0.1, 0.3, p=0.0, p_corrected=p)
        assert (found.leans, found.favours) == ("a", favours)

    def test_a_band_around_nothing_is_none(self) -> None:
        assert not answer(0.1, 0.2).banded
        assert answer(0.1, 0.2, band_low=-0.1, band_high=0.1).banded
        assert answer(0.1, 0.2, band_high=0.1).banded

    @pytest.mark.parametrize(("tests", "factor"), [(1, 2.8643), (9, 3.7773)])
    def test_the_detectable_effect_is_that_of_the_corrected_test(self, tests: int, factor: float) -> None:
        assert answer(0.0, 0.4, tests=tests).detectable == pytest.approx(factor * 0.1, abs=1e-4)


def test_no_vote_at_all_is_not_the_same_as_votes_that_nobody_counted() -> None:
    found = {votes: answer(0.1, 0.3, votes=votes) for votes in (-1, 0, 6)}
    assert {votes: e.sample for votes, e in found.items()} == {-1: 40, 0: 0, 6: 6}
    assert {votes: e.testable for votes, e in found.items()} == {-1: True, 0: False, 6: True}


EXTRA = {
    "pairs": 30.0, "wins": 12.0, "losses": 10.0, "ties": 8.0, "alone": 3.0, "whole": 25.0, "whole_wins": 9.0,
    "whole_losses": 8.0, "absent": 0.2, "raw": -0.5, "shares": 0.4,
}  # fmt: skip


class TestFromTheOtherSide:
    def test_every_sign_turns(self) -> None:
        found = answer(0.1, 0.4, band_low=0.15, band_high=0.3, parts=EXTRA).swapped()
        assert (found.a, found.b) == ("llm", "human")
        assert (found.value, found.low, found.high) == (-0.25, -0.4, -0.1)
        assert (found.level, found.band_low, found.band_high) == (pytest.approx(-0.225), -0.3, -0.15)
        assert (found.error, found.p, found.p_corrected, found.queries) == (pytest.approx(0.075), 0.001, 0.01, 40)

    def test_counts_change_sides_and_those_without_a_side_stay(self) -> None:
        turned = answer(0.1, 0.4, parts=EXTRA).swapped().parts
        assert (turned["wins"], turned["losses"], turned["ties"]) == (10, 12, 8)
        assert (turned["whole_wins"], turned["whole_losses"], turned["whole"]) == (8, 9, 25)
        assert (turned["raw"], turned["shares"]) == (0.5, -0.4)
        assert (turned["pairs"], turned["absent"]) == (30, 0.2)

    def test_twice_is_the_same_and_nothing_becomes_a_negative_zero(self) -> None:
        found = answer(0.0, 0.0, parts={**EXTRA, "raw": 0.0, "shares": 0.0})
        assert found.swapped().swapped() == found
        turned = found.swapped()
        numbers = (turned.value, turned.low, turned.high, turned.level, turned.band_low, turned.band_high)
        assert not any(np.signbit([*numbers, turned.parts["raw"], turned.parts["shares"]]))


class TestConflicts:
    def test_opposite_signs_are_said_in_words(self) -> None:
        card = [
            answer(-5, 6, kind="relative delta"),
            answer(0.03, 0.07),
            answer(-0.2, -0.1, kind="relevant twins"),
            answer(-0.4, -0.3, kind="other twins"),
        ]
        assert conflicts(card) == (
            "r: the answers conflict: ΔNDSR@20 points to human; head-to-head, relevant twins and head-to-head, other "
            "twins point to llm. Say which question you ask before you say what this ranker favours."
        )

    @pytest.mark.parametrize(
        "card",
        [
            [],
            [answer(0.1, 0.2)],
            [answer(0.1, 0.2), answer(0.3, 0.4, kind="rank gap")],
            [answer(0.1, 0.2), answer(-0.4, 0.0, kind="rank gap")],
            [answer(0.1, 0.2), answer(math.nan, math.nan, kind="rank gap")],
            [answer(0.1, 0.2), answer(-0.4, -0.2, kind="score gap")],
        ],
    )
    def test_one_side_or_none_is_no_conflict_and_the_score_gap_never_is(self, card: list[Effect]) -> None:
        assert conflicts(card) == ""

    @pytest.mark.parametrize(("one", "two"), [(0.2, 0.2), (0.01, 0.05), (0.05, 0.01), (0.01, math.nan)])
    def test_both_sides_must_be_significant_after_correction(self, one: float, two: float) -> None:
        card = [answer(0.1, 0.2, p_corrected=one), answer(-0.2, -0.1, p_corrected=two, kind="other twins")]
        assert conflicts(card) == ""
        sure = [replace(e, p_corrected=0.04) for e in card]
        assert conflicts(sure).startswith(
            "r: the answers conflict: ΔNDSR@20 points to human; head-to-head, other twins points to llm."
        )

    def test_a_level_other_than_0_counts(self) -> None:
        page = answer(0.1, 0.2, band_low=0.3, band_high=0.5)
        assert page.leans == "b"
        assert "head-to-head, other twins points to human" in conflicts([page, answer(0.1, 0.2, kind="other twins")])
