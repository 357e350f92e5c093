"""Difference in differences of two families of systems under two judges.

Chance is in the queries and in the systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_FEWEST = 4
"""Systems below which there is no interval."""


class FamilyDifference(NamedTuple):
    """How much further apart two families are under a judge than its general quality explains."""

    value: float
    """The difference."""
    low: float
    """Lower end of its interval."""
    high: float
    """95 % interval over queries and systems."""
    p: float
    """p-value of no difference."""
    slope: float
    """Difference under the judge for a difference of 1 under the reference, within one family."""
    plain: float
    """The textbook difference in differences, with a slope of 1."""


_UNDEFINED = FamilyDifference(
    value=np.nan, low=np.nan, high=np.nan, p=np.nan, slope=np.nan, plain=np.nan
)
"""What too few systems give."""


@dataclass(frozen=True, kw_only=True)
class _FamilyFit:
    """Analysis of covariance of two families, whose covariate is the reference."""

    value: float
    """Difference of the families at equal reference values."""
    slope: float
    """Slope of the covariate."""
    plain: float
    """Difference of the families' means."""
    gap: float
    """Difference of the families under the reference."""
    spread: float
    """Sum of squares of the reference within families."""
    residuals: Floats
    """Of each system."""

    @property
    def freedom(self) -> int:
        """Degrees of freedom: two means, and a slope where the reference varies."""
        return len(self.residuals) - 2 - (self.spread > 0)


def family_difference(reference: Floats, judged: Floats, member: Bools) -> FamilyDifference:
    """Estimate ``(J_F − J_O) − slope · (R_F − R_O)`` of a family F and all other systems O.

    J and R are means over queries under the judge and the reference. A judge that errs more
    everywhere brings all systems closer together, and so two families. The slope, fitted within
    both families over systems, takes this off: an analysis of covariance whose covariate is the
    reference. The variance is two-way: of systems around the fit (t with n − 3 degrees of freedom),
    and of the difference over queries, minus the noise of single values, which is in both (Cameron,
    Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011); degrees of freedom
    after Satterthwaite.

    `reference` and `judged` have the shape (systems, queries), without NaN. NaN below two systems
    of either family, below four in all, or below three queries.
    """
    queries, sizes = reference.shape[1], (int(member.sum()), int((~member).sum()))
    if min(sizes) < 2 or sum(sizes) < _FEWEST or queries < FEWEST_ROWS:
        return _UNDEFINED
    fit = _fit(reference, judged, member)
    per_family = sum(1 / size for size in sizes)
    leverage = fit.gap * fit.gap / fit.spread if fit.spread > 0 else 0.0
    residuals = float(fit.residuals @ fit.residuals)
    of_systems = residuals / fit.freedom * (per_family + leverage)
    cells = judged - fit.slope * reference
    by_query = cells[member].mean(0) - cells[~member].mean(0)
    of_queries = float(np.var(by_query, ddof=1)) / queries
    # The noise of single values is in both.
    of_cells = _cell_variance(cells, member) * per_family / queries
    variance = max(of_systems + of_queries - of_cells, of_systems, of_queries)
    scale = np.abs(judged).max() + np.abs(fit.slope * reference).max()
    if variance <= (1e-12 * scale) ** 2:  # nothing is left but rounding
        return _certain(fit, scale)
    degrees = variance**2 / (of_systems**2 / fit.freedom + of_queries**2 / (queries - 1))
    error = float(np.sqrt(variance))
    half = float(special.stdtrit(degrees, 0.975)) * error
    return FamilyDifference(
        value=fit.value,
        low=fit.value - half,
        high=fit.value + half,
        p=2 * float(special.stdtr(degrees, -abs(fit.value) / error)),
        slope=fit.slope,
        plain=fit.plain,
    )


def _fit(reference: Floats, judged: Floats, member: Bools) -> _FamilyFit:
    """Fit the judge's mean of each system by its family and by the reference."""
    sides = (member, ~member)
    judged_family, judged_others = (float(judged[side].mean()) for side in sides)
    reference_family, reference_others = (float(reference[side].mean()) for side in sides)
    x = np.concatenate([_centred_systems(reference[side]) for side in sides])
    y = np.concatenate([_centred_systems(judged[side]) for side in sides])
    spread = float(x @ x)
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
    """Return the mean of each system, minus the mean of all."""
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


def _certain(fit: _FamilyFit, scale: float) -> FamilyDifference:
    """Return a difference without an error, taking for 0 what rounding leaves."""
    value = 0.0 if abs(fit.value) <= 1e-9 * scale else fit.value
    return FamilyDifference(
        value=value,
        low=value,
        high=value,
        p=float(value == 0),
        slope=fit.slope,
        plain=fit.plain,
    )
