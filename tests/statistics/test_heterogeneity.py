"""How much of the variance over queries is more than noise: split halves, and repeats."""

from __future__ import annotations

import numpy as np
import pytest

from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.heterogeneity import repeat_share, split_half_share
from ranktilt.statistics.repeats import repeat_anova


def world(
    *, tilt: float, documents: int, queries: int = 300, seed: int = 0, unequal: bool = False
) -> QueryScores:
    """Queries with a tilt of their own, of which each document shows noise of variance 1."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), documents)
    weight = rng.uniform(0.2, 1.0, len(query)) if unequal else np.ones(len(query))
    residual = weight * (tilt * rng.normal(size=queries)[query] + rng.normal(size=len(query)))
    return QueryScores(
        score=np.bincount(query, weights=residual),
        query=query,
        origin=np.arange(len(query)),
        residual=residual,
        weight=weight,
    )


def test_is_the_mean_over_random_halves_stepped_up() -> None:
    scores = world(tilt=0.7, documents=6)
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(300):
        order = np.lexsort((rng.random(len(scores.query)), scores.query))
        is_half = np.zeros(len(order), dtype=bool)
        is_half[order] = np.arange(len(order)) % 6 < 3
        halves = [
            np.bincount(scores.query[half], weights=scores.residual[half])
            for half in (is_half, ~is_half)
        ]
        r = np.corrcoef(*halves)[0, 1]
        shares.append(2 * r / (1 + r))
    estimate = split_half_share(scores, resamples=300, seed=0)
    assert estimate.share == pytest.approx(np.mean(shares), abs=0.01)
    assert estimate.low < estimate.share < estimate.high
    assert estimate.queries == 300


@pytest.mark.parametrize(
    ("tilt", "documents", "expected"), [(0.5, 2, 1 / 3), (1.0, 2, 2 / 3), (0.5, 6, 0.6)]
)
def test_share_is_that_of_the_world(tilt: float, documents: int, expected: float) -> None:
    # n documents show a tilt of variance t² with noise of 1: n·t² / (n·t² + 1).
    shares = [
        split_half_share(
            world(tilt=tilt, documents=documents, seed=seed), resamples=100, seed=0
        ).share
        for seed in range(30)
    ]
    assert np.mean(shares) == pytest.approx(expected, abs=0.03)


def test_no_difference_between_queries_is_zero_and_never_less() -> None:
    for seed in range(20):
        estimate = split_half_share(
            world(tilt=0.0, documents=4, seed=seed, unequal=True), resamples=100, seed=0
        )
        assert 0.0 <= estimate.low <= estimate.share <= estimate.high
        assert estimate.low == 0.0
        assert estimate.share < 0.35


def test_queries_with_one_document_cannot_be_split() -> None:
    single = world(tilt=1.0, documents=1)
    estimate = split_half_share(single, resamples=100, seed=0)
    assert (estimate.queries, np.isnan(estimate.share)) == (0, True)
    few = world(tilt=1.0, documents=4, queries=9)
    assert np.isnan(split_half_share(few, resamples=100, seed=0).share)


class TestRepeats:
    @staticmethod
    def table(*, tilt: float, repeats: int, queries: int = 300, seed: int = 0) -> np.ndarray:
        """Scores of queries with a tilt of their own, and noise of variance 1 in each repeat."""
        rng = np.random.default_rng(seed)
        return tilt * rng.normal(size=(queries, 1)) + rng.normal(size=(queries, repeats))

    def test_by_hand(self) -> None:
        # Means 0 to 9 have MS queries of 2 · 82.5 / 9. The repeats are the mean ± 1 in turn, so
        # their own means are equal, and MS residual is 20 / 9.
        means = np.arange(10.0)
        signs = np.where(np.arange(10) % 2, 1.0, -1.0)
        scores = np.stack([means + signs, means - signs], axis=1)
        estimate = repeat_share(scores, resamples=100, seed=0)
        assert estimate.share == pytest.approx(1 - 20 / 165)
        assert estimate.queries == 10

    def test_interval_is_that_of_resampled_analyses(self) -> None:
        scores = self.table(tilt=0.7, repeats=3, queries=60)
        estimate = repeat_share(scores, resamples=4000, seed=0)
        rng = np.random.default_rng(1)
        shares = []
        for _ in range(4000):
            anova = repeat_anova(scores[rng.integers(0, 60, 60)])
            assert anova is not None
            shares.append(1 - anova.mean_square_residual / anova.mean_square_queries)
        low, high = np.quantile(shares, [0.025, 0.975])
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.02)

    @pytest.mark.parametrize(
        ("tilt", "repeats", "expected"), [(0.5, 2, 1 / 3), (1.0, 2, 2 / 3), (0.5, 6, 0.6)]
    )
    def test_share_is_that_of_the_world(self, tilt: float, repeats: int, expected: float) -> None:
        # The mean of R repeats shows a tilt of variance t² with noise of 1 / R.
        shares = [
            repeat_share(
                self.table(tilt=tilt, repeats=repeats, seed=seed), resamples=100, seed=0
            ).share
            for seed in range(30)
        ]
        assert np.mean(shares) == pytest.approx(expected, abs=0.03)

    def test_repeats_that_differ_as_wholes_are_no_noise_of_queries(self) -> None:
        scores = self.table(tilt=0.7, repeats=3)
        moved = scores + np.array([0.0, 5.0, -2.0])
        estimate, of_moved = (
            repeat_share(table, resamples=300, seed=0) for table in (scores, moved)
        )
        assert of_moved.share == pytest.approx(estimate.share)
        assert of_moved.low == pytest.approx(estimate.low)

    def test_never_below_zero(self) -> None:
        for seed in range(20):
            scores = self.table(tilt=0.0, repeats=3, seed=seed)
            estimate = repeat_share(scores, resamples=100, seed=0)
            assert 0.0 == estimate.low <= estimate.share <= estimate.high
            assert estimate.share < 0.35

    def test_identical_repeats_have_no_noise(self) -> None:
        scores = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 3, axis=1)
        estimate = repeat_share(scores, resamples=100, seed=0)
        assert (estimate.share, estimate.low) == pytest.approx((1.0, 1.0))

    def test_unknown_with_few_queries_or_without_variance(self) -> None:
        few = repeat_share(self.table(tilt=1.0, repeats=3, queries=9), resamples=100, seed=0)
        assert (few.queries, np.isnan(few.share)) == (9, True)
        assert np.isnan(repeat_share(np.zeros((20, 3)), resamples=100, seed=0).share)
