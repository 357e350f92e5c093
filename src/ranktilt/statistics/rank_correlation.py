"""How far two scorings order the same systems alike: Kendall's τ, top-weighted τ, rank-biased overlap; ties are shared.

Systems with equal scores stand in any order equally often, and every coefficient is its mean over these orders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
PERSISTENCE = 0.9


def kendall_tau(one: Floats, two: Floats, variant: str = "b") -> float:
    """Kendall's τ, −1 to 1: concordant less discordant pairs of systems.

    Over all pairs (``a``; Kendall, Biometrika 30, 1938), or over the geometric mean of the pairs that either scoring
    tells apart (``b``; Biometrika 33(3), 1945). NaN where nothing is told apart, or below two systems.
    """
    first, second = (np.sign(np.subtract.outer(x, x))[np.triu_indices(len(x), 1)] for x in (one, two))
    pairs = float(len(first)) if variant == "a" else float(np.sqrt((first != 0).sum() * (second != 0).sum()))
    return float(first @ second) / pairs if pairs else np.nan


def top_weighted_tau(reference: Floats, estimate: Floats) -> float:
    """AP correlation τ_AP, −1 to 1, of an estimated order with a reference: errors at the top weigh most.

    ``2/(n − 1) · Σ_i C(i)/(i − 1) − 1`` with C(i) the systems above rank i of the estimate that the reference places
    above it, too (Yilmaz, Aslam & Robertson, SIGIR 2008); a tie in the reference counts half. NaN below two systems.
    """
    n = len(estimate)
    if n < 2:
        return np.nan
    agree = (np.sign(np.subtract.outer(reference, reference)).T + 1) / 2  # [i, j]: the reference has j above i
    above, tied = (estimate[None, :] > estimate[:, None]), estimate[None, :] == estimate[:, None]
    np.fill_diagonal(tied, val=False)
    fixed = above.sum(1)
    certain, others = (agree * above).sum(1), tied.sum(1)
    shared = np.divide((agree * tied).sum(1), others, out=np.zeros(n), where=others > 0)
    total = 0.0
    for i in range(n):
        ranks = np.arange(fixed[i] + 1, fixed[i] + others[i] + 2, dtype=np.float64)
        upper = np.maximum(ranks - 1, 1.0)
        total += float(np.where(ranks > 1, (certain[i] + (ranks - 1 - fixed[i]) * shared[i]) / upper, 0.0).mean())
    return 2 * total / (n - 1) - 1


def rank_biased_overlap(one: Floats, two: Floats, persistence: float = PERSISTENCE) -> float:
    """Rank-biased overlap of two orders of the same systems, 0 to 1 (Webber, Moffat & Zobel, ACM TOIS 28(4), 2010).

    ``(1 − p) Σ_d p^(d−1) A_d + p^n A_n`` with A_d the overlap of the first d, extrapolated beyond the last rank (their
    eq. 32); a system that ties share a rank with is there by its probability (Corsi & Urbano, SIGIR 2024: RBO^a).
    """
    n = len(one)
    if not n:
        return np.nan
    shared = (_within(one) * _within(two)).sum(0) / np.arange(1, n + 1)
    weights = persistence ** np.arange(n)
    return float((1 - persistence) * (weights @ shared) + persistence**n * shared[-1])


def _within(scores: Floats) -> Floats:
    """Probability that each system stands within the first 1, 2, … n: (n, n)."""
    above = (scores[None, :] > scores[:, None]).sum(1)
    block = (scores[None, :] == scores[:, None]).sum(1)
    depth = np.arange(1, len(scores) + 1)
    share: Floats = np.clip((depth[None, :] - above[:, None]) / block[:, None], 0.0, 1.0)
    return share
