"""Queries and documents as sources of chance: clustered variances, regression, and the interval of
a ratio of means.
"""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt.measures.base import measure
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.relevance import label_weights, values
from ranktilt.statistics.regression.fixed_effects import regress_within
from ranktilt.statistics.regression.least_squares import (
    Floats,
    Ints,
    Ratio,
    ratio_of_means,
    regress,
)
from ranktilt.statistics.two_way import Clusters, Dyads, Influence, combine_influences


def clusters(
    query: list[int], origin: list[int], total: list[float], weight: float = 1.0
) -> Clusters:
    rows, origins = np.array(query, dtype=np.int64), np.array(origin, dtype=np.int64)
    return Clusters(rows, origins, np.array(total, dtype=np.float64), np.full(len(total), weight))


class TestClusters:
    def test_totals_are_sums_over_all_queries(self) -> None:
        assert clusters([0, 1, 1, 2], [0, 0, 2, 0], [1, -2, 4, 8]).origin_totals.tolist() == [
            7,
            0,
            4,
        ]

    def test_totals_are_exact_in_every_order_and_side(self) -> None:
        """From left to right .1 + .2 + .3 is not .3 + .2 + .1."""
        for parts in itertools.permutations([0.1, 0.2, 0.3, -0.7]):
            totals = clusters([0, 1, 2, 3], [0] * 4, [*parts]).origin_totals
            negated = clusters([0, 1, 2, 3], [0] * 4, [-part for part in parts]).origin_totals
            assert totals.tolist() == (-negated).tolist() == [(0.1 + 0.2 + 0.3) - 0.7]

    def test_rows_without_an_origin_drop_out(self) -> None:
        entries = clusters([0, 0, 1], [3, 1, 2], [1, 2, 4]).with_origins(np.array([0, 0, -1, 1]))
        assert entries.query.tolist() == [0, 0]
        assert entries.origin.tolist() == [1, 0]
        assert entries.total.tolist() == [1, 2]

    def test_queries_that_do_not_count_drop_out_and_no_query_stays(self) -> None:
        entries = clusters([7, 3, -1, 5], [0, 1, 2, 3], [1, 2, 4, 8]).renumber_queries(
            np.array([3, 7])
        )
        assert entries.query.tolist() == [1, 0, -1]
        assert entries.total.tolist() == [1, 2, 4]

    def test_repeated_queries_get_one_number(self) -> None:
        entries = clusters([0, 1, -1], [0, 1, 2], [1, 2, 4]).merge_repeats(np.array([0, 0]))
        assert entries.query.tolist() == [0, 0, -1]


class TestInfluence:
    def test_variance_by_hand(self) -> None:
        """Origin 0 adds 1, 2 and −3 to three queries, origins 1 and 2 the opposite of 1 and 2.

        Queries: (1 − 1)² + (2 − 2)² + 3² = 9; origins 0² + 1² + 2² = 5; cells 1 + 1 + 4 + 4 + 9 =
        19.
        """
        entries = clusters([0, 0, 1, 1, 2], [0, 1, 0, 2, 0], [1, -1, 2, -2, -3])
        residual = np.array([0.0, 0.0, -3.0])
        variance = Influence.from_ratio(residual, np.ones(3), entries, ratio=0.0).variance()
        assert variance.of_queries == 9
        assert variance.of_both == 9  # 9 + 5 − 19 is below either floor
        # Weights of origins are 3, 1 and 1: 25 / 11; of queries 1, 1 and 1: 3.
        assert variance.effective_n == pytest.approx(25 / 11)
        assert variance.total == pytest.approx(9 * (25 / 11) / (25 / 11 - 1))

    def test_one_document_in_all_queries_counts_once(self) -> None:
        """Three queries meet origin 0 alone: (1 + 1 + 1)² + 3 − 3 = 9 for 3 by queries."""
        entries = clusters([0, 1, 2], [0, 0, 0], [1, 1, 1])
        variance = Influence.from_ratio(np.ones(3), np.ones(3), entries, ratio=0.0).variance()
        assert (variance.of_queries, variance.of_both, variance.effective_n) == (3, 9, 1)
        assert np.isnan(variance.total)

    def test_what_is_left_of_a_query_is_spread_over_its_documents(self) -> None:
        entries = clusters([0, 0, 2], [4, 5, 5], [1, 0, 2])
        influence = Influence.from_ratio(np.array([3.0, 7.0, 2.0]), np.ones(3), entries, ratio=0.0)
        assert influence.residual.tolist() == [2, 1, 2]
        # Query 1 meets no document: 49 by query, by origin and by cell.
        assert influence.variance().of_both == 9 + 49 + 4 + (4 + 9 + 49) - (4 + 1 + 4 + 49)

    def test_scaled_is_in_the_unit_of_the_estimate(self) -> None:
        influence = Influence.from_queries(np.array([1.0, -1.0]), np.array([2.0, 2.0])).scaled(
            100.0
        )
        assert influence.query_residual.tolist() == [25, -25]
        assert influence.query_weight.tolist() == [0.5, 0.5]

    def test_difference_takes_what_a_document_adds_to_both(self) -> None:
        new = Influence.from_ratio(
            np.array([3.0, -3.0]), np.ones(2), clusters([0, 1], [0, 1], [3, -3]), ratio=0.0
        )
        old = Influence.from_ratio(
            np.array([2.0, -2.0]), np.ones(2), clusters([0, 1], [0, 1], [2, -2]), ratio=0.0
        )
        difference = combine_influences([new, old], [1.0, -1.0])
        assert difference.residual.tolist() == [1, -1]
        assert difference.query_residual.tolist() == [1, -1]
        assert combine_influences([old, new], [1.0, -1.0]).residual.tolist() == [-1, 1]

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=40)
    def test_neither_order_nor_side_matters_to_the_last_bit(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = np.random.default_rng([seed, 1]).permutation(27)
        query, origin = np.divmod(np.repeat(np.arange(9), 3), 3)  # three entries a cell
        entries = Clusters(query, origin, rng.normal(size=27), rng.random(27))
        permuted = Clusters(*(column[order] for column in entries))
        residual, weight = rng.normal(size=3), rng.random(3)
        turned = entries._replace(total=-entries.total)
        variances = [
            Influence.from_ratio(residual, weight, entries, ratio=0.3).variance(),
            Influence.from_ratio(residual, weight, permuted, ratio=0.3).variance(),
            Influence.from_ratio(-residual, weight, turned, ratio=-0.3).variance(),
        ]
        assert variances[0] == variances[1] == variances[2]


class TestDyads:
    def test_variance_by_hand(self) -> None:
        """Pairs are taken off once, for both of their origins hold them."""
        # Comparisons: (A, x) 1, (A, y) 2, (B, x) 3; of queries 0, 1 and 1.
        pairs = Dyads(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2, 3, 2]))
        variance = pairs.variance(np.array([1.0, 2.0, 3.0]), np.ones(3))
        by_origin = (1 + 2) ** 2 + 3**2 + (1 + 3) ** 2 + 2**2  # A, B, x, y
        origins = by_origin - (1 + 4 + 9)
        cells = 1 + 4 + 9  # within a query no document comes twice
        queries = 1 + (2 + 3) ** 2
        assert variance.of_queries == queries
        assert variance.of_both == max(queries + origins - cells, queries, origins)
        # Weights by query 1 and 2, by A and B 2 and 1, by x and y 2 and 1: 9 / 5 each.
        assert variance.effective_n == pytest.approx(9 / 5)

    def test_twins_are_one_origin(self) -> None:
        numbers = np.arange(8)
        residual = np.array([1.0, -1.0] * 4)
        variance = Dyads(numbers, numbers, numbers).variance(residual, np.ones(8))
        assert (variance.of_queries, variance.of_both, variance.effective_n) == (8, 8, 8)


@st.composite
def twins(draw: st.DrawFn) -> tuple[Ranking, np.ndarray, np.ndarray, Judged]:
    """Rankings of twins with equal grades and tied scores; which side is which, and what is
    retrieved, is drawn.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    queries = draw(st.integers(1, 4))
    offsets, scores, grades, first, judged = [0], [], [], [], []
    for query in range(queries):
        pairs = rng.integers(0, 3, rng.integers(1, 8))
        score = np.round(rng.normal(size=2 * len(pairs)), 0)
        keep = rng.random(len(score)) < 0.8
        order = np.argsort(-score[keep], kind="stable")
        scores += score[keep][order].tolist()
        grades += np.repeat(pairs, 2)[keep][order].tolist()
        turned = rng.integers(0, 2, len(pairs))
        first += np.stack([turned, 1 - turned], axis=1).ravel()[keep][order].tolist()
        offsets.append(len(scores))
        judged += [(query, grade) for grade in pairs if grade]
    table = np.array(judged, dtype=np.float64).reshape(-1, 2)
    ideal = Judged(query=table[:, 0].astype(np.int64), grade=table[:, 1], n_queries=queries)
    ranking = Ranking(np.array(offsets), np.array(scores, dtype=np.float64))
    return ranking, np.array(grades, dtype=np.float64), np.array(first, dtype=bool), ideal


class TestLabelWeights:
    @given(
        twins(),
        st.sampled_from(
            ["nDCG", "nDCG@3", "AP", "AP@3", "AP(rel=2)@5", "P@3", "R@3", "RR", "RR@3"]
        ),
    )
    @settings(max_examples=300)
    def test_they_add_up_to_the_gap(
        self, ranked: tuple[Ranking, np.ndarray, np.ndarray, Judged], name: str
    ) -> None:
        (ranking, grades, first, judged), m = ranked, measure(name)
        sides = [np.where(mine, grades, 0.0) for mine in (first, ~first)]
        a, b = (values(m, ranking, gains, judged) for gains in sides)
        parts = [grades] if m.linear else sides
        weights = sum(label_weights(m, ranking, gains, judged) for gains in parts)
        signed = np.bincount(
            ranking.query, np.where(first, weights, -weights), minlength=judged.n_queries
        )
        known = ~np.isnan(a)
        assert signed[known] == pytest.approx((a - b)[known], abs=1e-12)
        assert (weights >= 0).all()
        assert not weights[grades == 0].any()


# Regression

TRUE, MEANS = np.array([0.2, 0.5, -0.3, 0.0]), np.array([0.8, -0.5, 0.3])


def drawn(
    generator: np.random.Generator,
    *,
    of_query: float = 0.5,
    of_origin: float = 0.5,
    rough: bool = False,
) -> tuple[np.ndarray, ...]:
    """Twins in queries: two correlated properties of the origin, and one of the pair; errors of
    query and origin.

    Rough ones have heavy-tailed errors (t, 3 degrees of freedom) and clusters of which a few hold
    most rows.
    """
    sizes, count = (60, 120), 900
    if rough:
        chances = [1 / np.arange(1, n + 1) ** 0.7 for n in sizes]
        query, origin = (
            generator.choice(n, count, p=c / c.sum()) for n, c in zip(sizes, chances, strict=True)
        )
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
    [
        (0.5, 0.5, False, 920),
        (0, 0, False, 920),
        (1, 0, False, 920),
        (0, 1, False, 915),
        (0.5, 0.5, True, 905),
    ],
)
def test_known_values_lie_in_95_percent_intervals(
    of_query: float, of_origin: float, rough: bool, least: int
) -> None:
    """Intercept, coefficients, mean, and its parts, whose regressors' means are estimates too.

    A part whose coefficient is 0 lies within more often, since its interval is never narrower than
    either estimate's.
    """
    generator, covered = np.random.default_rng(7), np.zeros(9)
    truth = np.r_[TRUE, TRUE[0], TRUE[1:] * MEANS, TRUE[0] + TRUE[1:] @ MEANS]
    for _ in range(1_000):
        fit = regress(*drawn(generator, of_query=of_query, of_origin=of_origin, rough=rough))
        _, low, high = np.vstack([fit.coefficients, fit.parts, fit.mean]).T
        covered += (low <= truth) & (truth <= high)
    assert (covered >= least).all()
    assert (np.delete(covered, 7) <= 980).all()
    assert 0.92 <= np.delete(covered, 7).mean() / 1_000 <= 0.97


def test_mean_is_sum_of_parts_and_errors_a_sandwich() -> None:
    y, x, query, origin = drawn(np.random.default_rng(4))
    fit = regress(y, x, query, origin)
    assert fit.parts[:, 0].sum() == pytest.approx(y.mean())
    assert fit.mean == pytest.approx(
        regress(y, np.empty((len(y), 0)), query, origin).coefficients[0]
    )
    assert fit.parts[1:, 0] == pytest.approx(fit.coefficients[1:, 0] * x.mean(axis=0))
    assert (fit.parts[0] == fit.coefficients[0]).all()
    y, x, query, origin = drawn(np.random.default_rng(1))
    design = np.column_stack([np.ones(len(y)), x])
    fit = regress(y, x, query, origin)
    estimates, low, _ = fit.coefficients.T
    np.testing.assert_allclose(estimates, np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-10)
    scores = design * (y - design @ estimates)[:, None]
    inverse = np.linalg.inv(design.T @ design)

    def sandwich(keys: list[tuple[int, ...]]) -> np.ndarray:
        meat, names = np.zeros((4, 4)), sorted(set(keys))
        for name in names:
            total = scores[[key == name for key in keys]].sum(0)
            meat += np.outer(total, total) * len(names) / (len(names) - 1)
        return inverse @ meat @ inverse

    first, second = ([(int(n),) for n in clusters] for clusters in (query, origin))
    both = [(*a, *b) for a, b in zip(first, second, strict=True)]
    summed = np.diag(sandwich(first) + sandwich(second) - sandwich(both))
    least = np.maximum(np.diag(sandwich(first)), np.diag(sandwich(second)))
    half = stats.t.ppf(0.975, 59) * np.sqrt(np.maximum(summed, least))
    np.testing.assert_allclose(estimates - low, half, atol=1e-12)


def test_shares_are_means_over_all_orders() -> None:
    y, x, query, origin = drawn(np.random.default_rng(2))

    def r2(columns: tuple[int, ...]) -> float:
        design = np.column_stack([np.ones(len(y)), x[:, columns]])
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return float(1 - rest @ rest / np.square(y - y.mean()).sum())

    fit = regress(y, x, query, origin)
    orders = list(itertools.permutations(range(3)))
    shares = np.zeros(3)
    for order in orders:
        for step, column in enumerate(order):
            shares[column] += (r2(order[: step + 1]) - r2(order[:step])) / len(orders)
    np.testing.assert_allclose(fit.shares, shares, atol=1e-10)
    assert fit.shares.sum() == pytest.approx(fit.r2)
    assert fit.without == pytest.approx([r2((1, 2)), r2((0, 2)), r2((0, 1))])
    correlation = np.corrcoef(x.T)
    np.testing.assert_allclose(fit.inflation, np.diag(np.linalg.inv(correlation)), rtol=1e-8)


def test_regressors_that_give_each_other_and_nothing_that_varies() -> None:
    y, x, query, origin = drawn(np.random.default_rng(3))
    fit = regress(y, np.column_stack([x[:, 0], 2 * x[:, 0], x[:, 2]]), query, origin)
    assert fit.inflation[0] == fit.inflation[1] == np.inf
    assert fit.shares[0] == pytest.approx(fit.shares[1])
    assert np.isfinite(fit.coefficients).all()
    query, origin = np.repeat(np.arange(5), 4), np.arange(20)
    fit = regress(np.arange(20.0), np.empty((20, 0)), query, origin)
    assert fit.coefficients[:, 0] == pytest.approx([9.5])
    assert fit.r2 == 0
    flat = regress(np.zeros(20), np.random.default_rng(0).normal(size=(20, 2)), query, origin)
    assert not np.vstack([flat.coefficients, flat.parts, flat.mean]).any()
    with pytest.raises(ValueError, match="at most 10 regressors, got 11"):
        regress(np.zeros(20), np.zeros((20, 11)), query, origin)


def test_a_factor_of_few_queries_and_one_that_no_exchange_reaches() -> None:
    factor, origin = np.tile([[0.5], [-0.5]], (40, 1)), np.repeat(np.arange(40), 2)
    fit = regress_within(2 * factor[:, 0], factor, origin, np.zeros(80, dtype=np.int64), origin)
    assert fit.p(0) == 1  # one query, and so one vote
    y, halves = factor[:, 0] + np.linspace(0, 1, 80) ** 2, np.arange(80) // 40
    value, error, half = regress_within(y, factor, origin, halves, origin).combined(np.eye(1))
    assert half / error == pytest.approx(stats.t.ppf(0.975, 1))
    assert value == pytest.approx(
        np.linalg.lstsq(factor, y - np.repeat(y.reshape(-1, 2).mean(1), 2))[0]
    )


def independent(above: Floats, below: Floats) -> Ratio:
    rows = np.arange(len(above))
    return ratio_of_means(above, below, rows, rows)


def test_ends_are_limit_ratios_and_repeated_rows_say_no_more() -> None:
    rng = np.random.default_rng(0)
    below = rng.normal(1, 1, 30)
    above = 0.3 * below + rng.normal(0, 0.5, 30)
    estimate = independent(above, below)
    assert estimate.value == pytest.approx(above.mean() / below.mean())
    assert estimate.f == pytest.approx(stats.ttest_1samp(below, 0).statistic ** 2)
    for end in (estimate.low, estimate.high):
        assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)
    estimate = independent(
        np.array([1.0, 2.0, 3.0, 2.0]), np.array([1.0, -1.0, 1.0, -0.5])
    )  # may be 0: there is no end
    assert np.isnan([estimate.low, estimate.high]).all()
    assert estimate.value == pytest.approx(16)
    rng = np.random.default_rng(1)
    below, noise = rng.normal(1, 0.4, 25), rng.normal(0, 0.2, 25)
    once, twice = independent(noise, below), np.repeat(np.arange(25), 2)
    again = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), twice, twice)
    assert asdict(again) == pytest.approx(asdict(once))
    by_origin = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), np.arange(50), twice)
    assert asdict(by_origin) == pytest.approx(asdict(once), rel=0.02)


@pytest.mark.parametrize(("size", "effect"), [(1, 0.5), (3, 0.7)])
def test_the_interval_of_a_ratio_holds_it_in_simulated_draws(size: int, effect: float) -> None:
    """100 pairs of queries and origins that several pairs share, and a confounder of both gaps."""
    rng, truth, covered = np.random.default_rng(2), -0.05, 0
    for _ in range(400):
        first: Ints = np.arange(100) // size
        second: Ints = rng.permutation(100) // size
        shared = 0.7 * (rng.standard_normal(100)[first] + rng.standard_normal(100)[second])
        below = -effect + (rng.standard_normal(100) + shared) / np.sqrt(2)
        above = truth * below + 0.03 * shared + 0.1 * rng.standard_normal(100)
        estimate = ratio_of_means(above, below, first, second)
        covered += bool(np.isnan(estimate.low) or estimate.low <= truth <= estimate.high)
    assert 0.93 <= covered / 400 <= 0.99
