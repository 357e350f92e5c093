"""Interval and p of an estimate: a percentile interval, stretched, and its inversion.

The bootstrap over queries gives an interval its shape, and the two-way variance its width. An
interval of level α misses the true value with probability α: the 95 % interval has α = .05. Each
end of the percentile interval is moved, so that it is

    √(V / V_q) · t(1 − α/2; G − 1) / z(1 − α/2)

times as far from the value. t and z are quantiles of the t and of the normal distribution. V, V_q
and G are `total`, `of_queries` and `effective_n` of a `TwoWayVariance`. The p is the level at which
the interval first excludes the neutral value, which favours nobody. So "p < .05" and "the 95 %
interval excludes the neutral value" are one statement.

If an estimate is near its smallest or largest possible value, as a share of .98 is, resamples vary
too little. Then the interval is at least as wide, and p at least as large, as the exact ones of a
share (`_near_bound`). docs/measures/statistics.md explains the rule to users.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.two_way import TwoWayVariance

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
"""Probability that an interval misses the true value."""
TAIL = 0.002
"""Smallest level α of an interval whose end is read from the order of the resamples.

For a smaller α, only a few resamples lie beyond the end, and the tail of a t distribution is used.
"""
FAR_SHARE = 0.25
"""Largest distance of an estimate from a bound that counts as near.

It is a share of the span, the distance between the two bounds of the estimate.
"""
FEW_VOTES = 5.0
"""Number of far votes from which resamples alone are enough.

An estimate near a bound is treated as a share of equal votes. The far votes are those for the side
that has nearly none: for a share of .97, the other .03 (`_near_bound`). With fewer, an interval
ends where the resamples do: with 1 far vote of 30, it missed the true value in 15 % of simulated
draws.
"""
ROUNDING = 1e-9
"""Largest difference that counts as rounding, relative to the size of an estimate."""


@dataclass(frozen=True, kw_only=True)
class Inference:
    """A 95 % interval, the standard error behind it, and the p of the neutral value."""

    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard deviation over other queries and documents."""
    p: float
    """p of the neutral value."""
    dropped: int = 0
    """Resamples in which the estimate was undefined."""


def infer(
    resampled: Floats,
    value: float,
    *,
    variance: TwoWayVariance,
    neutral: float,
    bounds: tuple[float, float],
) -> Inference:
    """Return the interval of an estimate and the p of `neutral`.

    Parameters
    ----------
    resampled : ndarray of float64, shape (n,)
        The estimate in resamples of the queries; NaN where it is undefined.
    value : float
        The estimate.
    variance : TwoWayVariance
        Its variance, in the squared unit of the estimate.
    neutral : float
        The value that favours nobody; NaN if it is unknown, and then p is NaN too.
    bounds : (float, float)
        Smallest and largest value that the estimate can have.

    Returns
    -------
    Inference
        NaN where the estimate is undefined, and where one query or one document carries all of it.
        Negating resamples, value, neutral and bounds negates and swaps the ends exactly.
    """
    defined = resampled[~np.isnan(resampled)]
    dropped = len(resampled) - len(defined)
    freedom = variance.effective_n - 1
    # `not freedom > 0` is true of NaN too, where nothing carries weight.
    if np.isnan(value) or not len(defined) or not freedom > 0:
        return Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan, dropped=dropped)
    ordered = np.sort(defined)
    spread = float(np.std(defined)) if ordered[0] != ordered[-1] else 0.0
    noise = _noise(value, neutral, bounds)
    if spread <= noise or variance.of_queries <= noise**2:
        return _without_spread(
            value, variance=variance, neutral=neutral, bounds=bounds, noise=noise, dropped=dropped
        )
    # The upper end is that of the negated resamples, negated again.
    lower = _End(ordered, value, variance)
    upper = _End(-ordered[::-1], -value, variance)
    low, high = np.clip([lower.at(lower.order_95), -upper.at(upper.order_95)], *bounds).tolist()
    # The bootstrap's standard deviation, widened by what documents add. Neither of the two
    # variances has the factor G/(G − 1).
    error = spread * float(np.sqrt(variance.of_both / variance.of_queries))
    end, end_neutral = (lower, neutral) if neutral < value else (upper, -neutral)
    p = 1.0 if neutral == value else end.p(end_neutral)
    p = np.nan if np.isnan(neutral) else p
    inference = Inference(low=low, high=high, error=error, p=p, dropped=dropped)
    return _near_bound(inference, value, variance=variance, neutral=neutral, bounds=bounds)


def student_p(value: float, *, variance: TwoWayVariance, neutral: float) -> float:
    """Return the p of `neutral` by Student's t; NaN where nothing varies.

    For a mean over queries, it is the p of the paired t test. For a very small p, as a correction
    for many tests needs it, it is more reliable than resamples of few queries.
    """
    freedom = variance.effective_n - 1
    if not (freedom > 0 and variance.total > 0):
        return np.nan
    t = abs(value - neutral) / float(np.sqrt(variance.total))
    return float(2 * special.stdtr(freedom, -t))


def _noise(value: float, neutral: float, bounds: tuple[float, float]) -> float:
    """Return the largest difference that rounding can make between two equal estimates."""
    lowest, highest = bounds
    span = highest - lowest if np.isfinite(highest - lowest) else 0.0
    # Unlike max(), fmax passes over NaN.
    return ROUNDING * float(np.fmax.reduce([abs(value), abs(neutral), span]))


class _End:
    """The lower end of an interval at any level α, from the order of the resamples.

    An `order` is the position of a resample, counted from the lowest one, from 1. `neutral` is the
    neutral value of the estimate.
    """

    def __init__(self, ordered: Floats, value: float, variance: TwoWayVariance) -> None:
        self.ordered = ordered
        self.value = value
        self.stretch = variance.stretch
        self.freedom = variance.effective_n - 1
        # The 95 % interval ends at this resample.
        self.order_95 = max(int(ALPHA / 2 * len(ordered)), 1)

    def level(self, order: int) -> float:
        """Return the level α of the interval that ends at the `order`-th resample."""
        return min(ALPHA * order / self.order_95, 1.0)

    def at(self, order: int) -> float:
        """Return the stretched end of the interval that ends at the `order`-th resample."""
        tail = self.level(order) / 2
        if tail >= 0.5:  # both quantiles are 0 here, and their ratio undefined
            return float(self.ordered[order - 1])
        # The quantile of the t distribution over that of the normal one.
        widening = float(special.stdtrit(self.freedom, 1 - tail) / special.ndtri(1 - tail))
        distance = float(self.ordered[order - 1] - self.value)
        return self.value + self.stretch * widening * distance

    def p(self, neutral: float) -> float:
        """Return the level at which the interval first excludes a neutral value below the estimate.

        The level is interpolated between the two resamples on both sides of the neutral value.
        """
        first = max(int(TAIL / ALPHA * self.order_95), 1)  # the order at the level TAIL
        if neutral < self.at(first):
            return self._p_beyond(neutral, first)
        # The ends rise with the order, up to the median, where the interval has no width.
        orders = range(first, len(self.ordered) // 2 + 1)
        crossing = bisect_left(orders, True, key=lambda order: self.at(order) > neutral)
        if crossing == len(orders):
            return 1.0
        below, above = self.at(orders[crossing - 1]), self.at(orders[crossing])
        share = (neutral - below) / (above - below)
        low, high = self.level(orders[crossing - 1]), self.level(orders[crossing])
        return low + share * (high - low)

    def _p_beyond(self, neutral: float, first: int) -> float:
        """Return p for a neutral value that is below the end at the order `first`.

        It is the tail of a t distribution whose scale fits the resample at this order.
        """
        quantile = float(special.ndtri(self.level(first) / 2))
        scale = (self.value - float(self.ordered[first - 1])) / -quantile
        if scale <= 0:  # fewer than `first` resamples lie below the value
            return self.level(first)
        t = (self.value - neutral) / (self.stretch * scale)
        return float(2 * special.stdtr(self.freedom, -t))


def _near_bound(
    inference: Inference,
    value: float,
    *,
    variance: TwoWayVariance,
    neutral: float,
    bounds: tuple[float, float],
) -> Inference:
    """Widen an interval if the estimate is near one of its bounds.

    Think of the estimate as a share of n equal votes. Near a bound, all but a few votes are on one
    side, and resamples of these votes cannot show how many more could be on the other, *far* side.
    n is chosen so that a share of n votes has the variance of the estimate (Korn and Graubard,
    Survey Methodology 24(2), 1998). The result is at least as wide as the exact interval of this
    share (Clopper and Pearson, Biometrika 26(4), 1934).

    For a share of .03 of the protected group, the far side is this group; for a share of .97, it is
    the other group. The variance here is `total`, with its factor G/(G − 1), as for the interval
    that is widened.
    """
    low, high = bounds
    span = high - low
    if not np.isfinite(span):
        return inference
    is_above = value - low > high - value
    far_share = (high - value if is_above else value - low) / span
    # A share f of n votes has the variance f(1 − f)/n, in the squared unit of the span.
    votes = far_share * (1 - far_share) * span**2 / variance.total
    far_votes = far_share * votes
    if far_share > FAR_SHARE or not 0 < far_votes < FEW_VOTES:
        return inference
    # The ends of the exact interval, as distances from the near bound.
    farthest = span * float(special.betaincinv(far_votes + 1, votes - far_votes, 1 - ALPHA / 2))
    nearest = span * float(special.betaincinv(far_votes, votes - far_votes + 1, ALPHA / 2))
    neutral_share = float(np.clip((high - neutral if is_above else neutral - low) / span, 0, 1))
    if neutral_share > far_share:
        # Clopper and Pearson: the probability of no more far votes than observed, at neutral.
        tail = special.betaincc(far_votes + 1, votes - far_votes, neutral_share)
    else:
        # The probability of at least as many far votes.
        tail = special.betainc(far_votes, votes - far_votes + 1, neutral_share)
    return replace(
        inference,
        low=min(inference.low, high - farthest if is_above else low + nearest),
        high=max(inference.high, high - nearest if is_above else low + farthest),
        p=max(inference.p, min(2 * float(tail), 1.0)),
    )


def _without_spread(
    value: float,
    *,
    variance: TwoWayVariance,
    neutral: float,
    bounds: tuple[float, float],
    noise: float,
    dropped: int,
) -> Inference:
    """Return interval and p of an estimate that is the same in every resample of the queries.

    `noise` is the largest difference that rounding can make; the other parameters are those of
    `infer`.
    """
    if variance.of_both > noise**2:  # queries agree, documents do not
        # As in `infer`, the error has no factor G/(G − 1); interval and p have it.
        error = float(np.sqrt(variance.of_both))
        freedom = variance.effective_n - 1
        half = float(np.sqrt(variance.total) * special.stdtrit(freedom, 1 - ALPHA / 2))
        p = student_p(value, variance=variance, neutral=neutral)
        low, high = np.clip([value - half, value + half], *bounds).tolist()
        return Inference(low=low, high=high, error=error, p=p, dropped=dropped)
    number = variance.effective_n
    lowest, highest = bounds
    is_lowest, is_highest = (abs(value - bound) <= noise for bound in bounds)
    is_between = lowest < neutral < highest
    if (is_lowest or is_highest) and np.isfinite(bounds).all() and is_between:
        # All of G votes are on one side. If that side's true share were below .025^(1/G), this
        # would have a probability of less than .025 (Clopper & Pearson 1934).
        smallest_share = (ALPHA / 2) ** (1 / number)
        span = highest - lowest
        share = (neutral - lowest) / span
        if is_highest:
            low, high = lowest + span * smallest_share, value
        else:
            low, high, share = value, highest - span * smallest_share, 1 - share
        p = min(2 * share**number, 1.0)
        return Inference(low=low, high=high, error=0.0, p=p, dropped=dropped)
    # All of G votes lie on one side of the neutral value, and no variance says how far from it. So
    # p is that of a sign test: each vote falls on either side with a probability of .5.
    p = 1.0 if abs(value - neutral) <= noise else min(2 * 0.5**number, 1.0)
    p = np.nan if np.isnan(neutral) else p
    return Inference(low=value, high=value, error=0.0, p=p, dropped=dropped)
