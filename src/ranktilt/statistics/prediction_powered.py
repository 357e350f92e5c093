"""Prediction-powered inference: a mean from few human labels and many of a judge, without the judge's bias."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
_Z = float(special.ndtri(0.975))


class Powered(NamedTuple):
    """A mean with its 95 % interval, and what the judge's labels were worth."""

    value: float
    low: float
    high: float
    weight: float
    """λ, 0 to 1: how much the judge's labels count."""
    effective: float
    """Human labels that would give as narrow an interval without the judge."""


def powered_mean(labels: Floats, judged: Floats, more: Floats) -> Powered:
    """Estimate a mean from n labels, a judge's values of the same n units, and its values of N further units.

    PPI++ (Angelopoulos, Duchi & Zrnic, 2023, arXiv 2311.01453): ``mean(y − λ f) + λ mean(f_more)``, whose λ makes the
    variance ``var(y − λ f)/n + λ² var(f_more)/N`` as small as it can be; the interval is normal. NaN below two labels.
    """
    n, further = len(labels), len(more)
    if n < 2:
        return Powered(*(np.nan,) * 5)
    both = np.concatenate([judged, more])
    spread = float(np.var(both, ddof=1))
    shared = float(np.mean((labels - labels.mean()) * (judged - judged.mean())))
    weight = float(np.clip(shared / ((1 + n / further) * spread), 0.0, 1.0)) if further and spread > 0 else 0.0
    rest = labels - weight * judged
    variance = float(np.var(rest)) / n + (weight * weight * float(np.var(more)) / further if further else 0.0)
    value = float(rest.mean()) + (weight * float(more.mean()) if further else 0.0)
    half = _Z * float(np.sqrt(variance))
    alone = float(np.var(labels))
    return Powered(value, value - half, value + half, weight, alone / variance if variance > 0 else float(n + further))
