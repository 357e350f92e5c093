"""What a sequential audit learns from documents that no earlier query has used."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.confidence_sequence import CONFIDENCE

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_NOTHING = 1e-12


class NewDocuments:
    """Interval for Share@k that uses each label once, however many queries bring a document back.

    Of each list it compares the documents on the first k ranks with k of those below, evenly spread; of twins only the
    first ranks, since half of them is level. An origin counts in the list that uses its label first, and never again.

    If labels mean nothing (drawn for each document, or exchanged within each origin by a coin), those of new documents
    are independent of the past. What they are multiplied with depends on lists alone and adds up to 0, or of twins the
    labels' mean is 0. So, given the past, each part of `_sum` has mean 0, and by Hoeffding's lemma exp(λ part −
    λ² variance/2) a mean of at most 1, for each λ. Mixed over λ normal with variance 1/c, such a product ever reaches
    1/.05 with a probability of 5 % at most (Robbins, Ann. Math. Stat. 41, 1970); c is the variance at the first look.
    """

    def __init__(self, signs: npt.NDArray[np.int8], origins: Ints, cutoff: int, *, twins: bool) -> None:
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
        origin, parts, whole = self._of_twins(rows, held) if self.twins else self._of_others(rows, held)
        share = float((parts**2).sum())
        if share > _NOTHING:
            self._used[origin[np.abs(parts) > _NOTHING]] = True
            self._sum, self._weight = self._sum + float(parts.sum()), self._weight + share / whole
            # Documents of an origin may have their label in common, and then add up before they are squared.
            self._variance += float((np.bincount(np.unique(origin, return_inverse=True)[1], np.abs(parts)) ** 2).sum())

    def interval(self) -> tuple[float, float]:
        """Ends for the value that whole lists would have; −1 and 1 before the first new document."""
        if not self._variance:
            return -1.0, 1.0
        self._first_variance = first = self._first_variance or self._variance
        grown = self._variance + first
        reach = math.sqrt(grown * (math.log(grown / first) - 2 * math.log(1 - CONFIDENCE)))
        return max((self._sum - reach) / self._weight, -1.0), min((self._sum + reach) / self._weight, 1.0)

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
        # Less their mean: where few are new, they need not add up to 0, and unequal groups would tilt the sum.
        weights -= weights.mean() if len(weights) else 0.0
        return self._origin[rows[new]], weights * self._signs[rows[new]], whole
