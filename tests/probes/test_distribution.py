"""Values over pairs: undefined ones are counted and never enter a number."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.probes.distribution import Cosines, Distribution

VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=30)


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
    assert found.histogram(4)[0].tolist() == [0, 0, 0, 0]


def test_above_is_strict() -> None:
    assert of(0.95, 0.96, 0.95, 1.0).above(0.95) == 0.5


def test_bins_hold_their_lower_edge_and_the_last_its_upper_one() -> None:
    counts, edges = of(0.0, 0.25, 0.5, 0.5, 1.0).histogram(4)
    assert counts.tolist() == [1, 1, 2, 1]
    assert edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_the_range_is_that_of_the_quantity() -> None:
    counts, edges = Cosines("cosine", np.array([-1.0, -0.2, 0.6, 1.0])).histogram(2)
    assert (counts.tolist(), edges.tolist()) == ([2, 2], [-1.0, 0.0, 1.0])


@given(VALUES)
@settings(max_examples=50)
def test_every_defined_value_is_in_one_bar(values: list[float]) -> None:
    found = of(*values)
    assert found.histogram()[0].sum() == found.count == len(values) - found.undefined
