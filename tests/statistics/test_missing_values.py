"""A statistic of something that is missing (NaN) is missing too; it is no finding and no bound."""

from __future__ import annotations

import numpy as np
import pytest

from ranktilt.statistics.judges.rank_correlation import (
    coefficient_interval,
    kendall_tau,
    rank_biased_overlap,
    top_weighted_tau,
)
from ranktilt.statistics.label_errors import Gap, gap_with_rate_error
from ranktilt.statistics.permutation import sign_flip_length_p, sign_flip_p, sign_flip_ps


@pytest.mark.parametrize("queries", [8, 40])  # all sign vectors are tried, or some are drawn
def test_flipped_signs_of_a_missing_difference_give_no_p(queries: int) -> None:
    differences = np.arange(1.0, queries + 1)
    known, missing = differences.copy(), differences.copy()
    missing[3] = np.nan
    assert np.isnan(sign_flip_p(missing, resamples=100))
    first, second = sign_flip_ps([known, missing], resamples=100, seed=0)
    assert first == sign_flip_p(known, resamples=100)
    assert np.isnan(second)
    assert np.isnan(sign_flip_length_p(np.stack([known, missing], axis=1), resamples=100))


def test_interval_of_a_missing_coefficient_has_no_ends() -> None:
    samples = np.linspace(0.1, 0.9, 50)
    nothing = np.full(50, np.nan)
    assert np.isnan(coefficient_interval(np.nan, samples, samples, least=-1.0)).all()
    assert np.isnan(coefficient_interval(0.5, nothing, nothing, least=-1.0)).all()


@pytest.mark.parametrize("coefficient", [kendall_tau, top_weighted_tau, rank_biased_overlap])
def test_order_of_a_system_without_a_score_is_unknown(coefficient: object) -> None:
    known = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    missing = known.copy()
    missing[1, 2] = np.nan
    for first, second in ((known, missing), (missing, known), (missing, missing)):
        values = coefficient(first, second)  # type: ignore[operator]
        assert values[0] == pytest.approx(1)
        assert np.isnan(values[1])


def test_unknown_error_of_rates_leaves_no_interval() -> None:
    gap = Gap(value=1.0, low=0.5, high=1.5, error=0.2, p=0.01)
    widened = gap_with_rate_error(gap, np.nan)
    assert np.isnan([widened.low, widened.high, widened.error, widened.p]).all()
