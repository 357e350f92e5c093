"""Least squares within groups, such as the versions of one document under one query, with errors clustered two ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.statistics.permutation import exchanged
from ranktilt.statistics.regression import clustered_errors
from ranktilt.statistics.two_way import sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-10
_EPSILON = 1e-12


@dataclass(frozen=True, eq=False)
class WithinFit:
    """y = a_group + Σ b_j x_j + e, where every group has a level of its own."""

    coefficients: Floats
    """Shape (p,)."""
    added: Floats
    """What each row adds to the error of each coefficient, shape (n, p)."""
    origin_totals: Floats
    """What each origin adds to each coefficient, shape (n_origins, p); a column adds up to its coefficient."""
    query: Ints
    origin: Ints
    freedom: int
    """Degrees of freedom: one less than the fewer of queries and origins."""

    def combined(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Estimate sums of coefficients, one for each row of weights: values, standard errors, half-widths (95 %)."""
        errors = clustered_errors(self.added @ weights.T, self.query, self.origin)
        return weights @ self.coefficients, errors, float(stats.t.ppf(0.975, max(self.freedom, 1))) * errors

    def p(self, column: int, *, draws: int = RESAMPLES, seed: int = 0) -> float:
        """Test a coefficient of 0, two-sided: the larger p of two tests, of other documents and of other queries too.

        One exchanges the two levels of the factor within origins, the same way in all queries:
        (1 + #{|b*| ≥ |b|}) / (1 + draws), where the other coefficients stay as they were fitted. It is exact where no
        document is moved, and too small where queries differ in what a factor does. The other is the t test of
        `combined`.
        """
        totals = self.origin_totals[:, column]
        observed = abs(float(totals.sum()))
        if observed <= _EPSILON:
            return 1.0
        found = exchanged(totals, draws=draws, seed=[seed, column])[:draws]
        of_documents = (1 + int((np.abs(found) >= observed * (1 - _EPSILON)).sum())) / (1 + draws)
        error = float(clustered_errors(self.added[:, [column]], self.query, self.origin)[0])
        t = observed / error if error > 0 else np.inf
        return max(of_documents, 2 * float(special.stdtr(max(self.freedom, 1), -t)))


def regress_within(y: Floats, x: Floats, group: Ints, query: Ints, origin: Ints) -> WithinFit:
    """Regress y on the columns of x within groups, whose means are taken away from both (Frisch & Waugh 1933).

    Errors are clustered by query and by origin (`clustered_errors`). Groups, queries and origins are numbered; columns
    must not give each other within groups.
    """
    y, x = within(y[:, None], group)[:, 0], within(x, group)
    apart = x @ np.linalg.pinv(x.T @ x, rcond=_TOLERANCE, hermitian=True)
    coefficients = apart.T @ y
    residual = y - x @ coefficients
    shares = apart * (residual[:, None] + x * coefficients)
    number = np.unique(origin, return_inverse=True)[1]
    totals = np.stack([sums(number, column) for column in shares.T], axis=1)
    freedom = min(len(np.unique(query)), len(totals)) - 1
    return WithinFit(coefficients, apart * residual[:, None], totals, query, origin, freedom)


def within(columns: Floats, group: Ints) -> Floats:
    """Take the mean of its group away from each value; columns have shape (n, p)."""
    number = np.unique(group, return_inverse=True)[1]
    count = np.bincount(number)
    means = np.stack([sums(number, column) / count for column in columns.T], axis=1)
    centred: Floats = columns - means[number]
    return centred
