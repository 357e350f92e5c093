"""Regression with errors clustered two ways: coefficients, coverage, and shares of R²."""

import itertools

import numpy as np
import pytest

from ranktilt.statistics.regression import regress

TRUE = np.array([0.2, 0.5, -0.3, 0.0])


def drawn(
    generator: np.random.Generator,
    *,
    of_query: float = 0.5,
    of_origin: float = 0.5,
    queries: int = 60,
    origins: int = 120,
) -> tuple[np.ndarray, ...]:
    """Twins in queries: two correlated properties of the origin, and one of the pair; errors of query and origin."""
    query = np.repeat(np.arange(queries), 15)
    origin = generator.integers(0, origins, len(query))
    x = generator.normal(size=(origins, 3))[origin]
    x[:, 1] += 0.6 * x[:, 0]
    x[:, 2] += generator.normal(size=len(query))
    errors = of_query * generator.normal(size=queries)[query] + of_origin * generator.normal(size=origins)[origin]
    return TRUE[0] + x @ TRUE[1:] + errors + generator.normal(size=len(query)), x, query, origin


@pytest.mark.slow
@pytest.mark.parametrize(("of_query", "of_origin"), [(0.5, 0.5), (0, 0), (1, 0), (0, 1)])
def test_known_coefficients_lie_within_95_percent_intervals(of_query: float, of_origin: float) -> None:
    generator, covered = np.random.default_rng(7), np.zeros(4)
    for _ in range(1_000):
        found = regress(*drawn(generator, of_query=of_query, of_origin=of_origin))
        bounds = [found.interval(weights)[1:] for weights in np.eye(4)]
        covered += [low <= true <= high for true, (low, high) in zip(TRUE, bounds, strict=True)]
    assert 0.93 <= covered.mean() / 1_000 <= 0.97
    assert ((covered >= 920) & (covered <= 980)).all()


def test_as_numpy_and_as_a_sandwich_by_hand() -> None:
    y, x, query, origin = drawn(np.random.default_rng(1))
    design = np.column_stack([np.ones(len(y)), x])
    found = regress(y, x, query, origin)
    np.testing.assert_allclose(found.coefficients, np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-10)
    scores = design * (y - design @ found.coefficients)[:, None]
    inverse = np.linalg.inv(design.T @ design)

    def sandwich(keys: list[tuple[int, ...]]) -> np.ndarray:
        meat, names = np.zeros((4, 4)), sorted(set(keys))
        for name in names:
            total = scores[[key == name for key in keys]].sum(0)
            meat += np.outer(total, total) * len(names) / (len(names) - 1)
        return inverse @ meat @ inverse

    one, two = ([(int(n),) for n in clusters] for clusters in (query, origin))
    both = [(*a, *b) for a, b in zip(one, two, strict=True)]
    expected = sandwich(one) + sandwich(two) - sandwich(both)
    least = np.maximum(np.diag(sandwich(one)), np.diag(sandwich(two)))
    np.fill_diagonal(expected, np.maximum(np.diag(expected), least))
    np.testing.assert_allclose(found.covariance, expected, atol=1e-12)
    assert found.degrees == 59


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
    np.testing.assert_allclose(found.parts, shares, atol=1e-10)
    assert found.parts.sum() == pytest.approx(found.r2)
    assert found.without == pytest.approx([r2((1, 2)), r2((0, 2)), r2((0, 1))])
    correlation = np.corrcoef(x.T)
    np.testing.assert_allclose(found.inflation, np.diag(np.linalg.inv(correlation)), rtol=1e-8)


def test_regressors_that_give_each_other_are_said_to() -> None:
    y, x, query, origin = drawn(np.random.default_rng(3))
    found = regress(y, np.column_stack([x[:, 0], 2 * x[:, 0], x[:, 2]]), query, origin)
    assert found.inflation[0] == found.inflation[1] == np.inf
    assert found.parts[0] == pytest.approx(found.parts[1])
    assert np.isfinite(found.coefficients).all()


def test_only_a_mean_and_nothing_that_varies() -> None:
    query, origin = np.repeat(np.arange(5), 4), np.arange(20)
    found = regress(np.arange(20.0), np.empty((20, 0)), query, origin)
    assert found.coefficients == pytest.approx([9.5])
    assert found.r2 == 0
    flat = regress(np.zeros(20), np.random.default_rng(0).normal(size=(20, 2)), query, origin)
    assert flat.coefficients.tolist() == [0, 0, 0]
    assert flat.interval(np.ones(3)) == (0, 0, 0)
    with pytest.raises(ValueError, match="at most 10 regressors, got 11"):
        regress(np.zeros(20), np.zeros((20, 11)), query, origin)
