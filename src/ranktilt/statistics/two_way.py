"""Documents as a source of chance: what each origin adds to an estimate, query by query.

Many queries that meet the same documents are no fresh evidence about the documents. So every estimate over twins is
held against the exchange of labels within origins, the same way in all queries, and its interval is as wide as two-way
clustering by query and origin makes it. A comparison of two documents that are no twins belongs to two origins
(`Dyads`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

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
        return sums(self.origin, self.total)

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
        one = sums(self.origin[order][starts], both)
        return max(float((one * one).sum() - (both * both).sum()), 0.0)


def sums(index: Ints, values: Floats, n: int = 0) -> Floats:
    """Sum values by their index, from 0 to the largest there is, or to n − 1."""
    return np.bincount(index, weights=values, minlength=n).astype(np.float64)


class Labels(NamedTuple):
    """What labels add beyond what any label would, and which of them random labels draw together."""

    clusters: Clusters
    draw: Ints
    """Number of the draw that gives each entry its label."""

    @property
    def spread(self) -> float:
        """How many times further random labels scatter where a document, or an origin, has one label everywhere.

        ``√(Σ_origin (Σ c)² / Σ_draw (Σ c)²)`` over what entries add (c), at least 1: labels that are drawn apart for
        each list scatter as the square root of the lower sum, those of documents as that of the upper one.
        """
        apart, whole = (
            float((sums(index, self.clusters.total) ** 2).sum()) for index in (self.draw, self.clusters.origin)
        )
        return float(np.sqrt(max(whole / apart, 1.0))) if apart > 0 else 1.0


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


class Dyads(NamedTuple):
    """Comparisons of two documents, such as choices; one entry each, beside arrays of totals and of weights.

    A document that is often chosen is often chosen in all its comparisons, so those that share an origin go together.
    """

    query: Ints
    first: Ints
    """Number of the origin of the first group's document, from 0."""
    second: Ints
    """Of the second group's; the same number for twins."""

    def p(self, total: Floats, weight: Floats) -> float:
        """Give the two-sided p, over origins, of ``Σ total / Σ weight`` being 0.

        A t test by `variance`, with one degree of freedom fewer than the effective number of origins on the smaller
        side, ``(Σ w)² / Σ_origin w²`` (Kish 1965); at least what turned signs of these origins could give.
        """
        if not total.any():
            return 1.0
        variance = self.variance(total - total.sum() / weight.sum() * weight, weight)
        t = abs(float(total.sum())) / np.sqrt(variance) if variance > 0 else np.inf
        sides = [sums(side, weight) for side in (self.first, self.second)]
        effective = min(float(w.sum() ** 2 / (w * w).sum()) for w in sides)
        return max(2 * float(special.stdtr(max(effective - 1, 1.0), -t)), 2.0 ** (1 - self.origins(weight)))

    def origins(self, weight: Floats) -> int:
        """Count the origins with a weight on the side that has fewer."""
        return min(int(np.count_nonzero(sums(side, weight))) for side in (self.first, self.second))

    def variance(self, residual: Floats, weight: Floats) -> float:
        """Variance that origins give to a sum of residuals ``total − value · weight``.

        Products of all comparisons that share an origin, ``Σ_origin r² − Σ_dyad r²`` (Fafchamps & Gubert, Journal of
        Development Economics 83(2), 2007), where each origin's r is divided by 1 − its share of the weight, as in a
        jackknife that leaves it out. Never less than if all comparisons were independent.
        """
        share = self._by_origin(weight) / weight.sum()
        return max(self._sharing(residual, np.where(share < 1, 1 - share, 1.0)), float((residual * residual).sum()))

    def widened(self, samples: Floats, value: float, total: Floats, weight: Floats) -> Floats:
        """Widen a share's resampled values by what origins add to its variance beyond queries; within [0, 1]."""
        residual, n = total - value * weight, max(self.first.max(), self.second.max()) + 1
        cells = np.unique(np.stack([self.query * n + self.first, self.query * n + self.second]), return_inverse=True)[1]
        within = Dyads(self.query, *cells.reshape(2, -1))
        beyond = self.variance(residual, weight) - within._sharing(residual)
        return np.clip(widened(samples, value, sums(self.query, residual), beyond), 0.0, 1.0)

    def _sharing(self, residual: Floats, left: Floats | float = 1.0) -> float:
        """Sum of the products of all two comparisons that share an origin."""
        origins = self._by_origin(residual) / left
        apart = self.first != self.second
        low, high = np.minimum(self.first, self.second)[apart], np.maximum(self.first, self.second)[apart]
        dyads = sums(np.unique(low * len(origins) + high, return_inverse=True)[1], residual[apart])
        return float((origins * origins).sum() - (dyads * dyads).sum())

    def _by_origin(self, values: Floats) -> Floats:
        """Sum over the comparisons of each origin; those of twins count once."""
        size, twins = int(max(self.first.max(), self.second.max())) + 1, self.first == self.second
        half = np.where(twins, values / 2, values)
        return (np.bincount(self.first, half, size) + np.bincount(self.second, half, size)).astype(np.float64)
