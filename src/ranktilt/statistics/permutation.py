"""Permutation tests, which flip signs, or exchange or shuffle labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, blocks, dots

Floats = npt.NDArray[np.float64]
ENUMERATED = 16
"""Most queries whose sign vectors are all tried; of more queries they are drawn."""
_ONE_BY_ONE = 256
"""Largest totals whose labels are exchanged one by one: how many."""
_EPSILON = 1e-12
"""Difference below which two statistics are equal but for roundoff."""


def sign_flip_p(difference: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Test a mean difference of 0, two-sided, by flipping the signs of paired differences.

    ``(1 + #{|T*| ≥ |T| − 1e-12})/(1 + resamples)``; for up to 16 queries the exact share of all 2^n
    sign vectors, without the +1. 1 where all differences are 0; NaN without a query.
    """
    return sign_flip_ps([difference], resamples=resamples, seed=seed)[0]


def sign_flip_ps(differences: list[Floats], *, resamples: int, seed: int) -> list[float]:
    """Test several difference vectors over the same queries, as `sign_flip_p` does.

    All tests use the same sign vectors.
    """
    n = len(differences[0]) if differences else 0
    if n == 0:
        return [np.nan for _ in differences]
    signs, sampled = _sign_blocks(n, resamples, seed)
    # The observed signs count as a draw; among all sign vectors they are already.
    extra, total = (1, resamples) if sampled else (0, 2**n)
    hits = np.zeros(len(differences), dtype=np.int64)
    observed = [abs(float(np.mean(difference))) for difference in differences]
    for block in signs:
        for number, difference in enumerate(differences):
            means = np.abs(dots(block, difference) / n)
            hits[number] += int((means >= observed[number] - _EPSILON).sum())
    ps = (extra + hits) / (extra + total)
    return [
        p if difference.any() else 1.0
        for p, difference in zip(ps.tolist(), differences, strict=True)
    ]


def sign_flip_length_p(differences: Floats, *, resamples: int = 1_000, seed: int = 0) -> float:
    """Test whether the mean vector is longer than with random signs.

    `differences` has a vector in each row, whose signs are flipped together. The p is computed as
    by `sign_flip_p`, with the length of the mean as T.
    """
    if not differences.any():
        return 1.0
    signs, sampled = _sign_blocks(len(differences), resamples, seed)
    observed = float(np.linalg.norm(differences.sum(axis=0)))
    hits = 0
    for block in signs:
        lengths = np.linalg.norm(block @ differences, axis=1)
        hits += int((lengths >= observed * (1 - _EPSILON)).sum())
    extra, total = (1, resamples) if sampled else (0, 2 ** len(differences))
    return (extra + hits) / (extra + total)


def _sign_blocks(n: int, resamples: int, seed: int) -> tuple[Iterable[Floats], bool]:
    """Return sign vectors over n queries in blocks of rows, and whether they are drawn at random.

    If they are not drawn, they are all 2^n sign vectors.
    """
    if n <= ENUMERATED:
        flips = (np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n)) & 1
        return [(1 - 2 * flips).astype(np.float64)], False
    rng = np.random.default_rng(seed)
    return (_random_signs(rng, stop - start, n) for start, stop in blocks(resamples, n)), True


def _random_signs(rng: np.random.Generator, rows: int, n: int) -> Floats:
    # A byte holds the signs of eight queries, which is faster than a number for each.
    """Draw rows of signs, 1 or −1."""
    random_bytes = rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8)
    bits = np.unpackbits(random_bytes, axis=1)[:, :n]
    return (1.0 - 2.0 * bits).astype(np.float64)


def exchanged_sums(
    totals: Floats, *, draws: int = RESAMPLES, seed: int | Sequence[int] = 0
) -> Floats:
    """Sum what origins add to a statistic, after random exchanges of both labels of each origin.

    The result has the shape (2 · draws,): each draw counts twice, as drawn and with all labels
    exchanged, so that the sums are even around 0. The 256 largest totals are exchanged one by one;
    the sum of all others, which are smaller and many, is drawn from the normal distribution of the
    same variance. The result depends only on the totals that are not 0, the seed and the number of
    draws; negating the totals changes nothing.
    """
    nonzero = totals[totals != 0]
    order = np.argsort(-np.abs(nonzero), kind="stable")
    large, rest = nonzero[order[:_ONE_BY_ONE]], nonzero[order[_ONE_BY_ONE:]]
    large = large * np.sign(large[:1].sum())  # the same draws whichever side is first
    rng = np.random.default_rng(seed)
    sums = np.zeros(draws)
    for start, stop in blocks(draws, len(large)):
        sums[start:stop] = dots(_random_signs(rng, stop - start, len(large)), large)
    if len(rest):
        sums += np.sqrt((rest * rest).sum()) * rng.standard_normal(draws)
    return np.concatenate([sums, -sums]) + 0.0


def t_test_p(difference: Floats) -> float:
    """Test a mean difference of 0 by Student's t, two-sided; 1 where all are 0, NaN below three."""
    if len(difference) < FEWEST_ROWS:
        return np.nan
    if not difference.any():
        return 1.0
    spread = float(np.std(difference, ddof=1))
    if spread == 0:
        return 0.0
    t = float(np.mean(difference)) / (spread / np.sqrt(len(difference)))
    return float(2 * special.stdtr(len(difference) - 1, -abs(t)))


def shuffle_p(observed: float, null: Floats) -> float:
    """Return the two-sided p of a statistic among its values under random labels.

    Twice the smaller tail, ``(1 + #{as far out})/(1 + n)``, at most 1; NaN where undefined. Values
    of NaN are dropped.
    """
    defined = null[~np.isnan(null)]
    if np.isnan(observed) or not len(defined):
        return np.nan
    low = 1 + int((defined <= observed + _EPSILON).sum())
    high = 1 + int((defined >= observed - _EPSILON).sum())
    return min(1.0, 2 * min(low, high) / (1 + len(defined)))
