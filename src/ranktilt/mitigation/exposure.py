"""Re-ranking under a constraint of exposure (Singh & Joachims, KDD 2018): two orders of a list, and their odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_MARGIN = 1e-9


@dataclass(frozen=True)
class Mixture:
    """Places of the first side's documents in two orders of a list, of which one is drawn."""

    fewer: Ints
    """Places (rising, from 0) in the order that gives the first side less exposure."""
    more: Ints
    """Places in the other one."""
    odds: float
    """Probability of the latter."""
    ratio: float
    """Expected exposure per document of the first side, over that of the others."""
    dcg: float
    """Expected DCG of the scores over that of the order by score; the lowest score of the list counts as 0."""
    short: bool
    """Whether no order reaches the target; both orders are then the one with the first side before the others."""


def expected_exposure(first: Bools, scores: Floats, weights: Floats) -> tuple[float, float]:
    """Mean exposure of a document of the first side and of the others; tied documents share their block's ranks."""
    starts = np.append(0, np.flatnonzero(np.diff(scores)) + 1)
    sizes = np.diff(np.append(starts, len(scores)))
    shared = np.repeat(np.add.reduceat(weights, starts) / sizes, sizes)
    return float(shared[first].mean()), float(shared[~first].mean())


def exposure_mixture(first: Bools, scores: Floats, weights: Floats, target: float) -> Mixture | None:
    """Orders that maximise a list's expected DCG while the first side's exposure is `target` times the others'.

    The program over doubly stochastic matrices has one constraint beside those of an assignment, so its optimum is a
    mixture of two orders that both maximise the Lagrangian: each is the order by score when the first side's scores are
    raised by one amount, at which the constraint begins to hold; they differ in who wins the ties. None where the list
    is at the target as it is, or of one side alone.

    Parameters
    ----------
    first : ndarray of bool, shape (n,)
        Which documents are of the first side.
    scores : ndarray of float64, shape (n,)
        Falling.
    weights : ndarray of float64, shape (n,)
        Exposure of each place, falling.
    target : float
        Exposure per document of the first side over that of the others, 0 or more.
    """
    n, n_first = len(first), int(first.sum())
    if not 0 < n_first < n:
        return None
    one, other = expected_exposure(first, scores, weights)
    if one >= target * other * (1 - _MARGIN):
        return None
    mine, others, total = scores[first], -scores[~first], weights.sum()

    def positions(raised: float, *, wins: bool) -> Ints:
        """Places of the first side, raised so much, when it wins ties or loses them."""
        found: Ints = np.searchsorted(others, -(mine + raised), side="left" if wins else "right")
        return found + np.arange(n_first)

    def lead(held: Ints) -> float:
        """Exposure of the first side less the target times the others'."""
        got = weights[held].sum()
        return float(got / n_first - target * (total - got) / (n - n_first))

    def gained(held: Ints) -> float:
        """DCG, the lowest score of the list counted as 0."""
        kept = np.delete(weights, held)
        return float((mine - scores[-1]) @ weights[held] + (-others - scores[-1]) @ kept)

    low, high = 0.0, 2 * float(scores[0] - scores[-1])
    most = np.arange(n_first)
    if short := lead(most) < 0:
        fewer = more = most
    elif lead(positions(low, wins=True)) >= 0:
        fewer, more = positions(low, wins=False), positions(low, wins=True)
    else:
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if lead(positions(middle, wins=True)) >= 0 else (middle, high)
        fewer, more = positions(low, wins=True), positions(high, wins=True)
    under, over = lead(fewer), lead(more)
    odds = 1.0 if short else -under / (over - under)
    got = float((1 - odds) * weights[fewer].sum() + odds * weights[more].sum())
    ratio = got / n_first * (n - n_first) / (total - got)
    dcg, best = ((1 - odds) * gained(fewer) + odds * gained(more)), float((scores - scores[-1]) @ weights)
    return Mixture(fewer, more, odds, ratio, dcg / best if best > 0 else 1.0, short)
