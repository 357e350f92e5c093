"""The ratio of two means, with an interval that holds however close to 0 the lower one is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ranktilt.statistics.regression import cluster_sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Ratio(NamedTuple):
    """A ratio of means with its 95 % interval."""

    value: float
    low: float
    """NaN, as is `high`, where the interval has no end: the mean below the line may be 0."""
    high: float
    f: float
    """Squared t of the mean below the line; of an instrument's effect the first-stage F."""


def ratio_of_means(above: Floats, below: Floats, first: Ints, second: Ints) -> Ratio:
    """Divide the mean of one column by that of another, over rows that need not be independent.

    The interval is Fieller's: all ratios r for which the mean of ``above − r · below`` is within t standard errors of
    0; with one binary instrument it is Anderson and Rubin's. Covariances are V₁ + V₂ − V₁₂ over two numberings of
    clusters, as of `regress`; V₁ + V₂ where that is no covariance.
    """
    table = np.column_stack([above, below])
    up, down = table.mean(axis=0).tolist()
    covariance = _covariance((table - table.mean(axis=0)) / len(table), first, second)
    clusters = min(len(np.unique(first)), len(np.unique(second)))
    t2 = float(stats.t.ppf(0.975, max(clusters - 1, 1))) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        f = float(np.float64(down * down) / covariance[1, 1])
        value = float(np.float64(up) / down)
    a, b, c = down * down - t2 * covariance[1, 1], up * down - t2 * covariance[0, 1], up * up - t2 * covariance[0, 0]
    if a <= 0:
        return Ratio(value, np.nan, np.nan, f)
    half = np.sqrt(max(b * b - a * c, 0.0))
    return Ratio(value, float((b - half) / a), float((b + half) / a), f)


def _covariance(added: Floats, first: Ints, second: Ints) -> Floats:
    both = np.unique(first * (int(second.max(initial=0)) + 1) + second, return_inverse=True)[1]
    sums = [cluster_sums(added, clusters) for clusters in (first, second, both)]
    one, two, joint = (factor * (total.T @ total) for total, factor in sums)
    found: Floats = one + two - joint
    return found if np.linalg.eigvalsh(found).min() >= 0 else one + two
