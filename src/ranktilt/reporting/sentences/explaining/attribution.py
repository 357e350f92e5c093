"""The gaps of rankers between twins, and the properties that go with them, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ranktilt.data.notes.probes import GapAttributed
from ranktilt.errors import join_words

if TYPE_CHECKING:
    from ranktilt.explaining.explanation import Explanation


def attributed_gaps(explanation: Explanation) -> tuple[GapAttributed, ...]:
    """Return the gaps of an explanation, the clearest first."""
    return tuple(sorted(explanation.attributed, key=_distance_from_none))


def _distance_from_none(gap: GapAttributed) -> float:
    """Return how far a gap is from none, in half-widths of its interval; below 0 for sorting."""
    half_width = (gap.high - gap.low) / 2
    if math.isnan(half_width):
        return 0.0
    return -math.inf if half_width == 0 and gap.gap else -abs(gap.gap) / (half_width or 1.0)


def attribution_meaning(gaps: Sequence[GapAttributed]) -> str:
    """Say which properties of texts go with the gaps, and that this is no cause."""
    shown_gaps = [gap for gap in gaps if gap.is_shown]
    if not shown_gaps:
        return "No gap between the sides is shown, so there is nothing to explain."
    examined_gaps = [gap for gap in shown_gaps if not gap.is_of_retrieved]
    if not examined_gaps:
        return (
            "A gap is shown, but only among twins selected by score. Name the ranker (-r) instead "
            "of its run to see which property goes with the gap."
        )
    properties = list(dict.fromkeys(chain.from_iterable(gap.with_gap for gap in examined_gaps)))
    if not properties:
        return "A gap is shown, but none of the properties examined is shown to go with it."
    pronoun = "it" if len(properties) == 1 else "these"
    return (
        f"Look at {join_words(properties)} first, as the gap goes with {pronoun}. Only texts "
        "edited on purpose would show whether that is the cause."
    )
