"""Interval and p are one statement: a percentile interval, stretched, and its inversion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import TwoWayVariance

UNBOUNDED = (-np.inf, np.inf)


def variance(*, of_queries: float = 1.0, of_both: float = 1.0, n: float = 1e9) -> TwoWayVariance:
    return TwoWayVariance(of_queries=of_queries, of_both=of_both, effective_n=n)


def normal_draws(count: int = 10_000) -> np.ndarray:
    """Quantiles of the standard normal distribution, so that order statistics are known."""
    return stats.norm.ppf((np.arange(count) + 0.5) / count)


class TestInterval:
    def test_one_way_and_many_queries_give_the_percentile_interval(self) -> None:
        draws = normal_draws()
        inference = infer(draws, 0.0, variance=variance(), neutral=5.0, bounds=UNBOUNDED)
        assert inference.low == pytest.approx(draws[249])
        assert inference.high == pytest.approx(draws[9750])
        assert inference.error == pytest.approx(1, abs=1e-3)

    def test_ends_move_by_the_root_of_the_variances_and_by_t(self) -> None:
        """V is 4 · 11/10 for V_q of 1, and t of 10 degrees of freedom stands for 1.96."""
        draws = normal_draws()
        wide = variance(of_both=4.0, n=11)
        inference = infer(draws, 0.0, variance=wide, neutral=5.0, bounds=UNBOUNDED)
        factor = 2 * np.sqrt(1.1) * stats.t.ppf(0.975, 10) / stats.norm.ppf(0.975)
        assert inference.low == pytest.approx(factor * draws[249])
        assert inference.error == pytest.approx(2, abs=2e-3)

    def test_bounds_hold(self) -> None:
        inference = infer(normal_draws(), 0.0, variance=variance(), neutral=0.5, bounds=(-1.0, 1.0))
        assert (inference.low, inference.high) == (-1, 1)

    def test_one_query_gives_none(self) -> None:
        inference = infer(
            np.ones(100), 1.0, variance=variance(n=1.0), neutral=0.0, bounds=UNBOUNDED
        )
        assert np.isnan([inference.low, inference.high, inference.p]).all()


class TestP:
    @pytest.mark.parametrize("draws", [normal_draws(1_000), np.ones(100)])
    def test_is_unknown_where_the_neutral_value_is(self, draws: np.ndarray) -> None:
        value, spread = float(draws.mean()), float(draws.var())
        known = variance(of_queries=spread, of_both=spread, n=20)
        inference = infer(draws, value, variance=known, neutral=np.nan, bounds=(-9.0, 9.0))
        assert np.isnan(inference.p)
        assert inference.low <= value <= inference.high

    @pytest.mark.parametrize("z", [0.5, 1.0, 1.9, 2.0, 2.9, 4.0, 6.0])
    def test_of_normal_draws_is_the_normal_one(self, z: float) -> None:
        inference = infer(normal_draws(), 0.0, variance=variance(), neutral=z, bounds=UNBOUNDED)
        assert inference.p == pytest.approx(2 * stats.norm.sf(z), rel=0.2)

    @pytest.mark.parametrize("t", [1.0, 2.0, 5.0])
    def test_of_few_votes_is_that_of_t(self, t: float) -> None:
        few = variance(of_both=10 / 11, n=11)  # V is 1
        inference = infer(normal_draws(), 0.0, variance=few, neutral=-t, bounds=UNBOUNDED)
        assert inference.p == pytest.approx(2 * stats.t.sf(t, 10), rel=0.04)

    def test_at_the_value_is_1(self) -> None:
        assert infer(normal_draws(), 0.0, variance=variance(), neutral=0.0, bounds=UNBOUNDED).p == 1

    @given(st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(1.0, 9.0), st.floats(2.5, 300))
    @settings(max_examples=200)
    def test_below_05_is_what_the_interval_says(
        self, seed: int, neutral: float, both: float, n: float
    ) -> None:
        rng = np.random.default_rng(seed)
        draws = rng.gamma(2.0, size=999) - 2  # askew, and of a number that 40 does not divide
        wide = variance(of_both=both, n=n)
        inference = infer(draws, 0.0, variance=wide, neutral=neutral, bounds=UNBOUNDED)
        is_excluded = not inference.low <= neutral <= inference.high
        assert (inference.p < 0.05) == is_excluded

    @given(st.integers(0, 2**32 - 1), st.floats(-2, 2))
    @settings(max_examples=50)
    def test_negating_everything_swaps_the_ends_exactly(self, seed: int, neutral: float) -> None:
        draws = np.random.default_rng(seed).gamma(2.0, size=400)
        wide = variance(of_both=2.0, n=20)
        inference = infer(draws, 2.0, variance=wide, neutral=neutral, bounds=(-9.0, 9.0))
        mirrored = infer(-draws, -2.0, variance=wide, neutral=-neutral, bounds=(-9.0, 9.0))
        assert inference == Inference(
            low=-mirrored.high, high=-mirrored.low, error=mirrored.error, p=mirrored.p, dropped=0
        )


class TestBesideABound:
    """One of 30 votes is on the far side: 200 · (29 − 1)/30 = 186.7, with the variance of such a
    share.
    """

    VALUE = 200 * (1 - 2 / 30)
    SHARE = 1 / 30
    VARIANCE = variance(
        of_queries=400**2 * SHARE * (1 - SHARE) / 30,
        of_both=400**2 * SHARE * (1 - SHARE) / 30,
        n=30,
    )

    def inferred(self, *, neutral: float, sign: int = 1) -> Inference:
        far = np.random.default_rng(0).poisson(1.0, size=2_000)
        return infer(
            sign * 200 * (1 - 2 * far / 30),
            sign * self.VALUE,
            variance=self.VARIANCE,
            neutral=sign * neutral,
            bounds=(-200.0, 200.0),
        )

    def test_interval_is_at_least_that_of_few_votes(self) -> None:
        """n/(n − 1) leaves 29 votes, of which 29/30 are far: scipy's exact interval of shares near
        that.
        """
        most = stats.beta.ppf(0.975, 29 / 30 + 1, 29 - 29 / 30)
        inference = self.inferred(neutral=0.0)
        assert inference.low == pytest.approx(200 * (1 - 2 * most))
        assert 120 < inference.low < 135  # of whole votes, 1 of 30: 131
        assert inference.high == 200

    @pytest.mark.parametrize("neutral", [0.0, 100.0, 129.0, 133.0, 150.0, 180.0, 190.0, 199.5])
    def test_p_is_what_the_interval_says(self, neutral: float) -> None:
        inference = self.inferred(neutral=neutral)
        assert (inference.p < 0.05) == (not inference.low <= neutral <= inference.high)

    def test_the_other_side_is_its_mirror(self) -> None:
        inference, mirrored = self.inferred(neutral=140.0), self.inferred(neutral=140.0, sign=-1)
        assert (inference.low, inference.high, inference.p) == (
            -mirrored.high,
            -mirrored.low,
            mirrored.p,
        )

    def test_many_votes_leave_the_percentiles(self) -> None:
        """Of 600 votes 20 are on the far side, which is enough for resamples to tell."""
        far = np.random.default_rng(0).binomial(600, self.SHARE, size=2_000)
        many = variance(
            of_queries=400**2 * self.SHARE * (1 - self.SHARE) / 600,
            of_both=400**2 * self.SHARE * (1 - self.SHARE) / 600,
            n=600,
        )
        draws = 200 * (1 - 2 * far / 600)
        bounded = infer(draws, self.VALUE, variance=many, neutral=0.0, bounds=(-200.0, 200.0))
        unbounded = infer(draws, self.VALUE, variance=many, neutral=0.0, bounds=UNBOUNDED)
        assert bounded == unbounded


class TestWithoutSpread:
    def test_all_on_one_side_leave_an_interval(self) -> None:
        """Of 10 votes all are on one side: a share of .025^(1/10) = .691 does so in 2.5 %
        of cases.
        """
        inference = infer(
            np.full(100, 200.0),
            200.0,
            variance=variance(of_queries=0.0, of_both=0.0, n=10),
            neutral=0.0,
            bounds=(-200.0, 200.0),
        )
        assert inference.low == pytest.approx(200 * (2 * 0.025**0.1 - 1))
        assert inference.high == 200
        assert inference.p == 2 * 0.5**10

    def test_the_other_side_is_its_mirror(self) -> None:
        inference = infer(
            np.full(100, -1.0),
            -1.0,
            variance=variance(of_queries=0.0, of_both=0.0, n=10),
            neutral=0.0,
            bounds=(-1.0, 1.0),
        )
        assert inference.low == -1
        assert inference.high == pytest.approx(1 - 2 * 0.025**0.1)
        assert inference.p == 2 * 0.5**10

    def test_a_difference_of_rounding_is_none(self) -> None:
        """Sums of the same numbers in another order differ in their last bits, and so do votes on
        one side.
        """
        value = 200 - 3e-14
        inference = infer(
            np.array([value, 200.0] * 50),
            value,
            variance=variance(of_queries=1e-27, of_both=3e-27, n=10),
            neutral=0.0,
            bounds=(-200.0, 200.0),
        )
        assert inference.low == pytest.approx(200 * (2 * 0.025**0.1 - 1))
        assert inference.high == value
        assert inference.p == pytest.approx(2 * 0.5**10)

    def test_the_same_everywhere_is_a_vote_each(self) -> None:
        same = variance(of_queries=0.0, of_both=0.0, n=6)
        inference = infer(np.ones(100), 1.0, variance=same, neutral=0.0, bounds=UNBOUNDED)
        assert (inference.low, inference.high, inference.p) == (1, 1, 2 * 0.5**6)
        level = infer(np.zeros(100), 0.0, variance=same, neutral=0.0, bounds=UNBOUNDED)
        assert (level.low, level.high, level.p) == (0, 0, 1)

    def test_documents_differ_where_queries_do_not(self) -> None:
        """V is 1 · 5/4, and t of 4 degrees of freedom gives the ends."""
        inference = infer(
            np.ones(100),
            1.0,
            variance=variance(of_queries=0.0, of_both=1.0, n=5),
            neutral=0.0,
            bounds=UNBOUNDED,
        )
        half = np.sqrt(1.25) * stats.t.ppf(0.975, 4)
        assert (inference.low, inference.high) == pytest.approx((1 - half, 1 + half))
        assert inference.p == pytest.approx(2 * stats.t.sf(1 / np.sqrt(1.25), 4))
