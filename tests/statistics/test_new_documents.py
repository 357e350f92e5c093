"""Each label is evidence once: by hand, for documents and for twins."""

import math

import numpy as np
import pytest

from ranktilt.statistics.confidence_sequence import NewDocuments


def interval(total: float, variance: float, first: float, weight: float) -> tuple[float, float]:
    reach = math.sqrt((variance + first) * (math.log((variance + first) / first) + 2 * math.log(20)))
    return max(total - reach, -weight) / weight, min(total + reach, weight) / weight


def test_documents_are_compared_with_as_many_below_and_count_once() -> None:
    new = NewDocuments(np.array([1, 1, -1, 1, 1, -1], np.int8), np.arange(6), 2, twins=False)
    assert (new.count, new.interval()) == (0, (-1.0, 1.0))
    new.add(np.arange(6), np.array([1.0, 1, 0, 0, 0, 0]))
    # Share@2 is (1/2 − 1/6)/2 = 1/6 for a label on top, and 4/6 below it, half of them drawn, takes 1/6 for a label:
    # (1 + 1)/6 − (−1 + 1)/6. The variance is that of four sixths.
    assert new.count == 4
    assert new.interval() == pytest.approx(interval(1 / 3, 4 / 36, 4 / 36, 1))
    # Of documents 0, 5, 4 and 3 the second and the last are new: −1/8 − 1/8, with half the variance of four eighths.
    for _ in range(2):
        new.add(np.array([0, 5, 4, 3]), np.array([1.0, 1, 0, 0]))
        assert new.count == 6
        assert new.interval() == pytest.approx(interval(1 / 3 - 1 / 4, 4 / 36 + 2 / 64, 4 / 36, 1.5))


def test_documents_of_an_origin_are_one_witness() -> None:
    new = NewDocuments(np.array([1, 1, -1, -1], np.int8), np.array([0, 0, 1, 2]), 2, twins=False)
    new.add(np.arange(4), np.array([1.0, 1, 0, 0]))  # two eighths of u are added before they are squared
    assert new.count == 3
    assert new.interval() == pytest.approx(interval(4 / 8, 4 / 64 + 2 / 64, 6 / 64, 1))


def test_a_new_document_without_another_to_compare_is_kept_for_later() -> None:
    new = NewDocuments(np.array([1, 1, -1, 1, -1], np.int8), np.arange(5), 1, twins=False)
    for rows, held, count in (([0, 1], [1, 0], 2), ([2, 1], [1, 0], 2), ([2, 3], [0.5, 0.5], 2), ([2, 3], [1, 0], 4)):
        new.add(np.array(rows), np.array(held, float))  # the third list is tied: neither is above the other
        assert new.count == count
    assert new.interval() == pytest.approx(interval(0 - 1 / 2, 1 / 4, 1 / 4, 2))


def test_twins_count_once_for_both_and_not_where_both_are_on_top() -> None:
    signs, origins = np.array([1, -1, 1, -1], np.int8), np.array([0, 0, 1, 1])
    new, held = NewDocuments(signs, origins, 3, twins=True), np.array([1.0, 1, 1, 0])
    new.add(np.array([0, 2, 3, 1]), held)  # both of v are on top: u alone adds, 1/6
    assert new.count == 1
    assert new.interval() == pytest.approx(interval(1 / 6, 1 / 36, 1 / 36, 1))
    for _ in range(2):
        new.add(np.array([3, 1, 0, 2]), held)
        assert new.count == 2
        assert new.interval() == pytest.approx(interval(0, 2 / 36, 1 / 36, 2))
