"""Equivalence of paired values: whether their mean difference is shown to be small.

A test that finds no difference does not show that there is none: there may be too little data. A
test of *equivalence* can show that a difference is small. It asks whether the mean difference lies
within ±*margin*, where you decide which margin is small. Each difference belongs to one query or to
one pair of texts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS

Floats = npt.NDArray[np.float64]
_WITHIN_95 = 0.975
"""Probability below the upper end of a two-sided 95 % interval."""


def tost_p(difference: Floats, margin: float) -> float:
    """Test whether a mean difference lies within ±margin, by two one-sided t tests (TOST).

    One test asks whether the mean is above −margin, the other whether it is below +margin. The
    result is the larger p of the two (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics
    15(6), 1987). A small p shows equivalence; a large p shows nothing. NaN with fewer than two
    differences.
    """
    if len(difference) < 2:
        return np.nan
    mean, error, freedom = _mean_and_error(difference)
    if error == 0:
        return float(abs(mean) >= margin)
    p_below = special.stdtr(freedom, -(mean + margin) / error)
    p_above = special.stdtr(freedom, (mean - margin) / error)
    return float(max(p_below, p_above))


def smallest_margin(difference: Floats, alpha: float = 0.05) -> float:
    """Return the smallest margin for which `tost_p` shows equivalence at level `alpha`.

    It is the end of the 1 − 2·alpha interval that is farther from 0. NaN with fewer than two
    differences.
    """
    if len(difference) < 2:
        return np.nan
    mean, error, freedom = _mean_and_error(difference)
    return float(abs(mean) + special.stdtrit(freedom, 1 - alpha) * error)


def t_interval(difference: Floats) -> tuple[float, float]:
    """Return the lower and upper end of the 95 % interval of a mean by Student's t.

    Both are NaN with fewer than three differences.
    """
    if len(difference) < FEWEST_ROWS:
        return np.nan, np.nan
    mean, error, freedom = _mean_and_error(difference)
    half = float(special.stdtrit(freedom, _WITHIN_95)) * error
    return mean - half, mean + half


def standard_error(difference: Floats) -> float:
    """Return the standard error of a mean; NaN with fewer than two differences."""
    return _mean_and_error(difference)[1] if len(difference) > 1 else np.nan


def _mean_and_error(difference: Floats) -> tuple[float, float, int]:
    """Return the mean of some differences, its standard error, and the degrees of freedom."""
    n = len(difference)
    if (difference == difference[0]).all():  # rounding would leave an error where there is none
        return float(difference[0]), 0.0, n - 1
    return float(np.mean(difference)), float(np.std(difference, ddof=1) / np.sqrt(n)), n - 1
