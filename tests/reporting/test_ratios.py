"""Ratios in plain words."""

import math

import pytest

from ranktilt.reporting.sentences.grammar import often_words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.483, "about half as often as"),
        (0.34, "about a third as often as"),
        (0.71, "71 % as often as"),
        (0.0415, "4.2 % as often as"),
        (1.02, "about as often as"),
        (2.05, "about twice as often as"),
        (2.23, "2.2 times as often as"),
        (0.0, "0.0 % as often as"),
        (math.inf, "∞ times as often as"),
        (math.nan, "– times as often as"),
    ],
)
def test_often_words(ratio: float, words: str) -> None:
    assert often_words(ratio) == words
