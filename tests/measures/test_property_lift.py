"""PropertyLift: the first ranks' mean of a property, weighted by exposure, less the list's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.measures.base import estimand
from ranktilt.measures.exposure.property_lift import PropertyLift
from ranktilt.measures.ranking import Ranking
from tests.refusals import refused

NAN = np.nan


def of_list(values: list[float], scores: list[float] | None = None, cutoff: int = 2) -> float:
    """Answer for one list, ranked as it is written unless it has scores."""
    ranked = np.array(scores if scores is not None else -np.arange(len(values)), dtype=np.float64)
    ranking = Ranking(np.array([0, len(values)]), ranked)
    return float((PropertyLift @ cutoff).of_values(ranking, np.array(values))[0])


def test_by_hand() -> None:
    # Exposures 1 and 1 / log2(3) = .6309 of values 3 and 1: (3 + .6309) / 1.6309 = 2.2263;
    # the list's mean is 1.
    assert of_list([3.0, 1.0, 0.0, 0.0]) == pytest.approx((3 + 0.63093) / 1.63093 - 1, abs=1e-5)


def test_tied_documents_share_their_exposure() -> None:
    first = of_list([3.0, 1.0, 0.0, 0.0], scores=[2.0, 2.0, 1.0, 0.0])
    assert first == pytest.approx(2.0 - 1.0)
    assert of_list([1.0, 3.0, 0.0, 0.0], scores=[2.0, 2.0, 1.0, 0.0]) == pytest.approx(first)
    assert of_list([3.0, 1.0, 0.0], scores=[1.0, 1.0, 1.0]) == pytest.approx(0.0)


def test_unknown_values_count_nowhere() -> None:
    # They keep their rank: what follows has the exposure of rank 2.
    weights = np.array([1 / np.log2(3), 1 / np.log2(4)])
    expected = weights @ [5.0, 1.0] / weights.sum() - 2.0
    assert of_list([NAN, 5.0, 1.0, 0.0], cutoff=3) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("one value", [4.0, 4.0, 4.0]),
        ("none known", [NAN, NAN, NAN]),
        ("none in the first ranks", [NAN, NAN, 1.0, 2.0]),
        ("a single one", [1.0, NAN, NAN]),
    ],
)
def test_list_that_says_nothing_is_undefined(name: str, values: list[float]) -> None:
    assert np.isnan(of_list(values))


@pytest.mark.long
def test_mean_over_all_orders_is_zero() -> None:
    rng = np.random.default_rng(0)
    values = np.array([5.0, 1.0, NAN, 2.0, 9.0, 0.0])
    is_known = ~np.isnan(values)
    answers = []
    for _ in range(20_000):
        shuffled = values.copy()
        shuffled[is_known] = rng.permutation(values[is_known])
        answers.append(of_list(shuffled.tolist(), cutoff=3))
    assert np.mean(answers) == pytest.approx(0.0, abs=0.05)


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=12),
    cutoff=st.integers(1, 12),
)
def test_effects_of_values_add_up_to_the_answer(values: list[float], cutoff: int) -> None:
    column = np.array(values)
    ranking = Ranking(np.array([0, len(values)]), -np.arange(len(values), dtype=np.float64))
    lift = PropertyLift @ cutoff
    answer = lift.of_values(ranking, column)[0]
    effects, weights = lift.value_effects(ranking, column)
    if np.isnan(answer):
        assert not effects.any()
        return
    assert effects.sum() == pytest.approx(answer, abs=1e-9)
    assert weights.sum() == pytest.approx(1.0)
    assert lift.of_values(ranking, -column)[0] == pytest.approx(-answer, abs=1e-9)
    first, plain = lift.means_of(ranking, column)
    assert first - plain == pytest.approx(answer, abs=1e-9)


def test_notation() -> None:
    assert repr(estimand("PropertyLift@10")) == "PropertyLift@10"
    with refused("measure PropertyLift needs a cutoff, such as PropertyLift@10"):
        estimand("PropertyLift")
