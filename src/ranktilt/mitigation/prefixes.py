"""How many documents of one side stand on the first ranks of a list, and lists in which other numbers do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_MARGIN = 1e-9


def expected_counts(first: Bools, scores: Floats) -> Floats:
    """Number of documents of the first side on each prefix of a list; tied documents share the ranks of their block."""
    n = len(first)
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, n)
    counts = np.cumsum(first)
    found: Floats = np.interp(np.arange(1, n + 1), np.append(0, ends), np.append(0, counts[ends - 1]))
    return found


def minimum_counts(share: float, n: int, available: int) -> Ints:
    """Fewest documents of a side on each of n prefixes: the whole part of its share, and no more than there are."""
    found: Ints = np.minimum(np.floor(share * np.arange(1, n + 1) + _MARGIN), available).astype(np.int64)
    return found


def reached(counts: Floats, needed: Ints) -> bool:
    """Whether no prefix holds fewer than it needs."""
    return bool((counts >= needed - _MARGIN).all())


def placed(first: Bools, places: Ints) -> Ints:
    """Order of a list in which the first side holds other places (rising, from 0); each side keeps its own order."""
    order = np.empty(len(first), dtype=np.int64)
    held = np.zeros(len(first), dtype=bool)
    held[places] = True
    order[held] = np.flatnonzero(first)
    order[~held] = np.flatnonzero(~first)
    return order


def with_minimums(first: Bools, needed: Ints, others_needed: Ints) -> Ints:
    """Places of the first side (rising, from 0): the best document next, save where a side would fall short.

    The fewest documents of either side on each prefix rise by at most 1, are together at most the length of the prefix,
    and no more than there are.
    """
    mine, others = np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist()
    places = list[int]()
    for place, (least, least_others) in enumerate(zip(needed.tolist(), others_needed.tolist(), strict=True)):
        count = len(places)
        behind, others_behind = count < least, place - count < least_others
        left, others_left = mine[count : count + 1], others[place - count : place - count + 1]
        if behind or not others_left or (left and left < others_left and not others_behind):
            places.append(place)
    return np.array(places, dtype=np.int64)


def untied(first: Bools, scores: Floats, keys: npt.NDArray[np.uint64], *, share: float, coin: bool) -> Ints:
    """Order of a list of falling scores in which a tie of both sides favours neither, whatever they are called.

    Of the tied documents that one comes next whose side is further behind its share of the prefix (`share` is the first
    side's); where both are equally far, the one with the smaller tie key; where that is one too, as of twins, a `coin`
    says whether it is the first side's.
    """
    order = np.lexsort((keys, -scores))
    counts = np.append(0, np.cumsum(first))
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, len(scores)).tolist()
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        if not 0 < counts[stop] - counts[start] < stop - start:
            continue
        block = order[start:stop]
        mine, others = block[first[block]].tolist(), block[~first[block]].tolist()
        count, merged = int(counts[start]), list[int]()
        while mine and others:
            # The other side lags behind by one less this.
            lag = share * (start + len(merged) + 1) - count
            one, other = keys[mine[0]], keys[others[0]]
            ahead = bool(one < other) if one != other else coin
            if abs(lag - 0.5) > _MARGIN:
                ahead = lag > 0.5
            merged.append((mine if ahead else others).pop(0))
            count += ahead
        order[start:stop] = [*merged, *mine, *others]
    return order
