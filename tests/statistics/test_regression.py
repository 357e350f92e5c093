"""Regression with errors clustered two ways, shares of R², and the interval of a ratio of means."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ranktilt.statistics.regression import Floats, Ints, Ratio, ratio_of_means, regress

TRUE, MEANS = np.array([0.2, 0.5, -0.3, 0.0]), np.array([0.8, -0.5, 0.3])


def drawn(
    generator: np.random.Generator, *, of_query: float = 0.5, of_origin: float = 0.5, rough: bool = False
) -> tuple[np.ndarray, ...]:
    """Twins in queries: two correlated properties of the origin, and one of the pair; errors of query and origin.

    Rough ones have heavy-tailed errors (t, 3 degrees of freedom) and clusters of which a few hold most rows.
    """
    sizes, count = (60, 120), 900
    if rough:
        chances = [1 / np.arange(1, n + 1) ** 0.7 for n in sizes]
        query, origin = (generator.choice(n, count, p=c / c.sum()) for n, c in zip(sizes, chances, strict=True))
    else:
        query, origin = np.repeat(np.arange(sizes[0]), 15), generator.integers(0, sizes[1], count)
    x = generator.normal(size=(sizes[1], 3))[origin]
    x[:, 1] += 0.6 * x[:, 0]
    x[:, 2] += generator.normal(size=count)
    x += MEANS

    def errors(n: int) -> np.ndarray:
        return generator.standard_t(3, n) / np.sqrt(3) if rough else generator.normal(size=n)

    shared = of_query * errors(sizes[0])[query] + of_origin * errors(sizes[1])[origin]
    return TRUE[0] + x @ TRUE[1:] + shared + errors(count), x, query, origin


@pytest.mark.long
@pytest.mark.parametrize(
    ("of_query", "of_origin", "rough", "least"),
    [(0.5, 0.5, False, 920), (0, 0, False, 920), (1, 0, False, 920), (0, 1, False, 915), (0.5, 0.5, True, 905)],
)
def test_known_values_lie_within_95_percent_intervals(
    of_query: float, of_origin: float, rough: bool, least: int
) -> None:
    """Intercept, coefficients, mean, and its parts, whose regressors' means are estimates too.

    A part whose coefficient is 0 lies within more often, since its interval is never narrower than either estimate's.
    """
    generator, covered = np.random.default_rng(7), np.zeros(9)
    truth = np.r_[TRUE, TRUE[0], TRUE[1:] * MEANS, TRUE[0] + TRUE[1:] @ MEANS]
    for _ in range(1_000):
        found = regress(*drawn(generator, of_query=of_query, of_origin=of_origin, rough=rough))
        _, low, high = np.vstack([found.coefficients, found.parts, found.mean]).T
        covered += (low <= truth) & (truth <= high)
    assert (covered >= least).all()
    assert (np.delete(covered, 7) <= 980).all()
    assert 0.92 <= np.delete(covered, 7).mean() / 1_000 <= 0.97


def test_mean_is_the_sum_of_its_parts() -> None:
    y, x, query, origin = drawn(np.random.default_rng(4))
    found = regress(y, x, query, origin)
    assert found.parts[:, 0].sum() == pytest.approx(y.mean())
    assert found.mean == pytest.approx(regress(y, np.empty((len(y), 0)), query, origin).coefficients[0])
    assert found.parts[1:, 0] == pytest.approx(found.coefficients[1:, 0] * x.mean(axis=0))
    assert (found.parts[0] == found.coefficients[0]).all()


def test_as_numpy_and_as_a_sandwich_by_hand() -> None:
    y, x, query, origin = drawn(np.random.default_rng(1))
    design = np.column_stack([np.ones(len(y)), x])
    found = regress(y, x, query, origin)
    estimates, low, _ = found.coefficients.T
    np.testing.assert_allclose(estimates, np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-10)
    scores = design * (y - design @ estimates)[:, None]
    inverse = np.linalg.inv(design.T @ design)

    def sandwich(keys: list[tuple[int, ...]]) -> np.ndarray:
        meat, names = np.zeros((4, 4)), sorted(set(keys))
        for name in names:
            total = scores[[key == name for key in keys]].sum(0)
            meat += np.outer(total, total) * len(names) / (len(names) - 1)
        return inverse @ meat @ inverse

    one, two = ([(int(n),) for n in clusters] for clusters in (query, origin))
    both = [(*a, *b) for a, b in zip(one, two, strict=True)]
    summed = np.diag(sandwich(one) + sandwich(two) - sandwich(both))
    least = np.maximum(np.diag(sandwich(one)), np.diag(sandwich(two)))
    half = stats.t.ppf(0.975, 59) * np.sqrt(np.maximum(summed, least))
    np.testing.assert_allclose(estimates - low, half, atol=1e-12)


def test_shares_are_means_over_all_orders() -> None:
    y, x, query, origin = drawn(np.random.default_rng(2))

    def r2(some: tuple[int, ...]) -> float:
        design = np.column_stack([np.ones(len(y)), x[:, some]])
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return float(1 - rest @ rest / np.square(y - y.mean()).sum())

    found = regress(y, x, query, origin)
    orders = list(itertools.permutations(range(3)))
    shares = np.zeros(3)
    for order in orders:
        for place, column in enumerate(order):
            shares[column] += (r2(order[: place + 1]) - r2(order[:place])) / len(orders)
    np.testing.assert_allclose(found.shares, shares, atol=1e-10)
    assert found.shares.sum() == pytest.approx(found.r2)
    assert found.without == pytest.approx([r2((1, 2)), r2((0, 2)), r2((0, 1))])
    correlation = np.corrcoef(x.T)
    np.testing.assert_allclose(found.inflation, np.diag(np.linalg.inv(correlation)), rtol=1e-8)


def test_regressors_that_give_each_other_are_said_to() -> None:
    y, x, query, origin = drawn(np.random.default_rng(3))
    found = regress(y, np.column_stack([x[:, 0], 2 * x[:, 0], x[:, 2]]), query, origin)
    assert found.inflation[0] == found.inflation[1] == np.inf
    assert found.shares[0] == pytest.approx(found.shares[1])
    assert np.isfinite(found.coefficients).all()


def test_only_a_mean_and_nothing_that_varies() -> None:
    query, origin = np.repeat(np.arange(5), 4), np.arange(20)
    found = regress(np.arange(20.0), np.empty((20, 0)), query, origin)
    assert found.coefficients[:, 0] == pytest.approx([9.5])
    assert found.r2 == 0
    flat = regress(np.zeros(20), np.random.default_rng(0).normal(size=(20, 2)), query, origin)
    assert not np.vstack([flat.coefficients, flat.parts, flat.mean]).any()
    with pytest.raises(ValueError, match="at most 10 regressors, got 11"):
        regress(np.zeros(20), np.zeros((20, 11)), query, origin)


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
