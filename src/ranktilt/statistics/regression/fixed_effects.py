"""Least squares within groups, with errors clustered two ways.

A group is a set of rows that are compared only with each other, for example the versions of one
document under one query. What all rows of a group have in common, such as the topic, cannot bias a
comparison within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.regression.least_squares import clustered_errors
from ranktilt.statistics.two_way import sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as 0."""
_EPSILON = 1e-12
"""Absolute value below which a coefficient counts as 0, because it is only rounding.

A standard error counts as 0 below this share of its coefficient.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinFit:
    """Estimates of the model y = a_group + Σ b_j x_j + e, with an intercept for each group.

    An *origin* is a document with all its rewrites. Errors are clustered by query and by origin.
    """

    coefficients: Floats
    """The b_j, shape (p,)."""
    added: Floats
    """What each row adds to the error of each coefficient, shape (n_rows, p)."""
    query: Ints
    """Number of each row's query."""
    origin: Ints
    """Number of each row's origin."""
    freedom: int
    """Degrees of freedom: one less than the fewer of queries and origins."""

    def combined(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Estimate weighted sums of coefficients.

        `weights` has the shape (n_sums, p): a row for each sum. Returns the values of the sums,
        their standard errors, and the half-widths of their 95 % intervals, each of shape (n_sums,).
        """
        errors = clustered_errors(self.added @ weights.T, self.query, self.origin)
        factor = float(special.stdtrit(max(self.freedom, 1), 0.975))
        return weights @ self.coefficients, errors, factor * errors

    def p(self, column: int) -> float:
        """Return the p of one coefficient, if the true coefficient is 0; two-sided.

        It is the level at which the coefficient's interval first excludes 0. `column` is the
        coefficient's index.
        """
        value = float(self.coefficients[column])
        if abs(value) <= _EPSILON:
            return 1.0
        error = float(clustered_errors(self.added[:, [column]], self.query, self.origin)[0])
        if error <= _EPSILON * abs(value):
            # All clusters have exactly the same value, so there is no standard error. What remains
            # is a sign test: each of the freedom + 1 clusters has one of two signs by chance.
            return float(2 * 0.5 ** (self.freedom + 1))
        return float(2 * special.stdtr(max(self.freedom, 1), -abs(value) / error))


def regress_within(y: Floats, x: Floats, group: Ints, query: Ints, origin: Ints) -> WithinFit:
    """Regress y on the columns of x within groups.

    The mean of each group is subtracted from y and from x, which gives the same coefficients as an
    intercept for each group (Frisch & Waugh, Econometrica 1(4), 1933). Errors are clustered by
    query and by origin (`clustered_errors`).

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        What is explained.
    x : ndarray of float64, shape (n_rows, p)
        The regressors. Within groups, none of them may be a sum of multiples of the others.
    group, query, origin : ndarray of int64, shape (n_rows,)
        Number of each row's group, query and origin.
    """
    y, x = centred_within(y[:, None], group)[:, 0], centred_within(x, group)
    row_weights = x @ np.linalg.pinv(x.T @ x, rcond=_TOLERANCE, hermitian=True)
    coefficients = row_weights.T @ y
    residual = y - x @ coefficients
    return WithinFit(
        coefficients=coefficients,
        added=row_weights * residual[:, None],
        query=query,
        origin=origin,
        freedom=min(len(np.unique(query)), len(np.unique(origin))) - 1,
    )


def centred_within(columns: Floats, group: Ints) -> Floats:
    """Return columns after the mean of its group is subtracted from each value.

    `columns` has the shape (n_rows, p), and `group` the number of each row's group.
    """
    index = np.unique(group, return_inverse=True)[1]  # the same groups, numbered without gaps
    count = np.bincount(index)
    means = np.stack([sums(index, column) / count for column in columns.T], axis=1)
    centred: Floats = columns - means[index]
    return centred
