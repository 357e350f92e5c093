"""Confidence sequences: intervals that you may look at after every value, and act on."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CONFIDENCE = 0.95
"""Probability that the sequence holds the true value at every look."""
_GRID = 2001
"""Number of candidate means between the bounds."""
_CAP = 0.75
"""Largest stake, as a share of the stake that could lose everything."""
_ROUNDING = 1e-12
"""Size below which a part of the sum is rounding."""


class ConfidenceSequence:
    """Interval for the mean of bounded values that contains it at all times, with 95 % probability.

    Against every candidate mean a gambler stakes on higher values and another one on lower values,
    both knowing only the values before. A mean is excluded for good once one of the two has
    multiplied its half of the capital to 20 times all of it. Ville's inequality bounds the
    probability that this ever happens to the true mean, so you may stop whenever you like, for
    whatever reason. Nothing is assumed about the distribution but its bounds.

    Source: the hedged capital process with predictable plug-in bets of Waudby-Smith and Ramdas,
    Estimating means of bounded random variables by betting, JRSS B 86 (2024), section 4.4.
    Candidates lie on a grid of 2,001 means, and the ends are one step further out. Without values,
    `low` and `high` are the bounds and `mean` is NaN.
    """

    def __init__(self, lowest: float, highest: float) -> None:
        if not -math.inf < lowest < highest < math.inf:
            raise UserError(
                f"a confidence sequence needs values with bounds, got {lowest} to {highest}"
            )
        self.lowest, self.span, self.risk = lowest, highest - lowest, 1 - CONFIDENCE
        self.low, self.high, self.count = lowest, highest, 0
        self._means = np.linspace(0.0, 1.0, _GRID)
        with np.errstate(divide="ignore"):
            self._most_up, self._most_down = _CAP / self._means, _CAP / (1 - self._means)
        self._up, self._down = np.zeros(_GRID), np.zeros(_GRID)
        self._total = self._spread = 0.0

    @property
    def mean(self) -> float:
        """Mean of the values so far."""
        return self.lowest + self.span * self._total / self.count if self.count else math.nan

    def add(self, value: float) -> None:
        """Add the next value; `UserError` if it lies beyond the bounds."""
        scaled = (value - self.lowest) / self.span
        if not -1e-9 <= scaled <= 1 + 1e-9:
            raise UserError(
                f"expected values from {self.lowest} to {self.lowest + self.span}, got {value}"
            )
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
        is_possible = np.maximum(self._up, self._down) < math.log(2 / self.risk)
        possible = self._means[is_possible]
        if len(possible):
            step = 1 / (_GRID - 1)
            low, high = possible[0] - step, possible[-1] + step
            self.low = max(self.low, self.lowest + self.span * max(low, 0.0))
            self.high = min(self.high, self.lowest + self.span * min(high, 1.0))


class NewDocuments:
    """Interval for Share@k that uses each label once, however many queries bring a document back.

    In each list it compares the documents on the first k ranks with k documents below them, evenly
    spread; with twins it reads only the first ranks, since half of them is level. An origin counts
    in the list that uses its label first, and never again.

    If labels mean nothing (drawn for each document, or exchanged within each origin by a coin),
    the labels of new documents are independent of the past. Their factors depend on lists alone and
    add up to 0; with twins the labels' mean is 0. So, given the past, each part of `_sum` has mean
    0, and by Hoeffding's lemma exp(λ part − λ² variance/2) has a mean of at most 1, for each λ.
    Mixed over λ normal with variance 1/c, such a product ever reaches 1/.05 with a probability of
    5 % at most (Robbins, Ann. Math. Stat. 41, 1970); c is the variance at the first look.
    """

    def __init__(
        self, signs: npt.NDArray[np.int8], origins: Ints, cutoff: int, *, twins: bool
    ) -> None:
        self._signs, self._origin, self._cutoff, self.twins = signs, origins, cutoff, twins
        self._used = np.zeros(int(self._origin.max(initial=-1)) + 1, dtype=bool)
        self._sum = self._variance = self._weight = self._first_variance = 0.0

    @property
    def count(self) -> int:
        """Origins whose labels were used; documents, where none are twins."""
        return int(self._used.sum())

    def add(self, rows: Ints, within: Floats) -> None:
        """Add a list: its documents of either group, best first.

        `within` is how much of each document is on the first ranks, 0 to 1.
        """
        if not within.any():
            return
        find_parts = self._twin_parts if self.twins else self._document_parts
        origin, parts, full_variance = find_parts(rows, within)
        variance = float((parts**2).sum())
        if variance <= _ROUNDING:
            return
        self._used[origin[np.abs(parts) > _ROUNDING]] = True
        self._sum += float(parts.sum())
        self._weight += variance / full_variance
        # Documents of an origin may share their label, and then add up before they are squared.
        number = np.unique(origin, return_inverse=True)[1]
        self._variance += float((np.bincount(number, np.abs(parts)) ** 2).sum())

    def interval(self) -> tuple[float, float]:
        """Return the ends for the value of lists with all their documents.

        −1 and 1 before the first new document.
        """
        if not self._variance:
            return -1.0, 1.0
        self._first_variance = first = self._first_variance or self._variance
        grown = self._variance + first
        reach = math.sqrt(grown * (math.log(grown / first) - 2 * math.log(1 - CONFIDENCE)))
        low = (self._sum - reach) / self._weight
        high = (self._sum + reach) / self._weight
        return max(low, -1.0), min(high, 1.0)

    def _twin_parts(self, rows: Ints, within: Floats) -> tuple[Ints, Floats, float]:
        """Return new origins, and what each adds to half the lead on the first ranks.

        The third value is the variance if all origins were new.
        """
        origin, number = np.unique(self._origin[rows], return_inverse=True)
        lead = np.bincount(number, weights=within * self._signs[rows]) / (2 * within.sum())
        is_new = ~self._used[origin]
        return origin[is_new], lead[is_new], float((lead**2).sum())

    def _document_parts(self, rows: Ints, within: Floats) -> tuple[Ints, Floats, float]:
        """Return the origins of new documents, and what each document adds to Share@k.

        The third value is the variance if all documents were new.
        """
        first, below = np.flatnonzero(within > 0), np.flatnonzero(within == 0)
        number = min(self._cutoff, len(below))
        top_weights = (within[first] / within.sum() - 1 / len(rows)) / 2
        low_weight = len(below) / len(rows) / max(number, 1) / 2
        full_variance = float((top_weights**2).sum()) + number * low_weight**2
        below = below[~self._used[self._origin[rows[below]]]]
        if len(below) > number:
            below = below[np.arange(number) * len(below) // number]
        rows = rows[np.concatenate([first, below])]
        is_new = ~self._used[self._origin[rows]]
        weights = np.concatenate([top_weights, np.full(len(below), -low_weight)])[is_new]
        # Less their mean: where few are new, they need not add up to 0, and unequal groups would
        # tilt the sum.
        weights -= weights.mean() if len(weights) else 0.0
        return self._origin[rows[is_new]], weights * self._signs[rows[is_new]], full_variance
