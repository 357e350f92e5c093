"""What an intervention costs in effectiveness, held against a budget."""

from __future__ import annotations

import math
from dataclasses import replace

from ranktilt.auditing.answer.gate import LimitCheck, Outcome, points
from ranktilt.auditing.answer.verdict import bounds
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL
from ranktilt.errors import counted
from ranktilt.measures.printing import signed


def check_cost(change: Change, budget: float) -> LimitCheck:
    """Hold the interval of a change of effectiveness against the loss that is allowed."""
    floor = -100 * budget
    found = cost_words(change, budget)
    outcome: Outcome = "inconclusive"
    loss = f"a loss of more than {points(budget)}"
    if any(math.isnan(v) for v in (change.value, change.low, change.high)):
        reason = f"no query has a value of {change.measure} under both rankers"
    elif not replace(change, tests=1).testable:
        reason = f"{counted(change.sample, 'distinct query is', 'distinct queries are')} too few to test; {found}"
    elif change.low >= floor:
        outcome, reason = "level", f"{change.measure} {found}: {loss} is excluded"
    elif change.high < floor:
        outcome, reason = "tilted", f"{change.measure} {found}: {loss} is shown"
    else:
        reason = f"{change.measure} {found}: {loss} is neither shown nor excluded"
    return LimitCheck("cost", outcome, change.value, change.low, change.high, floor, math.inf, reason)


def cost_words(change: Change, budget: float) -> str:
    """Print a change of effectiveness with its interval beside the loss that is allowed, and over which documents."""
    over = "over all documents" if change.a == ALL else f"on {change.a} documents alone"
    return f"{signed(change.value)} points {bounds(change.low, change.high, -100 * budget)} {over}"
