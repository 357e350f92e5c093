"""Confidence sequences: intervals that you may look at after every value, and act on.

A *look* is any moment at which you read the interval. `ConfidenceSequence` is an interval for the
mean over queries. `NewDocumentSequence` is an interval for the tilt: how far lists favour one of
two groups, where each document counts once. A sequential audit stops when both agree
(``docs/measures/statistics.md``, "Query after query").
"""

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
"""Number of candidate means from one bound to the other: every 2,000th part of their distance."""
_CAP = 0.75
"""Largest stake, as a share of the stake that could lose everything.

It is c in Waudby-Smith and Ramdas (2024), who suggest 1/2 or 3/4.
"""
_PRIOR_MEAN = 0.5
"""Mean that the stakes assume before the first value, between the bounds 0 and 1."""
_PRIOR_VARIANCE = 0.25
"""Variance that the stakes assume before the first value: the largest between 0 and 1."""
_ROUNDING_ERROR = 1e-12
"""Size below which a document's part of a sum is an exact 0 plus rounding errors."""


class ConfidenceSequence:
    """Interval for the mean of bounded values that contains it at all times, with 95 % probability.

    Two gamblers bet against every candidate mean, each with half a unit of money: one that the next
    value is higher, the other that it is lower. They know only the values before. A candidate is
    excluded for good once one of the two gamblers has 20 units. Against the true mean, nobody wins
    on average, and by Ville's inequality the probability that either ever has 20 units is at most
    5 %. So you may stop whenever you like, for whatever reason. Nothing is assumed about the
    distribution but its bounds.

    Source: the hedged capital process with predictable plug-in bets of Waudby-Smith and Ramdas,
    Estimating means of bounded random variables by betting, JRSS B 86 (2024), section 4.4.
    Values are scaled to 0 to 1. Candidates lie on a grid of 2,001 means, and the ends are one step
    further out. Without values, `low` and `high` are the bounds and `mean` is NaN.
    """

    def __init__(self, lowest: float, highest: float) -> None:
        if not -math.inf < lowest < highest < math.inf:
            raise UserError(
                f"a confidence sequence needs values with bounds, got {lowest} to {highest}"
            )
        self.lowest = lowest
        self.span = highest - lowest
        self.risk = 1 - CONFIDENCE
        self.low = lowest
        self.high = highest
        self.count = 0
        self._means = np.linspace(0.0, 1.0, _GRID)
        with np.errstate(divide="ignore"):
            self._largest_up_stakes = _CAP / self._means
            self._largest_down_stakes = _CAP / (1 - self._means)
        # Logarithms of each gambler's money, as a multiple of what it began with.
        self._log_growth_up = np.zeros(_GRID)
        self._log_growth_down = np.zeros(_GRID)
        self._total = 0.0
        self._squared_deviations = 0.0

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
        # The plug-in bet of the paper. Mean and variance are those of the values before, and of one
        # more value that stands for what is assumed before the first.
        variance = (_PRIOR_VARIANCE + self._squared_deviations) / number
        stake = math.sqrt(2 * math.log(2 / self.risk) / (variance * number * math.log1p(number)))
        up_stakes = np.minimum(stake, self._largest_up_stakes)
        down_stakes = np.minimum(stake, self._largest_down_stakes)
        self._log_growth_up += np.log1p(up_stakes * (scaled - self._means))
        self._log_growth_down += np.log1p(-down_stakes * (scaled - self._means))
        self.count = number
        self._total += scaled
        mean = (_PRIOR_MEAN + self._total) / (number + 1)
        self._squared_deviations += (scaled - mean) ** 2
        self._narrow()

    def _narrow(self) -> None:
        """Exclude the means against which one of the two gamblers has won enough."""
        largest_growth = np.maximum(self._log_growth_up, self._log_growth_down)
        # A gambler begins with 1/2, so 1 / risk is a growth of 2 / risk.
        possible = self._means[largest_growth < math.log(2 / self.risk)]
        # If even the last candidate is excluded, the ends stay where they were before.
        if len(possible):
            step = 1 / (_GRID - 1)
            low, high = possible[0] - step, possible[-1] + step
            self.low = max(self.low, self.lowest + self.span * max(low, 0.0))
            self.high = min(self.high, self.lowest + self.span * min(high, 1.0))


class NewDocumentSequence:
    """Confidence sequence for Share@k that uses each label once.

    Many queries may bring back the same document. Its label counts in the first list that uses it,
    and never again; so does the label of an origin, which is a document with all its rewrites. In
    each list, the documents on the first k ranks are compared with k documents from the ranks
    below, at even distances. If all documents have a twin in the other group, only the first ranks
    are read: then the groups are equally large in the collection.

    The interval is centred on a sum with one part for each new document: its label, 1 or −1, times
    its weight in Share@k. If labels mean nothing (drawn for each document, or exchanged within each
    origin by a coin), the labels of new documents are independent of the past. The weights depend
    on the lists alone. Those of a list add up to 0; with twins, the mean label is 0. So, given the
    past, each part has mean 0, and by Hoeffding's lemma exp(λ part − λ² weight²/2) has a mean of at
    most 1 for each λ. Take the product of these over all parts, and its mean over λ, normal with
    variance 1/c, where c is the sum of squares at the first look. With a probability of at least
    95 %, it never reaches 1/.05 (Robbins, Ann. Math. Stat. 41, 1970).

    Parameters
    ----------
    signs : ndarray of int8, shape (n_documents,)
        Label of each document of the collection: 1 in the first group, −1 in the second, else 0.
    origins : ndarray of int64, shape (n_documents,)
        Number of each document's origin, from 0.
    cutoff : int
        k, the number of first ranks.
    twins : bool
        Whether every document with a label has a twin in the other group.
    """

    def __init__(
        self, signs: npt.NDArray[np.int8], origins: Ints, cutoff: int, *, twins: bool
    ) -> None:
        self.twins = twins
        self._signs = signs
        self._origins = origins
        self._cutoff = cutoff
        self._is_used = np.zeros(int(origins.max(initial=-1)) + 1, dtype=bool)
        self._sum = 0.0
        self._sum_of_squares = 0.0
        self._first_sum_of_squares = 0.0
        # Number of lists. A list counts as a fraction if some of its documents are not new.
        self._list_count = 0.0

    @property
    def count(self) -> int:
        """Number of origins whose labels were used; without twins, every document is an origin."""
        return int(self._is_used.sum())

    def add(self, rows: Ints, within: Floats) -> None:
        """Add the list of the next query.

        Parameters
        ----------
        rows : ndarray of int64, shape (n,)
            Rows, in the collection, of the list's documents that have a label; best first.
        within : ndarray of float64, shape (n,)
            Probability that each of them is on the first k ranks: 1 or 0, or a number between them
            for documents that are tied at the cutoff.
        """
        if not within.any():
            return
        find_parts = self._twin_parts if self.twins else self._document_parts
        origin, parts, full_squares = find_parts(rows, within)
        squares = float((parts**2).sum())
        if squares <= _ROUNDING_ERROR:
            return
        self._is_used[origin[np.abs(parts) > _ROUNDING_ERROR]] = True
        self._sum += float(parts.sum())
        self._list_count += squares / full_squares
        # Documents of one origin may share a label. So they count as one part, of at most the sum
        # of their sizes.
        number = np.unique(origin, return_inverse=True)[1]
        self._sum_of_squares += float((np.bincount(number, np.abs(parts)) ** 2).sum())

    def interval(self) -> tuple[float, float]:
        """Return the lower and the upper end of the interval for the mean Share@k.

        They are −1 and 1 without a new document. The first call sets c (see the class), so call
        this at every look.
        """
        if not self._sum_of_squares:
            return -1.0, 1.0
        if not self._first_sum_of_squares:
            self._first_sum_of_squares = self._sum_of_squares
        first = self._first_sum_of_squares
        grown = self._sum_of_squares + first
        reach = math.sqrt(grown * (math.log(grown / first) - 2 * math.log(1 - CONFIDENCE)))
        low = (self._sum - reach) / self._list_count
        high = (self._sum + reach) / self._list_count
        return max(low, -1.0), min(high, 1.0)

    def _twin_parts(self, rows: Ints, within: Floats) -> tuple[Ints, Floats, float]:
        """Return the new origins of a list, their parts, and the sum of squares of all parts.

        A part is what an origin adds to Share@k. The sum of squares is over all origins of the
        list, also those that are not new.
        """
        origin, number = np.unique(self._origins[rows], return_inverse=True)
        # Half, because Share@k is (share of the first group − share of the second) / 2.
        parts = np.bincount(number, weights=within * self._signs[rows]) / (2 * within.sum())
        is_new = ~self._is_used[origin]
        return origin[is_new], parts[is_new], float((parts**2).sum())

    def _document_parts(self, rows: Ints, within: Floats) -> tuple[Ints, Floats, float]:
        """Return the origins of new documents, their parts, and the sum of squares of all parts.

        A part is what a document adds to Share@k. The sum of squares is over all documents that
        would be used if every document of the list were new.
        """
        first, below = np.flatnonzero(within > 0), np.flatnonzero(within == 0)
        below_count = min(self._cutoff, len(below))
        # Share@k is (mean label of the first ranks − mean label of the list) / 2. A document on
        # the first ranks is in both means, and a document below them in the second mean alone. Only
        # `below_count` of those below are used, so each of these weighs more.
        top_weights = (within[first] / within.sum() - 1 / len(rows)) / 2
        low_weight = len(below) / len(rows) / max(below_count, 1) / 2
        full_squares = float((top_weights**2).sum()) + below_count * low_weight**2
        below = below[~self._is_used[self._origins[rows[below]]]]
        if len(below) > below_count:
            below = below[np.arange(below_count) * len(below) // below_count]
        rows = rows[np.concatenate([first, below])]
        is_new = ~self._is_used[self._origins[rows]]
        weights = np.concatenate([top_weights, np.full(len(below), -low_weight)])[is_new]
        # If some documents are not new, the weights of the others need not add up to 0. Then a
        # larger group would get a tilt from its size alone; so their mean is subtracted.
        weights -= weights.mean() if len(weights) else 0.0
        return self._origins[rows[is_new]], weights * self._signs[rows[is_new]], full_squares
