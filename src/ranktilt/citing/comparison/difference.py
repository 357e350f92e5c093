"""Interval and p of the difference between two engines' tilts, over the same questions and units.

Answers of both engines cite pages of two groups, a and b. An engine's *tilt* is how far the value
of a question, such as the ratio of citation rates, lies from neutral, which favours neither group.
A *unit* is pages that are labelled together, such as those of a domain; the *effective* number of
units is smaller than their number if some hold more pages than others.

Both engines answer the same queries, mostly from the same domains, so their errors are not
independent. The error of the difference is computed from what a query or a domain adds to one
engine's tilt minus what it adds to the other's, so that what both share cancels.

p is the larger of two: that of the t test with the error over questions and units, and that of a
permutation test, which exchanges labels between units in the same way for both engines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ranktilt.citing.arrays import joined_rows
from ranktilt.citing.effect import Question
from ranktilt.citing.inference.exchange import exchange_blocks, exchange_statistic
from ranktilt.citing.inference.infer import (
    FEWEST_UNITS,
    effective_units_by_group,
    t_p,
    two_way_variance,
    widened_error,
)
from ranktilt.measures.citations.base import Bools, CitationEstimate, CitationRows, Floats, Ints
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.two_way import effective_number, sums

_EPSILON = 1e-12
"""Difference below which two sums of rounded numbers count as equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineTilt:
    """The value of one question for one engine, and its distance from neutral."""

    rows: CitationRows
    """The engine's pages of two groups."""
    estimate: CitationEstimate
    """The value of the question for these pages."""
    distance: float
    """Distance from neutral on the estimate's scale.

    It is the share itself if the pool, what could have been cited, is unknown.
    """

    @property
    def support(self) -> Floats:
        """Weight of each row in the denominator of its group, shape (n_rows,)."""
        return self.estimate.support_a + self.estimate.support_b

    @property
    def effective_units(self) -> float:
        """Effective number of units of the group that has fewer."""
        return min(effective_units_by_group(self.rows, self.estimate))


@dataclass(frozen=True, kw_only=True)
class DifferenceSpread:
    """How far a difference of two tilts scatters over other questions and units.

    All values and ends are on the scale of the error: points of a share, or logarithms of ratios.
    `as_ratios` makes ratios of the logarithms.
    """

    value: float
    """The new engine's distance from neutral minus the old one's."""
    low: float
    """Lower end of the 95 % interval; NaN with too few units or questions, or without an error."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error; 0 where both engines cite the same."""
    p: float
    """The larger of `exchange_p` and `two_way_p`."""
    exchange_p: float
    """p of a permutation test that exchanges labels between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    growth: float
    """|new distance| − |old distance|: above 0 if the new engine tilts more, either way."""
    growth_low: float
    """Lower end of the 95 % interval of the growth."""
    growth_high: float
    """Upper end of the 95 % interval of the growth."""
    effective_units: float
    """Effective number of units, of the engine and the group that have fewest."""
    effective_questions: float
    """Effective number of queries."""
    questions: int
    """Number of queries with pages of either group."""
    these_low: float
    """Lower end of the interval for further questions about the same units.

    NaN if there are ten effective units, so that the interval over other units counts.
    """
    these_high: float
    """Upper end of the interval for further questions about the same units."""

    def as_ratios(self) -> DifferenceSpread:
        """Return values and ends, which must be logarithms, as ratios; the error stays as it is."""
        return replace(
            self,
            value=_exponential(self.value),
            low=_exponential(self.low),
            high=_exponential(self.high),
            growth=_exponential(self.growth),
            growth_low=_exponential(self.growth_low),
            growth_high=_exponential(self.growth_high),
            these_low=_exponential(self.these_low),
            these_high=_exponential(self.these_high),
        )


def _exponential(logarithm: float) -> float:
    """Return e to a power; infinite where that is too large for a float."""
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def engine_tilts(
    question: Question, new: CitationRows, old: CitationRows
) -> tuple[EngineTilt, EngineTilt]:
    """Return the tilts of the new and the old engine in one question.

    Shares are compared by their distance from the share of the pool (what could have been cited),
    or by themselves if the pool of an engine is unknown.
    """
    new_tilt, old_tilt = _tilt(question, new), _tilt(question, old)
    if np.isnan(new_tilt.estimate.neutral) or np.isnan(old_tilt.estimate.neutral):
        return _tilt(question, _without_pool(new)), _tilt(question, _without_pool(old))
    return new_tilt, old_tilt


def _tilt(question: Question, rows: CitationRows) -> EngineTilt:
    """Return the tilt of one engine in a question."""
    estimate = question.estimate(rows)
    distance = estimate.distance
    if estimate.scale == "share" and np.isnan(estimate.neutral):
        distance = estimate.value
    return EngineTilt(rows=rows, estimate=estimate, distance=distance)


def _without_pool(rows: CitationRows) -> CitationRows:
    """Return rows as if it were unknown what was consulted or retrieved."""
    none = np.zeros(len(rows), dtype=np.bool_)
    return replace(rows, is_consulted=none, retrieval_rank=none.astype(np.int64))


def difference_spread(
    new: EngineTilt, old: EngineTilt, *, resamples: int, seed: int
) -> DifferenceSpread:
    """Return the difference of two tilts with its interval and p.

    `resamples` is the number of exchanges of labels, and `seed` their random seed.
    """
    rows = joined_rows(new.rows, old.rows)
    influence = np.concatenate([new.estimate.influence, -old.estimate.influence])
    # The derivative of |distance| is that of the distance times the sign of the distance.
    growth_influence = np.concatenate(
        [
            np.sign(new.distance) * new.estimate.influence,
            -np.sign(old.distance) * old.estimate.influence,
        ]
    )
    units = float(min(new.effective_units, old.effective_units))
    question_support = rows.per_question(np.concatenate([new.support, old.support]))
    questions = effective_number(question_support)
    question_count = int((question_support > 0).sum())
    # Degrees of freedom, of whichever is scarcer.
    freedom = min(units, questions) - 1
    value = new.distance - old.distance
    growth = abs(new.distance) - abs(old.distance)
    exchange_p = _exchanged_p(new, old, resamples=resamples, seed=seed)
    error = growth_error = two_way_p = np.nan
    uncited_error = float(np.sqrt(new.estimate.uncited_variance + old.estimate.uncited_variance))
    if np.isfinite(value) and np.isfinite(influence).all():
        error = float(np.sqrt(two_way_variance(rows, influence)))
        # If both engines cite the same, influences cancel but for the rounding of their sums.
        error = float(np.hypot(error, uncited_error)) if error > _EPSILON else 0.0
        growth_error = float(np.sqrt(two_way_variance(rows, growth_influence)))
        growth_error = float(np.hypot(growth_error, uncited_error))
        two_way_p = t_p(value, error, freedom)
    p = float(np.maximum(exchange_p, two_way_p))
    wide_error = widened_error(value, error, p, freedom)
    low, high = _ends(value, wide_error, freedom)
    growth_low, growth_high = _ends(growth, growth_error, freedom)
    these_low, these_high = np.nan, np.nan
    if units < FEWEST_UNITS and question_count > 1 and np.isfinite(error):
        squares = float((rows.per_question(influence) ** 2).sum())
        variance = squares * question_count / (question_count - 1) + uncited_error**2
        error_over_questions = float(np.sqrt(variance))
        these_low, these_high = _ends(value, error_over_questions, question_count - 1)
    return DifferenceSpread(
        value=value,
        low=low,
        high=high,
        error=wide_error,
        p=p,
        exchange_p=exchange_p,
        two_way_p=two_way_p,
        growth=growth,
        growth_low=growth_low,
        growth_high=growth_high,
        effective_units=units,
        effective_questions=questions,
        questions=question_count,
        these_low=these_low,
        these_high=these_high,
    )


def _ends(value: float, error: float, freedom: float) -> tuple[float, float]:
    """Return both ends of the 95 % interval of a value.

    `freedom` are the degrees of freedom. NaN if these are too few, or there is no error.
    """
    if freedom + 1 < FEWEST_ROWS or not error > 0:
        return np.nan, np.nan
    half_width = error * float(special.stdtrit(freedom, 0.975))
    return value - half_width, value + half_width


@dataclass(frozen=True, kw_only=True, eq=False)
class _UnitSums:
    """What each unit adds to an engine's statistic of the permutation test.

    `ranktilt.measures.citations.base.Exchange` defines the statistic.
    """

    amounts: Floats
    """What each unit adds to the sum of its group, shape (n_units,)."""
    supports: Floats | None
    """What each unit adds to the denominator of its group; None where the statistic is a sum."""

    @property
    def is_used(self) -> Bools:
        """Whether a unit adds anything to the statistic, shape (n_units,)."""
        return self.amounts != 0 if self.supports is None else self.supports > 0

    def select(self, units: Ints) -> _UnitSums:
        """Return the sums of some units."""
        supports = None if self.supports is None else self.supports[units]
        return _UnitSums(amounts=self.amounts[units], supports=supports)

    def statistic(self, labels: Bools) -> Floats:
        """Return the statistic of each exchange of labels."""
        return exchange_statistic(labels, self.amounts, self.supports)


def _exchanged_p(new: EngineTilt, old: EngineTilt, *, resamples: int, seed: int) -> float:
    """Return the p of a difference by exchanging labels of units, in the same way for both engines.

    With T the difference of both engines' statistics and T* those of n exchanges, p = (1 + #{|T*| ≥
    |T|}) / (1 + n). NaN if a distance is undefined, or all units have one label.
    """
    # A unit with pages of both groups is split into two units: 2 · number for its pages of group b,
    # and 2 · number + 1 for those of group a.
    new_units = 2 * new.rows.cluster + new.rows.is_a
    old_units = 2 * old.rows.cluster + old.rows.is_a
    count = int(max(new_units.max(initial=0), old_units.max(initial=0))) + 1
    new_sums = _unit_sums(new, new_units, count)
    old_sums = _unit_sums(old, old_units, count)
    units = np.flatnonzero(new_sums.is_used | old_sums.is_used)
    is_a = units % 2 == 1
    if not is_a.any() or is_a.all() or np.isnan(new.distance - old.distance):
        return np.nan
    new_sums, old_sums = new_sums.select(units), old_sums.select(units)
    observed_labels = is_a[None, :]
    observed_new = new_sums.statistic(observed_labels)
    observed = abs(float((observed_new - old_sums.statistic(observed_labels))[0]))
    at_least_as_far, exchanges = 0, 0
    for labels in exchange_blocks(is_a, resamples=resamples, seed=seed):
        differences = new_sums.statistic(labels) - old_sums.statistic(labels)
        at_least_as_far += int((np.abs(differences) >= observed - _EPSILON).sum())
        exchanges += len(labels)
    return (1 + at_least_as_far) / (1 + exchanges)


def _unit_sums(tilt: EngineTilt, units: Ints, count: int) -> _UnitSums:
    """Sum what an engine's rows add to its statistic, unit by unit.

    `units` is the unit of each row, and `count` the number of units of both engines.
    """
    exchange = tilt.estimate.exchange
    amounts = sums(units, exchange.amount, count)
    if exchange.support is not None:
        return _UnitSums(amounts=amounts, supports=sums(units, exchange.support, count))
    scale = 1.0
    # The amounts of the question at equal rank are citations, and of shares parts of a total.
    # Citations are divided by their total, so that an engine that cites more weighs no more.
    if tilt.estimate.scale == "log ratio":
        cited = tilt.rows.weight * (tilt.rows.is_cited & tilt.rows.is_retrieved)
        scale = max(float(cited.sum()), _EPSILON)
    return _UnitSums(amounts=amounts / scale, supports=None)
