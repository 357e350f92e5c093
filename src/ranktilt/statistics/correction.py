"""Corrections for many tests, and the smallest effect that a table can detect."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.errors import unknown

Floats = npt.NDArray[np.float64]


def holm(ps: Floats) -> Floats:
    """Correct a family of p-values by Holm's steps; NaN stays NaN and is not in the family."""
    corrected = np.full(len(ps), np.nan)
    defined = np.flatnonzero(~np.isnan(ps))
    order = defined[np.argsort(ps[defined], kind="stable")]
    steps = ps[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def bonferroni(ps: Floats) -> Floats:
    """Correct a family of p-values by Bonferroni; NaN stays NaN and is not in the family."""
    corrected: Floats = np.minimum(ps * np.count_nonzero(~np.isnan(ps)), 1.0)
    return corrected


_CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {"holm": holm, "bonferroni": bonferroni}
"""Functions from p-values to corrected ones, by name."""
CORRECTIONS = tuple(_CORRECTIONS)
"""Names of the corrections."""


def correct(ps: npt.ArrayLike, method: str = "holm") -> Floats:
    """Correct a family of p-values for its size; NaN stays NaN and is not in the family."""
    if method not in _CORRECTIONS:
        raise unknown("correction", method, _CORRECTIONS)
    return _CORRECTIONS[method](np.asarray(ps, dtype=np.float64))


def detectable_effect(error: float, tests: int = 1, queries: float = np.inf) -> float:
    """Return the smallest effect that a table of corrected tests detects with 80 % power.

    It is absolute, in the unit of `error`, the effect's standard error:
    ``(t(1 − α/2m; n − 1) + z(.8)) · error`` at α = .05, with m = `tests` and n = `queries`: 2.80
    standard errors for one test of many queries, 3.61 for nine; 4.21 for nine of 30 queries.
    ``α/m`` is the level at which Bonferroni tests each effect, and Holm the first. Infinite below
    two queries, 0 where the error is.
    """
    if error == 0 or math.isnan(error):
        return error
    if queries < 2:
        return np.inf
    critical = special.stdtrit(queries - 1, 1 - 0.025 / max(tests, 1))
    return float(critical + special.ndtri(0.8)) * error


def interval_error(low: float, high: float, effective_n: float) -> float:
    """Return the standard error that a 95 % interval of Student's t has; NaN without one."""
    if math.isnan(low) or not effective_n > 1:
        return math.nan
    return (high - low) / (2 * float(special.stdtrit(effective_n - 1, 0.975)))
