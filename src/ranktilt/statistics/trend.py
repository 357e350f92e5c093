"""Whether values change with an ordered condition: the temperature at which texts were generated.

There are two answers: a rank correlation, and the change from the lowest temperature to the
highest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def rank_correlation(temperatures: Sequence[float], values: Floats) -> Floats:
    """Compute Spearman's rank correlation of temperatures with each column of values.

    `values` has the shape (n_temperatures, n_columns), and the result (n_columns,). It is NaN for a
    column with a NaN or with equal values only, and if all temperatures are the same.
    """
    from scipy import stats  # imported on use: it takes half a second

    x = stats.rankdata(temperatures)
    y = stats.rankdata(values, axis=0)
    x, y = x - x.mean(), y - y.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations: Floats = (x @ y) / np.sqrt((x**2).sum() * (y**2).sum(axis=0))
    return np.where(np.isnan(values).any(axis=0), np.nan, np.clip(correlations, -1, 1))


def change_of_ends(temperatures: Sequence[float], values: Floats) -> Floats:
    """Return each column's mean at the highest temperature minus its mean at the lowest.

    `values` has the shape (n_temperatures, n_columns). A temperature may occur several times.
    """
    temperature = np.array(temperatures)
    highest = values[temperature == temperature.max()].mean(axis=0)
    lowest = values[temperature == temperature.min()].mean(axis=0)
    change: Floats = highest - lowest
    return change
