"""How much of a gap within lists goes with each property, by fixed effects (Gelbach 2016).

Document i of query q has an outcome y (a score, a rank), a side g (1 or 0) and properties x_j. Two
regressions with an effect of each query, over the same rows, give the gap without and with the
properties:

    y = a_q + δ·g + e          y = a_q + δ_x·g + Σ_j β_j·x_j + e

and the difference splits exactly, whatever the order of the properties (Gelbach, Journal of Labor
Economics 34(2), 2016):

    δ − δ_x = Σ_j Γ_j·β_j

where Γ_j is the coefficient of the side in the regression of x_j on the side and the queries: how
much more of it the first side has, within lists. Errors are clustered by query and by document, as
in `two_way`. A part is a product of two estimates, so its interval comes from joint draws of both,
and its p is the level at which that interval first excludes 0 (`inversion`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.fixed_effects import within
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import TwoWayVariance, effective_number, sums

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DRAWS = 10_000
"""Default number of random draws."""
_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as 0."""
_UNBOUNDED = (-np.inf, np.inf)
"""Bounds of a value that has none."""


@dataclass(frozen=True, kw_only=True)
class InferredValue:
    """A number with its 95 % interval, the standard error behind it, and the p of 0."""

    value: float
    """The number."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    error: float
    """Standard error."""
    p: float
    """p-value of 0."""

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
    """The part of a gap that goes with a property."""

    part: InferredValue
    """Γ·β: how much of the gap goes with it, in the outcome's unit."""
    difference: InferredValue
    """Γ: how much more of it the first side has within lists, in the property's unit."""
    coefficient: InferredValue
    """β: change of the outcome with a unit of it, at equal other properties and equal side."""
    spread: float
    """Standard deviation of the property within lists."""
    inflation: float
    """How much the side and the other properties inflate the variance of the coefficient."""


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """A gap between two sides within lists, and the parts of it that go with properties."""

    gap: InferredValue
    """δ, the gap without the properties."""
    remaining: InferredValue
    """δ_x, the gap at equal properties."""
    explained: InferredValue
    """δ − δ_x, the sum of all parts."""
    shares: tuple[PropertyShare, ...]
    """Shares of the properties, in the order of the columns."""
    effective_n: float
    """Effective number of queries or documents, whichever is smaller, by the side's square."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ListRows:
    """The rows of a decomposition: one for each document of each list."""

    outcome: Floats
    """Values that are explained."""
    side: Floats
    """1 for a document of the first side, 0 for one of the second."""
    properties: Floats
    """Shape (n_rows, n_properties). Within lists no column may follow from the others."""
    query: Ints
    """Number of each row's list."""
    document: Ints
    """Number of the document, alike in all lists; twins may share one."""


def decompose(rows: ListRows, *, draws: int = DRAWS, seed: int = 0) -> Decomposition:
    """Return the gap between two sides with and without properties, and the part of each property.

    Parameters
    ----------
    rows : ListRows
        Every document of every list, with the same rows in both regressions.
    draws, seed : int, optional
        Joint draws of Γ and β behind the intervals of parts, and their seed.

    Returns
    -------
    Decomposition
        Intervals and p are NaN where one query or one document carries all of the gap.
    """
    fit = _Fit.from_rows(rows)
    count = fit.property_count
    variances = np.diag(fit.covariance)
    linear = [
        _linear(value, variance, fit.effective_n)
        for value, variance in zip(fit.values.tolist(), variances.tolist(), strict=True)
    ]
    gap, remaining, *others = linear
    differences, coefficients = others[:count], others[count:]
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
    """Both regressions, and those of the properties, in units of their spread, on the side."""

    values: Floats
    """δ, δ_x, then Γ and then β of each property."""
    covariance: Floats
    """Two-way covariance of the values, without G / (G − 1)."""
    spreads: Floats
    """Standard deviation of each property within lists."""
    inflation: Floats
    """Variance inflation of each property."""
    effective_n: float
    """Number of independent clusters that the rows are worth."""

    @property
    def property_count(self) -> int:
        """Number of properties."""
        return len(self.spreads)

    @classmethod
    def from_rows(cls, rows: ListRows) -> _Fit:
        """Fit all regressions, after the mean of its list is taken from each value."""
        outcome = within(rows.outcome[:, None], rows.query)
        side = within(rows.side[:, None], rows.query)
        properties = within(rows.properties, rows.query)
        # Prices and shares differ by many orders of magnitude: in units of their spread no column
        # is lost in the rounding of another.
        spreads = np.sqrt(np.square(properties).mean(axis=0))
        properties = properties / spreads
        by_side = np.column_stack([outcome, properties])
        short, short_influence = _least_squares(side, by_side)
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
            covariance=_covariance(influence * _small_lists(rows.query)[:, None], rows),
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
    """Return 1 / (1 − R²) of each centred column on the others."""
    products = regressors.T @ regressors
    inverse = np.linalg.pinv(products, rcond=_TOLERANCE, hermitian=True)
    inflation: Floats = np.diag(products) * np.diag(inverse)
    return inflation


def _small_lists(query: Ints) -> Floats:
    """Return √(n_q / (n_q − 1)) of each row, for what a list's mean takes of the variance."""
    number = np.unique(query, return_inverse=True)[1]
    count = np.bincount(number)[number].astype(np.float64)
    factors: Floats = np.sqrt(count / np.maximum(count - 1, 1))
    return factors


def _covariance(influence: Floats, rows: ListRows) -> Floats:
    """Return V_q + V_o − V_qo, with no variance below those of queries and of documents alone."""
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
    """Return the sum of the outer products of what each cluster adds."""
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


def _linear(value: float, variance: float, effective_n: float) -> InferredValue:
    """Infer a coefficient, whose error is one of t: no draws are needed."""
    known = TwoWayVariance(of_queries=variance, of_both=variance, effective_n=effective_n)
    inference = infer(np.full(1, value), value, variance=known, neutral=0.0, bounds=_UNBOUNDED)
    return InferredValue.from_inference(value, inference)


def _from_draws(value: float, drawn: Floats, effective_n: float) -> InferredValue:
    """Infer from draws, whose ends are stretched by t(G − 1) / 1.96 · √(G / (G − 1))."""
    variance = float(np.var(drawn)) if len(drawn) else 0.0
    known = TwoWayVariance(of_queries=variance, of_both=variance, effective_n=effective_n)
    inference = infer(drawn, value, variance=known, neutral=0.0, bounds=_UNBOUNDED)
    return InferredValue.from_inference(value, inference)


def _scaled(estimate: InferredValue, factor: float) -> InferredValue:
    """Return the estimate in another unit."""
    return InferredValue(
        value=estimate.value * factor,
        low=estimate.low * factor,
        high=estimate.high * factor,
        error=estimate.error * factor,
        p=estimate.p,
    )
