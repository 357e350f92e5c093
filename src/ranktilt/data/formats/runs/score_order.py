"""Find out whether larger scores are better, and refuse runs whose scores contradict their order.

Engines export similarities (larger is better) and distances (smaller is better) under the same
name. If you read them the wrong way round, a run says the opposite of what the engine did. The
order of a list's entries distinguishes them: its rank column if that orders the list, else the
position of the entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import counted

SCORE_ORDERS = ("score", "ascending", "rank")
"""Larger is better; smaller is better; the given order alone counts."""

WAYS_ON = (
    "say how to order the results with --score-order ascending (smaller is better, as with "
    "distances), rank (the given order counts) or score (larger is better); score_order= in Python"
)
"""How to say the order of scores, in a command."""

ENGINE_WAYS_ON = (
    "say how to order the results with score_order=ascending (smaller is better, as with "
    "distances) or rank (the order of the results counts): "
    "engine:MODULE:FUNCTION(score_order=ascending), or "
    "--score-order"
)
"""How to say the order of an engine's scores."""
IN_GIVEN_ORDER = 'for the given order instead, use --score-order rank (score_order="rank")'
"""How to take results in the given order."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SHARE = 0.9
"""Share of steps that decides a list's direction, and share of lists that decides a file's.

A step goes from one entry of a list to the next. Less than all suffices, because engines break ties
and round scores.
"""
_FEWEST_RESULTS = 3
"""Fewest results of a list with a direction: of two, every second list rises by chance."""


@dataclass(frozen=True, kw_only=True)
class Directions:
    """Number of lists whose scores rise, or fall, along the given order."""

    lists: int
    """Lists of three results or more whose scores are not all equal."""
    rising: int
    """Number of lists whose scores rise."""
    falling: int
    """Number of lists whose scores fall."""

    @property
    def rise(self) -> bool:
        """Whether scores rise in most lists, so that a larger score can hardly be better."""
        return self.lists > 0 and self.rising >= _SHARE * self.lists

    @property
    def fall(self) -> bool:
        """Whether scores fall in most lists, so that a smaller score can hardly be better."""
        return self.lists > 0 and self.falling >= _SHARE * self.lists


def given_ranks(query: Ints, ranks: npt.NDArray[Any] | None) -> Ints:
    """Return the rank of each entry in its list, in the order of the file or object.

    `query` has the number of each entry's list, from 0; `ranks` is NaN for an entry without one. A
    list's rank column counts if it is full and has several ranks, else the position of its entries.
    """
    order = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    positions = np.empty(len(query), dtype=np.int64)
    positions[order] = np.arange(len(query)) - starts + 1
    if ranks is None or not len(query):
        return positions
    sorted_ranks = np.asarray(ranks, dtype=np.float64)[order]
    firsts = np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]
    lowest = np.minimum.reduceat(sorted_ranks, firsts)
    highest = np.maximum.reduceat(sorted_ranks, firsts)
    # A missing rank is NaN, which makes both of them NaN, and the comparison false.
    uses_column = np.empty(len(query), dtype=bool)
    uses_column[order] = np.repeat(lowest < highest, sizes[sizes > 0])
    return np.where(uses_column, np.nan_to_num(ranks), positions).astype(np.int64)


def directions(query: Ints, ranks: Ints, scores: Floats) -> Directions:
    """Count the lists whose scores rise or fall along the ranks.

    Entries of equal ranks, or of equal scores, have no direction.
    """
    order = np.lexsort((ranks, query))
    query, ranks, scores = query[order], ranks[order], scores[order]
    is_step = (query[1:] == query[:-1]) & (ranks[1:] > ranks[:-1])
    sizes = np.bincount(query)
    up = np.bincount(query[1:][is_step & (scores[1:] > scores[:-1])], minlength=len(sizes))
    down = np.bincount(query[1:][is_step & (scores[1:] < scores[:-1])], minlength=len(sizes))
    has_direction = (sizes >= _FEWEST_RESULTS) & (up + down > 0)
    is_rising = has_direction & (up >= _SHARE * (up + down))
    is_falling = has_direction & (down >= _SHARE * (up + down))
    return Directions(
        lists=int(has_direction.sum()),
        rising=int(is_rising.sum()),
        falling=int(is_falling.sum()),
    )


def order_fault(counts: Directions, score_order: str | None, *, ways_on: str = WAYS_ON) -> str:
    """Say why scores contradict a score order, by default larger is better; empty if they do not.

    `ways_on` says how to name an order.
    """
    lists = counted(counts.lists, "list", "lists")
    if score_order is None and counts.rise:
        return f"the scores rise along the given order in {counts.rising:,} of {lists}; {ways_on}"
    if score_order == "ascending" and counts.fall:
        return (
            f"the scores fall along the given order in {counts.falling:,} of {lists}, so "
            "smaller is hardly better; omit --score-order ascending (score_order)"
        )
    return ""
