"""The interval of a difference of two coefficients, and its p."""

import numpy as np
import pytest
from scipy import stats

from ranktilt.statistics.judges.coefficient_difference import coefficient_difference


def test_interval_of_normal_resamples_is_that_of_t() -> None:
    # Resamples at normal quantiles around .1 with an error of .04 on 20 queries: .1 ± t(19) · .04 ·
    # √(20/19), and p is twice the tail of t beyond .1/(.04 · √(20/19)).
    samples = 0.1 + 0.04 * stats.norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    difference = coefficient_difference(0.1, samples, effective_n=20.0)
    error = 0.04 * np.sqrt(20 / 19)
    reach = stats.t.ppf(0.975, 19) * error
    assert difference.low == pytest.approx(0.1 - reach, abs=2e-4)
    assert difference.high == pytest.approx(0.1 + reach, abs=2e-4)
    assert difference.p == pytest.approx(2 * stats.t.sf(0.1 / error, 19), rel=0.02)


def test_interval_is_the_wider_of_percentiles_and_turned_ones() -> None:
    # Resamples from −.02 to .3 around .2: percentiles hold 0, turned round .2 they end at .42.
    samples = np.linspace(-0.02, 0.3, 10_001)
    difference = coefficient_difference(0.2, samples, effective_n=1e6)
    percentiles = np.quantile(samples, [0.025, 0.975])
    assert difference.low == pytest.approx(percentiles[0], abs=1e-3)
    assert difference.high == pytest.approx(0.4 - percentiles[0], abs=1e-3)
    assert difference.p > 0.05


@pytest.mark.parametrize("value", [0.02, 0.06, 0.09, 0.2])
def test_p_is_below_005_exactly_where_the_interval_excludes_0(value: float) -> None:
    rng = np.random.default_rng(3)
    samples = value + rng.gamma(4, 0.02, 4_000) - 0.09
    near_samples = value + 0.3 * rng.normal(0, 0.03, 4_000)
    difference = coefficient_difference(value, samples, effective_n=30.0, near_samples=near_samples)
    assert difference.low <= value <= difference.high
    assert (difference.p < 0.05) == (difference.low > 0 or difference.high < 0)


def test_the_other_sign_turns_everything() -> None:
    samples = 0.1 + np.random.default_rng(0).normal(0, 0.05, 2_000)
    difference = coefficient_difference(0.1, samples, effective_n=25.0)
    turned = coefficient_difference(-0.1, -samples, effective_n=25.0)
    assert (turned.low, turned.high, turned.p) == (-difference.high, -difference.low, difference.p)


def test_undefined_differences_have_no_interval() -> None:
    for value, samples in ((np.nan, np.zeros(10)), (0.1, np.empty(0)), (0.1, np.full(9, np.nan))):
        difference = coefficient_difference(value, samples, effective_n=20.0)
        assert np.isnan([difference.low, difference.high, difference.p]).all()


def test_equal_judges_do_not_differ() -> None:
    difference = coefficient_difference(0.0, np.zeros(100), effective_n=20.0)
    assert (difference.low, difference.high, difference.p) == (0.0, 0.0, 1.0)
