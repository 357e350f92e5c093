"""Coefficients of agreement and of order: published values, peers, tables by hand, and ties by
every order.
"""

from collections.abc import Iterator
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from ranktilt.judging.judge import judge
from ranktilt.statistics.judges.agreement import cohen_kappa, coincidences_of, krippendorff_alpha
from ranktilt.statistics.judges.prediction_powered import powered_mean
from ranktilt.statistics.judges.rank_correlation import (
    coefficient_interval,
    kendall_tau,
    near_resamples,
    rank_biased_overlap,
    top_weighted_tau,
)

Floats = npt.NDArray[np.float64]
systems = st.lists(st.integers(0, 3), min_size=5, max_size=5).map(
    lambda scores: np.array(scores, dtype=float)
)


@pytest.mark.parametrize(
    ("name", "kappa", "alpha"),
    [
        ("willia-umbrela1", 0.2863, 0.4918),
        ("h2oloo-zeroshot1", 0.2817, 0.4812),
        ("h2oloo-fewself", 0.2774, 0.4958),
        ("TREMA-nuggets", 0.0604, 0.1691),
        ("Olz-gpt4o", 0.2625, 0.5020),
    ],
)
def test_published_judges_agree_as_published(
    shared_data: Path, name: str, kappa: float, alpha: float
) -> None:
    """Table 3 of arXiv 2502.13908: κ and α of judges of the LLMJudge challenge, over 4,423
    pairs.
    """
    folder = shared_data / "llm-judges"
    result = judge(folder / f"{name}.qrels.gz", folder / "human.qrels.gz", resamples=100)
    (row,) = result.overall
    assert (round(row.kappa.value, 4), round(row.alpha.value, 4)) == (kappa, alpha)
    assert (row.judge, row.pairs, row.queries) == (name, 4423, 25)
    assert row.kappa.low < kappa < row.kappa.high


def test_kappa_and_alpha_of_two_and_three_judges_by_hand() -> None:
    """Of 10 pairs 3 + 2 + 2 agree; by chance 4 · 5 + 3 · 3 + 3 · 2 of 100."""
    table = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    assert cohen_kappa(table) == pytest.approx((0.7 - 0.35) / (1 - 0.35))
    # Squared distances: 1 + 1 + 4 of 10 observed; by chance (4·3 + 3·5 + 3·2 + 3·3 + 4·(4·2 + 3·5))
    # of 100.
    assert cohen_kappa(table, "quadratic") == pytest.approx(1 - 0.6 / 1.34)
    # Two pairs (0, 0), one (0, 1), one (1, 1): 5 zeros and 3 ones; one of four disagrees.
    table = np.array([[2.0, 1.0], [0.0, 1.0]])
    assert krippendorff_alpha(table + table.T) == pytest.approx(1 - 7 * 2 / (2 * 5 * 3))
    grades = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, np.nan]], dtype=float)
    assert coincidences_of(grades, 1).tolist() == (table + table.T).tolist()
    # A unit with grades 0, 0, 1 has six ordered pairs, each of weight 1/2.
    assert coincidences_of(np.array([[0.0, 0.0, 1.0]]), 1).tolist() == [[1.0, 1.0], [1.0, 0.0]]
    constant = np.array([[0.0, 3.0], [0.0, 2.0]])
    assert np.isnan(cohen_kappa(constant))
    assert np.isnan(cohen_kappa(constant.T, "quadratic"))
    assert np.isnan(krippendorff_alpha(np.diag([4.0, 0.0])))


@given(systems, systems)
def test_tau_is_scipys(first: Floats, second: Floats) -> None:
    assert kendall_tau(first, second) == pytest.approx(kendalltau(first, second)[0], nan_ok=True)


def test_tau_a_counts_ties_as_neither_and_weighs_the_top() -> None:
    """Of three pairs one agrees, and two are tied in one of both scorings."""
    first, second = np.array([3.0, 2.0, 1.0]), np.array([2.0, 2.0, 1.0])
    assert kendall_tau(first, second, "a") == pytest.approx(2 / 3)
    assert kendall_tau(first, second) == pytest.approx(2 / np.sqrt(3 * 2))
    truth = np.arange(6.0, 0, -1)
    top, bottom = truth[[1, 0, 2, 3, 4, 5]], truth[[0, 1, 2, 3, 5, 4]]
    assert kendall_tau(truth, top) == kendall_tau(truth, bottom)
    assert top_weighted_tau(truth, top) < top_weighted_tau(truth, bottom)
    assert np.isnan(
        [top_weighted_tau(np.ones(1), np.ones(1)), rank_biased_overlap(np.ones(0), np.ones(0))]
    ).all()
    assert rank_biased_overlap(truth, top) < rank_biased_overlap(truth, bottom)


def orders(scores: Floats) -> Iterator[Floats]:
    """Scores without ties, one for each order that the ties allow."""
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            strict = np.empty(len(scores))
            strict[list(order)] = np.arange(len(scores), 0, -1)
            yield strict


def plain_tau_ap(reference: Floats, estimate: Floats) -> float:
    order = np.argsort(-estimate)
    shares = [
        np.mean([reference[above] > reference[order[i]] for above in order[:i]])
        for i in range(1, len(order))
    ]
    return float(2 * np.mean(shares) - 1)


def plain_rbo(a: Floats, b: Floats, p: float = 0.9) -> float:
    first, second = np.argsort(-a).tolist(), np.argsort(-b).tolist()
    overlap = [len({*first[:d]} & {*second[:d]}) / d for d in range(1, len(first) + 1)]
    series = sum(p ** (d - 1) * share for d, share in enumerate(overlap, start=1))
    return (1 - p) * series + p ** len(first) * overlap[-1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([3, 2, 2, 1, 0], [1, 1, 2, 2, 2]),
        ([1, 1, 1, 1, 1], [4, 3, 2, 1, 0]),
        ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),
        ([4, 3, 2, 1, 0], [0, 1, 2, 3, 4]),
        ([2, 2, 1, 1, 0], [0, 0, 1, 2, 2]),
    ],
)
def test_ties_share_their_ranks(first: list[int], second: list[int]) -> None:
    """The mean over all orders of tied systems, each counted by a plain double loop."""
    scores = [np.array(values, dtype=float) for values in (first, second)]
    every = list(product(*map(orders, scores)))
    assert top_weighted_tau(*scores) == pytest.approx(
        np.mean([plain_tau_ap(*both) for both in every])
    )
    assert rank_biased_overlap(*scores) == pytest.approx(
        np.mean([plain_rbo(*both) for both in every])
    )


def test_coefficients_of_many_resamples_are_those_of_each() -> None:
    first, second = np.random.default_rng(1).integers(0, 5, (2, 3, 4, 7)).astype(float)
    for coefficient in (kendall_tau, top_weighted_tau, rank_biased_overlap):
        every = coefficient(first, second)
        assert every.shape == (3, 4)
        assert every[1, 2] == pytest.approx(float(coefficient(first[1, 2], second[1, 2])))


@pytest.mark.parametrize(
    ("value", "least", "interval"),
    [
        (0.9, -1.0, (0.024, 1.0)),  # 2 · .9 − .975 = .825 is above .024; 2 · .9 − .024 is above 1
        (0.2, -1.0, (-0.575, 0.975)),  # 2 · .2 − .975; 2 · .2 − .024 = .376 is below .975
        (0.2, 0.0, (0.0, 0.975)),  # overlap cannot fall below 0
        (0.99, 0.0, (0.024, 1.0)),  # all resamples lie below the value
    ],
)
def test_coefficient_interval_is_wider_of_percentiles_and_turned_ones(
    value: float, least: float, interval: tuple[float, float]
) -> None:
    """Of 0, .001, … .999 the percentile ends are the 25th and the 976th: .024 and .975."""
    samples = np.arange(1000) / 1000
    # Where near resamples all give one value, nothing is added to what is less biased.
    near_samples = np.full(1000, value)
    ends = coefficient_interval(value, samples, near_samples, least=least)
    assert (ends.low, ends.high) == pytest.approx(interval)


def test_coefficient_interval_reaches_as_far_as_near_resamples() -> None:
    """Samples from .3 to .5 about .4 move a value of .45 to .5; near ones of ±.06 reach .06 / .3 ·
    1.96 = .392.
    """
    samples = np.linspace(0.3, 0.5, 1000)
    near_samples = np.tile([0.39, 0.51], 500)
    ends = coefficient_interval(0.45, samples, near_samples, least=-1.0)
    assert (ends.low, ends.high) == pytest.approx((0.5 - 0.392, 0.5 + 0.392))


def test_near_resamples_keep_three_tenths_of_the_way() -> None:
    assert near_resamples(np.array([1.0, 2.0]), np.array([[2.0, 1.0]])).tolist() == [[1.3, 1.7]]


def test_prediction_powered_means_are_ppi_pythons() -> None:
    """Means of ppi-python 0.2.3, whose wheel would shadow our tests, and its normal intervals.

    At 40 labels, n − 2 and t with 38 degrees of freedom widen them by at most √(40/38) · 2.024/1.96
    = 1.06.
    """
    for share, value, low, high in (
        (0.0, 0.47956568693680063, 0.3943614125036852, 0.564769961369916),
        (0.3, 0.4764660441247076, 0.39421064421144913, 0.5587214440379661),
        (0.95, 0.5060504415763538, 0.4763309073735575, 0.5357699757791501),
    ):
        rng = np.random.default_rng(3)
        truth = rng.random(340)
        judged = share * truth + (1 - share) * rng.random(340)
        powered = powered_mean(truth[:40], judged[:40], judged[40:])
        assert powered.value == pytest.approx(value, abs=1e-9)
        assert powered.high - powered.value == pytest.approx(powered.value - powered.low)
        assert 1.03 < (powered.high - powered.low) / (high - low) < 1.06
        assert (powered.effective > 200) == (share == 0.95)


def test_prediction_powered_mean_of_four_labels_by_hand() -> None:
    """λ = (1/4)/(2 · 15/56); the mean is (1 − λ)/2 + λ · 3/4, its variance (1 − λ)²/4/2 + λ² ·
    (3/16)/4.
    """
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    powered = powered_mean(labels, labels, np.array([1.0, 1.0, 1.0, 0.0]))
    assert powered.weight == pytest.approx(7 / 15)
    assert powered.value == pytest.approx(0.616667, abs=1e-6)
    assert powered.high - powered.value == pytest.approx(4.302653 * 0.213926, abs=1e-5)
    # A judge that gives one value tells nothing: .5 ± t(2) · √(.05/2).
    alone = powered_mean(np.array([0.2, 0.4, 0.6, 0.8]), np.full(4, 0.5), np.array([0.1, 0.9]))
    assert (alone.weight, alone.value) == (0.0, pytest.approx(0.5))
    assert alone.high == pytest.approx(0.5 + 4.302653 * 0.158114, abs=1e-5)
    assert alone.effective == pytest.approx(4)


@pytest.mark.parametrize("labels", [[0.2, 0.4], [0.2, 0.4, 0.6], [1.0, 1.0, 1.0, 1.0, 1.0]])
def test_few_or_equal_labels_have_a_value_without_interval(labels: list[float]) -> None:
    powered = powered_mean(np.array(labels), np.full(len(labels), 0.5), np.array([0.1, 0.9]))
    assert powered.value == pytest.approx(np.mean(labels))
    assert np.isnan([powered.low, powered.high, powered.effective]).all()
    assert np.isnan(powered_mean(np.ones(1), np.ones(1), np.ones(3)).value)


def test_prediction_powered_intervals_cover_and_ignore_a_blind_judge() -> None:
    """Of 1,000 draws with a biased judge 93 to 98 % hold the mean, at 5 labels and at 100; normal
    ones 81 % at 5.
    """
    for labels in (5, 100):
        rng = np.random.default_rng(5)
        hits, worth = 0, list[float]()
        for _ in range(1000):
            truth = rng.normal(0.5, 0.2, 6 * labels)
            judged = 0.2 + 0.8 * truth + rng.normal(0, 0.15, 6 * labels)
            powered = powered_mean(truth[:labels], judged[:labels], judged[labels:])
            hits += powered.low <= 0.5 <= powered.high
            worth.append(powered.effective)
        assert 930 <= hits <= 985
        assert np.median(worth) > 1.3 * labels


def test_a_judge_without_further_labels_or_with_equal_ones_has_no_weight() -> None:
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    for judged, more in ((labels, np.empty(0)), (np.ones(5), np.ones(7))):
        powered = powered_mean(labels, judged, more)
        assert (powered.weight, powered.value) == (0.0, pytest.approx(0.6))
