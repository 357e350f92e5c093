"""The interval of a ratio of means holds the truth, also where the lower mean may be 0."""

import numpy as np
import pytest
from scipy import stats

from ranktilt.statistics.regression import Floats, Ints, Ratio, ratio_of_means


def independent(above: Floats, below: Floats) -> Ratio:
    rows = np.arange(len(above))
    return ratio_of_means(above, below, rows, rows)


def test_the_ends_are_ratios_at_the_limit_of_a_t_test() -> None:
    rng = np.random.default_rng(0)
    below = rng.normal(1, 1, 30)
    above = 0.3 * below + rng.normal(0, 0.5, 30)
    found = independent(above, below)
    assert found.value == pytest.approx(above.mean() / below.mean())
    assert found.f == pytest.approx(stats.ttest_1samp(below, 0).statistic ** 2)
    for end in (found.low, found.high):
        assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)


def test_a_lower_mean_that_may_be_0_leaves_no_end() -> None:
    found = independent(np.array([1.0, 2.0, 3.0, 2.0]), np.array([1.0, -1.0, 1.0, -0.5]))
    assert np.isnan([found.low, found.high]).all()
    assert found.value == pytest.approx(16)


def test_rows_that_are_repeated_say_no_more() -> None:
    rng = np.random.default_rng(1)
    below, noise = rng.normal(1, 0.4, 25), rng.normal(0, 0.2, 25)
    once, twice = independent(noise, below), np.repeat(np.arange(25), 2)
    again = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), twice, twice)
    assert again == pytest.approx(once)
    by_origin = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), np.arange(50), twice)
    assert by_origin == pytest.approx(once, rel=0.02)


@pytest.mark.parametrize(("size", "effect"), [(1, 0.5), (3, 0.7)])
def test_coverage_in_simulated_draws(size: int, effect: float) -> None:
    rng = np.random.default_rng(2)
    held = sum(_holds(rng, size, effect) for _ in range(400))
    assert 0.93 <= held / 400 <= 0.99


def _holds(rng: np.random.Generator, size: int, effect: float, truth: float = -0.05) -> bool:
    """Draw 100 pairs of queries and origins that several pairs share, and a confounder of both gaps."""
    first: Ints = np.arange(100) // size
    second: Ints = rng.permutation(100) // size
    shared = 0.7 * (rng.standard_normal(100)[first] + rng.standard_normal(100)[second])
    below = -effect + (rng.standard_normal(100) + shared) / np.sqrt(2)
    above = truth * below + 0.03 * shared + 0.1 * rng.standard_normal(100)
    found = ratio_of_means(above, below, first, second)
    return bool(np.isnan(found.low) or found.low <= truth <= found.high)
