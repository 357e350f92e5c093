"""How much of a gap within lists is explained by each property of documents (Gelbach 2016).

A document i in the list of query q has an outcome y, such as its score or its rank. It is on one of
two sides: g is 1 on the first side and 0 on the second. It has properties x_j, such as its length.
The *gap* is how much larger y is on the first side. Two regressions over the same rows give the gap
δ without the properties, and the gap δ_x between documents with equal properties:

    y = a_q + δ·g + e          y = a_q + δ_x·g + Σ_j β_j·x_j + e

a_q is a constant for each query, so that documents are compared only within their lists. The
properties make the gap smaller by δ − δ_x. This difference is exactly a sum with one part for each
property, whatever the order of the properties (Gelbach, Journal of Labor Economics 34(2), 2016):

    δ − δ_x = Σ_j Γ_j·β_j

Γ_j is how much more of the property the first side has within lists: the coefficient of g in the
regression of x_j on g and the queries. β_j is how much the outcome changes with the property.

Standard errors are clustered by query and by document, as in `two_way`. A part is a product of two
estimates, so its interval comes from random draws of both together. Its p is the level at which
that interval first excludes 0 (`inversion`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.regression.fixed_effects import centred_within
from ranktilt.statistics.two_way import TwoWayVariance, effective_number, sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DRAWS = 10_000
"""Default number of joint draws of Γ and β."""
_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as 0."""
_UNBOUNDED = (-np.inf, np.inf)
"""Bounds of a value that can be any number."""


@dataclass(frozen=True, kw_only=True)
class InferredValue:
    """A number with its 95 % interval, its standard error, and the p if the true number is 0."""

    value: float
    """The number."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    error: float
    """Standard error."""
    p: float
    """p if the true number is 0."""

    @classmethod
    def from_inference(cls, value: float, inference: Inference) -> InferredValue:
        """Join a value and its inference."""
        return cls(
            value=value,
            low=inference.low,
            high=inference.high,
            error=inference.error,
            p=inference.p,
        )


@dataclass(frozen=True, kw_only=True)
class PropertyShare:
    """The part of a gap that a property explains."""

    part: InferredValue
    """Γ·β: how much of the gap the property explains, in the outcome's unit."""
    difference: InferredValue
    """Γ: how much more of the property the first side has within lists, in the property's unit."""
    coefficient: InferredValue
    """β: how much the outcome changes with one unit of the property, all else equal."""
    spread: float
    """Standard deviation of the property within lists."""
    inflation: float
    """Factor by which the side and the other properties increase the variance of β."""


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """A gap between two sides within lists, and the parts of it that properties explain."""

    gap: InferredValue
    """δ, the gap without the properties."""
    remaining: InferredValue
    """δ_x, the gap at equal properties."""
    explained: InferredValue
    """δ − δ_x, the sum of all parts."""
    shares: tuple[PropertyShare, ...]
    """Shares of the properties, in the order of the columns."""
    effective_n: float
    """Effective number of queries or of documents, whichever is smaller.

    The weight of a document is the square of its side (1 or 0) minus the mean side of its list. So
    a list whose documents are all on one side has no weight.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class ListRows:
    """The rows of a decomposition: one for each document of each list."""

    outcome: Floats
    """Outcome of each document, such as its score: the values that are explained."""
    side: Floats
    """1 for a document of the first side, 0 for one of the second."""
    properties: Floats
    """Values of the properties, shape (n_rows, n_properties).

    Within lists, no column may be a sum of multiples of the others.
    """
    query: Ints
    """Number of each row's query."""
    document: Ints
    """Number of each row's document, the same in all lists; twins may share a number."""


def decompose(rows: ListRows, *, draws: int = DRAWS, seed: int = 0) -> Decomposition:
    """Return the gap between two sides with and without properties, and the part of each property.

    Parameters
    ----------
    rows : ListRows
        Every document of every list.
    draws, seed : int, optional
        Number of joint draws of Γ and β from which the intervals of parts are made, and their seed.

    Returns
    -------
    Decomposition
        Intervals and p are NaN where one query or one document carries all of the gap.
    """
    fit = _Fit.from_rows(rows)
    count = fit.property_count
    variances = np.diag(fit.covariance)
    estimates = [
        _from_variance(value, variance, fit.effective_n)
        for value, variance in zip(fit.values.tolist(), variances.tolist(), strict=True)
    ]
    # In the order of `_Fit.values`.
    gap, remaining, *of_properties = estimates
    differences, coefficients = of_properties[:count], of_properties[count:]
    drawn = _joint_draws(fit, draws=draws, seed=seed)
    drawn_parts = drawn[:, :count] * drawn[:, count:]
    shares = []
    for number in range(count):
        spread = float(fit.spreads[number])
        part = differences[number].value * coefficients[number].value
        shares.append(
            PropertyShare(
                part=_from_draws(part, drawn_parts[:, number], fit.effective_n),
                difference=_scaled(differences[number], spread),
                coefficient=_scaled(coefficients[number], 1 / spread),
                spread=spread,
                inflation=float(fit.inflation[number]),
            )
        )
    explained = sum(share.part.value for share in shares)
    return Decomposition(
        gap=gap,
        remaining=remaining,
        explained=_from_draws(explained, drawn_parts.sum(axis=1), fit.effective_n),
        shares=tuple(shares),
        effective_n=fit.effective_n,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """Coefficients of all regressions, with their covariance.

    They are the regression of the outcome on the side, that of the outcome on the side and all
    properties, and that of each property on the side. Properties are in units of their spread.
    """

    values: Floats
    """δ, δ_x, then each Γ_j, then each β_j; shape (2 + 2 · n_properties,)."""
    covariance: Floats
    """Two-way covariance of the values, without the factor G / (G − 1)."""
    spreads: Floats
    """Standard deviation of each property within lists."""
    inflation: Floats
    """Variance inflation of each property."""
    effective_n: float
    """G: `Decomposition.effective_n`."""

    @property
    def property_count(self) -> int:
        """Number of properties."""
        return len(self.spreads)

    @classmethod
    def from_rows(cls, rows: ListRows) -> _Fit:
        """Fit all regressions, after the mean of its list is taken from each value."""
        outcome = centred_within(rows.outcome[:, None], rows.query)
        side = centred_within(rows.side[:, None], rows.query)
        properties = centred_within(rows.properties, rows.query)
        # Properties such as prices and shares differ by many orders of magnitude. In units of their
        # spread, no column is lost in the rounding of another.
        spreads = np.sqrt(np.square(properties).mean(axis=0))
        properties = properties / spreads
        # The short regressions, on the side alone, of the outcome and of each property. Their only
        # row of coefficients has δ in column 0, then each Γ_j.
        outcomes = np.column_stack([outcome, properties])
        short, short_influence = _least_squares(side, outcomes)
        # The long regression, of the outcome on the side and all properties. Its only column of
        # coefficients has δ_x in row 0, then each β_j.
        regressors = np.column_stack([side, properties])
        long, long_influence = _least_squares(regressors, outcome)
        influence = np.column_stack(
            [
                short_influence[:, 0, :1],
                long_influence[:, :1, 0],
                short_influence[:, 0, 1:],
                long_influence[:, 1:, 0],
            ]
        )
        values = np.concatenate([short[0, :1], long[:1, 0], short[0, 1:], long[1:, 0]])
        weight = np.square(side[:, 0])
        numbers = [effective_number(sums(index, weight)) for index in (rows.query, rows.document)]
        return cls(
            values=values,
            covariance=_covariance(influence * _small_list_factors(rows.query)[:, None], rows),
            spreads=spreads,
            inflation=_inflation(regressors)[1:],
            effective_n=float(np.fmin.reduce(numbers)),
        )


def _least_squares(regressors: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Regress each outcome on all regressors.

    Returns the coefficients, shape (n_regressors, n_outcomes), and what each row adds to their
    errors, shape (n_rows, n_regressors, n_outcomes).
    """
    inverse = np.linalg.pinv(regressors.T @ regressors, rcond=_TOLERANCE, hermitian=True)
    weights = regressors @ inverse
    coefficients = weights.T @ outcomes
    residuals = outcomes - regressors @ coefficients
    return coefficients, weights[:, :, None] * residuals[:, None, :]


def _inflation(regressors: Floats) -> Floats:
    """Return 1 / (1 − R²) for each column, where R² is that of its regression on the others.

    The columns have a mean of 0. The diagonal of the inverse of their products has the same value.
    """
    products = regressors.T @ regressors
    inverse = np.linalg.pinv(products, rcond=_TOLERANCE, hermitian=True)
    inflation: Floats = np.diag(products) * np.diag(inverse)
    return inflation


def _small_list_factors(query: Ints) -> Floats:
    """Return √(n_q / (n_q − 1)) of each row, where n_q is the length of the row's list.

    The mean of a list was fitted to the same rows, which makes their residuals too small by this
    factor.
    """
    list_number = np.unique(query, return_inverse=True)[1]
    length = np.bincount(list_number)[list_number].astype(np.float64)
    factors: Floats = np.sqrt(length / np.maximum(length - 1, 1))
    return factors


def _covariance(influence: Floats, rows: ListRows) -> Floats:
    """Return the two-way covariance V_q + V_o − V_qo: by query, by document, and by both together.

    Negative eigenvalues, which no covariance has, are set to 0. Each variance is at least as large
    as the one over queries alone, and as the one over documents alone.
    """
    cells = rows.query * (int(rows.document.max()) + 1) + rows.document
    _, cell = np.unique(cells, return_inverse=True)
    by_query = _clustered(influence, rows.query)
    by_document = _clustered(influence, rows.document)
    by_cell = _clustered(influence, cell)
    values, vectors = np.linalg.eigh(by_query + by_document - by_cell)
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    floor = np.maximum(np.diag(by_query), np.diag(by_document))
    lacking = np.maximum(floor - np.diag(covariance), 0.0)
    raised: Floats = covariance + np.diag(lacking)
    return raised


def _clustered(influence: Floats, index: Ints) -> Floats:
    """Return the covariance of estimates over one kind of clusters.

    It is the sum, over clusters, of the products of what the cluster adds to each two estimates.
    """
    by_cluster = np.stack([sums(index, column) for column in influence.T], axis=1)
    covariance: Floats = by_cluster.T @ by_cluster
    return covariance


def _joint_draws(fit: _Fit, *, draws: int, seed: int) -> Floats:
    """Draw Γ and β of all properties together, shape (draws, 2 · n_properties)."""
    values, vectors = np.linalg.eigh(fit.covariance[2:, 2:])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(seed).standard_normal((draws, len(values)))
    drawn: Floats = fit.values[2:] + normal @ root.T
    return drawn


def _from_variance(value: float, variance: float, effective_n: float) -> InferredValue:
    """Infer a coefficient from its variance, by the t distribution; no draws are needed."""
    known = TwoWayVariance(of_queries=variance, of_both=variance, effective_n=effective_n)
    no_resamples = np.full(1, value)  # a single value has no spread, so `infer` takes the variance
    inference = infer(no_resamples, value, variance=known, neutral=0.0, bounds=_UNBOUNDED)
    return InferredValue.from_inference(value, inference)


def _from_draws(value: float, drawn: Floats, effective_n: float) -> InferredValue:
    """Infer a value from draws of it.

    The distances of the ends of their percentile interval from the value are multiplied by
    t(G − 1) / 1.96 · √(G / (G − 1)), because few queries or documents vary too little.
    """
    variance = float(np.var(drawn)) if len(drawn) else 0.0
    known = TwoWayVariance(of_queries=variance, of_both=variance, effective_n=effective_n)
    inference = infer(drawn, value, variance=known, neutral=0.0, bounds=_UNBOUNDED)
    return InferredValue.from_inference(value, inference)


def _scaled(estimate: InferredValue, factor: float) -> InferredValue:
    """Return the estimate in another unit: everything but p is multiplied by the factor."""
    return InferredValue(
        value=estimate.value * factor,
        low=estimate.low * factor,
        high=estimate.high * factor,
        error=estimate.error * factor,
        p=estimate.p,
    )
