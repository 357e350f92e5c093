"""Permutation tests: compare a statistic with its values after labels are changed at random.

If labels mean nothing, the statistic is as large after the change as before. Changing the sign of a
paired difference, a *flip*, is the same as exchanging the two labels of the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, blocks, dots

Floats = npt.NDArray[np.float64]
ENUMERATED = 16
"""Most queries for which all 2^n sign vectors are tried (65,536); for more they are drawn."""
_MOST_EXCHANGED = 256
"""Most totals whose labels are exchanged in each draw.

The others are smaller and many, so that their sum is nearly normal, and is drawn as a whole.
"""
_EPSILON = 1e-12
"""Difference below which two statistics count as equal, because it is only rounding."""


def sign_flip_p(difference: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Return the two-sided p of a mean difference, if labels mean nothing, by flipping signs.

    T is the mean difference, and T* the mean after random flips of the signs. The p is

        (1 + number of |T*| ≥ |T|) / (1 + resamples)

    The two ones are the observed signs, which count as a draw. For up to 16 queries, all 2^n sign
    vectors are tried, the observed one among them, and p is the exact share with |T*| ≥ |T|. p is 1
    if all differences are 0, and NaN without a query or with an undefined difference (NaN).

    Parameters
    ----------
    difference : ndarray of float64, shape (n,)
        Difference of the two groups' values for each query.
    resamples, seed : int, optional
        Number of random sign vectors, and their seed.
    """
    return sign_flip_ps([difference], resamples=resamples, seed=seed)[0]


def sign_flip_ps(differences: list[Floats], *, resamples: int, seed: int) -> list[float]:
    """Return the p of several vectors of differences over the same queries, as `sign_flip_p` does.

    All tests use the same flips.
    """
    n = len(differences[0]) if differences else 0
    if n == 0:
        return [np.nan for _ in differences]
    signs, are_random = _sign_blocks(n, resamples, seed)
    # The observed signs count as a draw. If all sign vectors are tried, they are among them.
    extra, total = (1, resamples) if are_random else (0, 2**n)
    hits = np.zeros(len(differences), dtype=np.int64)
    observed = [abs(float(np.mean(difference))) for difference in differences]
    for block in signs:
        for number, difference in enumerate(differences):
            means = np.abs(dots(block, difference) / n)
            hits[number] += int((means >= observed[number] - _EPSILON).sum())
    # Nothing is at least as far as an undefined mean.
    ps = np.where(np.isnan(observed), np.nan, (extra + hits) / (extra + total))
    return [
        p if difference.any() else 1.0
        for p, difference in zip(ps.tolist(), differences, strict=True)
    ]


def sign_flip_length_p(differences: Floats, *, resamples: int = 1_000, seed: int = 0) -> float:
    """Return the p of the length of a mean vector, if labels mean nothing, by flipping signs.

    The p is that of `sign_flip_p` with the length of the mean vector as T.

    Parameters
    ----------
    differences : ndarray of float64, shape (n_queries, n_dimensions)
        Difference vector of each query; a flip changes the sign of the whole vector.
    resamples, seed : int, optional
        Number of random sign vectors, and their seed. There are fewer than in other tests, because
        each of them costs a product with all vectors.
    """
    if not differences.any():
        return 1.0
    if np.isnan(differences).any():
        return np.nan
    signs, are_random = _sign_blocks(len(differences), resamples, seed)
    # The sums of n vectors are n times as long as their means, and give the same p. As they may be
    # of any size, rounding is allowed for in proportion to it.
    observed = float(np.linalg.norm(differences.sum(axis=0)))
    hits = 0
    for block in signs:
        lengths = np.linalg.norm(block @ differences, axis=1)
        hits += int((lengths >= observed * (1 - _EPSILON)).sum())
    extra, total = (1, resamples) if are_random else (0, 2 ** len(differences))
    return (extra + hits) / (extra + total)


def _sign_blocks(n: int, resamples: int, seed: int) -> tuple[Iterable[Floats], bool]:
    """Return sign vectors over n queries, in blocks, and whether they are drawn at random.

    A block has a sign vector in each row. For few queries there are all 2^n sign vectors, and
    nothing is drawn.
    """
    if n <= ENUMERATED:
        # The bits of the numbers from 0 to 2^n − 1 are all combinations of flips.
        flips = (np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n)) & 1
        return [(1 - 2 * flips).astype(np.float64)], False
    rng = np.random.default_rng(seed)
    return (_random_signs(rng, stop - start, n) for start, stop in blocks(resamples, n)), True


def _random_signs(rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Draw rows of n signs, 1 or −1."""
    # A byte holds the signs of eight queries, which is faster than a number for each.
    random_bytes = rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8)
    bits = np.unpackbits(random_bytes, axis=1)[:, :n]
    return (1.0 - 2.0 * bits).astype(np.float64)


def exchanged_sums(
    totals: Floats, *, draws: int = RESAMPLES, seed: int | Sequence[int] = 0
) -> Floats:
    """Return a statistic in many draws in which the two labels of each origin may be exchanged.

    An origin is the document of which two texts are versions, one in each group. The labels of the
    256 origins with the largest totals are exchanged in each draw. The sum of all other totals,
    which are small and many, is drawn from a normal distribution with the same variance.

    Parameters
    ----------
    totals : ndarray of float64, shape (n_origins,)
        What each origin adds to the statistic. An exchange of its labels changes the sign.
    draws : int, optional
        Number of draws.
    seed : int or sequence of int, optional
        Seed of the draws.

    Returns
    -------
    ndarray of float64, shape (2 · draws,)
        Each draw counts twice: as it was drawn, and with all labels exchanged. So the values are
        symmetric around 0, and negated totals give the same values. The values depend only on the
        totals that are not 0, the seed and the number of draws.
    """
    nonzero = totals[totals != 0]
    order = np.argsort(-np.abs(nonzero), kind="stable")
    large, rest = nonzero[order[:_MOST_EXCHANGED]], nonzero[order[_MOST_EXCHANGED:]]
    if len(large):
        # If the largest total is negative, all are negated. Totals and negated totals then have the
        # same draws, so that an audit with swapped groups has the same figures.
        large = large * np.sign(large[0])
    rng = np.random.default_rng(seed)
    sums = np.zeros(draws)
    for start, stop in blocks(draws, len(large)):
        sums[start:stop] = dots(_random_signs(rng, stop - start, len(large)), large)
    if len(rest):
        sums += np.sqrt((rest * rest).sum()) * rng.standard_normal(draws)
    return np.concatenate([sums, -sums]) + 0.0  # turns −0.0 into 0.0


def t_test_p(difference: Floats) -> float:
    """Return the two-sided p of a mean difference by Student's t.

    1 if all differences are 0, and 0 if all are the same other number. NaN with fewer than three.
    """
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
    """Return the two-sided p of a statistic, from its n values under random labels (`null`).

    The tail below is ``(1 + number of values ≤ observed) / (1 + n)``, and the tail above is the
    same with ≥. The p is twice the smaller tail, and at most 1. Undefined values (NaN) are dropped;
    p is NaN if none is left.
    """
    defined = null[~np.isnan(null)]
    if np.isnan(observed) or not len(defined):
        return np.nan
    low = 1 + int((defined <= observed + _EPSILON).sum())
    high = 1 + int((defined >= observed - _EPSILON).sum())
    return min(1.0, 2 * min(low, high) / (1 + len(defined)))
