"""Agreement of judges on ordered grades, from tables of counts.

Cohen's κ for two judges, and Krippendorff's α for any number.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cohen_kappa(tables: Floats, weights: Literal["equal", "quadratic"] = "equal") -> Floats:
    """Compute Cohen's κ of tables of counts.

    1 is full agreement, 0 what two judges with these margins reach by chance.
    ``1 − Σ w·observed / Σ w·expected`` with w = 1 off the diagonal (Cohen, Educational and
    Psychological Measurement 20(1), 1960) or the squared distance of the grades (Cohen,
    Psychological Bulletin 70(4), 1968). NaN where either judge gives one grade to all.

    `tables` has the shape (…, grades, grades), one axis a judge; the result has the leading axes.
    """
    rows, columns, total = tables.sum(-1), tables.sum(-2), tables.sum((-2, -1))
    grades = np.arange(tables.shape[-1])
    distance = np.subtract.outer(grades, grades).astype(np.float64)
    cost = (distance != 0).astype(np.float64) if weights == "equal" else distance * distance
    observed = (tables * cost).sum((-2, -1))
    expected = ((rows @ cost) * columns).sum(-1)
    both_vary = ((rows > 0).sum(-1) > 1) & ((columns > 0).sum(-1) > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(both_vary, 1 - observed * total / expected, np.nan)


def krippendorff_alpha(coincidences: Floats) -> Floats:
    """Compute Krippendorff's α of ordered grades from tables of coincidences.

    1 is full agreement, 0 what chance gives. ``1 − observed / expected disagreement`` with the
    ordinal difference of two grades, the distance of their mean ranks (Krippendorff, Content
    Analysis, 4th ed. 2018, ch. 12). For two judges the table is their table of counts plus its
    transpose; for more, `coincidences_of` makes it. NaN where all grades are the same.

    `coincidences` has the shape (…, grades, grades); the result has the leading axes.
    """
    sizes = coincidences.sum(-1)
    total = sizes.sum(-1)
    ranks = np.cumsum(sizes, axis=-1) - sizes / 2
    cost = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    observed = (coincidences * cost).sum((-2, -1))
    expected = ((sizes[..., None, :] @ cost)[..., 0, :] * sizes).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


def coincidences_of(grades: Floats, top: int) -> Floats:
    """Count how often two judges of a unit gave two grades; a unit weighs as many as its grades.

    `grades` has the shape (units, judges), whole numbers from 0 to `top`, NaN where a judge gave
    none; units with fewer than two count nowhere. The result has the shape (top + 1, top + 1).
    """
    by_grade = [(grades == grade).sum(1) for grade in range(top + 1)]
    counts = np.stack(by_grade, axis=1).astype(np.float64)
    counts = counts[counts.sum(1) > 1]
    share = counts / (counts.sum(1, keepdims=True) - 1)
    table: Floats = share.T @ counts - np.diag(share.sum(0))
    return table
