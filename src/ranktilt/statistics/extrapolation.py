"""Costs that are sums of terms of the size: fitted to measurements, and extrapolated with prediction intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DRAWS = 400
_WEIGHT = 0.3
"""Values below this share of the largest are fitted as closely as it, and no closer: they say little of large ones."""
_DEVIATION = 0.05
"""Relative deviation of a measurement that is assumed at least: a machine is as fast as that, from minute to minute."""
_MOST_BEND = 0.3
"""The exponent of growth departs no further from that of the terms: all that is fitted grows about linearly."""


@dataclass(frozen=True, eq=False)
class CostFit:
    """A sum of terms with coefficients of at least 0, and draws of what else the measurements could have told."""

    coefficients: Floats
    draws: Floats
    """Coefficients of refits to drawn measurements, shape (draws, terms)."""
    errors: Floats
    """Drawn relative deviation of one measurement from its expected value, on the log scale."""
    bends: Floats
    """Drawn departure of the exponent of growth from that of the terms, as far as the measurements allow."""

    def value(self, terms: Floats) -> float:
        """Return the expected value at a size, by the size's terms."""
        return float(terms @ self.coefficients)

    def drawn(self, terms: Floats, factor: float) -> Floats:
        """Draw values of a single measurement at a size, `factor` times the largest that was measured."""
        spread: Floats = np.exp(self.errors + self.bends * np.log(max(factor, 1.0)))
        return np.asarray(self.draws @ terms * spread)


def fit_costs(terms: Floats, values: Floats, *, seed: int = 0) -> CostFit:
    """Fit coefficients of at least 0 to the relative errors of measurements.

    The intervals are of a parametric bootstrap: measurements are drawn around the fit, by t with as many degrees of
    freedom as are left, and fitted anew, with the terms in another order each time, so that those that cannot be told
    apart share what they explain. What remains of the trend, and its standard error, let the growth bend.

    Parameters
    ----------
    terms : ndarray, shape (n, p)
        A row a measurement: the size's terms, at least 0.
    values : ndarray, shape (n,)
        What was measured, at least 0.
    seed : int, optional
        Of the draws.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.maximum(values, _WEIGHT * max(float(values.max()), 1e-12))
    design, wanted = terms * weights[:, None], values * weights
    coefficients = _nonnegative(design, wanted)
    fitted = design @ coefficients
    left = max(len(values) - int(np.count_nonzero(coefficients)), 1)
    deviation = max(float(np.sqrt(np.sum((wanted - fitted) ** 2) / left)), _DEVIATION)
    draws = np.empty((DRAWS, terms.shape[1]))
    for draw in draws:
        order = rng.permutation(terms.shape[1])
        draw[order] = _nonnegative(design[:, order], fitted * _spread(rng, deviation, left, len(values)))
    return CostFit(
        coefficients,
        draws,
        np.log(_spread(rng, deviation, left, DRAWS)),
        np.clip(_bend(terms @ coefficients, values, deviation) * rng.standard_t(left, DRAWS), -_MOST_BEND, _MOST_BEND),
    )


def _nonnegative(design: Floats, wanted: Floats) -> Floats:
    """Least squares with coefficients of at least 0; columns are brought to one scale first."""
    from scipy.optimize import nnls

    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1
    return np.asarray(nnls(design / scale, wanted)[0] / scale, dtype=np.float64)


def _spread(rng: np.random.Generator, deviation: float, left: int, count: int) -> Floats:
    """Draw factors around 1; heavy tails are cut, where a draw would say nothing any more."""
    return np.asarray(np.exp(np.clip(deviation * rng.standard_t(left, count), -2, 2)))


def _bend(fitted: Floats, values: Floats, deviation: float) -> float:
    """The slope of the log residuals on the log of the fit, and its standard error, as one number."""
    some = (fitted > 0) & (values > 0)
    size = np.log(fitted[some])
    size -= size.mean() if len(size) else 0
    room = float(np.sum(size**2))
    if room < 1e-9:
        return 0.0
    slope = float(size @ np.log(values[some] / fitted[some])) / room
    return float(np.hypot(slope, deviation / np.sqrt(room)))
