"""Sentences about controls: what each takes away from texts, and how many texts it changed.

A control ranks again without a difference between the two sides, such as their length, to see
whether the tilt remains (how far the ranker favours a side). Twins are versions of one text, one on
each side. A change here is what a control did to the texts.
"""

from __future__ import annotations

from typing import Any

from ranktilt.auditing.controls.result import ControlChange, Controlled, Obstacle
from ranktilt.reporting.sentences.grammar import share_of_all

_MEANINGS = {
    "raw": "nothing removed",
    "length": "every text cut to as many words as its shortest twin has",
    "tokens": "every text cut to as many tokens as the model reads of its shortest twin",
    "boilerplate": "openings such as “Here is a rewritten version …” removed",
    "near-identical": "pairs with the same or nearly the same text left out (Jaccard ≥ {near:g})",
    "titles": "titles that twins share removed",
}
"""What a control removes; ``raw`` is the row without a control."""
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
    """Say how many texts a control changed, or why it was not applied; empty for the raw row."""
    numbers = _numbers(change)
    if change.outcome == "unchanged":
        # Texts were changed, but none that this run reads.
        raw_values = f"; raw values apply ({numbers})" if numbers else ""
        return f"nothing to change{raw_values}"
    if change.outcome == "not applicable":
        return _OBSTACLES[change.obstacle]
    if change.outcome == "nothing left":
        return f"{numbers}; nothing is left to compare"
    if change.outcome == "refused":
        return f"{numbers}: {change.error}"
    return numbers


def _numbers(change: ControlChange) -> str:
    """Say how many texts or pairs a control changed; empty where it changed none."""
    if not change.changed:
        return ""
    if change.unit == "pairs":
        return f"{share_of_all(change.changed, change.total, 'pair', 'pairs')} left out"
    return f"{share_of_all(change.changed, change.total, 'document', 'documents')} changed"


def derived_words(controlled: Controlled) -> dict[str, Any]:
    """Return the meaning and the effect of a control, which a file holds besides its fields."""
    return {
        "meaning": control_meaning(controlled),
        "changed": control_change(controlled.control_change),
    }
