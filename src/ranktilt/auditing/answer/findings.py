"""The order in which findings come, the same for every result, and how large a finding is."""

from __future__ import annotations

import math
from typing import Literal, get_args

from ranktilt.auditing.effects import Effect
from ranktilt.measures.margin import Margin, half_width

FindingKind = Literal["favours", "outside", "conflict", "inconclusive", "level", "described"]
"""In the order in which they come. ``described``: says nothing of sides."""
_ORDER: tuple[FindingKind, ...] = get_args(FindingKind)


def finding_order(kind: FindingKind, size: float) -> tuple[int, float]:
    """Return what findings are sorted by: their kind, and the largest first."""
    return _ORDER.index(kind), 0.0 if math.isnan(size) else -size


def margins(effect: Effect, margin: Margin) -> float:
    """Return how many margins an effect lies from its level; standard errors where there is no margin in its unit."""
    distance = abs(effect.value - effect.level)
    half = half_width(effect.estimand, margin)
    if half > 0:
        return distance / half
    if effect.error > 0:
        return distance / effect.error
    return math.inf if distance > 0 else 0.0
