"""Corrections for label errors, against numbers worked by hand."""

import numpy as np
import pytest
from scipy import stats

from ranktilt.statistics.label_errors import (
    Confusion,
    Gap,
    explaining_difference,
    fieller,
    gap_with_rate_error,
)

CHECKED = np.array([[95.0, 2.0], [5.0, 98.0]])
"""Of 100 documents of each group, 95 and 98 have the right label: J = .93."""


def test_inverse_corrects_a_share_as_rogan_and_gladen_do() -> None:
    confusion = Confusion.from_rates(false_positive=0.02, false_negative=0.05)
    assert confusion.information == pytest.approx(0.93)
    # (.5 + .98 − 1) / .93, and (.5 + .95 − 1) / .93 for the other group.
    assert confusion.inverse @ np.array([0.5, 0.5]) == pytest.approx([0.48 / 0.93, 0.45 / 0.93])
    assert confusion.information_error == 0
    assert confusion.strength == np.inf


def test_checked_rates_enter_the_variance_with_half_an_error_more() -> None:
    confusion = Confusion.from_counts(CHECKED)
    # 5.5/101 · 95.5/101 / 100 + 2.5/101 · 98.5/101 / 100
    variance = (5.5 * 95.5 + 2.5 * 98.5) / 101**2 / 100
    assert confusion.information_error == pytest.approx(variance**0.5)
    assert confusion.strength == pytest.approx(0.93 / variance**0.5)
    # A gap of .1 between two shares, as labels have it: T_obs² · Var(J) / J⁴.
    parts = confusion.error_parts(np.array([1.0, 0.0]), np.array([0.1, -0.1]))
    assert (parts**2).sum() == pytest.approx(0.1**2 * variance / 0.93**4)


def test_no_error_in_few_documents_is_no_certainty() -> None:
    confusion = Confusion.from_counts(np.array([[5.0, 0.0], [0.0, 5.0]]))
    assert confusion.information == 1
    assert confusion.information_error == pytest.approx((2 * 0.5 * 5.5 / 6**2 / 5) ** 0.5)


def test_three_groups_take_the_inverse_matrix() -> None:
    rates = 0.7 * np.eye(3) + 0.1
    confusion = Confusion(rates=rates, checked=np.full(3, 100.0))
    assert confusion.information == pytest.approx(0.49)
    assert confusion.inverse == pytest.approx((np.eye(3) - 0.1) / 0.7)
    parts = confusion.error_parts(np.array([1.0, -1.0, 0.0]), np.array([0.07, -0.07, 0.0]))
    # Of the true gaps (.1, −.1, 0) the first two columns matter: .1² · vᵀ Cov v, v = (1, −1, 0)/.7.
    smoothed = np.array([80.5, 10.5, 10.5]) / 101.5
    weights = np.array([1.0, -1.0, 0.0]) / 0.7
    variance = (smoothed @ weights**2 - (smoothed @ weights) ** 2) / 100
    assert (parts**2).sum() == pytest.approx(2 * 0.1**2 * variance)


@pytest.mark.parametrize(("false_positive", "false_negative"), [(0.5, 0.5), (0.4, 0.7), (1.0, 1.0)])
def test_labels_that_say_nothing(false_positive: float, false_negative: float) -> None:
    confusion = Confusion.from_rates(false_positive=false_positive, false_negative=false_negative)
    assert confusion.says_nothing


def test_uncertain_rates_widen_either_side_and_p() -> None:
    gap = Gap(value=0.4, low=0.1, high=0.6, error=0.12, p=0.01)
    wide = gap_with_rate_error(gap, 0.4 / 1.959964)
    assert wide.low == pytest.approx(0.4 - (0.3**2 + 0.4**2) ** 0.5)
    assert wide.high == pytest.approx(0.4 + (0.2**2 + 0.4**2) ** 0.5)
    assert wide.error == pytest.approx((0.12**2 + (0.4 / 1.959964) ** 2) ** 0.5)
    # The lower half is 1.96 errors: .4 / √((.3/1.96)² + (.4/1.96)²) = 1.5680 errors, p = .1169.
    assert wide.p == pytest.approx(0.1169, abs=1e-4)
    assert gap_with_rate_error(gap, 0.0) == gap


def test_widened_interval_excludes_neutral_where_p_is_below_one_in_twenty() -> None:
    for rate_error in (0.05, 0.1, 0.15):
        half = 0.25
        p = 0.001714  # .4 / (.25 / 1.96) = 3.136 errors
        gap = Gap(value=0.4, low=0.4 - half, high=0.4 + half, error=half / 1.96, p=p)
        wide = gap_with_rate_error(gap, rate_error)
        assert (wide.low > 0) == (wide.p < 0.05)


@pytest.mark.parametrize("freedom", [9, 15, 40])
def test_interval_and_p_agree_where_few_queries_make_both_wide(freedom: int) -> None:
    """The end and p come from a t distribution, the rates from a normal one."""
    t_95 = stats.t.ppf(0.975, freedom)
    for value in np.linspace(1.5, 6, 46):
        p = float(2 * stats.t.sf(value, freedom))
        gap = Gap(value=value, low=value - t_95, high=value + t_95, error=1.0, p=p)
        for rate_error in np.linspace(0.01, 3, 60):
            wide = gap_with_rate_error(gap, rate_error)
            assert (wide.low > 0) == (wide.p < 0.05)
            assert wide.p >= p


def test_fieller_by_hand() -> None:
    # T_obs = .18 ± .06 and J = .6 ± .2: (GJ ± √(G²k² + h²(J² − k²))) / (J² − k²), k = .392.
    gap = Gap(value=0.3, low=0.2, high=0.4, error=0.05, p=1e-6)
    wide = fieller(gap, 0.2 / 0.6)
    assert (wide.low, wide.high) == pytest.approx((0.156829, 0.889978), abs=1e-5)
    assert wide.p == gap.p
    touching = Gap(value=0.3, low=0.0, high=0.6, error=0.15, p=0.05)
    assert fieller(touching, 0.2 / 0.6).low == pytest.approx(0.0, abs=1e-12)


def test_errors_that_explain_a_gap_of_shares() -> None:
    # With 60 % humans in the first ranks, 6 points are 10 more of 100 humans mistaken for ai.
    difference = explaining_difference(0.06, 0.6)
    assert difference.one_kind == pytest.approx(0.1)
    assert difference.both_kinds == pytest.approx(0.06)
    assert explaining_difference(-0.06, 0.4).one_kind == pytest.approx(0.1)
