"""One answer of the card: which side it leans to, from the other side, in a file, and against the others."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.effects import conflicts


def estimate(low: float, high: float, **fields: Any) -> Estimate:
    """An answer with its value in the middle of its interval."""
    given: dict[str, Any] = {
        "run": "r", "kind": "page", "name": "ΔNDSR@20", "a": "human", "b": "llm", "value": (low + high) / 2,
        "low": low, "high": high, "error": (high - low) / 4, "p": 0.001, "p_corrected": 0.01, "queries": 40, **fields,
    }  # fmt: skip
    return Estimate(**given)


class TestTheSideItLeansTo:
    @pytest.mark.parametrize(
        ("low", "high", "fields", "leans"),
        [
            (0.1, 0.3, {}, "a"),
            (-0.3, -0.1, {}, "b"),
            (-0.1, 0.2, {}, ""),
            (0.0, 0.2, {}, ""),
            (-0.2, 0.0, {}, ""),
            (math.nan, math.nan, {}, ""),
            # Shares of .7 and .3: .4 is level, so .5 favours a and .2 favours b.
            (0.45, 0.55, {"level": 0.4, "band_low": 0.36, "band_high": 0.44}, "a"),
            (0.15, 0.25, {"level": 0.4, "band_low": 0.36, "band_high": 0.44}, "b"),
            (0.35, 0.45, {"level": 0.4, "band_low": 0.36, "band_high": 0.44}, ""),
            # A file of an older version: its level is the shares' difference, and the band's middle decides.
            (0.34, 0.37, {"level": 0.6, "band_low": 0.29, "band_high": 0.33}, "a"),
            (0.24, 0.30, {"level": 0.2, "band_low": 0.29, "band_high": 0.33}, "b"),
            # A Relative Δ between groups that are not twins has the band's middle as its level.
            (5.0, 15.0, {"level": 20.0, "band_low": 10.0, "band_high": 30.0}, "b"),
        ],
    )
    def test_the_whole_interval_beyond_the_level(
        self, low: float, high: float, fields: dict[str, float], leans: str
    ) -> None:
        found = estimate(low, high, **fields)
        assert found.leans == leans
        assert found.favours == leans
        assert found.side(found.leans) == {"a": "human", "b": "llm", "": ""}[leans]

    @pytest.mark.parametrize(("p", "favours"), [(0.049, "a"), (0.05, ""), (0.9, ""), (math.nan, "")])
    def test_it_is_favoured_where_the_corrected_p_says_so_too(self, p: float, favours: str) -> None:
        found = estimate(0.1, 0.3, p=0.0, p_corrected=p)
        assert (found.leans, found.favours) == ("a", favours)

    def test_a_band_around_nothing_is_none(self) -> None:
        assert not estimate(0.1, 0.2).banded
        assert estimate(0.1, 0.2, band_low=-0.1, band_high=0.1).banded
        assert estimate(0.1, 0.2, band_high=0.1).banded

    @pytest.mark.parametrize(("tests", "factor"), [(1, 2.8643), (9, 3.7773)])
    def test_the_detectable_effect_is_that_of_the_corrected_test(self, tests: int, factor: float) -> None:
        assert estimate(0.0, 0.4, tests=tests).detectable == pytest.approx(factor * 0.1, abs=1e-4)


EXTRA = {
    "pairs": 30.0, "wins": 12.0, "losses": 10.0, "ties": 8.0, "alone": 3.0, "whole": 25.0, "whole_wins": 9.0,
    "whole_losses": 8.0, "absent": 0.2, "raw": -0.5, "shares": 0.4,
}  # fmt: skip


class TestFromTheOtherSide:
    def test_every_sign_turns(self) -> None:
        found = estimate(0.1, 0.4, level=0.2, band_low=0.15, band_high=0.3, extra=EXTRA).swapped()
        assert (found.a, found.b) == ("llm", "human")
        assert (found.value, found.low, found.high) == (-0.25, -0.4, -0.1)
        assert (found.level, found.band_low, found.band_high) == (-0.2, -0.3, -0.15)
        assert (found.error, found.p, found.p_corrected, found.queries) == (pytest.approx(0.075), 0.001, 0.01, 40)

    def test_counts_change_sides_and_those_without_a_side_stay(self) -> None:
        turned = estimate(0.1, 0.4, extra=EXTRA).swapped().extra
        assert (turned["wins"], turned["losses"], turned["ties"]) == (10, 12, 8)
        assert (turned["whole_wins"], turned["whole_losses"], turned["whole"]) == (8, 9, 25)
        assert (turned["raw"], turned["shares"]) == (0.5, -0.4)
        assert (turned["pairs"], turned["absent"]) == (30, 0.2)

    def test_twice_is_the_same_and_nothing_becomes_a_negative_zero(self) -> None:
        found = estimate(0.0, 0.0, extra={**EXTRA, "raw": 0.0, "shares": 0.0})
        assert found.swapped().swapped() == found
        turned = found.swapped()
        numbers = (turned.value, turned.low, turned.high, turned.level, turned.band_low, turned.band_high)
        assert not any(np.signbit([*numbers, turned.extra["raw"], turned.extra["shares"]]))

    def test_it_leans_to_the_same_group(self) -> None:
        for low, high in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1)):
            found = estimate(low, high)
            assert found.swapped().side(found.swapped().leans) == found.side(found.leans)


class TestAsARow:
    @pytest.mark.parametrize("value", [0.1 + 0.2, math.nan])
    def test_it_comes_back_from_json(self, value: float) -> None:
        found = estimate(0.1, 0.4, value=value, p_corrected=value, extra={**EXTRA, "raw": value})
        text = json.dumps(found.row()).replace("NaN", "null")
        back = Estimate.of_row(json.loads(text))
        assert repr(back) == repr(found)
        assert found.row()["detectable"] == found.detectable

    def test_a_relative_delta_becomes_one(self) -> None:
        tilt = Tilt(
            "r", "nDCG@3", "f", "m", 0.3, 0.2, 40.0, 20.0, 60.0, 10.0, 0.01, 0.03, 50, 2, 0, 8.0, 12.0, False
        )  # fmt: skip
        found = Estimate.of_tilt(tilt)
        assert (found.kind, found.name, found.a, found.b) == ("relative delta", "Relative Δ nDCG@3", "f", "m")
        assert (found.value, found.low, found.high, found.error, found.p) == (40, 20, 60, 10, 0.01)
        assert (found.queries, found.level, found.band_low, found.band_high) == (50, 10, 8, 12)
        assert math.isnan(found.p_corrected)  # the card's own family corrects it
        twins = Estimate.of_tilt(replace(tilt, twins=True, band_low=0.0, band_high=0.0))
        assert (twins.level, twins.banded) == (0.0, False)


class TestConflicts:
    def test_opposite_signs_are_said_in_words(self) -> None:
        card = [
            estimate(-5, 6, kind="relative delta", name="Relative Δ nDCG@3"),
            estimate(0.03, 0.07),
            estimate(-0.2, -0.1, kind="relevant twins", name="head-to-head, relevant twins"),
            estimate(-0.4, -0.3, kind="other twins", name="head-to-head, other twins"),
        ]
        assert conflicts(card) == (
            "r: the answers conflict: ΔNDSR@20 points to human; head-to-head, relevant twins and head-to-head, other "
            "twins point to llm. Say which question you ask before you say what this ranker favours."
        )

    @pytest.mark.parametrize(
        "card",
        [
            [],
            [estimate(0.1, 0.2)],
            [estimate(0.1, 0.2), estimate(0.3, 0.4, kind="rank gap")],
            [estimate(0.1, 0.2), estimate(-0.4, 0.0, kind="rank gap")],
            [estimate(0.1, 0.2), estimate(math.nan, math.nan, kind="rank gap")],
            [estimate(0.1, 0.2), estimate(-0.4, -0.2, kind="score gap", name="score gap")],
        ],
    )
    def test_one_side_or_none_is_no_conflict_and_the_score_gap_never_is(self, card: list[Estimate]) -> None:
        assert conflicts(card) == ""

    @pytest.mark.parametrize(("one", "two"), [(0.2, 0.2), (0.01, 0.05), (0.05, 0.01), (0.01, math.nan)])
    def test_both_sides_must_be_significant_after_correction(self, one: float, two: float) -> None:
        card = [estimate(0.1, 0.2, p_corrected=one), estimate(-0.2, -0.1, p_corrected=two, name="other")]
        assert conflicts(card) == ""
        sure = [replace(e, p_corrected=0.04) for e in card]
        assert conflicts(sure).startswith("r: the answers conflict: ΔNDSR@20 points to human; other points to llm.")

    def test_a_level_other_than_0_counts(self) -> None:
        page = estimate(0.1, 0.2, level=0.4, band_low=0.3, band_high=0.5)
        assert page.leans == "b"
        assert "other points to human" in conflicts([page, estimate(0.1, 0.2, name="other")])
