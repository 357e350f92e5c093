"""A change can only show that nothing grew where both of its runs could have favoured somebody."""

from __future__ import annotations

from dataclasses import replace

from ranktilt.auditing.effects import Change
from ranktilt.auditing.result import Audit
from ranktilt.statistics.variation import Variation


def with_less_variation(change: Change, new: Audit, old: Audit) -> Change:
    """Add to a change the variation of whichever of its two runs could vary less."""
    sides = [
        _variation(new, change.run, change.measure),
        _variation(old, change.old_run, change.measure),
    ]
    known = [side for side in sides if side is not None]
    return replace(change, variation=min(known, key=lambda side: side.share, default=None))


def _variation(audit: Audit, run: str, measure: str) -> Variation | None:
    effects = (*audit.tilts, *audit.card)
    return next((e.variation for e in effects if (e.run, e.measure) == (run, measure)), None)
