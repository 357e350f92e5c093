"""Checks of judges against limits: order of systems, and changes since a baseline.

A judge is whoever gives grades of relevance; its baseline is an earlier audit of it. A check is
decided by an interval: *level* if it lies within the limits, *tilted* if it lies beyond one, else
*inconclusive*.
"""

from __future__ import annotations

import math
from typing import Literal

from ranktilt.auditing.gate.result import LimitCheck, Outcome
from ranktilt.judging.drift.result import JudgeChange
from ranktilt.judging.records import RankAgreement


def check_tau(row: RankAgreement, least: float) -> LimitCheck:
    """Check that a judge orders systems as humans do, with a τ-b of at least `least`."""
    value, low, high = row.tau
    return LimitCheck(
        name="tau",
        outcome=_outcome(low, high, least, math.inf),
        value=value,
        low=low,
        high=high,
        floor=least,
        ceiling=math.inf,
    )


def check_loss(change: JudgeChange, max_loss: float) -> LimitCheck:
    """Check that κ with humans has not fallen by more than `max_loss` points; 5 are .05."""
    return _change_check(
        change, "agreement", floor=-max_loss / 100, ceiling=math.inf, limit=max_loss
    )


def check_shift(change: JudgeChange, max_shift: float) -> LimitCheck:
    """Check that the mean grade has not moved by more than `max_shift` grades, either way."""
    return _change_check(change, "shift", floor=-max_shift, ceiling=max_shift, limit=max_shift)


def check_growth(change: JudgeChange, max_growth: float) -> LimitCheck:
    """Check that the grade gap is at most `max_growth` grades further from 0 than before."""
    is_testable = change.is_testable and not math.isnan(change.growth_low)
    low, high = change.growth_low, change.growth_high
    outcome = _outcome(low, high, -math.inf, max_growth) if is_testable else "inconclusive"
    return LimitCheck(
        name="gap growth",
        outcome=outcome,
        value=change.growth,
        low=low,
        high=high,
        floor=-math.inf,
        ceiling=max_growth,
        queries=change.queries,
        asked_limit=max_growth,
    )


def _change_check(
    change: JudgeChange,
    name: Literal["agreement", "shift"],
    *,
    floor: float,
    ceiling: float,
    limit: float,
) -> LimitCheck:
    """Check a change against its limits.

    The limits are `floor` and `ceiling` in the unit of the change, and `limit` as the user wrote
    it.
    """
    outcome: Outcome = "inconclusive"
    if change.is_testable:
        outcome = _outcome(change.low, change.high, floor, ceiling)
        # A shift may be significant and yet within the limits, which is not called level.
        if outcome == "level" and name == "shift" and change.kind == "changed":
            outcome = "within"
    return LimitCheck(
        name=name,
        outcome=outcome,
        value=change.value,
        low=change.low,
        high=change.high,
        floor=floor,
        ceiling=ceiling,
        queries=change.queries,
        asked_limit=limit,
    )


def _outcome(low: float, high: float, floor: float, ceiling: float) -> Outcome:
    """Decide by the interval from `low` to `high`: within the limits, beyond one, or neither."""
    if floor <= low and high <= ceiling:
        return "level"
    return "tilted" if high < floor or low > ceiling else "inconclusive"
