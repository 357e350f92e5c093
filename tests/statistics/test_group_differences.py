"""Whether groups of queries differ: Welch's test, shuffled groups, documents, and their level."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.oneway import anova_oneway

from ranktilt.statistics.group_differences import (
    QueryScores,
    effective_documents,
    group_differences,
    welch_p,
)

SIZES = (12, 20, 30)
GROUP = np.repeat(np.arange(3), SIZES)


def uneven_scores(seed: int) -> np.ndarray:
    """Scores of three groups that scatter as 1 : 2 : 3, without a difference of their means."""
    return np.random.default_rng(seed).normal(size=len(GROUP)) * np.array([1, 2, 3])[GROUP]


@pytest.mark.parametrize("shift", [0.0, 0.7, 3.0])
def test_welch_is_that_of_statsmodels(shift: float) -> None:
    score = uneven_scores(1) + shift * (GROUP == 1)
    peer = anova_oneway(score, GROUP, use_var="unequal", welch_correction=True)
    assert welch_p(QueryScores.from_scores(score), GROUP) == pytest.approx(peer.pvalue, rel=1e-9)


def test_two_groups_are_welchs_t() -> None:
    score = uneven_scores(2)
    is_first = (GROUP == 0).astype(np.int64)
    peer = anova_oneway(score, is_first, use_var="unequal", welch_correction=True)
    tests = group_differences(QueryScores.from_scores(score), GROUP, resamples=200, seed=0)
    assert tests.against_rest[0].welch_p == pytest.approx(peer.pvalue, rel=1e-9)


def test_larger_p_counts_and_a_shift_is_found() -> None:
    score = uneven_scores(3) + 4.0 * (GROUP == 0)
    tests = group_differences(QueryScores.from_scores(score), GROUP, resamples=2_000, seed=0)
    assert tests.together.p == max(tests.together.shuffle_p, tests.together.welch_p)
    assert tests.together.p < 0.01
    assert tests.against_rest[0].p < 0.01


def test_shuffles_follow_the_seed_alone() -> None:
    scores = QueryScores.from_scores(uneven_scores(4))
    first, second = (group_differences(scores, GROUP, resamples=300, seed=5) for _ in range(2))
    assert first == second


def test_scores_without_scatter() -> None:
    constant = QueryScores.from_scores(np.zeros(len(GROUP)))
    tests = group_differences(constant, GROUP, resamples=200, seed=0)
    assert (tests.together.p, tests.against_rest[2].p) == (1.0, 1.0)
    # One group whose queries all agree has the scatter of the others.
    score = np.where(GROUP == 0, 0.0, uneven_scores(5))
    tests = group_differences(QueryScores.from_scores(score), GROUP, resamples=200, seed=0)
    assert 0.01 < tests.together.p <= 1.0


def test_documents_that_a_group_shares_make_it_less_certain() -> None:
    """One document carries half of each score of the first group."""
    score = np.where(GROUP == 0, 1.0, 0.0) + 0.3 * uneven_scores(6)
    query = np.repeat(np.arange(len(GROUP)), 2)
    is_first = GROUP[query] == 0
    unshared = np.arange(len(query))
    is_second_cell = unshared % 2 == 1
    shared = np.where(is_first & is_second_cell, len(query), unshared)

    def p(origin: np.ndarray) -> float:
        scores = QueryScores(
            score=score,
            query=query,
            origin=origin,
            residual=np.repeat(score / 2, 2),
            weight=np.ones(len(query)),
        )
        return welch_p(scores, GROUP)

    assert p(unshared) == pytest.approx(welch_p(QueryScores.from_scores(score), GROUP))
    assert p(shared) > p(unshared)


def test_effective_documents_of_groups() -> None:
    scores = QueryScores(
        score=np.zeros(3),
        query=np.array([0, 0, 1, 2, -1]),
        origin=np.array([0, 1, 1, 2, 3]),
        residual=np.zeros(5),
        weight=np.array([1.0, 1.0, 1.0, 1.0, 9.0]),
    )
    # Of the first two queries, document 0 has the weight 1 and document 1 has 2: (1 + 2)² / 5.
    assert effective_documents(scores, np.array([0, 0, 1])).tolist() == [1.8, 1.0]


def skewed_world(rng: np.random.Generator, sizes: list[int], spread: list[float]) -> QueryScores:
    """Ratios of skewed totals of unequal weight, half of them 0, that scatter by group."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    query = np.repeat(np.arange(len(group)), 3)
    weight = rng.lognormal(0, 0.7, len(query))
    noise = (rng.standard_exponential(len(query)) - 1) * (rng.random(len(query)) < 0.5)
    total = weight * noise * np.array(spread)[group[query]]
    ratio = total.sum() / weight.sum()
    return QueryScores(
        score=np.bincount(query, weights=total - ratio * weight),
        query=query,
        origin=np.arange(len(query)),
        residual=total - ratio * weight,
        weight=weight,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "spread"),
    [
        ([10, 10, 10, 10], [1, 1, 1, 1]),
        ([10, 10, 30, 30], [3, 3, 1, 1]),
        ([10, 30, 30], [1, 1, 3]),
        ([15, 15], [1, 1]),
        ([20, 20, 20, 20], [1, 1, 1, 1]),
    ],
)
def test_level_at_ten_to_thirty_queries_a_group(sizes: list[int], spread: list[float]) -> None:
    group = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(1)
    draws = 800
    ps = [
        group_differences(skewed_world(rng, sizes, spread), group, resamples=299, seed=draw)
        for draw in range(draws)
    ]
    error = np.sqrt(0.05 * 0.95 / draws)
    for p in (
        np.array([tests.together.p for tests in ps]),
        np.array([tests.against_rest[0].p for tests in ps]),
    ):
        assert (p <= 0.05).mean() <= 0.06 + 2.6 * error


@pytest.mark.long
def test_level_where_each_group_has_documents_of_its_own() -> None:
    """Twelve documents a group, each with its tilt: 30 queries repeat what few documents say."""
    group = np.repeat(np.arange(4), 30)
    query = np.repeat(np.arange(len(group)), 3)
    rng = np.random.default_rng(2)
    draws, rejected, by_shuffles = 400, 0, 0
    for draw in range(draws):
        origin = group[query] * 12 + rng.integers(0, 12, len(query))
        total = rng.normal(size=48)[origin] * 0.7 + rng.normal(size=len(query))
        residual = total - total.mean()
        scores = QueryScores(
            score=np.bincount(query, weights=residual),
            query=query,
            origin=origin,
            residual=residual,
            weight=np.ones(len(query)),
        )
        together = group_differences(scores, group, resamples=199, seed=draw).together
        rejected += together.p <= 0.05
        by_shuffles += together.shuffle_p <= 0.05
    assert rejected / draws <= 0.06 + 2.6 * np.sqrt(0.05 * 0.95 / draws)
    assert by_shuffles / draws > 0.2  # shuffled groups alone would name differences of documents
