"""Queries and documents as sources of chance: clustered variances, regression, and the interval of a ratio of means."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt.measures.base import measure
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.relevance import label_weights, values
from ranktilt.statistics.fixed_effects import regress_within
from ranktilt.statistics.regression import Floats, Ints, Ratio, ratio_of_means, regress
from ranktilt.statistics.two_way import Clusters, Dyads, Labels, widened


def clusters(query: list[int], origin: list[int], total: list[float], weight: float = 1.0) -> Clusters:
    rows, origins = np.array(query, dtype=np.int64), np.array(origin, dtype=np.int64)
    return Clusters(rows, origins, np.array(total, dtype=np.float64), np.full(len(total), weight))


class TestCells:
    def test_nets_are_sums_over_all_queries_and_rows_of_documents_without_an_origin_drop_out(self) -> None:
        assert clusters([0, 1, 1, 2], [0, 0, 2, 0], [1, -2, 4, 8]).origin_totals.tolist() == [7, 0, 4]
        found = clusters([0, 0, 1], [3, 1, 2], [1, 2, 4]).of(np.array([0, 0, -1, 1]))
        assert (found.query.tolist(), found.origin.tolist(), found.total.tolist()) == ([0, 0], [1, 0], [1, 2])

    def test_variance_by_hand(self) -> None:
        """Origin 0 adds 1 to each of three queries: (1 + 1 + 1)² − (1² + 1² + 1²) = 6; origin 1 is met once."""
        assert clusters([0, 1, 2, 0], [0, 0, 0, 1], [1, 1, 1, 5]).variance(0.0) == 6
        assert clusters([0, 1, 2, 0], [0, 0, 0, 1], [1, 1, 1, 5]).variance(1.0) == 0
        assert clusters([0, 0, 1], [0, 0, 0], [1, 1, 1]).variance(0.0) == 9 - (4 + 1)  # one cell of a query and origin
        assert clusters([0, 1], [0, 0], [1, -1]).variance(0.0) == clusters([], [], []).variance(0.0) == 0

    @pytest.mark.parametrize(("second", "expected"), [(1.0, 2**0.5), (-1.0, 1.0)])
    def test_labels_that_go_together_scatter_further_and_never_less(self, second: float, expected: float) -> None:
        labels = Labels(clusters([0, 1], [0, 0], [1.0, second]), np.array([0, 1]))
        assert labels.spread == pytest.approx(expected)  # √((1 + 1)² / (1² + 1²)), and √(0 / 2) raised to 1

    @given(st.integers(0, 2**32 - 1), st.floats(-1, 1))
    @settings(max_examples=40)
    def test_neither_order_nor_side_matters_to_the_last_bit(self, seed: int, value: float) -> None:
        rng, order = np.random.default_rng(seed), np.random.default_rng([seed, 1]).permutation(27)
        query, origin = np.divmod(np.repeat(np.arange(9), 3), 3)  # three entries a cell
        entries = Clusters(query, origin, rng.normal(size=27), rng.random(27))
        permuted = Clusters(*(column[order] for column in entries))
        assert entries.variance(value) == permuted.variance(value)
        assert entries.variance(value) == entries._replace(total=-entries.total).variance(-value)


class TestDyads:
    def test_variance_by_hand(self) -> None:
        """A chosen between x and y, B with x: sums are 3, 3, 4, 2 of weights 2, 1, 2, 1 of three; no two meet twice."""
        pairs = Dyads(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2, 3, 2]))
        shared = [3 / (1 / 3), 3 / (2 / 3), 4 / (1 / 3), 2 / (2 / 3)]
        expected = sum(total**2 for total in shared) - (1 + 4 + 9)
        assert pairs.variance(np.array([1.0, 2.0, 3.0]), np.ones(3)) == pytest.approx(expected)

    def test_p_and_what_is_widened_by_hand(self) -> None:
        """Seven of eight twins are chosen of one side: a t test, with r / (1 − 1/8); all of six: two of 2^6 signs."""
        own, total = np.arange(8), np.array([0.5] * 7 + [-0.5])
        t = total.sum() / np.sqrt(((total - total.mean()) ** 2).sum() / (7 / 8) ** 2)
        assert Dyads(own, own, own).p(total, np.ones(8)) == pytest.approx(2 * stats.t.sf(t, 7))
        six = own[:6]
        assert Dyads(six, six, six + 6).p(total[:6], np.ones(6)) == 2 / 2**6
        assert Dyads(six, six, six).p(np.zeros(6), np.ones(6)) == 1
        # Twins 0 in both queries: sums 2, 0, −2 of half, a quarter and a quarter; cells give 6, queries 1² + 1².
        twins = np.array([0, 1, 0, 2])
        pairs, total = Dyads(np.array([0, 0, 1, 1]), twins, twins), np.array([1.0, 0.0, 1.0, -2.0])
        factor = np.sqrt(1 + ((2 / 0.5) ** 2 + (2 / 0.75) ** 2 - 6) / 2)
        assert pairs.widened(np.array([0.1, -0.1]), 0.0, total, np.ones(4)) == pytest.approx([0.1 * factor, 0.0])


class TestWidened:
    def test_distances_grow_by_the_root_of_what_is_added(self) -> None:
        found = widened(np.array([1.0, 2.0, np.nan]), 1.5, np.array([1.0, -1.0]), 6.0)
        assert found[:2].tolist() == [0.5, 2.5]
        assert np.isnan(found[2])

    @pytest.mark.parametrize(("residuals", "beyond"), [([1.0, -1.0], 0.0), ([0.0, 0.0], 3.0)])
    def test_nothing_to_add_leaves_the_samples_alone(self, residuals: list[float], beyond: float) -> None:
        samples = np.array([0.1, 0.2])
        assert widened(samples, 0.3, np.array(residuals), beyond) is samples


@st.composite
def twins(draw: st.DrawFn) -> tuple[Ranking, np.ndarray, np.ndarray, Judged]:
    """Rankings of twins with equal grades and tied scores; which side is which, and what is retrieved, is drawn."""
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
    ideal = Judged(table[:, 0].astype(np.int64), table[:, 1], queries)
    ranking = Ranking(np.array(offsets), np.array(scores, dtype=np.float64))
    return ranking, np.array(grades, dtype=np.float64), np.array(first, dtype=bool), ideal


class TestLabelWeights:
    @given(twins(), st.sampled_from(["nDCG", "nDCG@3", "AP", "AP@3", "AP(rel=2)@5", "P@3", "R@3", "RR", "RR@3"]))
    @settings(max_examples=300)
    def test_they_add_up_to_the_gap(self, found: tuple[Ranking, np.ndarray, np.ndarray, Judged], name: str) -> None:
        (ranking, grades, first, judged), m = found, measure(name)
        sides = [np.where(mine, grades, 0.0) for mine in (first, ~first)]
        a, b = (values(m, ranking, gains, judged) for gains in sides)
        parts = [grades] if m.linear else sides
        weights = sum(label_weights(m, ranking, gains, judged) for gains in parts)
        signed = np.bincount(ranking.query, np.where(first, weights, -weights), minlength=judged.n_queries)
        known = ~np.isnan(a)
        assert signed[known] == pytest.approx((a - b)[known], abs=1e-12)
        assert (weights >= 0).all()
        assert not weights[grades == 0].any()


# Regression

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
@pytest.mark.parametrize(("of_query", "of_origin", "rough", "least"), [
    (0.5, 0.5, False, 920), (0, 0, False, 920), (1, 0, False, 920), (0, 1, False, 915), (0.5, 0.5, True, 905),
])  # fmt: skip
def test_known_values_lie_in_95_percent_intervals(of_query: float, of_origin: float, rough: bool, least: int) -> None:
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


def test_mean_is_the_sum_of_its_parts_and_errors_are_a_sandwich_by_hand() -> None:
    y, x, query, origin = drawn(np.random.default_rng(4))
    found = regress(y, x, query, origin)
    assert found.parts[:, 0].sum() == pytest.approx(y.mean())
    assert found.mean == pytest.approx(regress(y, np.empty((len(y), 0)), query, origin).coefficients[0])
    assert found.parts[1:, 0] == pytest.approx(found.coefficients[1:, 0] * x.mean(axis=0))
    assert (found.parts[0] == found.coefficients[0]).all()
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

    first, second = ([(int(n),) for n in clusters] for clusters in (query, origin))
    both = [(*a, *b) for a, b in zip(first, second, strict=True)]
    summed = np.diag(sandwich(first) + sandwich(second) - sandwich(both))
    least = np.maximum(np.diag(sandwich(first)), np.diag(sandwich(second)))
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
        for step, column in enumerate(order):
            shares[column] += (r2(order[: step + 1]) - r2(order[:step])) / len(orders)
    np.testing.assert_allclose(found.shares, shares, atol=1e-10)
    assert found.shares.sum() == pytest.approx(found.r2)
    assert found.without == pytest.approx([r2((1, 2)), r2((0, 2)), r2((0, 1))])
    correlation = np.corrcoef(x.T)
    np.testing.assert_allclose(found.inflation, np.diag(np.linalg.inv(correlation)), rtol=1e-8)


def test_regressors_that_give_each_other_and_nothing_that_varies() -> None:
    y, x, query, origin = drawn(np.random.default_rng(3))
    found = regress(y, np.column_stack([x[:, 0], 2 * x[:, 0], x[:, 2]]), query, origin)
    assert found.inflation[0] == found.inflation[1] == np.inf
    assert found.shares[0] == pytest.approx(found.shares[1])
    assert np.isfinite(found.coefficients).all()
    query, origin = np.repeat(np.arange(5), 4), np.arange(20)
    found = regress(np.arange(20.0), np.empty((20, 0)), query, origin)
    assert found.coefficients[:, 0] == pytest.approx([9.5])
    assert found.r2 == 0
    flat = regress(np.zeros(20), np.random.default_rng(0).normal(size=(20, 2)), query, origin)
    assert not np.vstack([flat.coefficients, flat.parts, flat.mean]).any()
    with pytest.raises(ValueError, match="at most 10 regressors, got 11"):
        regress(np.zeros(20), np.zeros((20, 11)), query, origin)


def test_a_factor_of_few_queries_and_one_that_no_exchange_reaches() -> None:
    factor, origin = np.tile([[0.5], [-0.5]], (40, 1)), np.repeat(np.arange(40), 2)
    found = regress_within(2 * factor[:, 0], factor, origin, np.zeros(80, dtype=np.int64), origin)
    assert found.p(0, draws=99) == 0.01  # of 99 exchanges none; there is no error that a t test could see
    y, two = factor[:, 0] + np.linspace(0, 1, 80) ** 2, np.arange(80) // 40
    value, error, half = regress_within(y, factor, origin, two, origin).combined(np.eye(1))
    assert half / error == pytest.approx(stats.t.ppf(0.975, 1))
    assert value == pytest.approx(np.linalg.lstsq(factor, y - np.repeat(y.reshape(-1, 2).mean(1), 2))[0])


def independent(above: Floats, below: Floats) -> Ratio:
    rows = np.arange(len(above))
    return ratio_of_means(above, below, rows, rows)


def test_the_ends_are_ratios_at_the_limit_of_a_t_test_and_repeated_rows_say_no_more() -> None:
    rng = np.random.default_rng(0)
    below = rng.normal(1, 1, 30)
    above = 0.3 * below + rng.normal(0, 0.5, 30)
    found = independent(above, below)
    assert found.value == pytest.approx(above.mean() / below.mean())
    assert found.f == pytest.approx(stats.ttest_1samp(below, 0).statistic ** 2)
    for end in (found.low, found.high):
        assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)
    found = independent(np.array([1.0, 2.0, 3.0, 2.0]), np.array([1.0, -1.0, 1.0, -0.5]))  # may be 0: there is no end
    assert np.isnan([found.low, found.high]).all()
    assert found.value == pytest.approx(16)
    rng = np.random.default_rng(1)
    below, noise = rng.normal(1, 0.4, 25), rng.normal(0, 0.2, 25)
    once, twice = independent(noise, below), np.repeat(np.arange(25), 2)
    again = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), twice, twice)
    assert again == pytest.approx(once)
    by_origin = ratio_of_means(np.repeat(noise, 2), np.repeat(below, 2), np.arange(50), twice)
    assert by_origin == pytest.approx(once, rel=0.02)


@pytest.mark.parametrize(("size", "effect"), [(1, 0.5), (3, 0.7)])
def test_the_interval_of_a_ratio_holds_it_in_simulated_draws(size: int, effect: float) -> None:
    """100 pairs of queries and origins that several pairs share, and a confounder of both gaps."""
    rng, truth, held = np.random.default_rng(2), -0.05, 0
    for _ in range(400):
        first: Ints = np.arange(100) // size
        second: Ints = rng.permutation(100) // size
        shared = 0.7 * (rng.standard_normal(100)[first] + rng.standard_normal(100)[second])
        below = -effect + (rng.standard_normal(100) + shared) / np.sqrt(2)
        above = truth * below + 0.03 * shared + 0.1 * rng.standard_normal(100)
        found = ratio_of_means(above, below, first, second)
        held += bool(np.isnan(found.low) or found.low <= truth <= found.high)
    assert 0.93 <= held / 400 <= 0.99
