"""Corrections for many tests, and the smallest effect that a table can detect.

If there is no effect at all, one of twenty tests has p < .05 by chance. A *family* is the tests
that are reported together. Corrected p-values are larger, so that the probability of any false
finding in the family stays below .05.

The *effective number* of queries is the number of equally weighted queries that would be as
certain as the queries at hand, whose weights may differ (Kish 1965).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.errors import unknown_name

Floats = npt.NDArray[np.float64]


def holm(ps: Floats) -> Floats:
    """Correct a family of p-values by Holm's steps (Scandinavian Journal of Statistics 6(2), 1979).

    The smallest of m p-values is multiplied by m, the next by m − 1, and so on. No corrected value
    is smaller than the one before it, nor larger than 1. NaN stays NaN and does not count in m.
    """
    corrected = np.full(len(ps), np.nan)
    defined = np.flatnonzero(~np.isnan(ps))
    order = defined[np.argsort(ps[defined], kind="stable")]
    steps = ps[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def bonferroni(ps: Floats) -> Floats:
    """Multiply each of m p-values by m (Bonferroni); NaN stays NaN and does not count in m."""
    corrected: Floats = np.minimum(ps * np.count_nonzero(~np.isnan(ps)), 1.0)
    return corrected


_CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {"holm": holm, "bonferroni": bonferroni}
"""Functions from p-values to corrected ones, by name."""
CORRECTIONS = tuple(_CORRECTIONS)
"""Names of the corrections."""


def correct(ps: npt.ArrayLike, method: str = "holm") -> Floats:
    """Correct a family of p-values by the method of this name, ``holm`` or ``bonferroni``.

    NaN stays NaN and is not in the family.
    """
    if method not in _CORRECTIONS:
        raise unknown_name("correction", method, _CORRECTIONS)
    return _CORRECTIONS[method](np.asarray(ps, dtype=np.float64))


def detectable_effect(error: float, tests: int = 1, effective_n: float = np.inf) -> float:
    """Return the smallest effect that one of several tests finds four times in five.

    With m tests at α = .05, over n queries, it is

        ``(t(1 − α/2m; n − 1) + z(.8)) · error``

    t and z are quantiles of the t and of the normal distribution. An effect must be t standard
    errors large to be significant, and z(.8) errors larger to be significant in 80 % of all
    samples. α/m is the level at which Bonferroni tests each effect, and Holm the smallest p. For
    one test of many queries the result is 2.80 standard errors, for nine tests 3.61, and for nine
    tests of 30 queries 3.84.

    Parameters
    ----------
    error : float
        Standard error of the effect. The result is a distance in the same unit: an effect of this
        size can be detected in either direction.
    tests : int, optional
        Number of tests in the family. 0 counts as 1, for an effect that is reported alone.
    effective_n : float, optional
        Effective number of queries, n; infinite for very many.

    Returns
    -------
    float
        Infinite with fewer than two queries; 0 if the error is 0, and NaN if it is NaN.
    """
    if error == 0 or math.isnan(error):
        return error
    if effective_n < 2:
        return np.inf
    critical = special.stdtrit(effective_n - 1, 1 - 0.025 / max(tests, 1))
    return float(critical + special.ndtri(0.8)) * error


def interval_error(low: float, high: float, effective_n: float) -> float:
    """Return the standard error from which a 95 % interval by Student's t was made.

    `low` and `high` are the ends of the interval. NaN if they are NaN, or if the effective number
    of queries is at most 1 or NaN.
    """
    if math.isnan(low) or not effective_n > 1:
        return math.nan
    return (high - low) / (2 * float(special.stdtrit(effective_n - 1, 0.975)))
