"""Prediction-powered inference: a mean from few human labels and many of a judge, unbiased."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
FEWEST_LABELS = 4
"""Fewest human labels for an interval."""


class Powered(NamedTuple):
    """A mean with its 95 % interval, and the worth of the judge's labels."""

    value: float
    """Estimated mean."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    weight: float
    """λ, 0 to 1: how much the judge's labels count."""
    effective: float
    """Number of human labels that would give the same variance without the judge."""


def powered_mean(labels: Floats, judged: Floats, more: Floats) -> Powered:
    """Estimate a mean from n labels, a judge's values of the same units, and of N further units.

    PPI++ (Angelopoulos, Duchi & Zrnic, 2023, arXiv 2311.01453): ``mean(y − λ f) + λ mean(f_more)``,
    whose λ makes the variance ``var(y − λ f)/n + λ² var(f_more)/N`` as small as it can be. λ is
    fitted to the labels that the mean is taken of: so the residuals' variance divides by n − 2, and
    the interval is of Student's t with n − 2 degrees of freedom. The paper's normal interval covers
    .75 to .93 at 4 to 23 labels. Below `FEWEST_LABELS`, or where no label differs, there is a value
    without an interval; below two labels all is NaN.
    """
    n, further = len(labels), len(more)
    if n < 2:
        return Powered(value=np.nan, low=np.nan, high=np.nan, weight=np.nan, effective=np.nan)
    weight = _judge_weight(labels, judged, more)
    residuals = labels - weight * judged
    value = float(residuals.mean()) + (weight * float(more.mean()) if further else 0.0)
    if n < FEWEST_LABELS or labels.min() == labels.max():
        return Powered(value=value, low=np.nan, high=np.nan, weight=weight, effective=np.nan)
    of_residuals = float(np.var(residuals)) / (n - 2)
    of_labels = float(np.var(labels)) / (n - 2)
    of_more = weight * weight * float(np.var(more)) / further if further else 0.0
    variance = of_residuals + of_more
    half = float(special.stdtrit(n - 2, 0.975)) * float(np.sqrt(variance))
    return Powered(
        value=value,
        low=value - half,
        high=value + half,
        weight=weight,
        effective=n * of_labels / variance if variance > 0 else float(n + further),
    )


def _judge_weight(labels: Floats, judged: Floats, more: Floats) -> float:
    """Return λ, from 0 to 1: the weight of the judge's labels with the smallest variance."""
    n, further = len(labels), len(more)
    spread = float(np.var(np.concatenate([judged, more]), ddof=1))
    if not further or not spread > 0:
        return 0.0
    covariance = float(np.mean((labels - labels.mean()) * (judged - judged.mean())))
    return float(np.clip(covariance / ((1 + n / further) * spread), 0.0, 1.0))
