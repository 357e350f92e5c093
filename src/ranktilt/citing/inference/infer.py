"""Interval and p of an estimate from citations, for other questions and other units.

An estimate compares how often answers cite pages of two groups, a and b. A *unit* is pages that are
labelled together, such as those of a domain. If all pages of a domain have one label, the domains
are the sample, and not their pages. The *effective* number of units is smaller than their number if
some hold more pages than others. *Neutral* is the value that favours neither group.

Two tests are made, because each misses what the other sees. The test that exchanges the labels of
units (`exchange`) does not see that other questions could have been asked. The t test with the
two-way error sees questions and units, but is wrong if a group has few units. So p is the larger of
the two. It rejects at most 5 % of simulated worlds in which no group is favoured
(docs/measures/citations.md, "Intervals and tests"). The t test has G − 1 degrees of freedom, with G
the effective number of units of the group that has fewer.

The interval comes from the two-way error. If the exchange test gives the larger p, the error is
widened, so that interval and p never contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ranktilt.auditing.effects import FEWEST
from ranktilt.citing.inference.exchange import exchanged_p
from ranktilt.measures.citations.base import Bools, CitationEstimate, CitationRows, Floats
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.two_way import effective_number, sums, two_way

Over = Literal["questions", "questions and units"]
"""What an interval is over: other questions alone, or other questions and other units."""
FEWEST_UNITS = FEWEST
"""Fewest effective units of a group, and effective questions, for a verdict."""
_NEARLY_ONE = 1 - 1e-12
"""Largest p whose t quantile something is divided by; the quantile of exactly 1 is 0."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far an estimate scatters over other questions and units."""

    low: float
    """Lower end of the 95 % interval, in the unit of the value.

    NaN with too few units or questions.
    """
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error on the estimate's scale; for a ratio that of its logarithm."""
    p: float
    """The larger of `exchange_p` and `two_way_p`; NaN if either is."""
    exchange_p: float
    """p of the test that exchanges labels between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    effective_units: float
    """G: the effective number of units of the group that has fewer."""
    effective_questions: float
    """Effective number of queries: fewer if some hold more pages than others."""
    questions: int
    """Number of queries that hold a page of either group."""


@dataclass(frozen=True, kw_only=True)
class PlainSpread:
    """How far a share, a rate or a difference scatters, without the exchange test."""

    value: float
    """The share, rate or difference itself."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    p: float
    """p of the t test that the true value is 0; NaN for a value without an error."""
    over: Over
    """What the interval is over; ``questions`` alone if a group has fewer than ten units."""


def plain_spread(
    rows: CitationRows,
    value: float,
    influence: Floats,
    *,
    support: Bools,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> PlainSpread:
    """Return the interval of a value, and the p that the true value is 0.

    Parameters
    ----------
    rows : CitationRows
        The pages of answers.
    value : float
        A share, a rate or a difference.
    influence : array of float
        What each row adds to the error of the value, shape (n_rows,).
    support : array of bool
        Rows that the value is computed from; their units and questions are counted.
    bounds : (float, float), optional
        Smallest and largest value that is possible. A value on a bound, such as a rate of 0, does
        not scatter. Its interval reaches as far as that of Clopper and Pearson for 0 of G, which is
        1 − .025^(1/G).
    """
    group_masks = (support & rows.is_a, support & ~rows.is_a)
    # A rate is about one group, so that one mask may be empty.
    unit_numbers = [
        effective_number(sums(rows.cluster, rows.weight * mask))
        for mask in group_masks
        if mask.any()
    ]
    questions = effective_number(rows.per_question(rows.weight * support))
    units = min(unit_numbers, default=np.nan)
    over: Over = "questions and units" if units >= FEWEST_UNITS else "questions"
    freedom = (min(units, questions) if over == "questions and units" else questions) - 1
    if not np.isfinite(influence).all() or not freedom > 0:
        return PlainSpread(value=value, low=np.nan, high=np.nan, p=np.nan, over=over)
    lowest, highest = bounds
    if value in bounds and not influence.any():
        reach = (highest - lowest) * (1 - 0.025 ** (1 / (freedom + 1)))
        low, high = max(value - reach, lowest), min(value + reach, highest)
        return PlainSpread(value=value, low=low, high=high, p=np.nan, over=over)
    if over == "questions":
        variance = float((rows.per_question(influence) ** 2).sum()) * (freedom + 1) / freedom
    else:
        variance = two_way_variance(rows, influence)
    error = float(np.sqrt(variance))
    half_width = error * float(special.stdtrit(freedom, 0.975))
    p = t_p(value, error, freedom)
    low, high = max(value - half_width, lowest), min(value + half_width, highest)
    return PlainSpread(value=value, low=low, high=high, p=p, over=over)


def estimate_spread(
    rows: CitationRows, estimate: CitationEstimate, *, resamples: int, seed: int
) -> Spread:
    """Return interval, error and p of an estimate over other questions and units.

    `resamples` is the number of exchanges of labels, and `seed` their random seed.
    """
    units = float(min(effective_units_by_group(rows, estimate)))
    question_support = rows.per_question(estimate.support_a + estimate.support_b)
    questions = effective_number(question_support)
    freedom = min(units, questions) - 1
    distance = estimate.distance
    exchange_p = exchanged_p(rows, estimate, resamples=resamples, seed=seed)
    error, two_way_p = np.nan, np.nan
    if np.isfinite(distance) and np.isfinite(estimate.influence).all():
        variance = two_way_variance(rows, estimate.influence) + estimate.uncited_variance
        error = float(np.sqrt(variance))
        two_way_p = t_p(distance, error, freedom)
    p = float(np.maximum(exchange_p, two_way_p))
    wide_error = widened_error(distance, error, p, freedom)
    low, high = np.nan, np.nan
    # The error is 0 if every page that could be cited is cited. Then there is no interval.
    if wide_error > 0:
        low, high = estimate_interval(estimate, distance, wide_error, freedom=freedom)
    return Spread(
        low=low,
        high=high,
        error=wide_error,
        p=p,
        exchange_p=exchange_p,
        two_way_p=two_way_p,
        effective_units=units,
        effective_questions=questions,
        questions=int((question_support > 0).sum()),
    )


def effective_units_by_group(rows: CitationRows, estimate: CitationEstimate) -> tuple[float, float]:
    """Return the effective number of units of group a, and of group b.

    It is Kish's: ten units with equally many pages count as ten, and ten units of which some hold
    more pages than others count as fewer.
    """
    units_a = effective_number(sums(rows.cluster, estimate.support_a))
    units_b = effective_number(sums(rows.cluster, estimate.support_b))
    return units_a, units_b


def two_way_variance(rows: CitationRows, influence: Floats) -> float:
    """Return the variance of an estimate over questions and units.

    `influence` is what each row adds to the error. With V_q, V_u and V_qu the sums of squares of
    the influence by query, by unit and by pair of both, it is V_q + V_u − V_qu (Cameron, Gelbach &
    Miller, JBES 29(2), 2011), and at least V_q and V_u.
    """
    by_question = np.bincount(rows.question, weights=influence)
    by_unit = np.bincount(rows.cluster, weights=influence)
    by_cell = np.bincount(rows.cell, weights=influence)
    variance = two_way(
        queries=float((by_question**2).sum()),
        origins=float((by_unit**2).sum()),
        cells=float((by_cell**2).sum()),
        effective_n=np.nan,
    )
    # There is no factor G/(G − 1): with few units, the degrees of freedom already widen intervals.
    return variance.of_both


def t_p(distance: float, error: float, freedom: float) -> float:
    """Return the two-sided p of a t test that the true distance from neutral is 0.

    `freedom` are the degrees of freedom. NaN without any, or without an error.
    """
    if not freedom > 0 or not error > 0:
        return np.nan
    return float(2 * special.stdtr(freedom, -abs(distance) / error))


def widened_error(distance: float, error: float, p: float, freedom: float) -> float:
    """Return the error at which the t test of a distance gives `p`, if it is larger than `error`.

    Otherwise, and if no error gives this p, return `error`. `freedom` are the degrees of freedom.
    """
    # At a distance of 0 every error gives a p of 1.
    if not freedom > 0 or not p > 0 or not np.isfinite(distance) or distance == 0:
        return error
    error_of_p = abs(distance) / float(-special.stdtrit(freedom, min(p, _NEARLY_ONE) / 2))
    return float(np.fmax(error, error_of_p))


def estimate_interval(
    estimate: CitationEstimate, distance: float, error: float, *, freedom: float
) -> tuple[float, float]:
    """Return both ends of a 95 % interval, in the unit of the value.

    A share has value ± t errors, within 0 and 100 %. A ratio has neutral · exp(distance ± t
    errors). `error` is on the scale of `distance`, the distance from neutral, and `freedom` are the
    degrees of freedom. NaN if these are too few.
    """
    if freedom + 1 < FEWEST_ROWS or not np.isfinite(error):
        return np.nan, np.nan
    half_width = error * float(special.stdtrit(freedom, 0.975))
    if estimate.scale == "share":
        low, high = estimate.value - half_width, estimate.value + half_width
        return max(low, 0.0), min(high, 100.0)
    with np.errstate(over="ignore"):
        low, high = np.exp(distance - half_width), np.exp(distance + half_width)
    return float(low * estimate.neutral), float(high * estimate.neutral)
