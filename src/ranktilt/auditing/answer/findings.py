"""The order in which findings are told: the same for every result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import Effect
from ranktilt.measures.margin import Margin, half_width

FindingKind = Literal["favours", "outside", "conflict", "inconclusive", "level", "described"]
"""In the order in which they are told. ``described``: says nothing of sides."""
_ORDER: tuple[FindingKind, ...] = get_args(FindingKind)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a result says, and how much it matters."""

    kind: FindingKind
    sentence: str
    size: float = 0.0
    """How far from level, in margins; what it is compared with is of its own kind alone."""
    run: str = ""
    verdict: Verdict | None = None
    """What is said of the run, where it is a verdict."""

    @property
    def order(self) -> tuple[int, float]:
        """What findings are sorted by: their kind, and the largest first."""
        return _ORDER.index(self.kind), 0.0 if math.isnan(self.size) else -self.size


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings in the order in which they are told; those of equal weight stay in theirs."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def margins(effect: Effect, margin: Margin) -> float:
    """Return how many margins an effect lies from its level; standard errors where there is no margin in its unit."""
    distance = abs(effect.value - effect.level)
    half = half_width(effect.estimand, margin)
    if half > 0:
        return distance / half
    if effect.error > 0:
        return distance / effect.error
    return math.inf if distance > 0 else 0.0
