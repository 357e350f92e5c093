"""Measure how far judges agree on ordered grades, from tables of counts.

Cohen's κ is for two judges, Krippendorff's α for any number of judges. A *unit* is what is graded,
such as one document for one query. Grades are whole numbers from 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cohen_kappa(tables: Floats, weights: Literal["equal", "quadratic"] = "equal") -> Floats:
    """Compute Cohen's κ of tables of counts: 1 − Σ w·observed / Σ w·expected.

    1 is full agreement. 0 is the agreement that two judges reach by chance if each gives every
    grade as often as here. ``observed`` counts how often the judges give each pair of grades, and
    ``expected`` how often they would by chance.

    Parameters
    ----------
    tables : ndarray of float64, shape (…, n_grades, n_grades)
        Counts of units, by the grade of the first judge and by that of the second.
    weights : {"equal", "quadratic"}, optional
        How much a pair of different grades weighs; w is 0 for equal grades. ``equal``: 1 (Cohen,
        Educational and Psychological Measurement 20(1), 1960). ``quadratic``: the square of their
        distance (Cohen, Psychological Bulletin 70(4), 1968).

    Returns
    -------
    ndarray of float64, shape (…)
        κ of each table; NaN where a judge gives the same grade to all units.
    """
    first_judge, second_judge = tables.sum(-1), tables.sum(-2)
    total = tables.sum((-2, -1))
    grades = np.arange(tables.shape[-1])
    distance = np.subtract.outer(grades, grades).astype(np.float64)
    cost = (distance != 0).astype(np.float64) if weights == "equal" else distance * distance
    observed = (tables * cost).sum((-2, -1))
    expected = ((first_judge @ cost) * second_judge).sum(-1)
    both_vary = ((first_judge > 0).sum(-1) > 1) & ((second_judge > 0).sum(-1) > 1)
    # `observed` adds up counts, `expected` products of counts. So their ratio as shares is
    # (observed / total) / (expected / total²).
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(both_vary, 1 - observed * total / expected, np.nan)


def krippendorff_alpha(coincidences: Floats) -> Floats:
    """Compute Krippendorff's α of ordered grades: 1 − observed / expected disagreement.

    1 is full agreement, 0 is agreement by chance. Two grades disagree by the square of the distance
    between their mean ranks (Krippendorff, Content Analysis, 4th ed. 2018, ch. 12).

    Parameters
    ----------
    coincidences : ndarray of float64, shape (…, n_grades, n_grades)
        How often two judges gave each pair of grades to the same unit (`coincidences_of`). For two
        judges, this is their table of counts plus its transpose.

    Returns
    -------
    ndarray of float64, shape (…)
        α of each table; NaN where all grades are the same.
    """
    sizes = coincidences.sum(-1)
    total = sizes.sum(-1)
    # If all grades that were given are sorted, those of one grade have these ranks on average.
    ranks = np.cumsum(sizes, axis=-1) - sizes / 2
    cost = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    observed = (coincidences * cost).sum((-2, -1))
    # Σ_g Σ_h size_g · cost_gh · size_h of each table; a product of matrices needs sizes as rows.
    size_rows = sizes[..., None, :]
    mean_costs = (size_rows @ cost)[..., 0, :]
    expected = (mean_costs * sizes).sum(-1)
    # By chance, a value meets one of the total − 1 others: two grades coincide
    # size_g · size_h / (total − 1) times. Hence the factor.
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


def coincidences_of(grades: Floats, top: int) -> Floats:
    """Count how often two judges gave each pair of grades to the same unit.

    A unit with n grades has n · (n − 1) ordered pairs of grades, and each pair counts 1 / (n − 1).
    So the unit adds n to the table, and every grade counts once, however many judges graded its
    unit. Units with fewer than two grades have no pair.

    Parameters
    ----------
    grades : ndarray of float64, shape (n_units, n_judges)
        Whole numbers from 0 to `top`; NaN where a judge gave no grade.
    top : int
        The highest grade.

    Returns
    -------
    ndarray of float64, shape (top + 1, top + 1)
        The table of coincidences; it is symmetric.
    """
    by_grade = [(grades == grade).sum(1) for grade in range(top + 1)]
    counts = np.stack(by_grade, axis=1).astype(np.float64)
    counts = counts[counts.sum(1) > 1]
    weighted = counts / (counts.sum(1, keepdims=True) - 1)
    with_self_pairs: Floats = weighted.T @ counts
    # No grade is paired with itself: of `count` equal grades, each meets only the others.
    return with_self_pairs - np.diag(weighted.sum(0))
