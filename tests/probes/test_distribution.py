"""Values over pairs: undefined ones are counted and never enter a number."""

import math

import numpy as np
import pytest

from ranktilt.probes.base import Distribution


def of(*values: float) -> Distribution:
    return Distribution("x", np.array(values, dtype=np.float64))


def test_what_is_said_of_four_values() -> None:
    found = of(0.1, 0.2, 0.4, 0.9)
    assert (found.count, found.undefined) == (4, 0)
    assert found.mean == pytest.approx(0.4)
    assert found.quartiles == tuple(map(pytest.approx, (0.175, 0.3, 0.525)))


def test_undefined_values_are_counted_and_left_out() -> None:
    found = of(math.nan, 0.2, math.nan, 0.4)
    assert (found.count, found.undefined, found.mean) == (2, 2, pytest.approx(0.3))
    assert found.above(0.3) == 0.5


@pytest.mark.parametrize("found", [of(), of(math.nan)])
def test_without_values_everything_is_undefined(found: Distribution) -> None:
    assert found.count == 0
    assert all(map(math.isnan, (found.mean, found.above(0.5), *found.quartiles)))


def test_above_is_strict() -> None:
    assert of(0.95, 0.96, 0.95, 1.0).above(0.95) == 0.5
