"""Intervals of ranks: which ranks a member of an order can have, by tests of all pairs.

Suppose that the tests of all pairs show a false difference with a probability of at most 5 %. Then
all intervals together hold the true ranks with a probability of at least 95 %: D. Al Mohamad,
J. J. Goeman, E. W. van Zwet, Biometrics 78(1), 2022, with Tukey's test and its step-down version.
M. Klein, T. Wright, J. Wieczorek (JRSS C 69(3), 2020) count intervals that do not overlap in the
same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class RankIntervals(NamedTuple):
    """The interval of each member's rank; rank 1 is the highest."""

    best: Ints
    """Best rank of each member: 1 + the number of members that are shown to be higher."""
    worst: Ints
    """Worst rank of each of n members: n − the number of members that are shown to be lower."""


def rank_intervals(is_above: Bools) -> RankIntervals:
    """Return the interval of each member's rank, from corrected tests of all pairs.

    Parameters
    ----------
    is_above : ndarray of bool, shape (n, n)
        Whether the member of a row is shown to be higher than the member of a column.

    Returns
    -------
    RankIntervals
        Arrays of the shape (n,). Members that are equal in truth may have any of the ranks that
        they share.
    """
    above = np.asarray(is_above, dtype=bool)
    return RankIntervals(best=1 + above.sum(axis=0), worst=len(above) - above.sum(axis=1))
