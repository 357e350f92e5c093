"""Labels that err: corrected shares and gaps, and how uncertain error rates widen an interval.

`Confusion` holds how often documents of each group get each label: M[l, g] = P(label l | group g).
Shares by label are M times shares by group, so its inverse corrects them. For two groups this is
Rogan and Gladen (American Journal of Epidemiology 107(1), 1978): with J = sensitivity + specificity
− 1 a share is (observed + specificity − 1)/J, and a gap T_obs/J. J is the determinant of M.

Rates from a sample of checked documents are uncertain themselves. For one J, with a gap T_obs,

    Var = V(T_obs)/J² + T_obs² · Var(J)/J⁴

and where J is less than four of its errors, Fieller's interval of a ratio is used instead (Journal
of the Royal Statistical Society B 16(2), 1954), which need not be symmetric. In variances a rate of
x in n enters as (x + ½)/(n + 1), so that no error in few documents does not count as certainty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
FEWEST_ERRORS = 2.0
"""Errors that J lies above 0 below which no interval is bounded, so that nothing is corrected."""
FIELLER_BELOW = 4.0
"""Errors that J lies above 0 below which the interval is Fieller's."""
_USELESS = 1e-9
"""Determinant up to which labels say nothing about groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Confusion:
    """How often documents of each group get each label."""

    rates: Floats
    """Shape (labels, groups); each column sums to 1."""
    checked: Floats
    """Number of checked documents of each group; infinite where its rates are known exactly."""

    @classmethod
    def from_counts(cls, counts: Floats) -> Confusion:
        """Return the confusion of a checked sample: documents by label and true group."""
        checked = counts.sum(axis=0)
        return cls(rates=counts / checked, checked=checked)

    @classmethod
    def from_rates(
        cls,
        *,
        false_positive: float,
        false_negative: float,
        checked_negative: float = np.inf,
        checked_positive: float = np.inf,
    ) -> Confusion:
        """Return the confusion of two groups, the positive one first."""
        rates = np.array(
            [[1 - false_negative, false_positive], [false_negative, 1 - false_positive]]
        )
        return cls(rates=rates, checked=np.array([checked_positive, checked_negative]))

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.checked)

    @property
    def information(self) -> float:
        """J, the determinant: 1 for labels without errors, 0 for labels that say nothing."""
        return float(np.linalg.det(self.rates))

    @property
    def says_nothing(self) -> bool:
        """Whether labels go with groups no better than chance."""
        return self.information <= _USELESS

    @property
    def inverse(self) -> Floats:
        """What a document with each label counts for each group, shape (groups, labels)."""
        return np.asarray(np.linalg.inv(self.rates), dtype=np.float64)

    @property
    def information_error(self) -> float:
        """Standard error of J."""
        # The derivative of a determinant is the determinant times the transposed inverse.
        gradient = self.information * self.inverse.T
        columns = [self._root(group).T @ gradient[:, group] for group in range(self.size)]
        return float(np.linalg.norm(np.concatenate(columns)))

    @property
    def strength(self) -> float:
        """Number of its standard errors that J lies above 0; infinite where rates are known."""
        error = self.information_error
        return self.information / error if error > 0 else np.inf

    def error_parts(self, weights: Floats, totals: Floats) -> Floats:
        """Return what each source of uncertainty of the rates adds to a corrected answer.

        Their squares sum to the variance that uncertain rates add. Of a difference of two answers
        under the same rates, the parts are the difference of both answers' parts.

        Parameters
        ----------
        weights : ndarray of float64, shape (groups,)
            What a share of each group counts in the answer: 1 and −1 for a difference of two.
        totals : ndarray of float64, shape (labels,)
            Shares by label, minus those that are neutral.
        """
        of_labels = weights @ self.inverse
        of_groups = self.inverse @ totals
        parts = [
            -of_groups[group] * (self._root(group).T @ of_labels) for group in range(self.size)
        ]
        # A turned sign of 0 would be printed with its sign.
        return np.concatenate(parts) + 0.0

    def _root(self, group: int) -> Floats:
        """Return a matrix R with R·Rᵀ the covariance of a group's rates, shape (labels, labels)."""
        checked = self.checked[group]
        if np.isinf(checked):
            return np.zeros((self.size, self.size))
        counts = self.rates[:, group] * checked
        smoothed = (counts + 0.5) / (checked + self.size / 2)
        root = np.sqrt(smoothed)
        covariance_root = np.diag(root) - np.outer(smoothed, root)
        return np.asarray(covariance_root / np.sqrt(checked), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A corrected distance from neutral, with its interval, error and p."""

    value: float
    low: float
    high: float
    error: float
    p: float


def widened(gap: Gap, rate_error: float) -> Gap:
    """Return a gap whose interval and p hold the error of uncertain rates too.

    The variances add up on either side of the value, so that an interval keeps its shape. The p is
    that of the widened interval: the level at which it first excludes 0.
    """
    if not rate_error > 0:
        return gap
    quantile = float(special.ndtri(0.975))
    below, above = (
        float(np.hypot(half, quantile * rate_error))
        for half in (gap.value - gap.low, gap.high - gap.value)
    )
    return replace(
        gap,
        low=gap.value - below,
        high=gap.value + above,
        error=float(np.hypot(gap.error, rate_error)),
        p=_widened_p(gap, rate_error),
    )


def _widened_p(gap: Gap, rate_error: float) -> float:
    if not 0 < gap.p < 1 or gap.value == 0:
        return gap.p
    # An interval that first excludes 0 at z errors has the error |value| / z.
    sampling_error = abs(gap.value) / float(-special.ndtri(gap.p / 2))
    return float(2 * special.ndtr(-abs(gap.value) / np.hypot(sampling_error, rate_error)))


def fieller(gap: Gap, relative_error: float) -> Gap:
    """Return a gap with Fieller's interval, where J has a large error relative to itself.

    The interval excludes 0 exactly where that of the observed gap does, so p stays.

    Parameters
    ----------
    gap : Gap
        The gap divided by J, with the interval that it has if J is known.
    relative_error : float
        SE(J)/J, below 1/1.96.
    """
    reach = float(special.ndtri(0.975)) * relative_error
    shrinkage = 1 - reach**2
    below, above = (
        float(np.sqrt((gap.value * reach) ** 2 + half**2 * shrinkage))
        for half in (gap.value - gap.low, gap.high - gap.value)
    )
    return replace(
        gap,
        low=(gap.value - below) / shrinkage,
        high=(gap.value + above) / shrinkage,
        error=float(np.hypot(gap.error, gap.value * relative_error)),
    )


@dataclass(frozen=True, kw_only=True)
class ErrorDifference:
    """How much more often labels must err in the first ranks than below to explain a gap away."""

    one_kind: float
    """Where one group alone is mistaken for the other; from 0 to 1, above 1 where none would do."""
    both_kinds: float
    """Where one group is mistaken more often, and the other as much less often."""


def explaining_difference(nearest: float, share: float) -> ErrorDifference:
    """Return the difference of error rates that moves the end of a share's interval to neutral.

    With a share s of one group in the first ranks, rates that differ by d between the first ranks
    and the list move the share by s·d where this group is mistaken for the other, and by (1 − s)·d
    where the other is.

    Parameters
    ----------
    nearest : float
        Distance of the end of the interval that lies nearest to neutral, as a share from 0 to 1.
    share : float
        The share of either group in the first ranks.
    """
    larger = max(share, 1 - share)
    return ErrorDifference(one_kind=abs(nearest) / larger, both_kinds=abs(nearest))
