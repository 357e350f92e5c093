"""Gates on a judge in words: how much it changed since a baseline, against limits.

The baseline is an earlier audit of the judge. A check is on ``agreement`` with humans, the
``shift`` of the mean grade, or ``gap growth``: how much farther from 0 the grade gap is, the
difference of its grades between two sources.
"""

from __future__ import annotations

from math import isnan

from ranktilt.auditing.gate.result import LimitCheck
from ranktilt.errors import counted
from ranktilt.judging.records import FEWEST_QUERIES
from ranktilt.measures.printing import digits_apart, signed

_NAMES = {
    "agreement": "agreement with humans",
    "shift": "the mean grade",
    "gap growth": "the distance of the grade gap from 0",
}
"""What may change, by the name of the check."""


def growth_question(max_growth: float) -> str:
    """Say which growth of a grade gap is allowed."""
    if max_growth == 0:
        return "no growth of the grade gap since the baseline"
    return f"a grade gap grown by at most {max_growth:g} grades since the baseline"


def drift_reason(check: LimitCheck, queries: int) -> str:
    """Say how the change of a judge since the baseline compares with its limits.

    `queries` is the number of queries behind the check.
    """
    name = _NAMES[check.name]
    if isnan(check.value):
        return f"the change of {name} is undefined: one of the judges never varies"
    if isnan(check.low):
        few = counted(queries, "query is", "queries are")
        return (
            f"{name} changed by {signed(check.value, 2)} without an interval: {few} too few "
            f"({FEWEST_QUERIES} needed)"
        )
    limits = [limit for limit in (check.floor, check.ceiling) if abs(limit) != float("inf")]
    digits = digits_apart([check.low, check.high], limits, 2)
    interval = f"[{signed(check.low, digits)}, {signed(check.high, digits)}]"
    numbers = f"{name} changed by {signed(check.value, 2)} {interval} since the baseline:"
    allowed = " to ".join(signed(limit, 2) for limit in limits)
    if check.outcome in ("level", "within"):
        still = ", but a change is shown" if check.outcome == "within" else ""
        return f"{numbers} within the limit of {allowed}{still}"
    if check.outcome == "tilted":
        return f"{numbers} wholly beyond the limit of {allowed}"
    return f"{numbers} on both sides of the limit of {allowed}, so it neither passes nor fails"
