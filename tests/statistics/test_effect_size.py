"""Hedges' g by hand."""

import math

import numpy as np
import pytest

from ranktilt.statistics.effect_size import Floats, hedges_g


def effect(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Hedges' g and both ends of its interval."""
    difference = hedges_g(a, b)
    return difference.g, difference.low, difference.high


def test_three_and_four_pairs_by_hand_and_undefined_is_not_zero() -> None:
    g, low, high = effect(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    assert g == pytest.approx(4 / 7)
    assert (low, high) == pytest.approx(
        (4 / 7 * (1 - 1.959964 / 2), 4 / 7 * (1 + 1.959964 / 2)), abs=1e-6
    )
    # The variance of the differences of these comes out below 0, by 1e-17.
    a, b = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.10000000000000002, 0.2, 0.3, 0.4])
    assert effect(a, b) == pytest.approx((0, 0, 0), abs=1e-9)
    a, b = np.array([0.0, 2.0, 0.0, 2.0]), np.array([1.0, 1.0, 3.0, 3.0])
    g, low, high = effect(a, b)  # variances 4/3, covariance 0: d = 1 / sqrt(4/3), J = 1 - 3/11
    d, j = math.sqrt(3) / 2, 8 / 11
    assert g == pytest.approx(j * d)
    assert high - g == pytest.approx(1.959964 * j * math.sqrt((d**2 / 4 + 2) / 3), abs=1e-6)
    assert g - low == pytest.approx(high - g)
    for a, b in (([], []), ([1.0, 2.0], [2.0, 4.0]), ([1] * 5, [1] * 5), ([1] * 5, [2] * 5)):
        assert all(map(math.isnan, effect(np.array(a), np.array(b))))
