"""Documents as a source of chance: what each origin adds to an estimate, query by query.

Many queries that meet the same documents are no fresh evidence about the documents. So every estimate over twins is
held against the exchange of labels within origins, the same way in all queries, and its interval is as wide as two-way
clustering by query and origin makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Clusters(NamedTuple):
    """What comparisons of twins add to the sums behind an estimate, ``Σ total / Σ weight``: one entry each."""

    query: Ints
    origin: Ints
    """Number of the origin, from 0; before `of`, the row of a document."""
    total: Floats
    """Turns its sign where the origin's labels are exchanged."""
    weight: Floats
    """Stays as it is."""

    def of(self, origins: Ints) -> Clusters:
        """Replace rows of documents by `origins`, one number a row; entries of a negative one are left out."""
        origin = origins[self.origin]
        held = origin >= 0
        return Clusters(self.query[held], origin[held], self.total[held], self.weight[held])

    def together(self, distinct: Ints | None) -> Clusters:
        """Give queries that repeat each other one number; as they are where None."""
        return self if distinct is None else self._replace(query=distinct[self.query])

    @property
    def origin_totals(self) -> Floats:
        """Sum of the totals of each origin, shape (n_origins,)."""
        return _sums(self.origin, self.total)

    def variance(self, value: float) -> float:
        """What origins add to the variance of ``Σ total`` around an estimate, beyond what queries add; at least 0.

        ``Σ_origin r² − Σ_(query, origin) r²`` over the sums of the residuals ``r = total − value · weight``: with
        ``Σ_query r²`` the two-way cluster-robust variance of a ratio (Cameron, Gelbach & Miller, Journal of Business &
        Economic Statistics 29(2), 2011, eq. 2.11), which is never taken to be smaller than that of queries alone.
        """
        if not len(self.total):
            return 0.0
        residual = self.total - value * self.weight
        key = self.query * (int(self.origin.max()) + 1) + self.origin
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        if np.diff(starts, append=len(order)).max() > 2:  # the sum of two is the same in any order, to the last bit
            order = np.lexsort((np.abs(residual), key))
        residual = residual[order]
        both = np.add.reduceat(np.maximum(residual, 0.0), starts) - np.add.reduceat(np.maximum(-residual, 0.0), starts)
        one = _sums(self.origin[order][starts], both)
        return max(float((one * one).sum() - (both * both).sum()), 0.0)


def _sums(index: Ints, values: Floats) -> Floats:
    return np.bincount(index, weights=values).astype(np.float64)


def widened(samples: Floats, value: float, residuals: Floats, beyond: float) -> Floats:
    """Widen resampled statistics so that they speak of documents as well as queries.

    Each sample's distance from the value times ``sqrt(1 + beyond / Σ residuals²)``, where `beyond` is as
    `Clusters.variance` gives it and residuals are ``total − value · weight`` of each query.
    """
    spread = float((residuals * residuals).sum())
    if not beyond > 0 or not spread > 0:
        return samples
    wide: Floats = value + float(np.sqrt(1 + beyond / spread)) * (samples - value)
    return wide
