"""Attach to a change how many lists could have come out differently.

A change shows that no tilt grew only if both of its runs could have favoured somebody.
"""

from __future__ import annotations

from dataclasses import replace

from ranktilt.auditing.effects import Change
from ranktilt.auditing.result import Audit
from ranktilt.statistics.variation import Variation


def with_less_variation(change: Change, new: Audit, old: Audit) -> Change:
    """Return a change with the variation of that run in which fewer lists could vary."""
    sides = [
        _variation(new, change.run, change.measure),
        _variation(old, change.old_run, change.measure),
    ]
    known = [side for side in sides if side is not None]
    return replace(change, variation=min(known, key=lambda side: side.share, default=None))


def _variation(audit: Audit, run: str, measure: str) -> Variation | None:
    """Return the variation of a run's answer; None if it has none."""
    effects = (*audit.tilts, *audit.card)
    for effect in effects:
        if (effect.run, effect.measure) == (run, measure):
            return effect.variation
    return None
