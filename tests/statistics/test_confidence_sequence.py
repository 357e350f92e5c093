"""Confidence sequences hold the mean at all times together; and each label is evidence once."""

import math

import numpy as np
import pytest

from ranktilt.statistics.confidence_sequence import ConfidenceSequence, NewDocumentSequence
from tests.refusals import refused

Ends = list[tuple[float, float]]


def watched(
    values: np.ndarray, low: float = -1.0, high: float = 1.0
) -> tuple[ConfidenceSequence, Ends]:
    sequence = ConfidenceSequence(low, high)
    ends = []
    for value in values.tolist():
        sequence.add(value)
        ends.append((sequence.low, sequence.high))
    return sequence, ends


@pytest.mark.parametrize("shape", ["narrow", "two values", "skewed"])
def test_it_holds_the_mean_at_every_look(shape: str) -> None:
    rng, missed, draws = np.random.default_rng(0), 0, 150
    for _ in range(draws):
        values = {
            "narrow": lambda: np.clip(rng.normal(0.1, 0.2, 200), -1, 1),
            "two values": lambda: rng.choice([-1.0, 1.0], 200, p=[0.45, 0.55]),
            "skewed": lambda: 2 * rng.beta(0.2, 0.2 * 11 / 9, 200) - 1,
        }[shape]()
        truth = {"narrow": 0.1, "two values": 0.1, "skewed": -0.1}[shape]
        missed += any(not low - 1e-9 <= truth <= high + 1e-9 for low, high in watched(values)[1])
    assert missed <= 0.05 * draws + 2 * math.sqrt(0.05 * 0.95 * draws)


def test_it_only_ever_narrows_and_keeps_count() -> None:
    values = np.random.default_rng(1).uniform(-0.5, 0.9, 400)
    sequence, ends = watched(values)
    lows, highs = map(list, zip(*ends, strict=True))
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)
    assert (sequence.count, sequence.mean) == (400, pytest.approx(values.mean()))
    assert lows[-1] < 0.2 < highs[-1]
    assert highs[-1] - lows[-1] < 0.25


def test_of_values_that_hardly_vary_it_is_far_narrower_than_hoeffdings() -> None:
    values = np.random.default_rng(3).uniform(0.45, 0.55, 400)
    _, ends = watched(values, 0.0, 1.0)
    assert ends[-1][1] - ends[-1][0] < 0.02  # Hoeffding's, of one look: 2 √(log 40 / 800) = .136


@pytest.mark.parametrize("values", [[1.0] * 6, [0.3, 0.9, 0.6] * 4, [0.3, 0.9, 0.6] * 40])
def test_looks_agree_with_the_paper_s_formula_by_hand(values: list[float]) -> None:
    """At each end of the interval the wealth of who bets that the mean lies above, halved, passes
    20.
    """

    def wealth(mean: float) -> float:
        capital, variance, total, spread = 1.0, 0.25, 0.0, 0.0
        for number, value in enumerate(values, start=1):
            stake = math.sqrt(2 * math.log(40) / (variance * number * math.log1p(number)))
            capital *= 1 + min(stake, 0.75 / mean) * (value - mean)
            total += value
            spread += (value - (0.5 + total) / (number + 1)) ** 2
            variance = (0.25 + spread) / (number + 1)
        return capital

    sequence, _ = watched(np.array(values), 0.0, 1.0)
    assert wealth(sequence.low - 0.001) / 2 > 20 > wealth(sequence.low + 0.001) / 2


def test_values_and_options_out_of_range_are_refused() -> None:
    with refused("a confidence sequence needs values with bounds, got 0.0 to inf"):
        ConfidenceSequence(0.0, math.inf)
    with refused("a confidence sequence needs values with bounds, got 1.0 to 1.0"):
        ConfidenceSequence(1.0, 1.0)
    with refused("expected values from 0.0 to 1.0, got 1.5"):
        ConfidenceSequence(0.0, 1.0).add(1.5)
    with refused("expected values from 0.0 to 1.0, got nan"):
        ConfidenceSequence(0.0, 1.0).add(math.nan)

    assert math.isnan(ConfidenceSequence(0.0, 1.0).mean)


def interval(total: float, variance: float, first: float, weight: float) -> tuple[float, float]:
    reach = math.sqrt(
        (variance + first) * (math.log((variance + first) / first) + 2 * math.log(20))
    )
    return max(total - reach, -weight) / weight, min(total + reach, weight) / weight


def test_documents_are_compared_with_as_many_below_and_count_once() -> None:
    new = NewDocumentSequence(np.array([1, 1, -1, 1, 1, -1], np.int8), np.arange(6), 2, twins=False)
    assert (new.count, new.interval()) == (0, (-1.0, 1.0))
    new.add(np.arange(6), np.array([1.0, 1, 0, 0, 0, 0]))
    # Share@2 is (1/2 − 1/6)/2 = 1/6 for a label on top, and 4/6 below it, half of them drawn, takes
    # 1/6 for a label: (1 + 1)/6 − (−1 + 1)/6. The variance is that of four sixths.
    assert new.count == 4
    assert new.interval() == pytest.approx(interval(1 / 3, 4 / 36, 4 / 36, 1))
    # Of documents 0, 5, 4 and 3 the second and the last are new: −1/8 − 1/8, with half the variance
    # of four eighths.
    for _ in range(2):
        new.add(np.array([0, 5, 4, 3]), np.array([1.0, 1, 0, 0]))
        assert new.count == 6
        assert new.interval() == pytest.approx(
            interval(1 / 3 - 1 / 4, 4 / 36 + 2 / 64, 4 / 36, 1.5)
        )


def test_origin_is_one_witness_and_lone_one_is_kept() -> None:
    new = NewDocumentSequence(
        np.array([1, 1, -1, -1], np.int8), np.array([0, 0, 1, 2]), 2, twins=False
    )
    new.add(
        np.arange(4), np.array([1.0, 1, 0, 0])
    )  # two eighths of u are added before they are squared
    assert new.count == 3
    assert new.interval() == pytest.approx(interval(4 / 8, 4 / 64 + 2 / 64, 6 / 64, 1))
    new = NewDocumentSequence(np.array([1, 1, -1, 1, -1], np.int8), np.arange(5), 1, twins=False)
    for rows, within, count in (
        ([0, 1], [1, 0], 2),
        ([2, 1], [1, 0], 2),
        ([2, 3], [0.5, 0.5], 2),
        ([2, 3], [1, 0], 4),
    ):
        new.add(
            np.array(rows), np.array(within, float)
        )  # the third list is tied: neither is above the other
        assert new.count == count
    assert new.interval() == pytest.approx(interval(0 - 1 / 2, 1 / 4, 1 / 4, 2))


def test_twins_count_once_and_not_with_both_on_top() -> None:
    signs, origins = np.array([1, -1, 1, -1], np.int8), np.array([0, 0, 1, 1])
    new, within = NewDocumentSequence(signs, origins, 3, twins=True), np.array([1.0, 1, 1, 0])
    new.add(np.array([0, 2, 3, 1]), within)  # both of v are on top: u alone adds, 1/6
    assert new.count == 1
    assert new.interval() == pytest.approx(interval(1 / 6, 1 / 36, 1 / 36, 1))
    for _ in range(2):
        new.add(np.array([3, 1, 0, 2]), within)
        assert new.count == 2
        assert new.interval() == pytest.approx(interval(0, 2 / 36, 1 / 36, 2))
