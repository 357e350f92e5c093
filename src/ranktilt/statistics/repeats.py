"""Repeats of one engine: how much of an answer's error comes from its own randomness.

A *repeat* is one run of an engine over all queries; its answers differ from those of the last
repeat. The values of one measure form a table of Q queries × R repeats. The two-way analysis of
variance without replication splits their variance into three components, by mean squares (MS;
Searle, Casella & McCulloch, Variance Components, 1992, ch. 4):

    σ²_e = MS_residual
    σ²_r = (MS_repeats − MS_residual) / Q
    σ²_q = (MS_queries − MS_residual) / R

σ²_e is what another answer to the same query would change, σ²_r what another repeat would change in
all queries alike, and σ²_q what another query would change. An estimate below 0 means that the data
show no such variance. `RepeatAnova` does not replace it by 0, which would bias the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RepeatAnova:
    """Components of the variance of one value, over queries and over repeats."""

    queries: int
    """Number of queries."""
    repeats: int
    """Number of repeats of each query."""
    mean_square_queries: float
    """MS_queries, with Q − 1 degrees of freedom."""
    mean_square_repeats: float
    """MS_repeats, with R − 1 degrees of freedom."""
    mean_square_residual: float
    """MS_residual, with (Q − 1)(R − 1) degrees of freedom."""

    @property
    def query(self) -> float:
        """σ²_q, the variance of queries' true values; below 0 where the data show none."""
        return (self.mean_square_queries - self.mean_square_residual) / self.repeats

    @property
    def repeat(self) -> float:
        """σ²_r, the variance of the means of repeats; below 0 where the data show none."""
        return (self.mean_square_repeats - self.mean_square_residual) / self.queries

    @property
    def residual(self) -> float:
        """σ²_e, the variance of one answer to one query around that query's true value."""
        return self.mean_square_residual

    @property
    def p_of_repeats(self) -> float:
        """The p of an F test that all repeats have the same mean; 1 if no residual is left."""
        if self.mean_square_residual <= 0:
            return 1.0
        # Degrees of freedom of the two mean squares.
        between = self.repeats - 1
        within = between * (self.queries - 1)
        ratio = self.mean_square_repeats / self.mean_square_residual
        return float(special.fdtrc(between, within, ratio))


def repeat_anova(table: Floats) -> RepeatAnova | None:
    """Return the components of a table of the shape (n_queries, n_repeats).

    None with fewer than two queries or repeats: there is nothing to compare.
    """
    query_count, repeat_count = table.shape
    if query_count < 2 or repeat_count < 2:
        return None
    query_means, repeat_means = table.mean(axis=1), table.mean(axis=0)
    mean = table.mean()
    residual = table - query_means[:, None] - repeat_means[None, :] + mean
    squares_of_queries = float(repeat_count * ((query_means - mean) ** 2).sum())
    squares_of_repeats = float(query_count * ((repeat_means - mean) ** 2).sum())
    squares_of_residual = float((residual**2).sum())
    return RepeatAnova(
        queries=query_count,
        repeats=repeat_count,
        mean_square_queries=squares_of_queries / (query_count - 1),
        mean_square_repeats=squares_of_repeats / (repeat_count - 1),
        mean_square_residual=squares_of_residual / ((query_count - 1) * (repeat_count - 1)),
    )


def p_with_scaled_error(p: float, factor: float, effective_n: float) -> float:
    """Return the p of a value after its standard error is multiplied by a factor.

    The value itself stays the same. Both p are two-sided, by a t distribution with effective_n − 1
    degrees of freedom.
    """
    if factor <= 0:
        return 0.0 if p < 1 else 1.0
    freedom = effective_n - 1
    distance = -special.stdtrit(freedom, p / 2) / factor
    return float(2 * special.stdtr(freedom, -distance))
