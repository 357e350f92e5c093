"""Checks of a tilt, its growth and a loss of effectiveness against what is allowed."""

from __future__ import annotations

import math

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import LimitCheck, Outcome
from ranktilt.measures.margin import Margin, half_width

MOST = 200.0
"""The most Relative Δ can be, either way: no interval lies beyond such a limit."""


def in_percent(effect: Effect) -> float:
    """Return the factor from an effect's numbers to points of percent; NaN in another unit."""
    return 1 / effect.estimand.point


def _printed(effect: Effect) -> float:
    """Return the factor from an effect's numbers to the printed ones: points, or its own unit."""
    has_points = not math.isnan(effect.estimand.point)
    return in_percent(effect) if has_points else effect.estimand.scale


def check_tilt(tilt: Effect, limit: Margin) -> LimitCheck:
    """Check an effect against ±`limit` around its neutral value, by the rule of verdicts.

    See `Effect.extent`.
    """
    half, scale = half_width(tilt.estimand, limit), _printed(tilt)
    return LimitCheck(
        name="tilt",
        outcome=_tilt_outcome(tilt, limit),
        value=scale * tilt.value,
        low=scale * tilt.low,
        high=scale * tilt.high,
        floor=scale * (tilt.neutral - half),
        ceiling=scale * (tilt.neutral + half),
        asked_limit=limit,
        checked_tilt=tilt,
    )


def _tilt_outcome(tilt: Effect, limit: Margin) -> Outcome:
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or not tilt.has_interval or not tilt.testable:
        return "inconclusive"
    extent = tilt.extent(limit)
    if extent == "within" and tilt.can_be_level:
        return "within" if tilt.is_shown else "level"
    return "tilted" if extent == "beyond" and tilt.is_shown else "inconclusive"


def check_growth(change: Change, least: float, *, is_on_common_queries: bool = False) -> LimitCheck:
    """Check the interval of ``|Δ new| − |Δ old|`` against the growth that is allowed."""
    scale = _printed(change)
    return LimitCheck(
        name="growth",
        outcome=_growth_outcome(change, least),
        value=scale * change.growth,
        low=scale * change.growth_low,
        high=scale * change.growth_high,
        floor=-math.inf,
        ceiling=least,
        queries=change.queries,
        asked_limit=least,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def _growth_outcome(change: Change, least: float) -> Outcome:
    most = half_width(change.estimand, least) if least else 0.0
    if math.isnan(change.growth) or not change.testable:
        return "inconclusive"
    if change.growth_low > most:
        return "tilted"
    if change.growth_high <= most and change.can_be_level:
        return "level"
    return "inconclusive"


def check_loss(
    change: Change, max_loss: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check the interval of a change of effectiveness against the loss that is allowed."""
    outcome: Outcome = "inconclusive"
    if change.testable and not math.isnan(change.value):
        if change.low >= -max_loss:
            outcome = "level"
        elif change.high < -max_loss:
            outcome = "tilted"
    return LimitCheck(
        name="loss",
        outcome=outcome,
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
