"""Difference in differences of two families of systems under two judges, with chance in queries and in systems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_FEWEST = 4


class FamilyDifference(NamedTuple):
    """How much further apart two families are under a judge than its general quality explains."""

    value: float
    low: float
    high: float
    """95 % interval over queries and systems."""
    p: float
    slope: float
    """What a difference of 1 between systems of one family under the reference becomes under the judge."""
    plain: float
    """The textbook difference in differences, of slope 1."""


def family_difference(reference: Floats, judged: Floats, member: Bools) -> FamilyDifference:
    """Estimate ``(J_F − J_O) − slope · (R_F − R_O)`` of a family F and all other systems O, from means over queries.

    A judge that errs more everywhere brings all systems closer together, and so two families. The
    slope, fitted within both families over systems, takes this off: an analysis of covariance whose
    covariate is the reference. The variance is two-way: of systems around the fit (t with n − 3
    degrees of freedom), and of the difference over queries, less the noise of single values, which
    is in both (Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011);
    degrees of freedom after Satterthwaite.

    `reference` and `judged` have the shape (systems, queries), without NaN. NaN below two systems
    of either family, below four in all, or below three queries.
    """
    queries, sizes = reference.shape[1], (int(member.sum()), int((~member).sum()))
    if min(sizes) < 2 or sum(sizes) < _FEWEST or queries < FEWEST_ROWS:
        return FamilyDifference(*(np.nan,) * 6)
    sides = (member, ~member)
    means = [[float(values[side].mean()) for side in sides] for values in (judged, reference)]
    (j_family, j_others), (r_family, r_others) = means
    away = np.concatenate([reference[side].mean(1) - reference[side].mean() for side in sides])
    moved = np.concatenate([judged[side].mean(1) - judged[side].mean() for side in sides])
    spread, apart = float(away @ away), r_family - r_others
    slope = float(away @ moved) / spread if spread > 0 else 1.0
    plain, value = j_family - j_others - apart, j_family - j_others - slope * apart
    rest = moved - slope * away
    freedom = sum(sizes) - 2 - (spread > 0)
    per_family = sum(1 / size for size in sizes)
    of_systems = (
        float(rest @ rest)
        / freedom
        * (per_family + (apart * apart / spread if spread > 0 else 0.0))
    )
    cells = judged - slope * reference
    of_queries = float(np.var(cells[member].mean(0) - cells[~member].mean(0), ddof=1)) / queries
    noise = [
        cells[side] - cells[side].mean(0) - cells[side].mean(1, keepdims=True) + cells[side].mean()
        for side in sides
    ]
    single = sum(float((part * part).sum()) for part in noise) / ((sum(sizes) - 2) * (queries - 1))
    variance = max(of_systems + of_queries - single * per_family / queries, of_systems, of_queries)
    scale = np.abs(judged).max() + np.abs(slope * reference).max()
    if variance <= (1e-12 * scale) ** 2:  # nothing is left but rounding
        settled = 0.0 if abs(value) <= 1e-9 * scale else value
        return FamilyDifference(settled, settled, settled, float(settled == 0), slope, plain)
    degrees = variance**2 / (of_systems**2 / freedom + of_queries**2 / (queries - 1))
    error = float(np.sqrt(variance))
    half = float(special.stdtrit(degrees, 0.975)) * error
    p = 2 * float(special.stdtr(degrees, -abs(value) / error))
    return FamilyDifference(value, value - half, value + half, p, slope, plain)
