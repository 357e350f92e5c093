"""Notes of a gate: what its reader should know."""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.auditing.effects import FEW_QUERIES, Effect
from ranktilt.auditing.gate.result import GateRow
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import GrowthsJudgedAlone
from ranktilt.data.notes.groups import FewQueries, FewQueriesOfGroups
from ranktilt.statistics.bootstrap import FEWEST_ROWS


def growth_notes(rows: Sequence[GateRow]) -> list[Note]:
    """Note that several growths are judged, and that their intervals are not corrected together."""
    count = 0
    for row in rows:
        count += sum(check.name == "growth" for check in row.checks)
    return [GrowthsJudgedAlone(comparisons=count)] if count > 1 else []


def few_query_notes(effects: Sequence[Effect], warnings: Sequence[Note]) -> list[Note]:
    """Note that answers and changes rest on few queries, unless the audit warned of it."""
    fewest = min(effect.queries for effect in effects)
    # An audit by relevance has said it of each pair of groups.
    has_warned = any(
        isinstance(note, FewQueries) and (note.queries < FEWEST_ROWS) == (fewest < FEWEST_ROWS)
        for note in warnings
    )
    if fewest < FEW_QUERIES and not has_warned:
        return [FewQueriesOfGroups(queries=fewest)]
    return []
