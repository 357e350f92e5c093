"""Wrong labels: corrected shares and gaps, and how uncertain error rates widen an interval.

A label says to which group a document belongs, and may be wrong. `Confusion` has a matrix M of how
often documents of each group g get each label l: M[l, g] = P(label l | group g). Shares by label
are M times shares by group, so the inverse of M turns shares by label into shares by group.

With two groups, this is the correction of Rogan and Gladen (American Journal of Epidemiology
107(1), 1978). Sensitivity and specificity are the shares of right labels in the two groups. With

    J = sensitivity + specificity − 1

a share is (observed share + specificity − 1)/J, and a gap between two shares is T_obs/J, where
T_obs is the observed gap. J is the determinant of M: 1 without errors, 0 for random labels.

Error rates come from a sample of checked documents, so they are uncertain themselves. The variance
of a corrected gap is

    Var = V(T_obs)/J² + T_obs² · Var(J)/J⁴

If J is less than four of its standard errors above 0, Fieller's interval of a ratio is used instead
(Journal of the Royal Statistical Society B 16(2), 1954), which need not be symmetric. In variances,
a rate of x in n documents counts as (x + ½)/(n + 1). Otherwise a rate of 0 among few checked
documents would have no error at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
FEWEST_ERRORS = 2.0
"""Smallest `Confusion.strength` for a correction; below it, Fieller's interval has no ends."""
FIELLER_BELOW = 4.0
"""`Confusion.strength` below which Fieller's interval is used."""
_USELESS = 1e-9
"""J up to which labels count as no better than chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Confusion:
    """How often documents of each group get each label."""

    rates: Floats
    """M: share of each group's documents with each label, shape (n_labels, n_groups).

    Each column sums to 1. There are as many labels as groups, in the same order.
    """
    checked: Floats
    """Number of checked documents of each group; infinite if its rates are known exactly."""

    @classmethod
    def from_counts(cls, counts: Floats) -> Confusion:
        """Return the confusion of a checked sample.

        `counts` has the number of documents by label and true group, shape (n_labels, n_groups).
        """
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
        """Return the confusion of two groups, the positive one first.

        `false_positive` is the share of negative documents with the positive label, and
        `false_negative` the reverse. `checked_negative` and `checked_positive` are the numbers of
        documents from which these rates come; infinite if the rates are known exactly.
        """
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
        """Inverse of M, shape (n_groups, n_labels): from shares by label to shares by group."""
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
        """J divided by its standard error; infinite if the rates are known exactly."""
        error = self.information_error
        return self.information / error if error > 0 else np.inf

    def error_parts(self, weights: Floats, totals: Floats) -> Floats:
        """Return what each source of uncertainty of the rates adds to a corrected value.

        The squares of the parts sum to the variance that uncertain rates add. If two values were
        corrected with the same rates, the parts of their difference are the differences of their
        parts: common errors cancel.

        Parameters
        ----------
        weights : ndarray of float64, shape (n_groups,)
            The value is a sum of the groups' shares with these weights: 1 and −1 for the difference
            of two.
        totals : ndarray of float64, shape (n_labels,)
            Shares by label, minus the shares at which the value would be neutral.
        """
        # The derivative of weights · M⁻¹ · totals by a rate of group g and label l is
        # −(weights · M⁻¹)[l] · (M⁻¹ · totals)[g].
        label_weights = weights @ self.inverse
        group_totals = self.inverse @ totals
        parts = [
            -group_totals[group] * (self._root(group).T @ label_weights)
            for group in range(self.size)
        ]
        # + 0.0 turns −0.0 into 0.0, which would be printed with its sign.
        return np.concatenate(parts) + 0.0

    def _root(self, group: int) -> Floats:
        """Return a matrix R with R·Rᵀ the covariance of a group's rates, shape (labels, labels)."""
        checked = self.checked[group]
        if np.isinf(checked):
            return np.zeros((self.size, self.size))
        counts = self.rates[:, group] * checked
        # (x + ½)/(n + 1) with two labels: half a document is added to each label.
        smoothed = (counts + 0.5) / (checked + self.size / 2)
        root = np.sqrt(smoothed)
        covariance_root = np.diag(root) - np.outer(smoothed, root)
        return np.asarray(covariance_root / np.sqrt(checked), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A distance from the neutral value, with its interval, error and p."""

    value: float
    """The distance."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    error: float
    """Standard error."""
    p: float
    """p if the true distance is 0."""


def gap_with_rate_error(gap: Gap, rate_error: float) -> Gap:
    """Return the gap with an interval and a p that include the error of uncertain rates.

    `rate_error` is the standard error that uncertain rates add to the gap.

    The lower and the upper half of the interval are widened separately: the squares of the
    half-width and of 1.96 rate errors add up. So an interval that is not symmetric stays so. The p
    is the level at which the widened interval first excludes 0.
    """
    if np.isnan(rate_error):
        return replace(gap, low=np.nan, high=np.nan, error=np.nan, p=np.nan)
    if rate_error == 0:
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
    """Return the p of a gap after the error of uncertain rates is added to its own.

    With a half-width of h(z) at the level of z standard errors of a normal distribution, the level
    sought is that at which h² + (z · rate error)² is the value². h is known at two levels: at .05,
    and at the gap's p, where it reaches 0. Between them h² is interpolated over z², which is exact
    if h is proportional to z.
    """
    if not 0 < gap.p < 1 or gap.value == 0:
        return gap.p
    value2, rate2 = gap.value**2, rate_error**2
    nearest_end = gap.low if gap.value > 0 else gap.high
    z2_95, half2_95 = special.ndtri(0.975) ** 2, (gap.value - nearest_end) ** 2
    z2_of_p = special.ndtri(gap.p / 2) ** 2
    excess = value2 - half2_95 - z2_95 * rate2  # above 0 if the widened 95 % interval excludes 0
    # Without an interval, and if p is above .05, only the gap's own level is known.
    has_two_levels = z2_of_p > z2_95 and np.isfinite(half2_95)
    if has_two_levels and excess > 0:
        slope = (value2 - half2_95) / (z2_of_p - z2_95)
        z2 = z2_95 + excess / (slope + rate2)
    else:
        # Towards 0, h² is proportional to z².
        variance = half2_95 / z2_95 if has_two_levels else value2 / z2_of_p
        z2 = value2 / (variance + rate2)
    return float(2 * special.ndtr(-np.sqrt(z2)))


def fieller(gap: Gap, relative_error: float) -> Gap:
    """Return the gap with Fieller's interval, for a J with a large error relative to itself.

    The interval excludes 0 exactly if that of the observed gap does, so p stays the same.

    Parameters
    ----------
    gap : Gap
        The gap divided by J, with the interval that it has if J is known.
    relative_error : float
        Standard error of J divided by J; it must be below 1/1.96, or there is no interval.
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
    """How much more often labels must err in the first ranks than below to explain a gap away.

    Both are differences of error rates, from 0 to 1. Above 1, no such difference is possible.
    """

    one_kind: float
    """Difference that is needed if only one group is mistaken for the other."""
    both_kinds: float
    """Difference that is needed if one group is mistaken more often, and the other less often."""


def explaining_difference(nearest: float, share: float) -> ErrorDifference:
    """Return the difference of error rates that would move a share's interval to the neutral value.

    Let a group have the share s of the first ranks, and let the error rate in the first ranks be
    larger than in the rest by d. If this group is mistaken for the other, its share falls by s·d.
    If the other group is mistaken for it, its share rises by (1 − s)·d.

    Parameters
    ----------
    nearest : float
        Distance from the neutral value to the nearer end of the interval, as a share from 0 to 1.
    share : float
        The share of one of the groups, whichever, in the first ranks.
    """
    larger = max(share, 1 - share)
    return ErrorDifference(one_kind=abs(nearest) / larger, both_kinds=abs(nearest))
