"""Interval and p of the difference between two engines' tilts, over the same questions and units.

Both engines answer the same questions, and mostly from the same domains, so the error is that of
the difference: what a query or a domain adds to one engine's tilt minus what it adds to the
other's. p is the larger of two, as for one engine: the two-way t test, and labels that are
exchanged between units, the same ones for both engines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ranktilt.citing.arrays import joined_rows
from ranktilt.citing.infer import (
    FEWEST_UNITS,
    effective_units_of_sides,
    exchange_blocks,
    exchange_statistic,
    t_p,
    two_way_variance,
    widened,
)
from ranktilt.citing.questions import Question
from ranktilt.measures.citations.base import Bools, CitationEstimate, CitationRows, Floats, Ints
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.two_way import effective_number, sums

_EPSILON = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineTilt:
    """What a question says of one engine, and the distance that is compared."""

    rows: CitationRows
    estimate: CitationEstimate
    distance: float
    """Distance from neutral on the estimate's scale; the share itself, where no pool is known."""


@dataclass(frozen=True, kw_only=True)
class DifferenceSpread:
    """How far a difference of two tilts scatters over other questions and units."""

    value: float
    """The new engine's distance from neutral minus the old one's, on the scale of the error."""
    low: float
    high: float
    error: float
    p: float
    exchange_p: float
    two_way_p: float
    growth: float
    """|new distance| − |old distance|: above 0, the new engine tilts more, whichever way."""
    growth_low: float
    growth_high: float
    effective_units: float
    effective_questions: float
    questions: int
    these_low: float
    these_high: float
    """Interval for further questions about the same units; NaN where units allow for others."""


def engine_tilts(
    question: Question, new: CitationRows, old: CitationRows
) -> tuple[EngineTilt, EngineTilt]:
    """Ask both engines one question.

    A share is compared as its distance from the pool, or by itself where an engine's pool is
    unknown.
    """
    tilts = [_tilt(question, rows) for rows in (new, old)]
    if any(np.isnan(tilt.estimate.neutral) for tilt in tilts):
        tilts = [_tilt(question, _without_pool(rows)) for rows in (new, old)]
    return tilts[0], tilts[1]


def _tilt(question: Question, rows: CitationRows) -> EngineTilt:
    estimate = question.estimate(rows)
    distance = estimate.distance
    if estimate.scale == "share" and np.isnan(estimate.neutral):
        distance = estimate.value
    return EngineTilt(rows=rows, estimate=estimate, distance=distance)


def _without_pool(rows: CitationRows) -> CitationRows:
    none = np.zeros(len(rows), dtype=np.bool_)
    return replace(rows, is_consulted=none, retrieval_rank=none.astype(np.int64))


def difference_spread(
    new: EngineTilt, old: EngineTilt, *, resamples: int, seed: int
) -> DifferenceSpread:
    """Return the difference of two tilts with its interval and p."""
    rows = joined_rows(new.rows, old.rows)
    parts = new.estimate.influence, old.estimate.influence
    influence = np.concatenate([parts[0], -parts[1]])
    signs = np.sign(new.distance), np.sign(old.distance)
    growing = np.concatenate([signs[0] * parts[0], -signs[1] * parts[1]])
    units = float(min(map(_effective_units, (new, old))))
    support = rows.per_question(np.concatenate([_support(new), _support(old)]))
    questions = effective_number(support)
    freedom = min(units, questions) - 1
    value = new.distance - old.distance
    growth = abs(new.distance) - abs(old.distance)
    exchange_p = _exchanged_p(new, old, resamples=resamples, seed=seed)
    error = growth_error = two_way_p = np.nan
    if np.isfinite(value) and np.isfinite(influence).all():
        error = float(np.sqrt(two_way_variance(rows, influence)))
        # Equal influences cancel but for the rounding of their sums.
        error = error if error > _EPSILON else 0.0
        growth_error = float(np.sqrt(two_way_variance(rows, growing)))
        two_way_p = t_p(value, error, freedom)
    p = float(np.maximum(exchange_p, two_way_p))
    wide = widened(value, error, p, freedom)
    low, high = _ends(value, wide, freedom)
    growth_low, growth_high = _ends(growth, growth_error, freedom)
    these_low, these_high = np.nan, np.nan
    count = int((support > 0).sum())
    if units < FEWEST_UNITS and count > 1 and np.isfinite(error):
        squares = float((rows.per_question(influence) ** 2).sum())
        alone = float(np.sqrt(squares * count / (count - 1)))
        these_low, these_high = _ends(value, alone, count - 1)
    return DifferenceSpread(
        value=value,
        low=low,
        high=high,
        error=wide,
        p=p,
        exchange_p=exchange_p,
        two_way_p=two_way_p,
        growth=growth,
        growth_low=growth_low,
        growth_high=growth_high,
        effective_units=units,
        effective_questions=questions,
        questions=count,
        these_low=these_low,
        these_high=these_high,
    )


def _effective_units(tilt: EngineTilt) -> float:
    return min(effective_units_of_sides(tilt.rows, tilt.estimate))


def _support(tilt: EngineTilt) -> Floats:
    return tilt.estimate.support_a + tilt.estimate.support_b


def _ends(value: float, error: float, freedom: float) -> tuple[float, float]:
    """Return the 95 % interval; none where too little carries it, or nothing varies."""
    if freedom + 1 < FEWEST_ROWS or not error > 0:
        return np.nan, np.nan
    half = error * float(special.stdtrit(freedom, 0.975))
    return value - half, value + half


@dataclass(frozen=True, kw_only=True, eq=False)
class _UnitSums:
    """What each unit adds to an engine's statistic; see `Exchange`."""

    amounts: Floats
    supports: Floats | None


def _exchanged_p(new: EngineTilt, old: EngineTilt, *, resamples: int, seed: int) -> float:
    """Return the p of a difference by exchanging labels of units, the same for both engines."""
    unit_of_row = [2 * tilt.rows.cluster + tilt.rows.is_a for tilt in (new, old)]
    count = int(max(numbers.max(initial=0) for numbers in unit_of_row)) + 1
    sides = [
        _unit_sums(tilt, numbers, count)
        for tilt, numbers in zip((new, old), unit_of_row, strict=True)
    ]
    carries = np.zeros(count, dtype=np.bool_)
    for side in sides:
        carries |= side.amounts != 0 if side.supports is None else side.supports > 0
    units = np.flatnonzero(carries)
    is_a = units % 2 == 1
    if not is_a.any() or is_a.all() or np.isnan(new.distance - old.distance):
        return np.nan
    sides = [_of_units(side, units) for side in sides]

    def statistics(labels: Bools) -> Floats:
        of_new, of_old = (exchange_statistic(labels, side.amounts, side.supports) for side in sides)
        return of_new - of_old

    observed = abs(float(statistics(is_a[None, :])[0]))
    hits, total = 0, 0
    for labels in exchange_blocks(is_a, resamples=resamples, seed=seed):
        hits += int((np.abs(statistics(labels)) >= observed - _EPSILON).sum())
        total += len(labels)
    return (1 + hits) / (1 + total)


def _unit_sums(tilt: EngineTilt, units: Ints, count: int) -> _UnitSums:
    """Sum by unit, so that engines with more citations weigh no more than others."""
    exchange = tilt.estimate.exchange
    amounts = sums(units, exchange.amount, count)
    if exchange.support is None:
        scale = 1.0
        if tilt.estimate.scale == "log ratio":
            cited = tilt.rows.weight * (tilt.rows.is_cited & tilt.rows.is_retrieved)
            scale = max(float(cited.sum()), _EPSILON)
        return _UnitSums(amounts=amounts / scale, supports=None)
    return _UnitSums(amounts=amounts, supports=sums(units, exchange.support, count))


def _of_units(side: _UnitSums, units: Ints) -> _UnitSums:
    supports = None if side.supports is None else side.supports[units]
    return _UnitSums(amounts=side.amounts[units], supports=supports)
