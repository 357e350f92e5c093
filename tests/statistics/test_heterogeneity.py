"""How much of the variance over queries is more than noise: split halves of the documents."""

from __future__ import annotations

import numpy as np
import pytest

from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.heterogeneity import split_half_share


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
