"""Relative Δ: two groups' values of a relevance measure as one number.

A relevance measure, such as nDCG@10, has a value from 0 to 1 for each query and group. Relative Δ
is the difference of both groups' means over queries, in percent of the mean of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ranking import Bools, Floats

ROUNDINGS = ("none", "paper")
"""Ways to round means before Relative Δ: not at all, or to 0.1 % as in the papers."""


def relative_delta(a: npt.ArrayLike, b: npt.ArrayLike, *, rounding: str = "none") -> Floats:
    """Compute the Relative Δ between two means, in percent: ``100 · (a − b) / ((a + b)/2)``.

    Parameters
    ----------
    a, b : array_like of float
        Means of one measure over the same queries, at least 0; `a` is by convention the human side.
    rounding : {"none", "paper"}, optional
        ``"paper"`` first rounds both means to 0.1 % as Dai et al. print them; this reproduces their
        cells.

    Returns
    -------
    ndarray of float64
        In [−200, 200]; positive favours `a`; NaN where both are 0. Swapping `a` and `b` negates it
        exactly.

    References
    ----------
    Dai et al., KDD 2024, sec. 3.1.

    Examples
    --------
    >>> float(relative_delta(0.22, 0.17, rounding="paper"))
    25.64102564102563
    """
    if rounding not in ROUNDINGS:
        raise unknown_name("rounding", rounding, ROUNDINGS)
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if rounding == "paper":
        a, b = np.round(a * 1000) / 1000, np.round(b * 1000) / 1000
    with np.errstate(invalid="ignore", divide="ignore"):
        # The quotient first: it is exactly ±1 where one side is 0, so nothing leaves [−200, 200].
        delta: Floats = 200 * ((a - b) / (a + b))
    return delta


@dataclass(frozen=True, repr=False)
class RelativeDelta(Estimand):
    """Relative Δ of a measure between two groups, in percent: see `relative_delta`.

    Most estimands are computed from a total and a weight of each query (`Estimand`). Here the two
    columns are `a` and `b` instead: the measure's values for the first and for the second group, a
    row for each query. The ratio is ``(mean a − mean b) / ((mean a + mean b)/2)``.
    """

    of: Measure | None = None
    """Measure whose means are compared. None only in the template that `estimand` fills."""

    name = "RelativeDelta"
    kind = "relevance"
    question = "is the right answer higher on one side?"
    bounds = (-200.0, 200.0)
    suffix = " %"
    per_ratio = 100.0
    term = "Relative Δ"
    definition = (
        "The difference between the two sides' means in % of their average, 200 · (first − "
        "second) / (first + second), from −200 to +200. Above 0, the ranker puts the first side's "
        "relevant texts higher; below 0, the second side's."
    )

    def __post_init__(self) -> None:
        """Accept any measure: it has checked itself."""

    def require_measure(self) -> None:
        """Refuse Relative Δ of no measure."""
        if self.of is None:
            raise UserError(
                f"measure {self.name} needs a measure of relevance, such as {self.name}(nDCG@3)"
            )

    def __repr__(self) -> str:
        return f"{self.name}({self.of!r})"

    def counts(self, a: Floats, b: Floats) -> Bools:
        """Tell which queries have a relevant document in both groups."""
        return ~(np.isnan(a) | np.isnan(b))

    def value(self, a: Floats, b: Floats, *, rounding: str = "none") -> float:
        means = self.means(a, b)
        return float(relative_delta(means["mean_a"], means["mean_b"], rounding=rounding))

    def combine(self, a: Floats, b: Floats) -> Floats:
        return relative_delta(a, b)

    def differences(self, a: Floats, b: Floats) -> Floats:
        return a - b

    def residuals(self, a: Floats, b: Floats, ratio: float) -> Floats:
        return a - b - ratio * (a + b) / 2

    def denominator(self, a: Floats, b: Floats) -> Floats:
        return (a + b) / 2

    def means(self, a: Floats, b: Floats) -> dict[str, float]:
        is_counted = self.counts(a, b)
        if not is_counted.any():
            return {"mean_a": np.nan, "mean_b": np.nan}
        return {
            "mean_a": float(np.mean(a[is_counted])),
            "mean_b": float(np.mean(b[is_counted])),
        }

    @property
    def key(self) -> str:
        return "relative delta"

    @property
    def title(self) -> str:
        return f"Relative Δ {self.of!r}"

    @property
    def measure(self) -> str:
        """Text of the measure that is compared."""
        return repr(self.of)


RELATIVE_DELTA = RelativeDelta()
