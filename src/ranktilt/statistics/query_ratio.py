"""A ratio of sums over queries, with its interval.

For example the mean difference of two grades: its numerator is a query's sum of differences, its
denominator the query's number of graded pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.bootstrap import resampled_means
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import Influence

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryRatio:
    """``Σ numerator / Σ denominator`` over queries."""

    numerator: Floats
    """Numerator of each query."""
    denominator: Floats
    """Denominator of each query; a query with 0 does not count."""

    @property
    def value(self) -> float:
        """The ratio over all queries."""
        return float(self.numerator.sum() / self.denominator.sum())

    def inference(
        self, *, neutral: float, bounds: tuple[float, float], resamples: int, seed: int
    ) -> Inference:
        """Return the 95 % interval of the ratio over other queries, and the p of a neutral value.

        `bounds` are the smallest and largest possible ratio, and `resamples` and `seed` those of
        the bootstrap over queries.
        """
        has_weight = self.denominator > 0
        numerator, denominator = self.numerator[has_weight], self.denominator[has_weight]
        numerators, denominators = resampled_means(
            [numerator, denominator], resamples=resamples, seed=seed
        )
        residual = numerator - self.value * denominator
        # Scaling divides residuals by the sum of the denominators: they are parts of the ratio.
        influence = Influence.from_queries(residual, denominator).scaled(1.0)
        return infer(
            numerators / denominators,
            self.value,
            variance=influence.variance(),
            neutral=neutral,
            bounds=bounds,
        )
