"""Intervals of ranks by hand."""

import numpy as np
import pytest

from ranktilt.statistics.ranks import rank_intervals


@pytest.mark.parametrize(
    ("count", "pairs", "best", "worst"),
    [
        (1, [], [1], [1]),
        (3, [], [1, 1, 1], [3, 3, 3]),
        (3, [(0, 1), (0, 2), (1, 2)], [1, 2, 3], [1, 2, 3]),
        (4, [(0, 2), (0, 3), (1, 3)], [1, 1, 2, 3], [2, 3, 4, 4]),
    ],
)
def test_rank_intervals_by_hand(
    count: int, pairs: list[tuple[int, int]], best: list[int], worst: list[int]
) -> None:
    is_above = np.zeros((count, count), dtype=bool)
    for higher, lower in pairs:
        is_above[higher, lower] = True
    intervals = rank_intervals(is_above)
    assert (intervals.best.tolist(), intervals.worst.tolist()) == (best, worst)
