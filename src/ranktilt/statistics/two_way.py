"""Two sources of chance: queries, and the documents that many of them meet.

Many queries that meet the same documents are no fresh evidence about the documents. So the error of
every estimate is clustered two ways, by query and by origin (a document without a twin is an origin
of its own; Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011):

    V = max(V_q + V_o − V_qo, V_q, V_o) · G / (G − 1)

V_q, V_o and V_qo are the sums of squares of an estimate's influence, summed by query, by origin,
and by cell of both. The two-way sum falls below a one-way one in up to three quarters of the draws
where labels mean nothing, so both floors are needed. G is the smaller effective number of queries
and of origins, (Σ w)² / Σ w² (Kish 1965), where w is what each carries in the estimate's
denominator.

`Influence` is what a ratio's queries and documents add; `Dyads` are comparisons of two documents
that are no twins, which belong to two origins each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TwoWayVariance:
    """The variance of an estimate over other queries and other documents."""

    of_queries: float
    """V_q, the variance in a bootstrap over queries."""
    of_both: float
    """The largest of V_q + V_o − V_qo, V_q and V_o."""
    effective_n: float
    """G: the smaller effective number of queries and of origins; NaN where nothing carries
    weight."""

    @property
    def total(self) -> float:
        """V, in the squared unit of the estimate.

        NaN where a single query or document carries all weight.
        """
        freedom = self.effective_n - 1
        return self.of_both * self.effective_n / freedom if freedom > 0 else np.nan

    @property
    def stretch(self) -> float:
        """√(V / V_q): how much more an estimate varies than over queries alone."""
        return float(np.sqrt(self.total / self.of_queries)) if self.of_queries > 0 else np.nan


def two_way(*, queries: float, origins: float, cells: float, effective_n: float) -> TwoWayVariance:
    """Return the variance from the sums of squares by query, by origin and by cell."""
    both = max(queries + origins - cells, queries, origins)
    return TwoWayVariance(of_queries=queries, of_both=both, effective_n=effective_n)


def effective_number(weights: Floats) -> float:
    """Return (Σ w)² / Σ w²: as many equal weights would carry as much. NaN if all are 0."""
    squares = float((weights * weights).sum())
    if squares == 0:
        return np.nan
    # Ten equal weights are ten, and not a rounding error less.
    return round(float(weights.sum()) ** 2 / squares, 9)


class Clusters(NamedTuple):
    """What each document adds to the sums behind an estimate, ``Σ total / Σ weight``.

    Arrays with a row for each document that a query meets.
    """

    query: Ints
    """Number of the query; −1 for none."""
    origin: Ints
    """Number of the origin, from 0; before `with_origins`, the row of a document."""
    total: Floats
    """Part of the total, whose sign changes when the origin's labels are exchanged."""
    weight: Floats
    """Part of the weight, which such an exchange does not change."""

    def with_origins(self, origins: Ints) -> Clusters:
        """Replace rows of documents by `origins`, one number a row; negative ones are left out."""
        origin = origins[self.origin]
        return self._replace(origin=origin)._rows(origin >= 0)

    def merge_repeats(self, distinct: Ints | None) -> Clusters:
        """Give queries that repeat each other one number.

        If `distinct` is None, they keep their own.
        """
        if distinct is None:
            return self
        return self._replace(query=np.where(self.query < 0, -1, distinct[self.query]))

    def in_rows(self, numbers: Ints) -> Clusters:
        """Renumber queries by their index in `numbers`, which rise; other queries are left out.

        A query of −1, which is none, stays.
        """
        row = np.searchsorted(numbers, self.query)
        is_known = np.zeros(len(row), dtype=bool)
        if len(numbers):
            is_known = numbers[np.minimum(row, len(numbers) - 1)] == self.query
        is_none = self.query < 0
        return self._replace(query=np.where(is_none, -1, row))._rows(is_known | is_none)

    def _rows(self, mask: npt.NDArray[np.bool_]) -> Clusters:
        """Keep the rows of a mask."""
        return Clusters(
            query=self.query[mask],
            origin=self.origin[mask],
            total=self.total[mask],
            weight=self.weight[mask],
        )

    @property
    def origin_totals(self) -> Floats:
        """Sum of the totals of each origin, shape (n_origins,).

        Neither the order of the entries nor a turned sign changes a bit.
        """
        order = np.argsort(np.abs(self.total), kind="stable")
        return _signed_sums(self.origin[order], self.total[order])


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """What queries and documents add to the error of an estimate, in its unit.

    `query_residual` and `query_weight` have the shape (n_queries,). `query`, `origin`, `residual`
    and `weight` are the cells, one for each document (origin) that a query meets, in rising order
    of both; the residuals of a query's cells add up to the residual of the query. A cell of query
    −1 belongs to no query: it has what a document adds by not being met.
    """

    query_residual: Floats
    """Each query's residual, ``total − ratio · weight``."""
    query_weight: Floats
    """Each query's weight."""
    query: Ints
    """Query of each cell; −1 for none."""
    origin: Ints
    """Origin of each cell."""
    residual: Floats
    """Residual of each cell."""
    weight: Floats
    """Weight of each cell."""

    @classmethod
    def from_queries(cls, residual: Floats, weight: Floats) -> Influence:
        """Return the influence of an estimate that queries alone make uncertain."""
        none = np.empty(0, dtype=np.int64)
        return cls(
            query_residual=residual,
            query_weight=weight,
            query=none,
            origin=none,
            residual=np.empty(0),
            weight=np.empty(0),
        )

    @classmethod
    def from_ratio(
        cls, residual: Floats, weight: Floats, clusters: Clusters, *, ratio: float
    ) -> Influence:
        """Return the influence of ``Σ total / Σ weight``.

        Parameters
        ----------
        residual, weight : ndarray of float64, shape (n_queries,)
            ``total − ratio · weight`` and the weight of each query that counts.
        clusters : Clusters
            What documents add, with queries numbered as the rows of `residual`; −1 for none.
        ratio : float
            Amount taken off a document's total for each unit of its weight; 0 where totals are
            centred already, as those of labels are.

        The part of a query's residual that no document explains is spread evenly over its
        documents.
        """
        entries = clusters.total - ratio * clusters.weight
        query, origin, (residuals, weights) = _cells(clusters, (entries, clusters.weight))
        is_met = query >= 0
        rows = query[is_met]
        counts = np.bincount(rows, minlength=len(residual))
        remainder = residual - _signed_sums(rows, residuals[is_met], len(residual))
        residuals[is_met] += (remainder / np.maximum(counts, 1))[rows]
        return cls(
            query_residual=residual,
            query_weight=weight,
            query=query,
            origin=origin,
            residual=residuals,
            weight=weights,
        )

    def scaled(self, factor: float) -> Influence:
        """Return the influence in another unit, such as percent for shares.

        Its weights add up to 1.
        """
        total = float(self.query_weight.sum())
        has_weight = total > 0
        unit = factor / total if has_weight else np.nan
        return replace(
            self,
            query_residual=self.query_residual * unit,
            query_weight=self.query_weight / total if has_weight else self.query_weight,
            residual=self.residual * unit,
            weight=self.weight / total if has_weight else self.weight,
        )

    def variance(self) -> TwoWayVariance:
        """Return the variance of the estimate."""
        count = len(self.query_residual)
        lone = np.setdiff1d(np.arange(count), self.query)
        # A query that meets no document is a document of its own: no other query shares it.
        alone = float((self.query_residual[lone] ** 2).sum())
        cells = float((self.residual * self.residual).sum()) + alone
        by_origin = _signed_sums(self.origin, self.residual)
        origins = float((by_origin * by_origin).sum()) + alone
        origin_weight = np.concatenate([sums(self.origin, self.weight), self.query_weight[lone]])
        numbers = effective_number(self.query_weight), effective_number(origin_weight)
        return two_way(
            queries=float((self.query_residual * self.query_residual).sum()),
            origins=origins,
            cells=cells,
            effective_n=float(np.fmin(*numbers)),
        )


def combine_influences(influences: Sequence[Influence], factors: Sequence[float]) -> Influence:
    """Return the influence of a sum of estimates over the same queries, each times a factor.

    Documents have one numbering in all of them. The weights are those of all estimates together.
    """
    query_residuals, residuals = [], []
    for factor, influence in zip(factors, influences, strict=True):
        query_residuals.append(factor * influence.query_residual)
        residuals.append(factor * influence.residual)
    clusters = Clusters(
        query=np.concatenate([influence.query for influence in influences]),
        origin=np.concatenate([influence.origin for influence in influences]),
        total=np.concatenate(residuals),
        weight=np.concatenate([influence.weight for influence in influences]),
    )
    query, origin, (residual, weight) = _cells(clusters, (clusters.total, clusters.weight))
    return Influence(
        query_residual=np.sum(query_residuals, axis=0),
        query_weight=np.sum([influence.query_weight for influence in influences], axis=0),
        query=query,
        origin=origin,
        residual=residual,
        weight=weight,
    )


def _cells(clusters: Clusters, columns: tuple[Floats, ...]) -> tuple[Ints, Ints, list[Floats]]:
    """Sum columns over each query and origin; return their numbers, rising, and the sums.

    No sum depends on the order of the entries, and negating a column negates its sums, to the last
    bit: the labels of an audit can be swapped.
    """
    query, origin = clusters.query, clusters.origin
    if not len(query):
        return query, origin, [np.empty(0) for _ in columns]
    key = (query + 1) * (int(origin.max()) + 1) + origin
    is_sorted = bool((key[1:] >= key[:-1]).all())
    order = np.arange(len(key)) if is_sorted else np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    longest = int(np.diff(starts, append=len(order)).max())
    totals = []
    for column in columns:
        if longest > 2:  # the sum of two is the same in either order
            order = np.lexsort((np.abs(column), key))
        in_order = column[order]
        if longest == 1:
            totals.append(in_order.copy())
        else:
            totals.append(
                np.add.reduceat(np.maximum(in_order, 0.0), starts)
                - np.add.reduceat(np.maximum(-in_order, 0.0), starts)
            )
    return query[order][starts], origin[order][starts], totals


def _signed_sums(index: Ints, values: Floats, n: int = 0) -> Floats:
    """Sum values by their index so that negating them negates the sums to the last bit."""
    return sums(index, np.maximum(values, 0.0), n) - sums(index, np.maximum(-values, 0.0), n)


def sums(index: Ints, values: Floats, n: int = 0) -> Floats:
    """Sum values by their index, from 0 to the largest there is, or to n − 1."""
    return np.bincount(index, weights=values, minlength=n).astype(np.float64)


class Dyads(NamedTuple):
    """Comparisons of two documents, such as choices; their influence is given to `variance`.

    A document that is often chosen is often chosen in all its comparisons, so those that share an
    origin go together (Fafchamps & Gubert, Journal of Development Economics 83(2), 2007).
    """

    query: Ints
    """Query of each comparison."""
    first: Ints
    """Number of the origin of the first group's document, from 0."""
    second: Ints
    """Number of the origin of the second group's document; the same for twins."""

    def variance(self, residual: Floats, weight: Floats) -> TwoWayVariance:
        """Return the variance of an estimate from the residual and weight of each comparison."""
        by_query = sums(self.query, residual)
        n = int(max(self.first.max(), self.second.max())) + 1
        # Numbered by query and origin, comparisons share a document only within their query.
        numbers = np.stack([self.query * n + self.first, self.query * n + self.second])
        first, second = np.unique(numbers, return_inverse=True)[1].reshape(2, -1)
        effective_numbers = [
            effective_number(sums(index, weight)) for index in (self.query, self.first, self.second)
        ]
        within_queries = Dyads(query=self.query, first=first, second=second)
        return two_way(
            queries=float((by_query * by_query).sum()),
            origins=self._shared_products(residual),
            cells=within_queries._shared_products(residual),
            effective_n=float(np.fmin.reduce(effective_numbers)),
        )

    def _shared_products(self, residual: Floats) -> float:
        """Return the sum of the products of comparisons that share an origin.

        Each product of two comparisons is counted once.
        """
        is_apart = self.first != self.second
        as_first = sums(self.first, residual, int(self.second.max()) + 1)
        as_second = sums(self.second[is_apart], residual[is_apart], len(as_first))
        by_origin = as_first + as_second[: len(as_first)]
        low = np.minimum(self.first, self.second)[is_apart]
        high = np.maximum(self.first, self.second)[is_apart]
        pair = np.unique(low * len(by_origin) + high, return_inverse=True)[1]
        by_pair = sums(pair, residual[is_apart])  # counted with both its origins, so taken off once
        return float((by_origin * by_origin).sum() - (by_pair * by_pair).sum())
