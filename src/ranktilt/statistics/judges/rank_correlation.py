"""Rank correlation: how far two scorings of the same systems agree on their order.

There are Kendall's τ, AP correlation (a τ that is weighted towards the top) and rank-biased
overlap.

A scoring is the scores of all systems by one judge. Systems with equal scores are tied. They may be
in any order, all equally likely, and every coefficient is its mean over these orders. Arrays of
scorings have the shape (…, n_systems), and the result has a coefficient for each scoring, so that
all resamples are computed together.
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
    """Return Kendall's τ, from −1 to 1: concordant minus discordant pairs, over all pairs.

    A pair of systems is concordant if both scorings order it alike, and discordant if they order it
    differently.

    Parameters
    ----------
    first, second : ndarray of float64, shape (…, n_systems)
        The two scorings.
    variant : {"b", "a"}, optional
        What the difference is divided by. ``a``: the number of all pairs (Kendall, Biometrika 30,
        1938). ``b``: √(n₁·n₂), where n₁ and n₂ are the numbers of pairs that the first and the
        second scoring do not tie (Biometrika 33(3), 1945).

    Returns
    -------
    ndarray of float64, shape (…)
        NaN with fewer than two systems and, for ``b``, if one scoring ties all of them.
    """
    left, right = np.triu_indices(first.shape[-1], 1)  # each pair of systems once
    first_signs = np.sign(first[..., left] - first[..., right])
    second_signs = np.sign(second[..., left] - second[..., right])
    if variant == "a":
        pairs = np.full(first.shape[:-1], float(len(left)))
    else:
        pairs = np.sqrt(np.abs(first_signs).sum(-1) * np.abs(second_signs).sum(-1))
    return _ratio((first_signs * second_signs).sum(-1), pairs)


def top_weighted_tau(reference: Floats, estimate: Floats) -> Floats:
    """Return AP correlation τ_AP of an estimated order with a reference, from −1 to 1.

    It is ``2/(n − 1) · Σ C(i)/(i − 1) − 1``, where the sum is over ranks i from 2 to n of the
    estimate. C(i) is how many of the i − 1 systems above rank i are also above this system in the
    reference (Yilmaz, Aslam & Robertson, SIGIR 2008). So errors at the top weigh most. A tie in the
    reference counts half. NaN with fewer than two systems, or if a system has no score (NaN).
    """
    systems = estimate.shape[-1]
    # [i, j] is 1 if the reference has j above i, ½ if it ties them, else 0.
    agreement = (np.sign(reference[..., None, :] - reference[..., :, None]) + 1) / 2
    is_above = estimate[..., None, :] > estimate[..., :, None]
    is_tied = (estimate[..., None, :] == estimate[..., :, None]) & ~np.eye(systems, dtype=bool)
    above, tied = is_above.sum(-1), is_tied.sum(-1)
    from_above = (agreement * is_above).sum(-1)
    from_tied = np.divide(
        (agreement * is_tied).sum(-1), tied, out=np.zeros(tied.shape), where=tied > 0
    )
    # A system that is tied with t others has u systems before it, from `above` to `above + t`, each
    # number equally often. With u before it, C is from_above + (u − above) · from_tied on average.
    # The sum of C / u over all u ≥ 1 is then
    #   from_tied · (number of such u) + (from_above − above · from_tied) · Σ 1/u,
    # and Σ 1/u is a difference of two harmonic numbers.
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, max(systems, 1)))])
    reciprocals = harmonic[above + tied] - harmonic[np.maximum(above - 1, 0)]
    shares = from_tied * (tied + (above > 0)) + (from_above - above * from_tied) * reciprocals
    mean = _ratio((shares / (tied + 1)).sum(-1), np.full(estimate.shape[:-1], systems - 1.0))
    return _where_known(2 * mean - 1, reference, estimate)


def rank_biased_overlap(first: Floats, second: Floats, persistence: float = PERSISTENCE) -> Floats:
    """Return the rank-biased overlap of two orders, from 0 to 1.

    It is ``(1 − p) · Σ p^(d−1)·A_d + p^n·A_n`` with the sum over depths d from 1 to n. A_d is the
    share of the first d systems that both orders have there, and p is the probability that a reader
    goes on to the next rank. The last term extrapolates beyond the last rank (Webber, Moffat &
    Zobel, ACM TOIS 28(4), 2010, eq. 32). Tied systems are each among the first d with a probability
    (the variant RBO^a of Corsi & Urbano, SIGIR 2024). NaN without systems, or if a system has no
    score (NaN).
    """
    systems = first.shape[-1]
    if not systems:
        return np.full(first.shape[:-1], np.nan)
    # A system without a score has no place in an order, so the result is replaced by NaN below.
    orders = (np.nan_to_num(first), np.nan_to_num(second))
    # At each depth, the sum over systems of the probability that both orders have the system.
    both = np.einsum("...sd,...sd->...d", *map(_depth_probabilities, orders))
    return _where_known(_extrapolated_overlap(both, persistence), first, second)


def list_overlap(
    first_ranks: Ints, second_ranks: Ints, depth: int, persistence: float = PERSISTENCE
) -> float:
    """Return the rank-biased overlap of two lists without ties, 0 to 1, down to a depth.

    Parameters
    ----------
    first_ranks, second_ranks : ndarray of int64, shape (n,)
        Ranks, from 1, of the documents that both lists hold.
    depth : int
        How many ranks of both lists are compared, at most as many as the shorter list has. The
        overlap beyond them is extrapolated, as in `rank_biased_overlap`.
    persistence : float, optional
        p of `rank_biased_overlap`: the weight of each rank, relative to the rank above it.

    Returns
    -------
    float
        1 if both lists have the same documents at the same ranks, 0 if they have no document in
        common. NaN for a depth of 0.
    """
    if depth < 1:
        return np.nan
    # Both lists have a document among their first d if d is at least the larger of its two ranks.
    lower_ranks = np.maximum(first_ranks, second_ranks)
    counts = np.bincount(lower_ranks[lower_ranks <= depth], minlength=depth + 1)
    both = np.cumsum(counts[1:])  # without the count of rank 0, which does not exist
    return float(_extrapolated_overlap(both.astype(np.float64), persistence))


def _extrapolated_overlap(both: Floats, persistence: float) -> Floats:
    """Return the rank-biased overlap, extrapolated beyond the last rank.

    `both` counts the systems that are among the first 1, 2, …, n of both orders.
    """
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


_Z95 = 1.96
"""97.5 % quantile of the normal distribution, rounded."""
NEARNESS = 0.3
"""Distance of near resamples from the observed means, as a share of that of ordinary resamples."""


def near_resamples(means: Floats, resampled: Floats) -> Floats:
    """Return *near resamples*: resampled means that are moved towards the observed means.

    They keep `NEARNESS` of their distance. `means` has the shape (n_systems,), and `resampled` the
    shape (resamples, n_systems). `coefficient_interval` needs them for its standard error.
    """
    near: Floats = means + NEARNESS * (resampled - means)
    return near


def coefficient_interval(
    value: float, samples: Floats, near_samples: Floats, *, least: float
) -> Ends:
    """Return the 95 % interval of a coefficient, between `least` and 1.

    Resampling adds noise to both orders, which lowers every coefficient. So the percentile interval
    is too low at its upper end: it holds the true value 83 % of the time instead of 95 %. If many
    systems are nearly equal, resampling also hides how uncertain their order is, because an order
    that is noisy already changes little with more noise. Near resamples add less noise and show the
    uncertainty. So the interval reaches as far as the widest of three. With the observed value v
    they are:

    - the percentile interval, from lo to hi;
    - this interval reflected in the value, from 2v − hi to 2v − lo;
    - the value minus its bias, 2v − m, ± 1.96 standard errors. m is the mean of the samples. The
      standard error is that of the near samples divided by `NEARNESS` (the numerical delta method:
      Hong and Li, Journal of Econometrics 206(2), 2018).

    The interval always contains the value. Its ends are NaN if the value is undefined (NaN), or
    undefined in every resample.

    Parameters
    ----------
    value : float
        The observed coefficient.
    samples, near_samples : ndarray of float64, shape (resamples,)
        The coefficient in resamples of the queries, and on the means of `near_resamples`.
    least : float
        Smallest value that the coefficient can have.
    """
    if np.isnan(value) or np.isnan(samples).all() or np.isnan(near_samples).all():
        return Ends(low=np.nan, high=np.nan)
    percentile = interval(samples)
    without_bias = 2 * value - float(np.nanmean(samples))
    half_width = _Z95 * float(np.nanstd(near_samples)) / NEARNESS
    low = min(percentile.low, 2 * value - percentile.high, without_bias - half_width)
    high = max(percentile.high, 2 * value - percentile.low, without_bias + half_width)
    return Ends(low=max(least, low), high=min(1.0, high))


def _where_known(coefficients: Floats, first: Floats, second: Floats) -> Floats:
    """Return coefficients of two scorings; NaN where a system has no score (NaN) in one of them."""
    is_unknown = np.isnan(first).any(-1) | np.isnan(second).any(-1)
    return np.where(is_unknown, np.nan, coefficients)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide element by element; NaN where the denominator is not above 0."""
    undefined = np.full(np.shape(numerator), np.nan)
    ratio: Floats = np.divide(numerator, denominator, out=undefined, where=denominator > 0)
    return ratio


def _depth_probabilities(scores: Floats) -> Floats:
    """Return the probability that each system is among the first 1, 2, … n.

    The shape is (…, n_systems, n_depths). The probability is 0 or 1, except for systems that are
    tied across a depth: all orders of tied systems are equally likely.
    """
    above_count = (scores[..., None, :] > scores[..., :, None]).sum(-1)
    tied_count = (scores[..., None, :] == scores[..., :, None]).sum(-1)  # the system included
    depth = np.arange(1, scores.shape[-1] + 1)
    ranks_left = depth - above_count[..., :, None]
    probabilities: Floats = np.clip(ranks_left / tied_count[..., :, None], 0.0, 1.0)
    return probabilities
