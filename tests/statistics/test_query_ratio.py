"""A ratio over queries, and its interval."""

import numpy as np

from ranktilt.statistics.query_ratio import QueryRatio

OPTIONS = {"neutral": 0.5, "bounds": (0.0, 1.0), "resamples": 1000, "seed": 0}


def test_ratio_of_sums_by_hand() -> None:
    ratio = QueryRatio(numerator=np.array([1.0, 3.0, 0.0]), denominator=np.array([2.0, 6.0, 0.0]))
    assert ratio.value == 0.5


def test_queries_without_weight_change_nothing() -> None:
    rng = np.random.default_rng(0)
    numerator, denominator = rng.random(20), np.ones(20)
    plain = QueryRatio(numerator=numerator, denominator=denominator).inference(**OPTIONS)
    zeros = np.zeros(10)
    padded = QueryRatio(
        numerator=np.concatenate([numerator, zeros]),
        denominator=np.concatenate([denominator, zeros]),
    ).inference(**OPTIONS)
    assert plain == padded
    assert plain.low < numerator.mean() < plain.high


def test_share_of_one_in_ten_queries_is_not_sure() -> None:
    """Clopper and Pearson: ten of ten have a lower end of .025^(1/10) = .692."""
    inference = QueryRatio(numerator=np.ones(10), denominator=np.ones(10)).inference(**OPTIONS)
    assert (round(inference.low, 3), inference.high) == (0.692, 1.0)
