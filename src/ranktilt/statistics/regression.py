"""Ordinary least squares whose errors are clustered two ways, and how much of R² goes with each regressor."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
import numpy.typing as npt
from scipy import stats

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_REGRESSORS = 10
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Regression:
    """y = b₀ + Σ b_j x_j + e, with the intercept first in every array."""

    coefficients: Floats
    covariance: Floats
    degrees: int
    """Of freedom of the t distribution: the fewer of the clusters, less one."""
    r2: float
    parts: Floats
    """Share of R² of each regressor, which add up to it (LMG), without an entry for the intercept."""
    without: Floats
    """R² without each regressor."""
    inflation: Floats
    """Variance inflation 1 / (1 − R² of a regressor on the others); infinite where the others give it exactly."""

    def interval(self, weights: Floats, *, level: float = 0.95) -> tuple[float, float, float]:
        """Return a weighted sum of the coefficients, and its interval."""
        value = float(weights @ self.coefficients)
        spread = float(np.sqrt(max(float(weights @ self.covariance @ weights), 0.0)))
        half = float(stats.t.ppf((1 + level) / 2, self.degrees)) * spread
        return value, value - half, value + half


def regress(y: Floats, x: Floats, first: Ints, second: Ints) -> Regression:
    """Regress y on columns that need not be independent, with errors clustered by two numberings.

    Parameters
    ----------
    y : ndarray, shape (n,)
        The response.
    x : ndarray, shape (n, p)
        Up to 10 regressors, without the intercept.
    first, second : ndarray of int, shape (n,)
        Clusters, numbered from 0, such as query and origin.

    Returns
    -------
    Regression
        The covariance is V₁ + V₂ − V₁₂, each with G / (G − 1) for G clusters (Cameron, Gelbach & Miller, Journal of
        Business & Economic Statistics 29(2), 2011), its diagonal nowhere smaller than those of V₁ and V₂. Of
        regressors that give each other exactly, the shortest coefficients are taken.

    References
    ----------
    Shares of R²: Lindeman, Merenda & Gold, 1980; Grömping, Journal of Statistical Software 17(1), 2006.
    """
    n, p = x.shape
    if p > MOST_REGRESSORS:
        raise ValueError(f"expected at most {MOST_REGRESSORS} regressors, got {p}")
    design = np.column_stack([np.ones(n), x])
    gram = design.T @ design
    inverse = np.linalg.pinv(gram, rcond=_TOLERANCE, hermitian=True)
    coefficients = inverse @ (design.T @ y)
    scores = design * (y - design @ coefficients)[:, None]
    both = np.unique(first * (int(second.max(initial=0)) + 1) + second, return_inverse=True)[1]
    one, two, joint = (_meat(scores, clusters) for clusters in (first, second, both))
    covariance = inverse @ (one + two - joint) @ inverse
    floor = np.maximum(np.diag(inverse @ one @ inverse), np.diag(inverse @ two @ inverse))
    np.fill_diagonal(covariance, np.maximum(np.diag(covariance), floor))
    explained = _explained(y, x)
    full = (1 << p) - 1
    degrees = max(min(len(np.unique(first)), len(np.unique(second))) - 1, 1)
    return Regression(
        coefficients, covariance, degrees, float(explained[full]), _shares(explained, p),
        np.array([explained[full & ~(1 << j)] for j in range(p)]), _inflation(x),
    )  # fmt: skip


def _meat(scores: Floats, clusters: Ints) -> Floats:
    sums: Floats = np.stack([np.bincount(clusters, weights=column).astype(np.float64) for column in scores.T], axis=1)
    count = len(np.unique(clusters))
    found: Floats = sums.T @ sums * (count / max(count - 1, 1))
    return found


def _explained(y: Floats, x: Floats) -> Floats:
    """R² of every subset of the columns; bit j of a subset's number says whether column j is in it."""
    p = x.shape[1]
    table = np.column_stack([x, y])
    centered: Floats = np.asarray(table - np.mean(table, axis=0), dtype=np.float64)
    products: Floats = centered.T @ centered
    total = products[-1, -1]
    found = np.zeros(1 << p)
    for subset in range(1, 1 << p):
        some = [j for j in range(p) if subset >> j & 1]
        inner, with_y = products[np.ix_(some, some)], products[some, -1]
        fit = float(with_y @ np.linalg.pinv(inner, rcond=_TOLERANCE, hermitian=True) @ with_y)
        found[subset] = fit / total if total > 0 else 0.0
    return np.clip(found, 0.0, 1.0)


def _shares(explained: Floats, p: int) -> Floats:
    """Shapley values of R²: what a column adds, averaged over all orders in which columns can come."""
    shares = np.zeros(p)
    for j in range(p):
        others = [k for k in range(p) if k != j]
        for size in range(p):
            weight = factorial(size) * factorial(p - size - 1) / factorial(p)
            for some in combinations(others, size):
                subset = sum(1 << k for k in some)
                shares[j] += weight * (explained[subset | 1 << j] - explained[subset])
    return shares


def _inflation(x: Floats) -> Floats:
    found = np.ones(x.shape[1])
    for j in range(x.shape[1]):
        others = np.delete(x, j, axis=1)
        if others.shape[1]:
            r2 = _explained(x[:, j], others)[-1]
            found[j] = 1 / (1 - r2) if r2 < 1 - _TOLERANCE else np.inf
    return found
