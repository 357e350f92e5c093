"""Least squares with errors clustered two ways, shares of R², and ratios of means.

Rows that have a query or a document in common are not independent. A *cluster* is a set of such
rows. There are clusters of two kinds: the rows of one query, and the rows of one origin, which is a
document with all its rewrites. Each row is in one cluster of either kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
import numpy.typing as npt
from scipy import special

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_REGRESSORS = 10
"""Most regressors that `regress` takes: it computes R² for each of their 2^p subsets."""
_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as 0: some columns give others exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """Estimates of the model y = b₀ + Σ b_j x_j + e, with p regressors x_j.

    An axis of length 3 holds a number, and the lower and the upper end of its 95 % interval.
    """

    mean: Floats
    """Mean of y, shape (3,). It is the sum of `parts`."""
    coefficients: Floats
    """The intercept b₀, then each b_j; shape (p + 1, 3)."""
    parts: Floats
    """Parts of the mean of y: b₀, then each b_j times the mean of x_j; shape (p + 1, 3)."""
    r2: float
    """R²: share of the variance of y that all regressors explain together."""
    shares: Floats
    """Part of R² that each regressor contributes, shape (p,): its Shapley value; they sum to R²."""
    without: Floats
    """R² of all regressors but one, for each one that is left out; shape (p,)."""
    inflation: Floats
    """Variance inflation of each regressor, shape (p,): 1 / (1 − its R² on the other regressors).

    It says by how much the others increase the variance of b_j. Infinite if they give x_j exactly.
    """


def regress(y: Floats, x: Floats, first: Ints, second: Ints) -> Regression:
    """Regress y on up to 10 columns, over rows that are in clusters of two kinds.

    The variance of an estimate is V₁ + V₂ − V₁₂, and at least V₁ and V₂. V₁ is the sum of squares
    over clusters of the first kind of what their rows add to the estimate, times G / (G − 1) for G
    clusters. V₂ is the same for the second kind, and V₁₂ for rows that share both clusters
    (Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011). Intervals
    use the t distribution with G − 1 degrees of freedom, where G is the smaller number of clusters;
    a kind with only one cluster does not count. The means of the regressors are estimates too, and
    the intervals of `Regression.parts` include their errors.

    If some regressors give others exactly, many coefficients fit equally well. Those with the
    smallest sum of squares are taken.

    In 1,000 simulated draws with 60 queries, 120 origins and normal errors, 92 to 99 % of the
    intervals hold the truth. With errors of heavy tails (t, 3 degrees of freedom) and clusters of
    very unequal size, 91 to 99 % do. The pigeonhole bootstrap (Owen 2007) gives intervals that are
    1.06 to 1.8 times as wide; 95 to 100 % of those hold the truth.

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        What is explained.
    x : ndarray of float64, shape (n_rows, p)
        The regressors, without a column for the intercept.
    first, second : ndarray of int64, shape (n_rows,)
        Number of each row's cluster of either kind, from 0.
    """
    n, p = x.shape
    if p > MOST_REGRESSORS:
        raise ValueError(f"expected at most {MOST_REGRESSORS} regressors, got {p}")
    design = np.column_stack([np.ones(n), x])
    means = design.mean(axis=0)
    inverse = np.linalg.pinv(design.T @ design, rcond=_TOLERANCE, hermitian=True)
    coefficients = inverse @ (design.T @ y)
    # What each row adds to the error of each estimate: in a sample without the row, the estimate
    # would be smaller by about that much.
    added = (design * (y - design @ coefficients)[:, None]) @ inverse
    added_to_parts = added * means + coefficients * (design - means) / n
    added_to_mean = (y - y.mean()) / n
    estimates = np.concatenate([[y.mean()], coefficients, coefficients * means])
    added_to_all = np.column_stack([added_to_mean, added, added_to_parts])
    half_widths = _half_widths(added_to_all, first, second)
    intervals = np.column_stack([estimates, estimates - half_widths, estimates + half_widths])
    mean, of_coefficients, of_parts = np.split(intervals, [1, p + 2])
    r2_of_subsets = _r2_of_subsets(y, x)
    full = (1 << p) - 1  # the subset with every column
    without = [r2_of_subsets[full & ~(1 << column)] for column in range(p)]
    return Regression(
        mean=mean[0],
        coefficients=of_coefficients,
        parts=of_parts,
        r2=float(r2_of_subsets[full]),
        shares=_shapley_shares(r2_of_subsets, p),
        without=np.array(without),
        inflation=_inflation(x),
    )


def _half_widths(added: Floats, first: Ints, second: Ints) -> Floats:
    """Return half-widths of 95 % intervals: t times the clustered error of each estimate.

    `added` has what each row adds to each estimate, shape (n_rows, n_estimates), and `first` and
    `second` are the clusters of the rows.
    """
    # A kind with a single cluster does not count.
    counts = [count for count in (len(np.unique(first)), len(np.unique(second))) if count > 1]
    quantile = float(special.stdtrit(min(counts, default=2) - 1, 0.975))
    half_widths: Floats = quantile * clustered_errors(added, first, second)
    return half_widths


def clustered_errors(added: Floats, first: Ints, second: Ints) -> Floats:
    """Return the standard error of each estimate, clustered two ways as `regress` explains.

    `added` has what each row adds to each estimate, shape (n_rows, n_estimates), and `first` and
    `second` are the numbers of each row's clusters.
    """
    of_first, of_second = _variances(added, first), _variances(added, second)
    two_way = of_first + of_second - _variances(added, _cell_numbers(first, second))
    errors: Floats = np.sqrt(np.maximum(np.maximum(two_way, of_first), of_second))
    return errors


def _cell_numbers(first: Ints, second: Ints) -> Ints:
    """Return the number of each row's cell: one cluster of the first kind and one of the second."""
    pairs = first * (int(second.max(initial=0)) + 1) + second
    cells: Ints = np.unique(pairs, return_inverse=True)[1]
    return cells


def _variances(added: Floats, clusters: Ints) -> Floats:
    """Return the variance of each column's sum over one kind of clusters."""
    sums, factor = cluster_sums(added, clusters)
    variances: Floats = np.square(sums).sum(axis=0) * factor
    return variances


def cluster_sums(added: Floats, clusters: Ints) -> tuple[Floats, float]:
    """Sum each column over the rows of each cluster.

    Returns the sums, shape (n_clusters, n_columns), and G / (G − 1) for G clusters. That factor
    makes up for the degree of freedom that an estimated mean costs.
    """
    columns = [np.bincount(clusters, weights=column).astype(np.float64) for column in added.T]
    sums: Floats = np.stack(columns, axis=1)
    count = len(np.unique(clusters))
    return sums, count / max(count - 1, 1)


def _r2_of_subsets(y: Floats, x: Floats) -> Floats:
    """Return R² of the regression of y on every subset of the columns of x, shape (2^p,).

    The index of a subset is a binary number: its bit j is set if the subset has column j.
    """
    count, products = x.shape[1], _products(np.column_stack([x, y]))
    r2_of_subsets = []
    for subset in range(1 << count):
        columns = [column for column in range(count) if subset >> column & 1]
        r2_of_subsets.append(_r2(products, count, columns))
    return np.array(r2_of_subsets)


def _products(table: Floats) -> Floats:
    """Return the sum of products of each pair of columns, after their means are subtracted."""
    centred = table - np.mean(table, axis=0)
    products: Floats = centred.T @ centred
    return products


def _r2(products: Floats, y: int, x: list[int]) -> float:
    """Return R² of the regression of column y on the columns x.

    `products` is what `_products` returns of all columns, and y and x are numbers of columns. A
    column that does not vary has R² 0.
    """
    total = products[y, y]
    if not x or not total > 0:
        return 0.0
    with_y = products[x, y]
    inverse = np.linalg.pinv(products[np.ix_(x, x)], rcond=_TOLERANCE, hermitian=True)
    return float(np.clip(with_y @ inverse @ with_y / total, 0.0, 1.0))


def _shapley_shares(r2_of_subsets: Floats, count: int) -> Floats:
    """Return the part of R² that each column contributes: the mean over all orders of the columns.

    `r2_of_subsets` is what `_r2_of_subsets` returns for `count` columns. In one order, the part is
    the rise of R² when the column joins those before it. The mean over all orders is the column's
    Shapley value (Lindeman, Merenda & Gold, Introduction to Bivariate and Multivariate Analysis,
    1980; Grömping, Journal of Statistical Software 17(1), 2006).
    """
    shares = np.zeros(count)
    for column in range(count):
        bit = 1 << column
        other_bits = [1 << index for index in range(count) if index != column]
        for size in range(count):
            # Share of all orders in which exactly these `size` columns come before this one.
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            for bits in combinations(other_bits, size):
                subset = sum(bits)
                rise = r2_of_subsets[subset | bit] - r2_of_subsets[subset]
                shares[column] += weight * rise
    return shares


def _inflation(x: Floats) -> Floats:
    """Return by which factor the other columns increase the variance of each coefficient."""
    count, products = x.shape[1], _products(x)
    r2 = np.empty(count)
    for column in range(count):
        others = [index for index in range(count) if index != column]
        r2[column] = _r2(products, column, others)
    inflation = np.full(count, np.inf)
    np.divide(1.0, 1 - r2, out=inflation, where=r2 < 1 - _TOLERANCE)
    return inflation


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio of means with its 95 % interval."""

    value: float
    """The ratio."""
    low: float
    """Lower end of the interval.

    NaN, like `high`, if the interval has no ends: the denominator is not shown to differ from 0.
    """
    high: float
    """Upper end of the interval."""
    f: float
    """Squared t of the denominator's mean.

    If the ratio is an instrumental-variable estimate, this is its first-stage F.
    """


def ratio_of_means(above: Floats, below: Floats, first: Ints, second: Ints) -> Ratio:
    """Divide the mean of one column by the mean of another, with a 95 % interval.

    Rows need not be independent: they are in clusters of two kinds, as in `regress`. The interval
    is Fieller's. It has all ratios r for which the mean of ``above − r · below`` is within t
    standard errors of 0, where t is the .975 quantile of the t distribution. For an
    instrumental-variable estimate with one instrument of two values, it is the interval of Anderson
    and Rubin.

    Parameters
    ----------
    above, below : ndarray of float64, shape (n_rows,)
        Numerator and denominator of each row.
    first, second : ndarray of int64, shape (n_rows,)
        Number of each row's cluster of either kind, such as its query and its origin.
    """
    table = np.column_stack([above, below])
    numerator, denominator = table.mean(axis=0).tolist()
    covariance = _covariance((table - table.mean(axis=0)) / len(table), first, second)
    clusters = min(len(np.unique(first)), len(np.unique(second)))
    t2 = float(special.stdtrit(max(clusters - 1, 1), 0.975)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        f = float(np.float64(denominator * denominator) / covariance[1, 1])
        value = float(np.float64(numerator) / denominator)
    # "Within t standard errors of 0" is a·r² − 2b·r + c ≤ 0. If a > 0, the ends are the two roots;
    # otherwise the ratios that satisfy it are unbounded.
    a = denominator * denominator - t2 * covariance[1, 1]
    b = numerator * denominator - t2 * covariance[0, 1]
    c = numerator * numerator - t2 * covariance[0, 0]
    if a <= 0:
        return Ratio(value=value, low=np.nan, high=np.nan, f=f)
    root = np.sqrt(max(b * b - a * c, 0.0))
    return Ratio(value=value, low=float((b - root) / a), high=float((b + root) / a), f=f)


@dataclass(frozen=True, kw_only=True)
class RatioDifference:
    """A difference of two ratios of means with its 95 % interval."""

    value: float
    """The difference."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


def ratio_difference(
    sample: tuple[Floats, Floats], reference: tuple[Floats, Floats], first: Ints, second: Ints
) -> RatioDifference:
    """Subtract the reference's ratio of means from a sample's, with an interval.

    The interval is by the delta method, which treats a ratio as linear in its two means. The two
    samples may share clusters, so their errors need not be independent.

    Parameters
    ----------
    sample, reference : tuple of two ndarrays of float64
        The numerators and the denominators of a sample's rows.
    first, second : ndarray of int64
        Numbers of the clusters of either kind, as in `regress`: for the rows of `sample`, followed
        by those of `reference`.
    """
    ratio, added = _ratio_and_rows(*sample)
    reference_ratio, reference_added = _ratio_and_rows(*reference)
    difference = ratio - reference_ratio
    rows = np.concatenate([added, -reference_added])[:, None]
    half_width = float(_half_widths(rows, first, second)[0])
    return RatioDifference(
        value=difference, low=difference - half_width, high=difference + half_width
    )


def _ratio_and_rows(above: Floats, below: Floats) -> tuple[float, Floats]:
    """Return a ratio of means, and what each row adds to its error, shape (n_rows,)."""
    ratio = float(above.mean() / below.mean())
    return ratio, (above - ratio * below) / below.sum()


def _covariance(added: Floats, first: Ints, second: Ints) -> Floats:
    """Return the covariance of the sums of two columns, V₁ + V₂ − V₁₂ over two kinds of clusters.

    If that is no covariance, because it has a negative eigenvalue, V₁ + V₂ is returned.
    """
    of_first = _cluster_covariance(added, first)
    of_second = _cluster_covariance(added, second)
    two_way: Floats = (
        of_first + of_second - _cluster_covariance(added, _cell_numbers(first, second))
    )
    return two_way if np.linalg.eigvalsh(two_way).min() >= 0 else of_first + of_second


def _cluster_covariance(added: Floats, clusters: Ints) -> Floats:
    """Return the covariance of the sums of columns over one kind of clusters."""
    sums, factor = cluster_sums(added, clusters)
    covariance: Floats = factor * (sums.T @ sums)
    return covariance
