"""Coefficients of agreement and of order: published values, peers, tables by hand, and ties by every order."""

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
from ranktilt.statistics.agreement import cohen_kappa, coincidences_of, krippendorff_alpha
from ranktilt.statistics.prediction_powered import powered_mean
from ranktilt.statistics.rank_correlation import kendall_tau, rank_biased_overlap, top_weighted_tau

Floats = npt.NDArray[np.float64]
systems = st.lists(st.integers(0, 3), min_size=5, max_size=5).map(lambda scores: np.array(scores, dtype=float))


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
def test_published_judges_agree_as_published(shared_data: Path, name: str, kappa: float, alpha: float) -> None:
    """Table 3 of arXiv 2502.13908: κ and α of judges of the LLMJudge challenge, over 4,423 pairs."""
    folder = shared_data / "llm-judges"
    found = judge(folder / f"{name}.qrels.gz", folder / "human.qrels.gz", resamples=100)
    (row,) = found.overall
    assert (round(row.kappa.value, 4), round(row.alpha.value, 4)) == (kappa, alpha)
    assert (row.judge, row.pairs, row.queries) == (name, 4423, 25)
    assert row.kappa.low < kappa < row.kappa.high


def test_kappa_and_alpha_of_two_and_three_judges_by_hand() -> None:
    """Of 10 pairs 3 + 2 + 2 agree; by chance 4 · 5 + 3 · 3 + 3 · 2 of 100."""
    table = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    assert cohen_kappa(table) == pytest.approx((0.7 - 0.35) / (1 - 0.35))
    # Squared distances: 1 + 1 + 4 of 10 observed; by chance (4·3 + 3·5 + 3·2 + 3·3 + 4·(4·2 + 3·5)) of 100.
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
def test_tau_is_scipys(one: Floats, two: Floats) -> None:
    assert kendall_tau(one, two) == pytest.approx(kendalltau(one, two)[0], nan_ok=True)


def test_tau_a_counts_ties_as_neither_and_errors_at_the_top_weigh_more() -> None:
    """Of three pairs one agrees, and two are tied in one of both scorings."""
    one, two = np.array([3.0, 2.0, 1.0]), np.array([2.0, 2.0, 1.0])
    assert kendall_tau(one, two, "a") == pytest.approx(2 / 3)
    assert kendall_tau(one, two) == pytest.approx(2 / np.sqrt(3 * 2))
    truth = np.arange(6.0, 0, -1)
    top, bottom = truth[[1, 0, 2, 3, 4, 5]], truth[[0, 1, 2, 3, 5, 4]]
    assert kendall_tau(truth, top) == kendall_tau(truth, bottom)
    assert top_weighted_tau(truth, top) < top_weighted_tau(truth, bottom)
    assert np.isnan([top_weighted_tau(np.ones(1), np.ones(1)), rank_biased_overlap(np.ones(0), np.ones(0))]).all()
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
    shares = [np.mean([reference[above] > reference[order[i]] for above in order[:i]]) for i in range(1, len(order))]
    return float(2 * np.mean(shares) - 1)


def plain_rbo(one: Floats, two: Floats, p: float = 0.9) -> float:
    first, second = np.argsort(-one).tolist(), np.argsort(-two).tolist()
    overlap = [len({*first[:d]} & {*second[:d]}) / d for d in range(1, len(first) + 1)]
    series = sum(p ** (d - 1) * share for d, share in enumerate(overlap, start=1))
    return (1 - p) * series + p ** len(first) * overlap[-1]


@pytest.mark.parametrize(
    ("one", "two"),
    [([3, 2, 2, 1, 0], [1, 1, 2, 2, 2]), ([1, 1, 1, 1, 1], [4, 3, 2, 1, 0]), ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),
     ([4, 3, 2, 1, 0], [0, 1, 2, 3, 4]), ([2, 2, 1, 1, 0], [0, 0, 1, 2, 2])],
)  # fmt: skip
def test_ties_share_their_ranks(one: list[int], two: list[int]) -> None:
    """The mean over all orders of tied systems, each counted by a plain double loop."""
    scores = [np.array(some, dtype=float) for some in (one, two)]
    every = list(product(*map(orders, scores)))
    assert top_weighted_tau(*scores) == pytest.approx(np.mean([plain_tau_ap(*both) for both in every]))
    assert rank_biased_overlap(*scores) == pytest.approx(np.mean([plain_rbo(*both) for both in every]))


def test_prediction_powered_means_are_ppi_pythons() -> None:
    """Values of ppi-python 0.2.3 (``ppi_mean_pointestimate``, ``ppi_mean_ci``), whose wheel would shadow our tests."""
    for share, value, low, high in (
        (0.0, 0.47956568693680063, 0.3943614125036852, 0.564769961369916),
        (0.3, 0.4764660441247076, 0.39421064421144913, 0.5587214440379661),
        (0.95, 0.5060504415763538, 0.4763309073735575, 0.5357699757791501),
    ):
        rng = np.random.default_rng(3)
        truth = rng.random(340)
        judged = share * truth + (1 - share) * rng.random(340)
        found = powered_mean(truth[:40], judged[:40], judged[40:])
        assert (found.value, found.low, found.high) == pytest.approx((value, low, high), abs=1e-9)
        assert (found.effective > 200) == (share == 0.95)


def test_prediction_powered_intervals_cover_the_mean_and_a_judge_that_knows_nothing_is_not_used() -> None:
    """Of 1,000 draws with a biased judge, 93 to 97 % hold the mean, and a judge that knows something narrows them."""
    rng = np.random.default_rng(5)
    held, worth = 0, list[float]()
    for _ in range(1000):
        truth = rng.normal(0.5, 0.2, 600)
        judged = 0.2 + 0.8 * truth + rng.normal(0, 0.15, 600)
        found = powered_mean(truth[:100], judged[:100], judged[100:])
        held += found.low <= 0.5 <= found.high
        worth.append(found.effective)
    assert 930 <= held <= 970
    assert np.median(worth) > 130
    labels = np.array([0.0, 1.0, 0.0, 1.0])
    found = powered_mean(labels, np.array([1.0, 0.0, 1.0, 0.0]), np.linspace(0, 1, 9))
    assert (found.weight, found.value, found.effective) == (0.0, 0.5, 4.0)
    assert np.isnan(powered_mean(labels[:1], labels[:1], labels).value)
