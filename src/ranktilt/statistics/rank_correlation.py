"""Rank correlation of two scorings of the same systems.

Kendall's τ, top-weighted τ and rank-biased overlap.

Systems with equal scores stand in any order equally often, and every coefficient is its mean over
these orders. Scorings have the shape (…, systems): one coefficient comes back for each, so that
resamples are computed together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.statistics.bootstrap import interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PERSISTENCE = 0.9
"""Probability p that a reader of a list goes on to the next rank, for rank-biased overlap."""


def kendall_tau(first: Floats, second: Floats, variant: str = "b") -> Floats:
    """Return Kendall's τ, −1 to 1: concordant less discordant pairs of systems.

    Over all pairs (``a``; Kendall, Biometrika 30, 1938), or over the geometric mean of the pairs
    that either scoring does not tie (``b``; Biometrika 33(3), 1945). NaN where all are tied, or
    below two systems.
    """
    higher, lower = np.triu_indices(first.shape[-1], 1)
    first_signs = np.sign(first[..., higher] - first[..., lower])
    second_signs = np.sign(second[..., higher] - second[..., lower])
    if variant == "a":
        pairs = np.full(first.shape[:-1], float(len(higher)))
    else:
        pairs = np.sqrt(np.abs(first_signs).sum(-1) * np.abs(second_signs).sum(-1))
    return _ratio((first_signs * second_signs).sum(-1), pairs)


def top_weighted_tau(reference: Floats, estimate: Floats) -> Floats:
    """Return AP correlation τ_AP of an estimated order with a reference, −1 to 1.

    Errors at the top weigh most. ``2/(n − 1) · Σ_i C(i)/(i − 1) − 1`` with C(i) the systems above
    rank i of the estimate that the reference places above it, too (Yilmaz, Aslam & Robertson, SIGIR
    2008); a tie in the reference counts half. NaN below two systems.
    """
    systems = estimate.shape[-1]
    # [i, j] says how far the reference has j above i.
    agreement = (np.sign(reference[..., None, :] - reference[..., :, None]) + 1) / 2
    is_above = estimate[..., None, :] > estimate[..., :, None]
    is_tied = (estimate[..., None, :] == estimate[..., :, None]) & ~np.eye(systems, dtype=bool)
    above, tied = is_above.sum(-1), is_tied.sum(-1)
    from_above = (agreement * is_above).sum(-1)
    from_tied = np.divide(
        (agreement * is_tied).sum(-1), tied, out=np.zeros(tied.shape), where=tied > 0
    )
    # A system with t tied ones has `above` to `above + t` others before it, each equally often.
    # With u before it, C is from_above + (u − above) · from_tied; divided by u, its sum over u ≥ 1
    # needs the harmonic numbers alone.
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, max(systems, 1)))])
    reciprocals = harmonic[above + tied] - harmonic[np.maximum(above - 1, 0)]
    shares = from_tied * (tied + (above > 0)) + (from_above - above * from_tied) * reciprocals
    mean = _ratio((shares / (tied + 1)).sum(-1), np.full(estimate.shape[:-1], systems - 1.0))
    return 2 * mean - 1


def rank_biased_overlap(first: Floats, second: Floats, persistence: float = PERSISTENCE) -> Floats:
    """Return the rank-biased overlap of two orders, 0 to 1.

    Webber, Moffat & Zobel, ACM TOIS 28(4), 2010: ``(1 − p) Σ_d p^(d−1) A_d + p^n A_n`` with A_d the
    overlap of the first d, extrapolated beyond the last rank (their eq. 32); a system that ties
    share a rank with is there by its probability (Corsi & Urbano, SIGIR 2024: RBO^a).
    """
    systems = first.shape[-1]
    if not systems:
        return np.full(first.shape[:-1], np.nan)
    both = np.einsum("...sd,...sd->...d", _within(first), _within(second))
    return _extrapolated(both, persistence)


def list_overlap(
    first_ranks: Ints, second_ranks: Ints, depth: int, persistence: float = PERSISTENCE
) -> float:
    """Return the rank-biased overlap of two lists without ties, 0 to 1, down to a depth.

    Parameters
    ----------
    first_ranks, second_ranks : ndarray of int64, shape (n,)
        Ranks, from 1, of the documents that both lists hold.
    depth : int
        How many ranks of both lists are compared: as many as the shorter one has, at most. What
        lies below is extrapolated, as in `rank_biased_overlap`.
    persistence : float, optional
        Weight of each rank beside that of the rank above it.

    Returns
    -------
    float
        1 where the same documents stand at the same ranks, 0 where no document is in both; NaN for
        no depth.
    """
    if depth < 1:
        return np.nan
    # A document is among the first d of both lists from the lower of its two ranks on.
    since = np.maximum(first_ranks, second_ranks)
    both = np.cumsum(np.bincount(since[since <= depth], minlength=depth + 1)[1:])
    return float(_extrapolated(both.astype(np.float64), persistence))


def _extrapolated(both: Floats, persistence: float) -> Floats:
    """Return the weighted overlap; `both` counts what is among the first 1, 2, …, n of both."""
    depth = both.shape[-1]
    overlap = both / np.arange(1, depth + 1)
    weights = persistence ** np.arange(depth)
    rbo: Floats = (1 - persistence) * (overlap @ weights) + persistence**depth * overlap[..., -1]
    return rbo


class Ends(NamedTuple):
    """Both ends of a 95 % interval."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""


_WITHIN = 1.96
"""97.5 % quantile of the normal distribution, rounded."""
NEARNESS = 0.3
"""How far from the observed means near resamples lie, as a share of how far the others lie."""


def near_resamples(means: Floats, resampled: Floats) -> Floats:
    """Bring resampled means, (resamples, systems), nearer to the observed ones.

    `coefficient_interval` says why.
    """
    near: Floats = means + NEARNESS * (resampled - means)
    return near


def coefficient_interval(
    value: float, samples: Floats, near_samples: Floats, *, least: float
) -> Ends:
    """Return the 95 % interval of a coefficient, between `least` and 1.

    Resampling adds noise to both orders, which lowers every coefficient: percentiles alone lie too
    low at the upper end (they cover .83 where 95 % are claimed). Where many systems are nearly
    equal it also hides how unsure their order is: orders that are twice as noisy react less to
    noise. So the interval is the widest of three:

    - the percentile ends lo and hi;
    - both ends reflected in the value, 2v − hi and 2v − lo;
    - the value minus its bias, 2v − m, and 1.96 standard errors on both sides. m is the mean of the
      samples; the standard error is that of the near samples divided by `NEARNESS` (the numerical
      delta method: Hong and Li, Journal of Econometrics 206(2), 2018).

    It always contains the value.

    Parameters
    ----------
    value : float
        The observed coefficient.
    samples, near_samples : array of shape (resamples,)
        On resampled queries, and on the means of `near_resamples`.
    least : float
        Smallest value that the coefficient can have.
    """
    percentile = interval(samples)
    corrected = 2 * value - float(np.nanmean(samples))
    reach = _WITHIN * float(np.nanstd(near_samples)) / NEARNESS
    low = min(percentile.low, 2 * value - percentile.high, corrected - reach)
    high = max(percentile.high, 2 * value - percentile.low, corrected + reach)
    return Ends(low=max(least, low), high=min(1.0, high))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide element by element; NaN where the denominator is not above 0."""
    undefined = np.full(np.shape(numerator), np.nan)
    ratio: Floats = np.divide(numerator, denominator, out=undefined, where=denominator > 0)
    return ratio


def _within(scores: Floats) -> Floats:
    """Return the probability that each system is among the first 1, 2, … n: (…, n, n)."""
    above = (scores[..., None, :] > scores[..., :, None]).sum(-1)
    block = (scores[..., None, :] == scores[..., :, None]).sum(-1)
    depth = np.arange(1, scores.shape[-1] + 1)
    share: Floats = np.clip((depth - above[..., :, None]) / block[..., :, None], 0.0, 1.0)
    return share
