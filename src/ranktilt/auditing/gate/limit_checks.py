"""Checks of a tilt, its growth and a loss of effectiveness against their limits.

The growth of a tilt is how much farther from its neutral value it is than in an earlier audit.
"""

from __future__ import annotations

import math

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import LimitCheck, Outcome
from ranktilt.measures.margin import Margin, half_width

LARGEST_DELTA = 200.0
"""Largest absolute value of Relative Δ, in percent: no interval lies beyond such a limit."""


def percent_factor(effect: Effect) -> float:
    """Return the factor from an effect's values to percent; NaN if it has another unit."""
    return 1 / effect.estimand.point


def printed_factor(effect: Effect) -> float:
    """Return the factor from an effect's values to printed numbers, in percent or its own unit."""
    has_points = not math.isnan(effect.estimand.point)
    return percent_factor(effect) if has_points else effect.estimand.scale


def check_tilt(tilt: Effect, limit: Margin) -> LimitCheck:
    """Check that a tilt is within ±`limit` of its neutral value, by the same rule as a verdict."""
    half, scale = half_width(tilt.estimand, limit), printed_factor(tilt)
    return LimitCheck(
        name="tilt",
        outcome=_tilt_outcome(tilt, limit),
        value=scale * tilt.value,
        low=scale * tilt.low,
        high=scale * tilt.high,
        floor=scale * (tilt.neutral - half),
        ceiling=scale * (tilt.neutral + half),
        asked_limit=limit,
        favours=tilt.side(tilt.favours),
        checked_tilt=tilt,
    )


def _tilt_outcome(tilt: Effect, limit: Margin) -> Outcome:
    """Return the outcome of a check of a tilt.

    ``level`` if the whole interval lies within the limit, or ``within`` if it also shows a favoured
    group; ``tilted`` if it shows one and lies beyond the limit; else ``inconclusive``.
    """
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or not tilt.has_interval or not tilt.testable:
        return "inconclusive"
    extent = tilt.extent(limit)
    if extent == "within" and tilt.can_be_level:
        return "within" if tilt.is_shown else "level"
    return "tilted" if extent == "beyond" and tilt.is_shown else "inconclusive"


def check_growth(
    change: Change, max_growth: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check that a tilt has not grown by more than `max_growth`: ``|Δ new| − |Δ old|``.

    The limit is in points; 0 is a limit in any unit. `is_on_common_queries` says whether queries
    that only one audit holds were left out.
    """
    scale = printed_factor(change)
    return LimitCheck(
        name="growth",
        outcome=_growth_outcome(change, max_growth),
        value=scale * change.growth,
        low=scale * change.growth_low,
        high=scale * change.growth_high,
        floor=-math.inf,
        ceiling=max_growth,
        queries=change.queries,
        asked_limit=max_growth,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def _growth_outcome(change: Change, max_growth: float) -> Outcome:
    """Return the outcome of a check of a growth, whose interval decides alone."""
    # The limit in the unit of `change`. 0 is not converted: that would give NaN for a unit other
    # than points.
    ceiling = half_width(change.estimand, max_growth) if max_growth else 0.0
    if math.isnan(change.growth) or not change.testable:
        return "inconclusive"
    if change.growth_low > ceiling:
        return "tilted"
    if change.growth_high <= ceiling and change.can_be_level:
        return "level"
    return "inconclusive"


def check_loss(
    change: Change, max_loss: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check that effectiveness has not fallen by more than `max_loss` points.

    `is_on_common_queries` says whether queries that only one audit holds were left out.
    """
    return LimitCheck(
        name="loss",
        outcome=loss_outcome(change, max_loss),
        value=change.value,
        low=change.low,
        high=change.high,
        floor=-max_loss,
        ceiling=math.inf,
        queries=change.queries,
        asked_limit=max_loss,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def loss_outcome(change: Change, max_loss: float) -> Outcome:
    """Return the outcome of a check that effectiveness has fallen by at most `max_loss` points."""
    if math.isnan(change.value) or not (change.testable and change.has_interval):
        return "inconclusive"
    if change.low >= -max_loss:
        return "level"
    return "tilted" if change.high < -max_loss else "inconclusive"
