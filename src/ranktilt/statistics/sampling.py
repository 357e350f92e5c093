"""Draw rows at random without replacement, but none of the excluded rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def sample_rows(
    rng: np.random.Generator, n: int, total: int, excluded: npt.NDArray[np.int64] | list[int]
) -> npt.NDArray[np.int64]:
    """Draw n different rows from 0 to total − 1, all equally likely, but none of the excluded rows.

    `excluded` must be in rising order.
    """
    rows: npt.NDArray[np.int64] = rng.choice(total - len(excluded), n, replace=False, shuffle=False)
    # So far the numbers count only the rows that may be drawn. Each excluded row, in rising order,
    # moves the numbers from it on by 1.
    for row in excluded:
        rows += rows >= row
    return rows
