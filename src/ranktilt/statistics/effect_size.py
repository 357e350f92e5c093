"""Hedges' g: the mean difference of paired values, in standard deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""
_FEWEST_PAIRS = 3
"""Fewest pairs for which g is computed."""
_ROUNDING = 1e-12
"""Largest difference that rounding makes between equal values of about 1."""


@dataclass(frozen=True, kw_only=True)
class StandardizedDifference:
    """Hedges' g and its 95 % interval; all NaN where g is undefined."""

    g: float
    """Hedges' g."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


_UNDEFINED = StandardizedDifference(g=np.nan, low=np.nan, high=np.nan)
"""The result for too few pairs, and for values that do not vary."""


def hedges_g(a: Floats, b: Floats) -> StandardizedDifference:
    """Compute Hedges' g of paired values, with its 95 % interval.

    g is the mean of b − a, divided by the root of the mean of both variances, and multiplied by

        1 − 3 / (4(n − 1) − 1)

    which takes off the bias of small samples (Hedges, Journal of Educational Statistics 6, 1981).
    The interval is that of Bonett (Psychological Methods 13, 2008) for paired values. All is NaN
    with fewer than three pairs, and if neither a nor b varies.
    """
    n = len(a)
    if n < _FEWEST_PAIRS:
        return _UNDEFINED
    (aa, ab), (_, bb) = np.cov(a, b).tolist()  # variance of a, covariance, variance of b
    variance = (aa + bb) / 2
    # Values that should be equal may differ in their last digits; that is no variance.
    rounding = _ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    if not variance > rounding**2:
        return _UNDEFINED
    d = float(np.mean(b - a)) / np.sqrt(variance)
    # (n − 1) times Bonett's variance of d.
    spread = d**2 * (aa**2 + bb**2 + 2 * ab**2) / (8 * variance**2) + (aa + bb - 2 * ab) / variance
    correction = 1 - 3 / (4 * (n - 1) - 1)
    g = correction * d
    half_width = _Z95 * correction * np.sqrt(max(spread, 0.0) / (n - 1))  # rounding may go below 0
    return StandardizedDifference(g=float(g), low=float(g - half_width), high=float(g + half_width))
