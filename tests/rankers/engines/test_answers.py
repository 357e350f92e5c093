"""What an engine answered: types are checked, order is kept, oddities are counted."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.rankers.engines.base import checked, falling
from tests.refusals import refused

NAN, INF = math.nan, math.inf
UP, DOWN = 1 + 2.0**-23, 1 - 2.0**-24
"""The neighbours of 1 in float32, in which trec_eval compares scores."""
LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    ("given_scores", "expected"),
    [
        ([], []),
        ([1.0, 1.0, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, 2.0, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, NAN, 0.5], [1.0, DOWN, 0.5]),
        ([1.0, INF, -INF], [1.0, DOWN, 1 - 2.0**-23]),
        ([NAN, 1.0, 0.0], [UP, 1.0, 0.0]),
        ([NAN, INF, NAN], [0, -1, -2]),
        ([-LARGEST, 5.0], [0, -1]),
    ],
)
def test_scores_fall_with_the_rank(given_scores: list[float], expected: list[float]) -> None:
    assert falling(given_scores).tolist() == expected


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0, 1.0]), max_size=30))
def test_made_scores_are_finite_and_fall_strictly(scores: list[float]) -> None:
    made = falling(scores)
    assert len(made) == len(scores)
    assert np.isfinite(made).all()
    assert (np.diff(made) < 0).all()
    assert (np.diff(made.astype(np.float32)) < 0).all()


@given(st.lists(st.floats(-1e9, 1e9, width=32), unique=True, max_size=30))
def test_scores_that_fall_are_left_as_they_are(scores: list[float]) -> None:
    ordered = sorted(scores, reverse=True)
    assert falling(ordered).tolist() == ordered


@pytest.mark.parametrize(
    "answer",
    [
        [("a", 1.0), ("b", 0)],
        (("a", 1.0), ["b", 0.0]),
        [("a", np.float32(1)), ("b", np.int64(0))],
        [[np.str_("a"), 1], ("b", 0)],
    ],
)
def test_pairs_of_a_string_and_any_number_are_taken(answer: Any) -> None:
    made = checked(answer, "q", "engine")
    assert made == [("a", 1.0), ("b", 0.0)]
    assert {(type(document), type(score)) for document, score in made} == {(str, float)}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "None"),
        (["d1"], "'d1'"),
        ([("d1", 1.0), ("d2",)], "('d2',)"),
        ([(7, 1.0)], "(7, 1.0)"),
        ([("d1", "1.0")], "('d1', '1.0')"),
        ([("d1", True)], "('d1', True)"),
    ],
)
def test_another_type_is_refused(answer: Any, message: str) -> None:
    with refused(f"engine:a:b: query 'q7': expected a list of (document id, score), got {message}"):
        checked(answer, "q7", "engine:a:b")
