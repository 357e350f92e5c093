"""Sentences about controls: what each takes away, and what it changed."""

from __future__ import annotations

from typing import Any

from ranktilt.auditing.result import ControlChange, Controlled, Obstacle
from ranktilt.errors import counted

_MEANINGS = {
    "raw": "nothing removed",
    "length": "every text cut to as many words as its shortest twin has",
    "tokens": "every text cut to as many tokens as the model reads of its shortest twin",
    "boilerplate": "openings such as “Here is a rewritten version …” removed",
    "near-identical": "pairs with the same or nearly the same text left out (Jaccard ≥ {near:g})",
    "titles": "titles that twins share removed",
}
"""What a control removes."""
_OBSTACLES: dict[Obstacle | None, str] = {
    "no twins": "no document has a twin",
    "saved run": "a saved run cannot be ranked again",
    "engine": "the engine's documents cannot be changed",
    "no tokens": "its tokens cannot be counted",
    "no token limit": "no token limit",
    "titles only": "it reads titles only",
}
"""Why a control could not be applied."""


def control_meaning(controlled: Controlled) -> str:
    """Say what a control takes away."""
    return _MEANINGS[controlled.control].format(near=controlled.control_change.near)


def control_change(change: ControlChange) -> str:
    """Say how many texts a control changed, or why it was not applied; nothing of the raw row."""
    numbers = _numbers(change)
    if change.outcome == "unchanged":
        stands = f"; raw values apply ({numbers})" if numbers else ""
        return f"nothing to change{stands}"
    if change.outcome == "not applicable":
        return _OBSTACLES[change.obstacle]
    if change.outcome == "nothing left":
        return f"{numbers}; nothing is left to compare"
    if change.outcome == "refused":
        return f"{numbers}: {change.error}"
    return numbers


def _numbers(change: ControlChange) -> str:
    """Say how much a control changed; nothing where it changed nothing."""
    if not change.changed:
        return ""
    if change.unit == "pairs":
        return f"{change.changed:,} of {counted(change.total, 'pair', 'pairs')} left out"
    return f"{change.changed:,} of {counted(change.total, 'document', 'documents')} changed"


def derived(controlled: Controlled) -> dict[str, Any]:
    """Return the meaning and the effect of a control, which a file holds besides its fields."""
    return {
        "meaning": control_meaning(controlled),
        "changed": control_change(controlled.control_change),
    }
