"""Intervals, tests, corrections and detectable effects against brute force, scipy and tables made
by hand.
"""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from ranktilt import UserError
from ranktilt.statistics import bootstrap
from ranktilt.statistics.bootstrap import (
    interval,
    resampled_means,
    shared_numbering,
    sum_repeats,
)
from ranktilt.statistics.correction import (
    bonferroni,
    correct,
    detectable_effect,
    holm,
    interval_error,
)
from ranktilt.statistics.permutation import (
    exchanged_sums,
    shuffle_p,
    sign_flip_p,
    sign_flip_ps,
    t_test_p,
)

Floats = npt.NDArray[np.float64]
NAN = np.nan


def grid(seed: int, n: int) -> Floats:
    """Per-query values as measures give them: few distinct ones, many zeros."""
    return np.random.default_rng(seed).integers(0, 4, n) / 3


class TestResampledMeans:
    @pytest.mark.parametrize("cells", [3 * 500, 3 * 7, 1])
    def test_each_is_the_mean_of_n_draws_with_replacement(
        self, cells: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Powers of 4 show how often each row was drawn: a digit each, which sum to the number of
        # rows.
        monkeypatch.setattr(bootstrap, "_CELLS", cells)
        column = np.array([1.0, 4.0, 16.0])
        sums = np.round(resampled_means([column], resamples=500, seed=3)[0] * 3).astype(int)
        digits = {tuple((s // 4**i) % 4 for i in range(3)) for s in sums}
        assert digits == {d for d in product(range(4), repeat=3) if sum(d) == 3}

    @pytest.mark.parametrize("n", [3, 7, 33, 300, 1201])
    def test_a_column_does_not_feel_what_stands_beside_it(self, n: int) -> None:
        column = np.random.default_rng(5).random(n)
        alone = resampled_means([column], resamples=700, seed=2)[0]
        for before in range(4):
            others = [np.random.default_rng(i).random(n) for i in range(9)]
            beside = resampled_means([*others[:before], column, *others], resamples=700, seed=2)[
                before
            ]
            assert np.array_equal(alone, beside)

    def test_the_seed_decides_and_memory_and_empty_columns_do_not_matter(self) -> None:
        table = np.random.default_rng(5).random((90, 4))
        first, same, reseeded = (
            resampled_means([table[:, 2].copy()], resamples=200, seed=s)[0] for s in (1, 1, 2)
        )
        assert np.array_equal(first, same)
        assert not np.array_equal(first, reseeded)
        assert np.array_equal(first, resampled_means([table[:, 2]], resamples=200, seed=1)[0])
        empty = resampled_means([np.empty(0)] * 2, resamples=10)
        assert np.isnan(empty).tolist() == [[True] * 10] * 2
        assert resampled_means([]) == []


class TestInterval:
    def test_ends_are_order_statistics_250_and_9751_of_10000(self) -> None:
        samples = np.random.default_rng(0).permutation(np.arange(1.0, 10_001.0))
        ends = interval(samples)
        assert (ends.low, ends.high, ends.dropped) == (250.0, 9751.0, 0)
        assert ends.error == pytest.approx(np.sqrt((10_000**2 - 1) / 12))

    def test_undefined_resamples_are_dropped_and_counted(self) -> None:
        samples = np.concatenate([np.arange(1.0, 1001.0), np.full(77, NAN)])
        ends = interval(np.random.default_rng(1).permutation(samples))
        assert (ends.low, ends.high, ends.dropped) == (25.0, 976.0, 77)
        nothing = interval(np.full(5, NAN))
        assert np.isnan([nothing.low, nothing.high, nothing.error]).all()
        assert nothing.dropped == 5
        assert interval(np.array([3.0, 1.0, 2.0]))[:2] == (1.0, 3.0)
        assert interval(np.full(1000, 0.1)) == (0.1, 0.1, 0.0, 0)


class TestSignFlip:
    @pytest.mark.parametrize(
        ("difference", "expected"),
        [
            ([1.0], 1.0),
            ([1.0, 1.0, -1.0], 8 / 8),
            ([0.5, 0.25, 0.25], 2 / 8),
            ([0.5, 0.25, 0.0], 4 / 8),
            ([1.0] * 16, 2 / 2**16),
            ([0.3, -0.3] * 40, 1.0),
            *[([0.0] * n, 1.0) for n in (1, 16, 17, 200)],
            ([], NAN),
            ([1.0] * 17, 1 / 500),  # above 16 they are sampled, and the observed one counts too
        ],
    )
    def test_by_hand(self, difference: list[float], expected: float) -> None:
        assert sign_flip_p(np.array(difference), resamples=499) == pytest.approx(
            expected, abs=1e-15, nan_ok=True
        )

    @pytest.mark.parametrize("n", [12, 70])
    def test_several_share_signs_and_keep_their_own_p(self, n: int) -> None:
        columns = [grid(i, n) - grid(i + 9, n) for i in range(5)] + [np.zeros(n)]
        together = sign_flip_ps(columns, resamples=500, seed=4)
        assert together == [sign_flip_p(c, resamples=500, seed=4) for c in columns]


@pytest.mark.parametrize("cells", [1 << 19, 30 * 64])
def test_sampled_ps_are_near_the_exact_one(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 30 queries 20 have a on top under the new system and b under the old, 10 the other way
    round.

    T depends on the number of signs only, and p is a two-sided binomial tail.
    """
    monkeypatch.setattr(bootstrap, "_CELLS", cells)
    a, exact = np.array([1.0] * 20 + [0.0] * 10), stats.binomtest(20, 30).pvalue
    assert sign_flip_p(2 * a - 1, resamples=10_000) == pytest.approx(exact, abs=0.01)


def test_paired_t_as_scipy_and_without_a_spread_or_three_queries() -> None:
    for n in (3, 10, 300):
        difference = np.random.default_rng(n).normal(0.1, 1, n)
        assert t_test_p(difference) == pytest.approx(
            stats.ttest_1samp(difference, 0).pvalue, rel=1e-12
        )
    assert (t_test_p(np.zeros(10)), t_test_p(np.full(8, 0.25))) == (1.0, 0.0)
    assert np.isnan([t_test_p(np.ones(n)) for n in (0, 1, 2)]).all()


class TestShuffledLabels:
    NULL = np.arange(-49.0, 50.0)

    def test_twice_the_smaller_tail(self) -> None:
        """Of 60 nothing is as far out, the observed one itself."""
        for observed, count in ((60.0, 1), (49.0, 2), (-49.0, 2), (45.5, 5), (0.0, 50), (1.0, 50)):
            expected = pytest.approx(2 * count / 100)
            assert shuffle_p(observed, self.NULL) == expected, observed
            assert shuffle_p(observed + 75, self.NULL + 75) == expected
            assert shuffle_p(observed, np.append(self.NULL, [NAN] * 30)) == expected
        assert np.isnan([shuffle_p(NAN, self.NULL), shuffle_p(1.0, np.full(3, NAN))]).all()
        assert shuffle_p(0.0, np.zeros(999)) == 1.0


class TestExchanged:
    def test_sums_are_those_of_signs_evenly_around_0(self) -> None:
        column = np.array([1.0, 2.0, 4.0, 8.0])
        possible = {float(np.dot(signs, column)) for signs in product((1, -1), repeat=4)}
        sums = exchanged_sums(column, draws=2000)
        assert set(sums) == possible
        # Each of 16 comes 250 times, give or take 5 standard deviations.
        assert np.unique(sums, return_counts=True)[1] == pytest.approx([250] * 16, abs=5 * 22)
        sums = exchanged_sums(np.random.default_rng(1).normal(size=30), draws=500)
        assert np.sort(sums).tolist() == np.sort(-sums).tolist()
        assert (len(sums), float(np.std(sums))) == (1000, pytest.approx(np.sqrt(30), rel=0.35))

    def test_origins_that_add_nothing_change_nothing_nor_do_blocks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        column = np.arange(1.0, 50.0) ** 2
        sums = exchanged_sums(column, draws=300, seed=4).tolist()
        assert (
            sums
            == exchanged_sums(
                np.concatenate([np.zeros(9), column, np.zeros(9)]), draws=300, seed=4
            ).tolist()
        )
        assert sums != exchanged_sums(column, draws=300, seed=5).tolist()
        assert repr(exchanged_sums(np.zeros(7), draws=5).tolist()) == repr([0.0] * 10)
        assert exchanged_sums(np.empty(0), draws=5).tolist() == [0.0] * 10
        monkeypatch.setattr(bootstrap, "_CELLS", 64)
        sums = exchanged_sums(np.ones(100), draws=1000)
        assert float(np.std(sums)) == pytest.approx(10, rel=0.1)
        assert (
            sums.tolist() == exchanged_sums(-np.ones(100), draws=1000).tolist()
        )  # to the last bit

    def test_small_ones_beyond_the_largest_256_are_as_good_as_normal(self) -> None:
        column = 1 / np.arange(1.0, 2001)
        rng = np.random.default_rng(6)
        turned = np.unpackbits(rng.integers(0, 256, (20_000, 250), dtype=np.uint8), axis=1)
        exact = np.abs(column.sum() - 2 * (turned @ column.astype(np.float32)))
        sums = np.abs(exchanged_sums(column, draws=20_000))
        for share in (0.5, 0.9, 0.95, 0.99, 0.999):
            assert np.quantile(sums, share) == pytest.approx(np.quantile(exact, share), rel=0.03)


class TestCorrections:
    def test_holm(self) -> None:
        cases: list[tuple[list[float], list[float]]] = [
            ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
            ([0.04, 0.03, 0.01], [0.06, 0.06, 0.03]),
            ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),  # the later one may not be below the earlier
            ([0.5, 0.6], [1.0, 1.0]),
            ([NAN, 0.01, NAN, 0.04], [NAN, 0.02, NAN, 0.04]),
            ([NAN], [NAN]),
            ([], []),
        ]
        for ps, expected in cases:
            for corrected in (
                holm(np.array(ps, dtype=np.float64)),
                correct(ps),
                correct(ps, "holm"),
            ):
                assert corrected == pytest.approx(np.array(expected), nan_ok=True), ps

    def test_bonferroni(self) -> None:
        cases: list[tuple[list[float], list[float]]] = [
            ([0.01, 0.04, 0.03, 0.005], [0.04, 0.16, 0.12, 0.02]),
            ([0.5, 0.6], [1.0, 1.0]),
            ([NAN, 0.01, NAN, 0.04], [NAN, 0.02, NAN, 0.08]),
            ([], []),
        ]
        for ps, expected in cases:
            for corrected in (
                bonferroni(np.array(ps, dtype=np.float64)),
                correct(ps, "bonferroni"),
            ):
                assert corrected == pytest.approx(np.array(expected), nan_ok=True), ps
        with pytest.raises(
            UserError, match=r"unknown correction 'bonferoni'; did you mean 'bonferroni'\?"
        ):
            correct([0.5], "bonferoni")


@pytest.mark.parametrize(
    ("tests", "queries", "expected"),
    [
        (1, np.inf, 28.016),
        (9, np.inf, 36.145),
        (0, np.inf, 28.016),
        (1, 40, 28.643),
        (9, 40, 37.773),
        (9, 30, 38.375),
        (1, 1, np.inf),
    ],
)
def test_detectable_effect_in_standard_errors(tests: int, queries: float, expected: float) -> None:
    assert detectable_effect(10.0, tests, queries) == pytest.approx(expected, abs=0.001)
    assert detectable_effect(0.0, tests, queries) == 0


def test_repeated_queries_become_one_row_where_all_numberings_agree() -> None:
    numbers = np.array([1.0, 2.0, 4.0, 8.0])
    for distinct, expected in (
        (None, [1, 2, 4, 8]),
        ([0, 1, 0, 3], [5, 2, 8]),
        ([2, 2, 2, 2], [15]),
    ):
        assert (
            sum_repeats(numbers, None if distinct is None else np.array(distinct)).tolist()
            == expected
        )
    first, second = np.array([0, 0, 0, 3]), np.array([0, 0, 2, 2])
    assert shared_numbering([first, second]).tolist() == [0, 0, 1, 2]
    assert shared_numbering([first, None]) is None
    assert shared_numbering([]) is None


def test_error_of_an_interval() -> None:
    """Of ten, t(.975; 9) = 2.262: an interval of ± 2.262 has an error of 1."""
    assert interval_error(-2.2622, 2.2622, 10) == pytest.approx(1.0, abs=1e-4)
    assert np.isnan(interval_error(np.nan, np.nan, 10))
    assert np.isnan(interval_error(0.0, 1.0, 1))
