"""A confidence sequence: an interval for a mean that may be looked at after every value, and acted on."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.95
_GRID = 2001
_CAP = 0.75
"""Most that is staked, as a share of what would lose everything."""


class ConfidenceSequence:
    """Interval for the mean of bounded values that holds it at all times together, with probability `confidence`.

    Against every candidate mean a gambler stakes on the values being higher, another on their being lower, each on what
    came before alone; a mean is excluded for good once one of the two has multiplied its half of the capital to 1/(1 −
    confidence) of the whole. Ville's inequality bounds the probability that this ever happens to the true mean, so that
    one may stop whenever one likes, for whatever reason. No distribution is assumed beside the bounds.

    Source: the hedged capital process with predictable plug-in bets of Waudby-Smith and Ramdas, Estimating means of
    bounded random variables by betting, JRSS B 86 (2024), section 4.4. Candidates lie on a grid of 2,001 means, and the
    ends are one step further out. Of no values, `low` and `high` are the bounds and `mean` is NaN.
    """

    def __init__(self, lowest: float, highest: float, *, confidence: float = CONFIDENCE) -> None:
        if not -math.inf < lowest < highest < math.inf:
            raise UserError(f"a confidence sequence needs values with bounds, got {lowest} to {highest}")
        if not 0 < confidence < 1:
            raise UserError(f"expected a confidence between 0 and 1, got {confidence}")
        self.lowest, self.span, self.risk = lowest, highest - lowest, 1 - confidence
        self.low, self.high, self.count = lowest, highest, 0
        self._means = np.linspace(0.0, 1.0, _GRID)
        with np.errstate(divide="ignore"):
            self._most_up, self._most_down = _CAP / self._means, _CAP / (1 - self._means)
        self._up, self._down = np.zeros(_GRID), np.zeros(_GRID)
        self._total = self._spread = 0.0

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return self.lowest + self.span * self._total / self.count if self.count else math.nan

    def add(self, value: float) -> None:
        """Take the next value in; `UserError` if it lies beyond the bounds."""
        scaled = (value - self.lowest) / self.span
        if not -1e-9 <= scaled <= 1 + 1e-9:
            raise UserError(f"expected values from {self.lowest} to {self.lowest + self.span}, got {value}")
        scaled = min(max(scaled, 0.0), 1.0)
        number = self.count + 1
        variance = (0.25 + self._spread) / number
        stake = math.sqrt(2 * math.log(2 / self.risk) / (variance * number * math.log1p(number)))
        self._up += np.log1p(np.minimum(stake, self._most_up) * (scaled - self._means))
        self._down += np.log1p(-np.minimum(stake, self._most_down) * (scaled - self._means))
        self.count, self._total = number, self._total + scaled
        self._spread += (scaled - (0.5 + self._total) / (number + 1)) ** 2
        self._narrow()

    def _narrow(self) -> None:
        """Exclude the means whose gamblers have won enough."""
        kept = np.flatnonzero(np.maximum(self._up, self._down) < math.log(2 / self.risk))
        if len(kept):
            step = 1 / (_GRID - 1)
            low, high = self._means[kept[0]] - step, self._means[kept[-1]] + step
            self.low = max(self.low, self.lowest + self.span * max(low, 0.0))
            self.high = min(self.high, self.lowest + self.span * min(high, 1.0))
