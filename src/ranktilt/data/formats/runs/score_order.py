"""Find out whether larger scores are better, and refuse runs whose scores contradict their order.

Engines export similarities (larger is better) and distances (smaller is better) under the same
name. If you read them the wrong way round, a run says the opposite of what the engine did. The
order of a list's entries distinguishes them: its rank column if that orders the list, else the
position of the entries. This is the list's *given order*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import counted

SCORE_ORDERS = ("score", "ascending", "rank")
"""How scores order documents: larger is better; smaller is better; only the given order counts."""
ORDER_HINT = (
    "say how to order the results with --score-order ascending (smaller is better, as with "
    "distances), rank (the given order counts) or score (larger is better); score_order= in Python"
)
"""How a user says the order of a run's scores, for messages."""
ENGINE_ORDER_HINT = (
    "say how to order the results with score_order=ascending (smaller is better, as with "
    "distances) or rank (the order of the results counts): "
    "engine:MODULE:FUNCTION(score_order=ascending), or "
    "--score-order"
)
"""How a user says the order of an engine's scores, for messages."""
GIVEN_ORDER_HINT = 'for the given order instead, use --score-order rank (score_order="rank")'
"""How a user takes results in the given order, for messages."""

Floats = npt.NDArray[np.float64]
"""Array of floating-point numbers."""
Ints = npt.NDArray[np.int64]
"""Array of whole numbers."""

_STEP_SHARE = 0.9
"""Share of the steps of a list that must rise, or fall, for the list to rise or fall.

A step goes from one entry of a list to the next. Less than all steps suffice, because engines break
ties and round scores.
"""
_LIST_SHARE = 0.9
"""Share of the lists of a run that must rise, or fall, to contradict a score order."""
_FEWEST_RESULTS = 3
"""Fewest results of a list that can rise or fall: half the lists of two rise by chance."""


@dataclass(frozen=True, kw_only=True)
class ListDirections:
    """Number of lists whose scores rise, or fall, along the given order."""

    lists: int
    """Number of lists of three results or more whose scores are not all equal."""
    rising: int
    """Number of lists whose scores rise."""
    falling: int
    """Number of lists whose scores fall."""

    @property
    def rise(self) -> bool:
        """Whether scores rise in most lists, so that a larger score can hardly be better."""
        return self.lists > 0 and self.rising >= _LIST_SHARE * self.lists

    @property
    def fall(self) -> bool:
        """Whether scores fall in most lists, so that a smaller score can hardly be better."""
        return self.lists > 0 and self.falling >= _LIST_SHARE * self.lists


def given_ranks(query: Ints, ranks: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return the rank of each entry in the given order of its list, from 1.

    Parameters
    ----------
    query : array of int, shape (n_entries,)
        Number of each entry's list, from 0, in the order of the file or object.
    ranks : array, shape (n_entries,), optional
        Rank column; NaN for an entry without a rank. It counts in a list if every entry has a rank,
        and ranks differ. In other lists the positions of the entries count.
    """
    order = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    positions = np.empty(len(query), dtype=np.int64)
    positions[order] = np.arange(len(query)) - starts + 1
    if ranks is None or not len(query):
        return positions
    sorted_ranks = np.asarray(ranks, dtype=np.float64)[order]
    first_entries = np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]
    lowest = np.minimum.reduceat(sorted_ranks, first_entries)
    highest = np.maximum.reduceat(sorted_ranks, first_entries)
    # A missing rank is NaN, which makes both of them NaN, and the comparison false.
    uses_column = np.empty(len(query), dtype=bool)
    uses_column[order] = np.repeat(lowest < highest, sizes[sizes > 0])
    # Not as whole numbers: cut off, two ranks such as 1 and 1.5 would be a tie.
    return np.where(uses_column, np.nan_to_num(ranks), positions)


def list_directions(query: Ints, ranks: npt.NDArray[Any], scores: Floats) -> ListDirections:
    """Count the lists whose scores rise or fall along the ranks.

    `query` has the number of each entry's list, from 0. A step between equal ranks, or between
    equal scores, neither rises nor falls.
    """
    order = np.lexsort((ranks, query))
    query, ranks, scores = query[order], ranks[order], scores[order]
    is_step = (query[1:] == query[:-1]) & (ranks[1:] > ranks[:-1])
    sizes = np.bincount(query)
    rises = is_step & (scores[1:] > scores[:-1])
    falls = is_step & (scores[1:] < scores[:-1])
    rise_counts = np.bincount(query[1:][rises], minlength=len(sizes))
    fall_counts = np.bincount(query[1:][falls], minlength=len(sizes))
    step_counts = rise_counts + fall_counts
    has_direction = (sizes >= _FEWEST_RESULTS) & (step_counts > 0)
    is_rising = has_direction & (rise_counts >= _STEP_SHARE * step_counts)
    is_falling = has_direction & (fall_counts >= _STEP_SHARE * step_counts)
    return ListDirections(
        lists=int(has_direction.sum()),
        rising=int(is_rising.sum()),
        falling=int(is_falling.sum()),
    )


def order_fault(
    directions: ListDirections, score_order: str | None, *, hint: str = ORDER_HINT
) -> str:
    """Say why scores contradict a score order, by default larger is better; empty if they do not.

    `hint` says how a user names an order.
    """
    lists = counted(directions.lists, "list", "lists")
    if score_order is None and directions.rise:
        rising = f"{directions.rising:,} of {lists}"
        return f"the scores rise along the given order in {rising}; {hint}"
    if score_order == "ascending" and directions.fall:
        return (
            f"the scores fall along the given order in {directions.falling:,} of {lists}, so "
            "smaller is hardly better; omit --score-order ascending (score_order)"
        )
    return ""
