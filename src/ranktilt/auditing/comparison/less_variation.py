"""Add to a change how many lists could have come out differently.

A list is *fixed* if it could not: for example, if all its documents are tied. That a change is
small is a finding only if both runs have enough lists that could have favoured a group.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from ranktilt.auditing.effects import Change
from ranktilt.auditing.result import Audit
from ranktilt.statistics.variation import Variation


def with_less_variation(change: Change, new: Audit, old: Audit) -> Change:
    """Return a change with the variation of that run in which fewer lists could vary."""
    variations = [
        _variation(new, change.run, change.measure),
        _variation(old, change.old_run, change.measure),
    ]
    known = [variation for variation in variations if variation is not None]
    return replace(change, variation=min(known, key=attrgetter("share"), default=None))


def _variation(audit: Audit, run: str, measure: str) -> Variation | None:
    """Return the variation of a run's answer; None if it has none."""
    effects = (*audit.tilts, *audit.card)
    for effect in effects:
        if (effect.run, effect.measure) == (run, measure):
            return effect.variation
    return None
