"""Notes of a gate: what its reader should know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ranktilt.auditing.effects import FEW_QUERIES, Effect
from ranktilt.auditing.gate.result import GateRow
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import GrowthIsNoDifference, GrowthsJudgedAlone
from ranktilt.data.notes.groups import FewQueries, FewQueriesOfGroups
from ranktilt.statistics.bootstrap import FEWEST_ROWS


def growth_notes(rows: Sequence[GateRow]) -> list[Note]:
    """Note that growths are no differences of tilts, and that several are not corrected together.

    The growth of a tilt is the difference of both distances from the neutral value.
    """
    checks = list(chain.from_iterable(row.checks for row in rows))
    growths = [check.checked_change for check in checks if check.name == "growth"]
    notes: list[Note] = []
    if any(growth is not None and growth.has_growth_apart for growth in growths):
        notes.append(GrowthIsNoDifference())
    if len(growths) > 1:
        notes.append(GrowthsJudgedAlone(comparisons=len(growths)))
    return notes


def few_query_notes(effects: Sequence[Effect], warnings: Sequence[Note]) -> list[Note]:
    """Note that answers and changes rest on few queries, unless `warnings` say so already."""
    fewest = min(effect.queries for effect in effects)
    # Audits by relevance warn for each pair of groups. With fewer than `FEWEST_ROWS` queries there
    # is no interval, and the warning says something else.
    has_warned = any(
        isinstance(note, FewQueries) and (note.queries < FEWEST_ROWS) == (fewest < FEWEST_ROWS)
        for note in warnings
    )
    if fewest < FEW_QUERIES and not has_warned:
        return [FewQueriesOfGroups(queries=fewest)]
    return []
