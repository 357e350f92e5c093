"""Least squares within groups, with errors clustered two ways.

A group is, for example, the versions of one document under one query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from ranktilt.statistics.regression import clustered_errors
from ranktilt.statistics.two_way import sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as 0."""
_EPSILON = 1e-12
"""Absolute value below which a number is 0 but for roundoff."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinFit:
    """y = a_group + Σ b_j x_j + e, with a level for every group."""

    coefficients: Floats
    """Shape (p,)."""
    added: Floats
    """What each row adds to the error of each coefficient, shape (n, p)."""
    query: Ints
    """Number of each row's query."""
    origin: Ints
    """Number of each row's origin."""
    freedom: int
    """Degrees of freedom: one less than the fewer of queries and origins."""

    def combined(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Estimate sums of coefficients, one for each row of weights.

        Returns values, standard errors and half-widths of 95 % intervals.
        """
        errors = clustered_errors(self.added @ weights.T, self.query, self.origin)
        factor = float(stats.t.ppf(0.975, max(self.freedom, 1)))
        return weights @ self.coefficients, errors, factor * errors

    def p(self, column: int) -> float:
        """Return the two-sided p of a coefficient of 0.

        It is the level at which the coefficient's interval first excludes 0.
        """
        value = float(self.coefficients[column])
        if abs(value) <= _EPSILON:
            return 1.0
        error = float(clustered_errors(self.added[:, [column]], self.query, self.origin)[0])
        if error == 0:  # all votes on one side, one more than there are degrees of freedom
            return float(2 * 0.5 ** (self.freedom + 1))
        return float(2 * special.stdtr(max(self.freedom, 1), -abs(value) / error))


def regress_within(y: Floats, x: Floats, group: Ints, query: Ints, origin: Ints) -> WithinFit:
    """Regress y on the columns of x within groups.

    The groups' means are taken away from both (Frisch & Waugh, Econometrica 1(4), 1933). Errors are
    clustered by query and by origin (`clustered_errors`). Groups, queries and origins are numbered;
    columns must not give each other within groups.
    """
    y, x = within(y[:, None], group)[:, 0], within(x, group)
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


def within(columns: Floats, group: Ints) -> Floats:
    """Take the mean of its group away from each value; columns have shape (n, p)."""
    number = np.unique(group, return_inverse=True)[1]
    count = np.bincount(number)
    means = np.stack([sums(number, column) / count for column in columns.T], axis=1)
    centred: Floats = columns - means[number]
    return centred
