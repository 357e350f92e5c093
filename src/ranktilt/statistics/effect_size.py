"""Hedges' g: the mean difference of paired values, in standard deviations.

A pair may be a human text and its rewrite, with the length of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""
_FEWEST_PAIRS = 3
"""Fewest pairs for which g is computed: with two, the factor for small samples is 0."""
_ROUNDING = 1e-12
"""Standard deviation below which values count as equal, as a share of the largest value."""


@dataclass(frozen=True, kw_only=True)
class StandardizedDifference:
    """Hedges' g and its 95 % interval; all are NaN if g is undefined."""

    g: float
    """Hedges' g."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


_UNDEFINED = StandardizedDifference(g=np.nan, low=np.nan, high=np.nan)
"""The result for too few pairs, and for values that do not vary."""


def hedges_g(a: Floats, b: Floats) -> StandardizedDifference:
    """Compute Hedges' g of n paired values, with its 95 % interval.

    Let d be the mean of b − a, divided by the root of the mean variance of a and b. In small
    samples d is too large. So g is d times a factor below 1 (Hedges, Journal of Educational
    Statistics 6, 1981):

        g = d · (1 − 3 / (4(n − 1) − 1))

    The interval is ±1.96 standard errors of d, times the same factor. The variance of d is that of
    Bonett for paired values (Psychological Methods 13, 2008): with the variances s_aa and s_bb,
    their mean v, and the covariance s_ab,

        var(d) = [d² · (s_aa² + s_bb² + 2 s_ab²) / (8 v²) + (s_aa + s_bb − 2 s_ab) / v] / (n − 1)

    Parameters
    ----------
    a, b : ndarray of float64, shape (n,)
        Both values of each pair.

    Returns
    -------
    StandardizedDifference
        Above 0 if b is larger. NaN with fewer than three pairs, and if neither a nor b varies.
    """
    n = len(a)
    if n < _FEWEST_PAIRS:
        return _UNDEFINED
    (s_aa, s_ab), (_, s_bb) = np.cov(a, b).tolist()
    variance = (s_aa + s_bb) / 2
    # Values that should be equal may differ in their last digits; that is no variance.
    rounding = _ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    if not variance > rounding**2:  # true of NaN too, where a value is missing
        return _UNDEFINED
    d = float(np.mean(b - a)) / np.sqrt(variance)
    # Two terms, as in the docstring: the error of the standard deviation, and that of the mean.
    of_deviation = d**2 * (s_aa**2 + s_bb**2 + 2 * s_ab**2) / (8 * variance**2)
    of_mean = (s_aa + s_bb - 2 * s_ab) / variance
    spread = max(of_deviation + of_mean, 0.0)  # rounding may make it negative
    small_sample_factor = 1 - 3 / (4 * (n - 1) - 1)
    g = small_sample_factor * d
    half_width = _Z95 * small_sample_factor * np.sqrt(spread / (n - 1))
    return StandardizedDifference(g=float(g), low=float(g - half_width), high=float(g + half_width))
