"""Two sources of chance: queries, and the documents that many of them retrieve.

An *origin* is a document together with all its rewrites: twins have one origin, and a document that
nobody rewrote is an origin of its own. Many queries that retrieve the same documents are no fresh
evidence about these documents. So the error of every estimate is clustered two ways, by query and
by origin (Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011):

    V = max(V_q + V_o − V_qo, V_q, V_o) · G / (G − 1)

An estimate is a ratio, ``Σ total / Σ weight``. The *residual* of a query or document is
``total − ratio · weight``: how far it pulls the estimate away from its value. V_q is the sum of
squared residuals by query, V_o by origin, and V_qo by cell, which is one origin under one query. In
simulations with random labels, V_q + V_o − V_qo was smaller than V_q or V_o in up to 74 % of the
draws. Therefore V is at least V_q and at least V_o. G is the effective number of queries or of
origins, whichever is smaller. The effective number is (Σ w)² / Σ w², where w is the weight of each
query or origin (Kish, Survey Sampling, 1965).

`Clusters` has what each document adds to an estimate, and `Influence` its residuals. `Dyads` is for
comparisons of two documents of different origins, which belong to both. The page
``docs/measures/statistics.md`` has the same formula for users.
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
    """G, the effective number of queries or of origins, whichever is smaller; NaN if all weights
    are 0."""

    @property
    def total(self) -> float:
        """V, in the squared unit of the estimate.

        NaN if a single query or origin has all the weight.
        """
        degrees_of_freedom = self.effective_n - 1
        if degrees_of_freedom > 0:
            return self.of_both * self.effective_n / degrees_of_freedom
        return np.nan

    @property
    def stretch(self) -> float:
        """√(V / V_q): the factor by which an interval over queries alone is too narrow."""
        return float(np.sqrt(self.total / self.of_queries)) if self.of_queries > 0 else np.nan


def two_way(*, queries: float, origins: float, cells: float, effective_n: float) -> TwoWayVariance:
    """Return the variance from the sums of squares V_q, V_o and V_qo.

    They are by query, by origin, and by cell, which is one origin under one query.
    """
    both = max(queries + origins - cells, queries, origins)
    return TwoWayVariance(of_queries=queries, of_both=both, effective_n=effective_n)


def effective_number(weights: Floats) -> float:
    """Return (Σ w)² / Σ w², which is n for n equal weights and less for unequal ones.

    NaN if all are 0.
    """
    squares = float((weights * weights).sum())
    if squares == 0:
        return np.nan
    # Rounded, because ten equal weights must give 10: verdicts compare G with whole numbers.
    return round(float(weights.sum()) ** 2 / squares, 9)


class Clusters(NamedTuple):
    """What each document adds to the sums behind an estimate, ``Σ total / Σ weight``.

    All arrays have one row for each query and each document (or pair of twins) that it retrieved or
    judged. To *exchange* the labels of an origin is to swap the groups of its two texts, which
    changes the sign of its totals.
    """

    query: Ints
    """Number of the query; −1 in a row that belongs to no query."""
    origin: Ints
    """Number of the origin, from 0.

    Measures do not know origins: they fill in the row of the document in its collection, and
    `with_origins` replaces it.
    """
    total: Floats
    """Part of the total. It changes its sign if labels are exchanged."""
    weight: Floats
    """Part of the weight. It stays the same if labels are exchanged."""

    def with_origins(self, origins: Ints) -> Clusters:
        """Replace the rows of documents in `origin` by the numbers of their origins.

        `origins` has the number of each document's origin; documents with a negative one are left
        out.
        """
        origin = origins[self.origin]
        return self._replace(origin=origin)._select(origin >= 0)

    def merge_repeats(self, distinct: Ints | None) -> Clusters:
        """Give queries that repeat each other one number.

        `distinct` has the new number of each query. If it is None, no query is a repeat.
        """
        if distinct is None:
            return self
        return self._replace(query=np.where(self.query < 0, -1, distinct[self.query]))

    def renumber_queries(self, numbers: Ints) -> Clusters:
        """Renumber queries by their index in `numbers`, and leave out all other queries.

        `numbers` is in rising order. Rows that belong to no query (−1) stay.
        """
        index = np.searchsorted(numbers, self.query)
        is_listed = np.zeros(len(index), dtype=bool)
        if len(numbers):
            # Beyond the last number, `searchsorted` returns an index that does not exist.
            is_listed = numbers[np.minimum(index, len(numbers) - 1)] == self.query
        has_no_query = self.query < 0
        renumbered = self._replace(query=np.where(has_no_query, -1, index))
        return renumbered._select(is_listed | has_no_query)

    def _select(self, mask: npt.NDArray[np.bool_]) -> Clusters:
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

        The order of the rows does not change the sums, and negated totals give exactly the negated
        sums: floating-point addition alone would round differently. See `_signed_sums`.
        """
        order = np.argsort(np.abs(self.total), kind="stable")
        return _signed_sums(self.origin[order], self.total[order])


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """The residuals and weights of an estimate, by query and by cell, in the estimate's unit.

    `query_residual` and `query_weight` have the shape (n_queries,). `query`, `origin`, `residual`
    and `weight` describe the cells, one for each origin that a query retrieved or judged, in rising
    order of query, then of origin. The residuals of a query's cells add up to the query's residual.
    Cells of query −1 belong to no query: where an estimate compares the first ranks with the mean
    of all documents, they hold what each document adds to that mean.
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
        """Return the influence of an estimate that varies over queries only: it has no cells."""
        no_cells = np.empty(0, dtype=np.int64)
        return cls(
            query_residual=residual,
            query_weight=weight,
            query=no_cells,
            origin=no_cells,
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
            What documents add. Queries are numbered as the rows of `residual`; −1 for no query.
        ratio : float
            Amount that is subtracted from a document's total for each unit of its weight: the
            estimate ``Σ total / Σ weight``. It is 0 if the totals are those of labels from which
            their mean was subtracted before.

        Notes
        -----
        The residuals of a query's documents need not add up to its own residual. The difference is
        spread evenly over its documents.
        """
        document_residuals = clusters.total - ratio * clusters.weight
        query, origin, (residuals, weights) = _sums_by_cell(
            clusters, (document_residuals, clusters.weight)
        )
        has_query = query >= 0
        rows = query[has_query]
        counts = np.bincount(rows, minlength=len(residual))
        remainder = residual - _signed_sums(rows, residuals[has_query], len(residual))
        # A query without documents has nothing to spread over; `variance` counts it by itself.
        shares = remainder / np.maximum(counts, 1)
        residuals[has_query] += shares[rows]
        return cls(
            query_residual=residual,
            query_weight=weight,
            query=query,
            origin=origin,
            residual=residuals,
            weight=weights,
        )

    def scaled(self, factor: float) -> Influence:
        """Return the influence on ``factor · Σ total / Σ weight``; a factor of 100 gives percent.

        Residuals and weights are divided by Σ weight, so that the weights add up to 1.
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
        without_cells = np.setdiff1d(np.arange(count), self.query)
        # A query without cells shares no document with another query. So it counts as one more
        # origin and one more cell.
        their_squares = float((self.query_residual[without_cells] ** 2).sum())
        cells = float((self.residual * self.residual).sum()) + their_squares
        by_origin = _signed_sums(self.origin, self.residual)
        origins = float((by_origin * by_origin).sum()) + their_squares
        origin_weight = np.concatenate(
            [sums(self.origin, self.weight), self.query_weight[without_cells]]
        )
        effective_queries = effective_number(self.query_weight)
        effective_origins = effective_number(origin_weight)
        return two_way(
            queries=float((self.query_residual * self.query_residual).sum()),
            origins=origins,
            cells=cells,
            # The smaller one; `fmin` skips one that is NaN.
            effective_n=float(np.fmin(effective_queries, effective_origins)),
        )


def combine_influences(influences: Sequence[Influence], factors: Sequence[float]) -> Influence:
    """Return the influence of a sum of estimates over the same queries, each times its factor.

    All estimates must number origins alike. The weight of a query or cell is the sum of its weights
    in all estimates.
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
    query, origin, (residual, weight) = _sums_by_cell(clusters, (clusters.total, clusters.weight))
    return Influence(
        query_residual=np.sum(query_residuals, axis=0),
        query_weight=np.sum([influence.query_weight for influence in influences], axis=0),
        query=query,
        origin=origin,
        residual=residual,
        weight=weight,
    )


def _sums_by_cell(
    clusters: Clusters, columns: tuple[Floats, ...]
) -> tuple[Ints, Ints, list[Floats]]:
    """Sum columns over each cell; return the query and origin of the cells, and the sums.

    Cells are in rising order of query, then of origin. No sum depends on the order of the rows, and
    a negated column has exactly the negated sums, so that an audit with swapped groups gives the
    same figures with the other sign.
    """
    query, origin = clusters.query, clusters.origin
    if not len(query):
        return query, origin, [np.empty(0) for _ in columns]
    # One number for each cell; query + 1, because −1 stands for no query.
    key = (query + 1) * (int(origin.max()) + 1) + origin
    is_sorted = bool((key[1:] >= key[:-1]).all())
    by_cell = np.arange(len(key)) if is_sorted else np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[by_cell], prepend=-1))
    largest_cell = int(np.diff(starts, append=len(key)).max())
    column_sums = []
    for column in columns:
        # The rounding of a sum of three or more numbers depends on their order. So they are sorted
        # by size within their cell.
        by_size = np.lexsort((np.abs(column), key)) if largest_cell > 2 else by_cell
        values = column[by_size]
        if largest_cell == 1:
            column_sums.append(values)
        else:
            positive_sums = np.add.reduceat(np.maximum(values, 0.0), starts)
            negative_sums = np.add.reduceat(np.maximum(-values, 0.0), starts)
            column_sums.append(positive_sums - negative_sums)
    return query[by_cell][starts], origin[by_cell][starts], column_sums


def _signed_sums(index: Ints, values: Floats, n: int = 0) -> Floats:
    """Sum values by their index, as `sums` does, so that negated values have exactly negated sums.

    Positive and negative values are summed separately, and negation only swaps the two sums.
    """
    return sums(index, np.maximum(values, 0.0), n) - sums(index, np.maximum(-values, 0.0), n)


def sums(index: Ints, values: Floats, n: int = 0) -> Floats:
    """Sum values by their index; the result has a sum for each index from 0 to the largest.

    It has at least n sums: those of indexes that do not occur are 0.
    """
    return np.bincount(index, weights=values, minlength=n).astype(np.float64)


class Dyads(NamedTuple):
    """Comparisons of two documents, such as a judge's choices between them.

    A document that is often chosen is often chosen in all its comparisons. So the errors of
    comparisons that share an origin are correlated (Fafchamps & Gubert, Journal of Development
    Economics 83(2), 2007).
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
        origin_count = int(max(self.first.max(), self.second.max())) + 1
        # For V_qo, an origin gets another number under each query. Then only comparisons under one
        # query share an origin.
        numbers = np.concatenate(
            [self.query * origin_count + self.first, self.query * origin_count + self.second]
        )
        cell_numbers = np.unique(numbers, return_inverse=True)[1]  # without gaps, from 0
        first, second = np.split(cell_numbers, 2)
        within_queries = Dyads(query=self.query, first=first, second=second)
        effective_numbers = [
            effective_number(sums(index, weight)) for index in (self.query, self.first, self.second)
        ]
        return two_way(
            queries=float((by_query * by_query).sum()),
            origins=self._shared_products(residual),
            cells=within_queries._shared_products(residual),
            effective_n=float(np.fmin.reduce(effective_numbers)),
        )

    def _shared_products(self, residual: Floats) -> float:
        """Return the sum of r_i · r_j over comparisons i and j that share an origin, with i = j.

        Two comparisons that share both origins count once.
        """
        has_two_origins = self.first != self.second
        origin_count = int(max(self.first.max(), self.second.max())) + 1
        as_first = sums(self.first, residual, origin_count)
        as_second = sums(self.second[has_two_origins], residual[has_two_origins], origin_count)
        by_origin = as_first + as_second
        # Comparisons of the same two origins are in the squares of both, and must count once.
        low = np.minimum(self.first, self.second)[has_two_origins]
        high = np.maximum(self.first, self.second)[has_two_origins]
        pair = np.unique(low * origin_count + high, return_inverse=True)[1]
        by_pair = sums(pair, residual[has_two_origins])
        return float((by_origin * by_origin).sum() - (by_pair * by_pair).sum())
