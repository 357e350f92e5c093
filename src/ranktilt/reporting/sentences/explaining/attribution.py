"""The gaps of rankers between twins, and the properties that go with them, in words.

Twins are versions of one text by two sources. A gap is the mean difference of their scores, in
standard deviations of a query's scores. An attribution says which properties of texts go with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ranktilt.data.notes.probes import GapAttributed
from ranktilt.errors import join_words
from ranktilt.reporting.sentences.grammar import singular_or_plural

if TYPE_CHECKING:
    from ranktilt.explaining.explanation import Explanation


def attributed_gaps(explanation: Explanation) -> tuple[GapAttributed, ...]:
    """Return the gaps of an explanation, the clearest first."""
    return tuple(sorted(explanation.attributed, key=_clearness, reverse=True))


def _clearness(gap: GapAttributed) -> float:
    """Return how many half-widths of its interval a gap is from 0; 0 without an interval."""
    half_width = (gap.high - gap.low) / 2
    if math.isnan(half_width) or not gap.gap:
        return 0.0
    return math.inf if half_width == 0 else abs(gap.gap) / half_width


def attribution_meaning(gaps: Sequence[GapAttributed]) -> str:
    """Say which properties of texts go with the gaps, and that this is no cause."""
    shown_gaps = [gap for gap in gaps if gap.is_shown]
    if not shown_gaps:
        return "No gap between the sides is shown, so there is nothing to explain."
    # Twins that a run retrieved are selected by their scores, which would bias an attribution.
    examined_gaps = [gap for gap in shown_gaps if not gap.is_of_retrieved]
    if not examined_gaps:
        return (
            "A gap is shown, but only among twins selected by score. Name the ranker (-r) instead "
            "of its run to see which property goes with the gap."
        )
    properties = list(dict.fromkeys(chain.from_iterable(gap.with_gap for gap in examined_gaps)))
    if not properties:
        return "A gap is shown, but none of the properties examined is shown to go with it."
    these = singular_or_plural(len(properties), "it", "these")
    return (
        f"Look at {join_words(properties)} first, as the gap goes with {these}. Only texts "
        "edited on purpose would show whether that is the cause."
    )
