"""What an engine answered: types are checked, order is kept, oddities are counted."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.rankers.engines.base import Oddities, checked, falling, sifted
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


def test_oddities_are_counted_and_the_first_place_counts() -> None:
    odd = Oddities()
    hits = [("a", 3.0), ("b", 4.0), ("a", 2.0), ("x", 4.0), ("c", NAN), ("d", 1.0)]
    assert [document for document, _ in sifted(hits, "q1", {"a", "b", "c", "d"}, odd)] == ["a", "b", "x", "c", "d"]
    assert sifted([], "q2", {"a"}, odd) == []
    assert sifted([("y", 1.0)], "q3", {"a"}, odd) == [("y", 1.0)]
    assert +odd.counts == {"duplicates": 1, "unknown": 2, "not_finite": 1, "rising": 1, "tied": 1, "empty": 1}
    assert (odd.results, odd.most) == (6, 5)
    assert odd.first == {
        "duplicates": "'a' for query 'q1'",
        "unknown": "'x' for query 'q1'",
        "not_finite": "'c' for query 'q1'",
        "rising": "'b' for query 'q1'",
    }


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
        (None, "query 'q7': expected a list of (document id, score), got None"),
        (["d1"], "query 'q7', result 1: expected a pair (document id, score), got str 'd1'"),
        ([("d1", 1.0), ("d2",)], "query 'q7', result 2: expected a pair (document id, score), got tuple ('d2',)"),
        ([(7, 1.0)], "query 'q7', result 1: expected the document id as a string, got int 7; str(id) makes one"),
        ([("d1", "1.0")], "query 'q7', result 1: expected the score as a number, got str '1.0'"),
    ],
)
def test_another_type_is_refused(answer: Any, message: str) -> None:
    with refused(f"engine:a:b: {message}"):
        checked(answer, "q7", "engine:a:b")
