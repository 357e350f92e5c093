"""Permutation tests: signs flipped, labels exchanged or shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES, blocks, dots

Floats = npt.NDArray[np.float64]
ENUMERATED = 16
_ONE_BY_ONE = 256
_EPSILON = 1e-12


def sign_flip_p(difference: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Paired sign-flip permutation test of a mean difference of 0, two-sided; all 2^n sign vectors where n ≤ 16.

    ``(1 + #{|T*| ≥ |T| − 1e-12})/(1 + resamples)``, or the exact share where enumerated (no +1); 1 where all
    differences are 0; NaN without a query.
    """
    return sign_flip_ps([difference], resamples=resamples, seed=seed)[0]


def sign_flip_ps(differences: list[Floats], *, resamples: int, seed: int) -> list[float]:
    """`sign_flip_p` of several difference vectors over the same queries, sharing the sign vectors."""
    n = len(differences[0]) if differences else 0
    if n == 0:
        return [np.nan for _ in differences]
    signs, sampled = _sign_blocks(n, resamples, seed)
    extra, total = (1, resamples) if sampled else (0, 2**n)
    hits = np.zeros(len(differences), dtype=np.int64)
    observed = [abs(float(np.mean(d))) for d in differences]
    for block in signs:
        for j, d in enumerate(differences):
            hits[j] += int((np.abs(dots(block, d) / n) >= observed[j] - _EPSILON).sum())
    return [
        1.0 if not d.any() else (extra + int(h)) / (extra + total)
        for d, h in zip(differences, hits, strict=True)
    ]


def sign_flip_length_p(differences: Floats, *, resamples: int = 1_000, seed: int = 0) -> float:
    """Test that the mean of some vectors, one a row, is longer than when each is turned round at random.

    The p is that of `sign_flip_p`, with the length of the mean as T.
    """
    if not differences.any():
        return 1.0
    signs, sampled = _sign_blocks(len(differences), resamples, seed)
    observed = float(np.linalg.norm(differences.sum(axis=0)))
    hits = sum(
        int((np.linalg.norm(block @ differences, axis=1) >= observed * (1 - _EPSILON)).sum())
        for block in signs
    )
    return (sampled + hits) / (sampled + (resamples if sampled else 2 ** len(differences)))


def _sign_blocks(n: int, resamples: int, seed: int) -> tuple[Iterable[Floats], bool]:
    """Sign vectors over n queries in blocks of rows, and whether they are drawn rather than all there are."""
    if n <= ENUMERATED:
        flips = (np.arange(2**n, dtype=np.int64)[:, None] >> np.arange(n)) & 1
        return [(1 - 2 * flips).astype(np.float64)], False
    rng = np.random.default_rng(seed)
    return (_random_signs(rng, stop - start, n) for start, stop in blocks(resamples, n)), True


def _random_signs(rng: np.random.Generator, rows: int, n: int) -> Floats:
    bits = np.unpackbits(rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8), axis=1)[
        :, :n
    ]
    return (1.0 - 2.0 * bits).astype(np.float64)


def exchanged(totals: Floats, *, draws: int = RESAMPLES, seed: int | Sequence[int] = 0) -> Floats:
    """Sums of what origins add to a statistic, after the two labels of each were exchanged at random: (2 · draws,).

    Each draw counts twice, as drawn and the other way round, so that the sums lie evenly around 0.
    The 256 largest are exchanged one by one; the sum of the others, smaller and many, is drawn from
    the normal distribution of the same variance. Depends on the totals that are not 0, the seed and
    the number of draws only; negating them changes nothing.
    """
    held = totals[totals != 0]
    order = np.argsort(-np.abs(held), kind="stable")
    large, rest = held[order[:_ONE_BY_ONE]], held[order[_ONE_BY_ONE:]]
    large = large * np.sign(large[:1].sum())  # the same draws whichever side is first
    rng = np.random.default_rng(seed)
    sums = np.zeros(draws)
    for start, stop in blocks(draws, len(large)):
        sums[start:stop] = dots(_random_signs(rng, stop - start, len(large)), large)
    if len(rest):
        sums += np.sqrt((rest * rest).sum()) * rng.standard_normal(draws)
    return np.concatenate([sums, -sums]) + 0.0


def t_test_p(difference: Floats) -> float:
    """Paired t test of a mean difference of 0, two-sided; 1 where all are 0, NaN below three queries."""
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
    """Two-sided p of a statistic against its values under random labels, of which NaN ones are dropped.

    Twice the smaller tail, ``(1 + #{as far out})/(1 + n)``, at most 1; NaN where undefined.
    """
    kept = null[~np.isnan(null)]
    if np.isnan(observed) or not len(kept):
        return np.nan
    low = 1 + int((kept <= observed + _EPSILON).sum())
    high = 1 + int((kept >= observed - _EPSILON).sum())
    return min(1.0, 2 * min(low, high) / (1 + len(kept)))
