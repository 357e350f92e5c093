"""Draws of rows without replacement, leaving some rows out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def sample_rows(
    rng: np.random.Generator, n: int, total: int, excluded: npt.NDArray[np.int64] | list[int]
) -> npt.NDArray[np.int64]:
    """Draw `n` of `total` rows evenly and without replacement, none of the excluded ones.

    `excluded` is in rising order.
    """
    rows: npt.NDArray[np.int64] = rng.choice(total - len(excluded), n, replace=False, shuffle=False)
    for row in excluded:  # in rising order: a drawn number counts only the rows that are left
        rows += rows >= row
    return rows
