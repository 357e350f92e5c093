"""The difference of two coefficients over the same queries, such as Cohen's κ of two judges.

A *coefficient* says how far a judge agrees with people, or how far two orders agree: from −1 to 1.
A *judge* grades how relevant documents are. Both coefficients are computed in the same *resamples*:
queries drawn with replacement. So queries that are hard for both do not count as a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.inversion import ALPHA, infer
from ranktilt.statistics.judges.rank_correlation import NEARNESS
from ranktilt.statistics.two_way import TwoWayVariance

Floats = npt.NDArray[np.float64]
BOUNDS = (-2.0, 2.0)
"""Smallest and largest difference of two coefficients, which are from −1 to 1 each."""


@dataclass(frozen=True, kw_only=True)
class CoefficientDifference:
    """A difference with its 95 % interval, and the p of no difference."""

    value: float
    """Observed difference."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    p: float
    """p of no difference."""


@dataclass(frozen=True, kw_only=True)
class _MethodResult:
    """Interval and p by one method; the widest of several intervals counts."""

    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    p: float
    """p of no difference."""


def coefficient_difference(
    value: float,
    samples: Floats,
    *,
    effective_n: float,
    near_samples: Floats | None = None,
) -> CoefficientDifference:
    """Return the interval of a difference of two coefficients, and the p of no difference.

    The interval reaches as far as the widest of three, for the reasons that `coefficient_interval`
    gives for a single coefficient:

    - the percentile interval of the resamples;
    - the same interval reflected in the value: from 2·value − high to 2·value − low;
    - the value minus its bias ± t standard errors, if there are near resamples: resampled means
      that are moved towards the observed means (`near_resamples`).

    Each interval is widened by the factor √(n/(n − 1)) · t(n − 1)/1.96, with the effective number
    of queries n, because resamples of few queries vary too little. p is the level at which the
    interval first excludes 0, so "p < .05" and "the interval excludes 0" are one statement.

    Parameters
    ----------
    value : float
        Observed difference, −2 to 2; NaN where a coefficient is undefined.
    samples : ndarray of float64, shape (resamples,)
        The difference in resamples of the queries, the same resamples for both coefficients.
    effective_n : float
        Effective number of queries.
    near_samples : ndarray of float64, shape (resamples,), optional
        The difference in near resamples, for coefficients of orders of systems, such as τ.

    Returns
    -------
    CoefficientDifference
        The ends and p are NaN if the value is undefined, or undefined in every resample.
    """
    defined = samples[~np.isnan(samples)]
    if np.isnan(value) or not len(defined) or not effective_n > 1:
        return CoefficientDifference(value=value, low=np.nan, high=np.nan, p=np.nan)
    results = [
        _percentile_result(value, defined, effective_n),
        _percentile_result(value, 2 * value - defined, effective_n),  # reflected in the value
    ]
    # If no near resample changes the orders, there is no standard error.
    if near_samples is not None and np.nanstd(near_samples) > 0:
        results.append(_standard_error_result(value, defined, near_samples, effective_n))
    return CoefficientDifference(
        value=value,
        low=max(BOUNDS[0], min(result.low for result in results)),
        high=min(BOUNDS[1], max(result.high for result in results)),
        p=max(result.p for result in results),
    )


def _percentile_result(value: float, samples: Floats, effective_n: float) -> _MethodResult:
    """Return the widened percentile interval of some resamples, and its p."""
    of_queries = float(np.var(samples))
    inference = infer(
        samples,
        value,
        variance=TwoWayVariance(of_queries=of_queries, of_both=of_queries, effective_n=effective_n),
        neutral=0.0,
        bounds=BOUNDS,
    )
    return _MethodResult(low=inference.low, high=inference.high, p=inference.p)


def _standard_error_result(
    value: float, samples: Floats, near_samples: Floats, effective_n: float
) -> _MethodResult:
    """Return the interval around the value minus its bias, with the error of near resamples."""
    freedom = effective_n - 1
    # The bias is the mean of the samples minus the value; this is the value minus that.
    centre = 2 * value - float(samples.mean())
    error = float(np.nanstd(near_samples)) / NEARNESS * float(np.sqrt(effective_n / freedom))
    half_width = float(special.stdtrit(freedom, 1 - ALPHA / 2)) * error
    # If the value without its bias has another sign than the value, nothing is shown.
    has_same_sign = centre * value > 0
    p = 2 * float(special.stdtr(freedom, -abs(centre) / error)) if has_same_sign else 1.0
    return _MethodResult(low=centre - half_width, high=centre + half_width, p=p)
