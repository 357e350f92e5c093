"""Which way scores run: a run whose scores rise along its own order is refused until somebody says what they are.

Engines export similarities (larger is better) and distances (smaller is better) under one name, and
read the wrong way round a run says the opposite of what the engine did. The order in which a list
is given tells the two apart: its rank column where that orders the list, else the place of its
results.
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
    "--score-order ascending (smaller is better, as with distances), rank (the given order counts) or score (larger is "
    "better) says what they are; score_order= in Python"
)

ENGINE_WAYS_ON = (
    "score_order=ascending (smaller is better, as with distances) or rank (the order of the results counts) says what "
    "they are: engine:MODULE:FUNCTION(score_order=ascending), or --score-order"
)
IN_GIVEN_ORDER = '--score-order rank (score_order="rank") takes the given order instead'

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SHARE = 0.9
"""Share of the lists, and of the steps within a list, from which they run one way."""
_TELLING = 3
"""Results from which a list says which way its scores run: of two, every second list rises by chance."""


@dataclass(frozen=True, kw_only=True)
class Directions:
    """How many lists have scores that rise, or fall, along the given order."""

    lists: int
    """Lists that say something: of three results or more whose scores are not all equal."""
    rising: int
    falling: int

    @property
    def rise(self) -> bool:
        """Whether scores rise in so many lists that larger is hardly better."""
        return self.lists > 0 and self.rising >= _SHARE * self.lists

    @property
    def fall(self) -> bool:
        """Whether scores fall in so many lists that smaller is hardly better."""
        return self.lists > 0 and self.falling >= _SHARE * self.lists


def given_ranks(query: Ints, ranks: npt.NDArray[Any] | None) -> Ints:
    """Return the rank of each entry in its list, as given.

    `query` numbers the list of each entry, from 0; `ranks` holds NaN where there is none. A rank
    column counts where it orders the list: it is full, and not one rank for all. Elsewhere the
    place among the list's entries counts.
    """
    order = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(len(query), dtype=np.int64)
    places[order] = np.arange(len(query)) - starts + 1
    if ranks is None or not len(query):
        return places
    sorted_ranks = np.asarray(ranks, dtype=np.float64)[order]
    firsts = np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]
    # NaN, where a rank is missing, makes both extremes NaN, and no comparison holds.
    ordered = np.minimum.reduceat(sorted_ranks, firsts) < np.maximum.reduceat(sorted_ranks, firsts)
    by_column = np.empty(len(query), dtype=bool)
    by_column[order] = np.repeat(ordered, sizes[sizes > 0])
    return np.where(by_column, np.nan_to_num(ranks), places).astype(np.int64)


def directions(query: Ints, ranks: Ints, scores: Floats) -> Directions:
    """Count the lists whose scores rise or fall along the given ranks; equal ranks and equal scores are no step."""
    order = np.lexsort((ranks, query))
    query, ranks, scores = query[order], ranks[order], scores[order]
    inner = (query[1:] == query[:-1]) & (ranks[1:] > ranks[:-1])
    sizes = np.bincount(query)
    up = np.bincount(query[1:][inner & (scores[1:] > scores[:-1])], minlength=len(sizes))
    down = np.bincount(query[1:][inner & (scores[1:] < scores[:-1])], minlength=len(sizes))
    telling = (sizes >= _TELLING) & (up + down > 0)
    return Directions(
        lists=int(telling.sum()),
        rising=int((telling & (up >= _SHARE * (up + down))).sum()),
        falling=int((telling & (down >= _SHARE * (up + down))).sum()),
    )


def order_fault(found: Directions, score_order: str | None, *, ways_on: str = WAYS_ON) -> str:
    """Say why scores cannot be read in an order, or where none is named, as scores; empty where they can.

    `ways_on` tells how to name an order.
    """
    lists = counted(found.lists, "list", "lists")
    if score_order is None and found.rise:
        return f"the scores rise along the given order in {found.rising:,} of {lists}; {ways_on}"
    if score_order == "ascending" and found.fall:
        return (
            f"the scores fall along the given order in {found.falling:,} of {lists}, so that smaller is hardly better; "
            "omit --score-order ascending (score_order)"
        )
    return ""
