"""Confidence sequences: intervals that may be looked at after every value or new document, and acted on."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CONFIDENCE = 0.95
_GRID = 2001
_CAP = 0.75
"""Most that is staked, as a share of what would lose everything."""
_NOTHING = 1e-12


class ConfidenceSequence:
    """Interval for the mean of bounded values that holds it at all times together, with a probability of 95 %.

    Against every candidate mean a gambler stakes on the values being higher, another on their being
    lower, each on what came before alone; a mean is excluded for good once one of the two has
    multiplied its half of the capital to 20 times the whole. Ville's inequality bounds the
    probability that this ever happens to the true mean, so that one may stop whenever one likes,
    for whatever reason. No distribution is assumed beside the bounds.

    Source: the hedged capital process with predictable plug-in bets of Waudby-Smith and Ramdas,
    Estimating means of bounded random variables by betting, JRSS B 86 (2024), section 4.4.
    Candidates lie on a grid of 2,001 means, and the ends are one step further out. Of no values,
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
        return self.lowest + self.span * self._total / self.count if self.count else math.nan

    def add(self, value: float) -> None:
        """Take the next value in; `UserError` if it lies beyond the bounds."""
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
        kept = np.flatnonzero(np.maximum(self._up, self._down) < math.log(2 / self.risk))
        if len(kept):
            step = 1 / (_GRID - 1)
            low, high = self._means[kept[0]] - step, self._means[kept[-1]] + step
            self.low = max(self.low, self.lowest + self.span * max(low, 0.0))
            self.high = min(self.high, self.lowest + self.span * min(high, 1.0))


class NewDocuments:
    """Interval for Share@k that uses each label once, however many queries bring a document back.

    Of each list it compares the documents on the first k ranks with k of those below, evenly
    spread; of twins only the first ranks, since half of them is level. An origin counts in the list
    that uses its label first, and never again.

    If labels mean nothing (drawn for each document, or exchanged within each origin by a coin),
    those of new documents are independent of the past. What they are multiplied with depends on
    lists alone and adds up to 0, or of twins the labels' mean is 0. So, given the past, each part
    of `_sum` has mean 0, and by Hoeffding's lemma exp(λ part − λ² variance/2) a mean of at most 1,
    for each λ. Mixed over λ normal with variance 1/c, such a product ever reaches 1/.05 with a
    probability of 5 % at most (Robbins, Ann. Math. Stat. 41, 1970); c is the variance at the first
    look.
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

    def add(self, rows: Ints, held: Floats) -> None:
        """Take a list in: its documents of either group, best first, and how much of each is on the first ranks."""
        if not held.any():
            return
        origin, parts, whole = (
            self._of_twins(rows, held) if self.twins else self._of_others(rows, held)
        )
        share = float((parts**2).sum())
        if share > _NOTHING:
            self._used[origin[np.abs(parts) > _NOTHING]] = True
            self._sum, self._weight = self._sum + float(parts.sum()), self._weight + share / whole
            # Documents of an origin may have their label in common, and then add up before they are
            # squared.
            self._variance += float(
                (np.bincount(np.unique(origin, return_inverse=True)[1], np.abs(parts)) ** 2).sum()
            )

    def interval(self) -> tuple[float, float]:
        """Ends for the value that whole lists would have; −1 and 1 before the first new document."""
        if not self._variance:
            return -1.0, 1.0
        self._first_variance = first = self._first_variance or self._variance
        grown = self._variance + first
        reach = math.sqrt(grown * (math.log(grown / first) - 2 * math.log(1 - CONFIDENCE)))
        return max((self._sum - reach) / self._weight, -1.0), min(
            (self._sum + reach) / self._weight, 1.0
        )

    def _of_twins(self, rows: Ints, held: Floats) -> tuple[Ints, Floats, float]:
        """New origins, what each adds to half the lead on the first ranks, and the variance were all origins new."""
        origin, at = np.unique(self._origin[rows], return_inverse=True)
        lead = np.bincount(at, weights=held * self._signs[rows]) / (2 * held.sum())
        new = ~self._used[origin]
        return origin[new], lead[new], float((lead**2).sum())

    def _of_others(self, rows: Ints, held: Floats) -> tuple[Ints, Floats, float]:
        """New documents' origins, what each adds to Share@k, and the variance were all documents new."""
        first, below = np.flatnonzero(held > 0), np.flatnonzero(held == 0)
        number = min(self._cutoff, len(below))
        top = (held[first] / held.sum() - 1 / len(rows)) / 2
        other = len(below) / len(rows) / max(number, 1) / 2
        whole = float((top**2).sum()) + number * other**2
        below = below[~self._used[self._origin[rows[below]]]]
        if len(below) > number:
            below = below[np.arange(number) * len(below) // number]
        rows = rows[np.concatenate([first, below])]
        new = ~self._used[self._origin[rows]]
        weights = np.concatenate([top, np.full(len(below), -other)])[new]
        # Less their mean: where few are new, they need not add up to 0, and unequal groups would
        # tilt the sum.
        weights -= weights.mean() if len(weights) else 0.0
        return self._origin[rows[new]], weights * self._signs[rows[new]], whole
