"""Measure how much of a sequence another one contains in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence of two sequences of words, exactly.

    A subsequence has some of the words in their order. The usual table has a cell for each pair of
    words; here a row of it is one integer with a bit for each word of `a`, and one addition makes
    the next row (Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004).
    """
    positions: dict[str, int] = {}
    for position, word in enumerate(a):
        positions[word] = positions.get(word, 0) | 1 << position
    full = (1 << len(a)) - 1
    # A bit is 0 where the common length grows at that word of `a`, so that zeros count it.
    free = full
    for word in b:
        matched = free & positions.get(word, 0)
        if matched:
            free = ((free + matched) | (free - matched)) & full
    return len(a) - free.bit_count()


def holds_share(words: Sequence[str], within: Sequence[str], share: float) -> bool:
    """Return whether `within` contains at least a share (0 to 1) of `words` in the same order.

    False if there are no words.
    """
    needed = share * len(words)
    if not words or len(within) < needed:
        return False
    # Counts are an upper bound that is much cheaper than the subsequence.
    if (Counter(words) & Counter(within)).total() < needed:
        return False
    return common_length(words, within) >= needed
