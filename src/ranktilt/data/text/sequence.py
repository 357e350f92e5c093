"""How much of one sequence stands in another in the same order: the longest common subsequence, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence of two sequences of words, exactly.

    Bit-parallel: one addition of a whole number as wide as `a` for each word of `b` (Hyyrö,
    "Bit-parallel LCS-length computation revisited", AWOCA 2004).
    """
    places: dict[str, int] = {}
    for place, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << place
    full = (1 << len(a)) - 1
    free = full
    for word in b:
        matched = free & places.get(word, 0)
        if matched:
            free = ((free + matched) | (free - matched)) & full
    return len(a) - free.bit_count()


def holds_share(of: Sequence[str], within: Sequence[str], share: float) -> bool:
    """Tell whether a share (0 to 1) of one sequence's words stand in another, in the same order; False for no words.

    The subsequence is only computed where the lengths and then the counts of each word allow so
    many.
    """
    needed = share * len(of)
    if not of or len(within) < needed:
        return False
    if (Counter(of) & Counter(within)).total() < needed:
        return False
    return common_length(of, within) >= needed
