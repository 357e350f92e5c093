"""Hedges' g on twins: by hand, its sign, and where it is undefined."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.probes.base import Distribution, effect_size, hedges_g

NUMBERS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=30)


def test_three_pairs_by_hand() -> None:
    # Both variances and the covariance are 1: d = 1, J = 1 - 3/7, spread = (1 + 1 + 2) / 8 + 0 over n - 1 = 2.
    g, low, high = hedges_g(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    assert g == pytest.approx(4 / 7)
    assert (low, high) == pytest.approx((4 / 7 * (1 - 1.959964 / 2), 4 / 7 * (1 + 1.959964 / 2)), abs=1e-6)


def test_four_pairs_that_do_not_move_together_by_hand() -> None:
    a, b = np.array([0.0, 2.0, 0.0, 2.0]), np.array([1.0, 1.0, 3.0, 3.0])
    g, low, high = hedges_g(a, b)  # variances 4/3, covariance 0: d = 1 / sqrt(4/3), J = 1 - 3/11
    d, j = math.sqrt(3) / 2, 8 / 11
    assert g == pytest.approx(j * d)
    assert high - g == pytest.approx(1.959964 * j * math.sqrt((d**2 / 4 + 2) / 3), abs=1e-6)
    assert g - low == pytest.approx(high - g)


@given(NUMBERS, st.integers(1, 9), st.integers(-9, 9))
def test_swapped_sides_turn_the_sign_and_another_unit_changes_nothing(
    pairs: list[tuple[int, int]], factor: int, shift: int
) -> None:
    a, b = np.array(pairs, dtype=float).T
    g, low, high = hedges_g(a, b)
    assert hedges_g(b, a) == pytest.approx((-g, -high, -low), nan_ok=True)
    assert hedges_g(factor * a + shift, factor * b + shift) == pytest.approx(hedges_g(a, b), nan_ok=True)


def test_the_interval_holds_the_truth_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1_000):
        text = rng.normal(size=40)
        _, low, high = hedges_g(text + rng.normal(size=40), text + rng.normal(size=40) + 0.5)
        held += low <= 0.5 / math.sqrt(2) <= high
    assert 930 <= held <= 970


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0, 2.0], [2.0, 4.0]), ([1] * 5, [1] * 5), ([1] * 5, [2] * 5)])
def test_undefined_is_not_zero(a: list[float], b: list[float]) -> None:
    assert all(map(math.isnan, hedges_g(np.array(a), np.array(b))))


def test_pairs_without_a_value_on_both_sides_are_left_out() -> None:
    found = effect_size("llm", "words", np.array([1.0, 2, 3, np.nan, 5]), np.array([2.0, 3, 4, 9, np.nan]))
    assert (found.pairs, found.reference_mean, found.source_mean, found.g) == (3, 2.0, 3.0, pytest.approx(4 / 7))
    assert found.shown
    nothing = effect_size("llm", "words", np.array([np.nan]), np.array([1.0]))
    assert nothing.pairs == 0
    assert math.isnan(nothing.source_mean)
    assert not nothing.shown


def test_what_is_said_of_values_leaves_out_undefined_ones() -> None:
    found = Distribution("x", np.array([0.1, math.nan, 0.2, 0.4, math.nan, 0.9]))
    assert (found.count, found.undefined) == (4, 2)
    assert found.mean == pytest.approx(0.4)
    assert found.quartiles == tuple(map(pytest.approx, (0.175, 0.3, 0.525)))
    assert (found.above(0.2), found.above(0.3)) == (0.5, 0.5)  # strictly
    for nothing in (Distribution("x", np.empty(0)), Distribution("x", np.array([math.nan]))):
        assert nothing.count == 0
        assert all(map(math.isnan, (nothing.mean, nothing.above(0.5), *nothing.quartiles)))
