"""Least squares with errors clustered two ways, how much of R² goes with each regressor, and ratios of means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_REGRESSORS = 10
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Regression:
    """y = b₀ + Σ b_j x_j + e; a number with its 95 % interval is three in a row, and the intercept comes first."""

    mean: Floats
    """Mean of y, shape (3,); the sum of `parts`."""
    coefficients: Floats
    """Shape (p + 1, 3)."""
    parts: Floats
    """Of the mean of y: the intercept, and each coefficient times the mean of its regressor; shape (p + 1, 3)."""
    r2: float
    shares: Floats
    """What each regressor adds to R², to which they add up (LMG), without an entry for the intercept."""
    without: Floats
    """R² without each regressor."""
    inflation: Floats
    """Variance inflation 1 / (1 − R² of a regressor on the others); infinite where the others give it exactly."""


def regress(y: Floats, x: Floats, first: Ints, second: Ints) -> Regression:
    """Regress y on up to 10 columns that need not be independent, with errors clustered by two numberings, from 0.

    Variances are V₁ + V₂ − V₁₂ of what each row adds to an estimate, each with G / (G − 1) for G
    clusters (Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011),
    nowhere smaller than V₁ and V₂; those of parts hold that the means of the regressors are
    estimates too. The t distribution has one degree of freedom less than the fewer of the clusters,
    of numberings with more than one. Of regressors that give each other exactly, the shortest
    coefficients are taken. Shares of R²: Lindeman, Merenda & Gold, 1980; Grömping, Journal of
    Statistical Software 17(1), 2006.

    In 1,000 simulated draws each, with 60 queries, 120 origins and normal errors, the intervals
    hold the truth 92 to 99 % of the time; with errors of heavy tails (t, 3 degrees of freedom) and
    clusters of very unequal size 91 to 99 %. The pigeonhole bootstrap (Owen 2007) gives intervals
    1.06 to 1.8 times as wide, which hold it 95 to 100 % of the time.
    """
    n, p = x.shape
    if p > MOST_REGRESSORS:
        raise ValueError(f"expected at most {MOST_REGRESSORS} regressors, got {p}")
    design = np.column_stack([np.ones(n), x])
    means = design.mean(axis=0)
    inverse = np.linalg.pinv(design.T @ design, rcond=_TOLERANCE, hermitian=True)
    coefficients = inverse @ (design.T @ y)
    added = (design * (y - design @ coefficients)[:, None]) @ inverse
    to_parts = added * means + coefficients * (design - means) / n
    estimates = np.concatenate([[y.mean()], coefficients, coefficients * means])
    spread = _errors(np.column_stack([(y - y.mean()) / n, added, to_parts]), first, second)
    bounds = np.column_stack([estimates, estimates - spread, estimates + spread])
    explained = _explained(y, x)
    full = (1 << p) - 1
    return Regression(
        bounds[0],
        bounds[1 : p + 2],
        bounds[p + 2 :],
        float(explained[full]),
        _shares(explained, p),
        np.array([explained[full & ~(1 << j)] for j in range(p)]),
        _inflation(x),
    )


def _errors(added: Floats, first: Ints, second: Ints) -> Floats:
    """Half-widths of 95 % intervals, of what each row adds to the estimates."""
    counts = [count for count in (len(np.unique(first)), len(np.unique(second))) if count > 1]
    half: Floats = stats.t.ppf(0.975, min(counts, default=2) - 1) * clustered_errors(
        added, first, second
    )
    return half


def clustered_errors(added: Floats, first: Ints, second: Ints) -> Floats:
    """Standard errors of what each row adds to the estimates, a column each: two-way clustered, as of `regress`."""
    both = np.unique(first * (int(second.max(initial=0)) + 1) + second, return_inverse=True)[1]
    one, two, joint = (_variances(added, clusters) for clusters in (first, second, both))
    errors: Floats = np.sqrt(np.maximum(np.maximum(one + two - joint, one), two))
    return errors


def _variances(added: Floats, clusters: Ints) -> Floats:
    sums, factor = cluster_sums(added, clusters)
    found: Floats = np.square(sums).sum(axis=0) * factor
    return found


def cluster_sums(added: Floats, clusters: Ints) -> tuple[Floats, float]:
    """Sum each column over the rows of a cluster; and G / (G − 1) for the G clusters that there are."""
    sums: Floats = np.stack(
        [np.bincount(clusters, weights=column).astype(np.float64) for column in added.T], axis=1
    )
    count = len(np.unique(clusters))
    return sums, count / max(count - 1, 1)


def _explained(y: Floats, x: Floats) -> Floats:
    """R² of every subset of the columns; bit j of a subset's number says whether column j is in it."""
    p, products = x.shape[1], _products(np.column_stack([x, y]))
    subsets = ([j for j in range(p) if subset >> j & 1] for subset in range(1 << p))
    return np.array([_r2(products, p, some) for some in subsets])


def _products(table: Floats) -> Floats:
    centered = table - np.mean(table, axis=0)
    found: Floats = centered.T @ centered
    return found


def _r2(products: Floats, y: int, x: list[int]) -> float:
    """R² of one column on others, of the products of all."""
    with_y, total = products[x, y], products[y, y]
    fit = (
        with_y @ np.linalg.pinv(products[np.ix_(x, x)], rcond=_TOLERANCE, hermitian=True) @ with_y
        if x
        else 0.0
    )
    return float(np.clip(fit / total, 0.0, 1.0)) if total > 0 else 0.0


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
    p, products = x.shape[1], _products(x)
    r2 = np.array([_r2(products, j, [k for k in range(p) if k != j]) for j in range(p)])
    found = np.full(p, np.inf)
    np.divide(1.0, 1 - r2, out=found, where=r2 < 1 - _TOLERANCE)
    return found


class Ratio(NamedTuple):
    """A ratio of means with its 95 % interval."""

    value: float
    low: float
    """NaN, as is `high`, where the interval has no end: the mean below the line may be 0."""
    high: float
    f: float
    """Squared t of the mean below the line; of an instrument's effect the first-stage F."""


def ratio_of_means(above: Floats, below: Floats, first: Ints, second: Ints) -> Ratio:
    """Divide the mean of one column by that of another, over rows that need not be independent.

    The interval is Fieller's: all ratios r for which the mean of ``above − r · below`` is within t
    standard errors of 0; with one binary instrument it is Anderson and Rubin's. Covariances are V₁
    + V₂ − V₁₂ over two numberings of clusters, as of `regress`; V₁ + V₂ where that is no
    covariance.
    """
    table = np.column_stack([above, below])
    up, down = table.mean(axis=0).tolist()
    covariance = _covariance((table - table.mean(axis=0)) / len(table), first, second)
    clusters = min(len(np.unique(first)), len(np.unique(second)))
    t2 = float(stats.t.ppf(0.975, max(clusters - 1, 1))) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        f = float(np.float64(down * down) / covariance[1, 1])
        value = float(np.float64(up) / down)
    a, b, c = (
        down * down - t2 * covariance[1, 1],
        up * down - t2 * covariance[0, 1],
        up * up - t2 * covariance[0, 0],
    )
    if a <= 0:
        return Ratio(value, np.nan, np.nan, f)
    half = np.sqrt(max(b * b - a * c, 0.0))
    return Ratio(value, float((b - half) / a), float((b + half) / a), f)


def ratio_difference(
    one: tuple[Floats, Floats], two: tuple[Floats, Floats], first: Ints, second: Ints
) -> tuple[float, float, float]:
    """Subtract from a ratio of means that of another sample, with its 95 % interval by the delta method.

    Each sample is what stands above and below the line. The rows of both, one after the other, are
    in the clusters of two numberings, as of `regress`, so that samples which share clusters are
    held against each other jointly.
    """
    values, added = list[float](), list[Floats]()
    for above, below in (one, two):
        values.append(float(above.mean() / below.mean()))
        added.append((above - values[-1] * below) / below.sum())
    value = values[0] - values[1]
    half = float(_errors(np.concatenate([added[0], -added[1]])[:, None], first, second)[0])
    return value, value - half, value + half


def _covariance(added: Floats, first: Ints, second: Ints) -> Floats:
    both = np.unique(first * (int(second.max(initial=0)) + 1) + second, return_inverse=True)[1]
    sums = [cluster_sums(added, clusters) for clusters in (first, second, both)]
    one, two, joint = (factor * (total.T @ total) for total, factor in sums)
    found: Floats = one + two - joint
    return found if np.linalg.eigvalsh(found).min() >= 0 else one + two
