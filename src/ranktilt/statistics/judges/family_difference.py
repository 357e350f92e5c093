"""Whether a judge of relevance prefers a family of systems, compared with a reference.

The judge may be a language model, the reference human judgments, and the family all systems that
are built on that language model. Under both, each system has a mean over queries. The question is
whether the family is further ahead of the other systems under the judge than under the reference: a
difference in differences. It would vary over other queries, and over other systems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_FEWEST_OF_SIDE = 2
"""Fewest systems in the family, and fewest other systems, for an estimate."""
_ROUNDING_ERROR = 1e-12
"""Standard error below which there is only rounding, as a share of the values' scale."""
_ROUNDING_VALUE = 1e-9
"""Difference below which there is only rounding, as a share of the values' scale."""


@dataclass(frozen=True, kw_only=True)
class FamilyDifference:
    """How much further ahead a family is under a judge than the reference explains."""

    value: float
    """The difference, in the unit of the judge's means; above 0 if the judge prefers the family."""
    low: float
    """Lower end of its 95 % interval, over other queries and other systems."""
    high: float
    """Upper end of this interval."""
    p: float
    """p of no difference."""
    slope: float
    """Distance of two systems under the judge if the reference puts them 1 apart.

    Both are in the family, or both outside.
    """
    plain: float
    """The usual difference in differences, which takes the slope as 1."""


_UNDEFINED = FamilyDifference(
    value=np.nan, low=np.nan, high=np.nan, p=np.nan, slope=np.nan, plain=np.nan
)
"""The result for too few systems or queries."""


@dataclass(frozen=True, kw_only=True)
class _FamilyFit:
    """Analysis of covariance: the judge's means by family, and by the reference's means."""

    value: float
    """The difference, after the slope is taken off."""
    slope: float
    """Slope of the judge's means over the reference's means, within families."""
    plain: float
    """The difference with a slope of 1."""
    gap: float
    """Mean of the family minus mean of the other systems, under the reference."""
    spread: float
    """Sum of squares of the reference's means around the mean of their side."""
    residuals: Floats
    """Judge's mean of each system, minus what the fit predicts."""

    @property
    def freedom(self) -> int:
        """Degrees of freedom: systems, minus 2 means, and minus a slope if the reference varies."""
        return len(self.residuals) - 2 - (self.spread > 0)


def family_difference(reference: Floats, judged: Floats, member: Bools) -> FamilyDifference:
    """Estimate how much a judge prefers a family F of systems to all other systems O.

    The estimate is ``(J_F − J_O) − slope · (R_F − R_O)``, where J and R are means over queries and
    systems under the judge and under the reference. A judge that makes many random errors brings
    all systems closer together, and so F and O too, without any preference. The slope corrects for
    that. It is fitted over systems, within F and within O: an analysis of covariance whose
    covariate is the reference.

    The variance is the one of systems around the fit, plus the one over queries, minus the one of
    single values, which is in both (Cameron, Gelbach & Miller, Journal of Business & Economic
    Statistics 29(2), 2011). It is at least as large as each of the first two. Degrees of freedom
    are by Satterthwaite's formula (Biometrics Bulletin 2(6), 1946).

    Parameters
    ----------
    reference, judged : ndarray of float64, shape (n_systems, n_queries)
        Values under the reference and under the judge, without NaN.
    member : ndarray of bool, shape (n_systems,)
        Whether each system is in the family.

    Returns
    -------
    FamilyDifference
        All NaN with fewer than two systems in the family or outside, or fewer than three queries.
    """
    queries, sizes = reference.shape[1], (int(member.sum()), int((~member).sum()))
    if min(sizes) < _FEWEST_OF_SIDE or queries < FEWEST_ROWS:
        return _UNDEFINED
    fit = _fit_judge_by_reference(reference, judged, member)
    # The variance of the difference of two means is that of a value times 1/n_F + 1/n_O; the error
    # of the slope adds to it by the leverage.
    inverse_sizes = sum(1 / size for size in sizes)
    leverage = fit.gap * fit.gap / fit.spread if fit.spread > 0 else 0.0
    squares_of_residuals = float(fit.residuals @ fit.residuals)
    of_systems = squares_of_residuals / fit.freedom * (inverse_sizes + leverage)
    # Values of each system and query, of which the estimate is a difference of means.
    cells = judged - fit.slope * reference
    by_query = cells[member].mean(0) - cells[~member].mean(0)
    of_queries = float(np.var(by_query, ddof=1)) / queries
    of_cells = _cell_variance(cells, member) * inverse_sizes / queries
    variance = max(of_systems + of_queries - of_cells, of_systems, of_queries)
    scale = np.abs(judged).max() + np.abs(fit.slope * reference).max()
    if variance <= (_ROUNDING_ERROR * scale) ** 2:
        return _without_variance(fit, scale)
    degrees = variance**2 / (of_systems**2 / fit.freedom + of_queries**2 / (queries - 1))
    error = float(np.sqrt(variance))
    half_width = float(special.stdtrit(degrees, 0.975)) * error
    return FamilyDifference(
        value=fit.value,
        low=fit.value - half_width,
        high=fit.value + half_width,
        p=2 * float(special.stdtr(degrees, -abs(fit.value) / error)),
        slope=fit.slope,
        plain=fit.plain,
    )


def _fit_judge_by_reference(reference: Floats, judged: Floats, member: Bools) -> _FamilyFit:
    """Fit the judge's mean of each system by its family and by the reference."""
    sides = (member, ~member)
    judged_family, judged_others = (float(judged[side].mean()) for side in sides)
    reference_family, reference_others = (float(reference[side].mean()) for side in sides)
    x = np.concatenate([_centred_systems(reference[side]) for side in sides])
    y = np.concatenate([_centred_systems(judged[side]) for side in sides])
    spread = float(x @ x)
    # Means that should be equal may differ in their last digits, which would give any slope.
    if spread <= len(x) * (_ROUNDING_ERROR * float(np.abs(reference).max())) ** 2:
        spread, x = 0.0, np.zeros_like(x)
    slope = float(x @ y) / spread if spread > 0 else 1.0
    gap = reference_family - reference_others
    return _FamilyFit(
        value=judged_family - judged_others - slope * gap,
        slope=slope,
        plain=judged_family - judged_others - gap,
        gap=gap,
        spread=spread,
        residuals=y - slope * x,
    )


def _centred_systems(values: Floats) -> Floats:
    """Return the mean of each system over queries, minus the mean of all these systems."""
    centred: Floats = values.mean(1) - values.mean()
    return centred


def _cell_variance(cells: Floats, member: Bools) -> float:
    """Return the variance of single values around the means of their system and their query."""
    systems, queries = cells.shape
    squares = 0.0
    for side in (member, ~member):
        values = cells[side]
        noise = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
        squares += float((noise * noise).sum())
    return squares / float((systems - 2) * (queries - 1))


def _without_variance(fit: _FamilyFit, scale: float) -> FamilyDifference:
    """Return the difference if nothing varies: its interval is a point.

    A value that is only rounding counts as 0. p is 1 for 0, and 0 for any other value. `scale` is
    the size of the values from which the difference was computed.
    """
    value = 0.0 if abs(fit.value) <= _ROUNDING_VALUE * scale else fit.value
    return FamilyDifference(
        value=value,
        low=value,
        high=value,
        p=float(value == 0),
        slope=fit.slope,
        plain=fit.plain,
    )
