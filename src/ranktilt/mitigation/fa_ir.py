"""FA*IR (Zehlike et al., CIKM 2017): how few documents of a group a prefix may hold for chance to explain it."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_PART = (3 - 5**0.5) / 2
"""Where an interval of significances is cut: not in halves, at which several counts change at once if p is a half."""
_NARROW = 1e-12


def fail_probability(table: npt.ArrayLike, p: float) -> float:
    """Probability that a list drawn by chance falls below a table of minimum counts on some prefix.

    Each rank holds a document of the group with probability `p`, independently of the others. Exact, by recursion over
    the ranks at which the table rises.

    Parameters
    ----------
    table : array_like of int, shape (k,)
        Fewest documents of the group on the first 1, 2, … k ranks; never falling.
    p : float
        Probability of the group at each rank, 0 to 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UserError
        If the table falls, or holds a number below 0, or `p` is no probability.

    References
    ----------
    Zehlike et al., *FA*IR: A Fair Top-k Ranking Algorithm*, CIKM 2017, section 4.2.
    """
    needed = np.asarray(table, dtype=np.int64)
    if needed.ndim != 1 or (np.diff(needed, prepend=0) < 0).any():
        raise UserError(f"expected a table of counts of 0 or more that never falls, got {needed.tolist()}")
    _require_probability("p", p)
    # Probability of each count, from the last minimum up, of lists that have not failed yet.
    alive, before, least, lost = np.ones(1), 0, 0, 0.0
    for rank in (np.flatnonzero(np.diff(needed, prepend=0)) + 1).tolist():
        alive = np.convolve(alive, _binomial(rank - before, p))
        short = int(needed[rank - 1]) - least
        lost += float(alive[:short].sum())
        alive, before, least = alive[short:], rank, int(needed[rank - 1])
        if not len(alive):
            return 1.0
    return lost


@lru_cache(maxsize=4096)
def m_table(k: int, p: float, alpha: float) -> tuple[int, ...]:
    """Fewest documents of a group on the first 1, 2, … k ranks of a fair list: FA*IR's table, adjusted for k tests.

    At significance c, a prefix of i ranks needs the smallest m with ``F(m; i, p) > c``, F being the binomial
    distribution function. Of the finitely many tables that some c gives, this is the one whose `fail_probability` is
    nearest to `alpha`, the smaller one if two are equally near; so it may lie a little above `alpha`.

    Parameters
    ----------
    k : int
        Ranks, at least 1.
    p : float
        Least share of the group, 0 to 1.
    alpha : float
        Probability at which a fair list may be taken for an unfair one, between 0 and 1.

    Returns
    -------
    tuple of int, length k
        Never falling.

    Raises
    ------
    UserError
        If an argument is out of its range.

    References
    ----------
    Zehlike et al., *FA*IR: A Fair Top-k Ranking Algorithm*, CIKM 2017.

    Examples
    --------
    >>> from ranktilt.mitigation.fa_ir import m_table
    >>> m_table(20, 0.25, 0.1)
    (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2)
    """
    if k < 1:
        raise UserError(f"expected k of at least 1, got {k}")
    _require_probability("p", p)
    if not 0 < alpha < 1:
        raise UserError(f"expected alpha between 0 and 1, got {alpha}")
    if p in (0, 1):
        return tuple(range(1, k + 1)) if p else (0,) * k
    low, high = 0.0, 1.0
    below, above = np.zeros(k, dtype=np.int64), np.arange(1, k + 1)
    under, over = 0.0, 1 - p**k
    # Tables grow with c, and between two that differ in one count there is none.
    while (above - below).sum() > 1 and high - low > _NARROW:
        middle = low + _PART * (high - low)
        table = _quantiles(k, p, middle)
        chance = fail_probability(table, p)
        if chance < alpha:
            low, below, under = middle, table, chance
        else:
            high, above, over = middle, table, chance
    return tuple((below if alpha - under <= over - alpha else above).tolist())


def _quantiles(k: int, p: float, c: float) -> Ints:
    """Minimum counts without any adjustment, at significance c."""
    from scipy import stats  # takes half a second, which no other method should wait for

    found: Ints = stats.binom.ppf(c, np.arange(1, k + 1), p).astype(np.int64)
    return found


@lru_cache(maxsize=4096)
def _binomial(n: int, p: float) -> Floats:
    """Probability of 0, 1, … n successes."""
    found = np.ones(1)
    for _ in range(n):
        found = np.convolve(found, (1 - p, p))
    return found


def _require_probability(name: str, value: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise UserError(f"expected {name} between 0 and 1, got {value}")
