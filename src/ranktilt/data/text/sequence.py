"""Measure how much of a sequence another one contains in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence of two sequences of words, exactly.

    A subsequence has some of the words in their order. The usual algorithm fills a table with a
    cell for each pair of words. Here a row of the table is one integer with a bit for each word of
    `a`, and one addition makes the next row (Hyyrö, "Bit-parallel LCS-length computation
    revisited", AWOCA 2004).
    """
    position_bits: dict[str, int] = {}  # for each word, a bit set at each of its positions in `a`
    for position, word in enumerate(a):
        position_bits[word] = position_bits.get(word, 0) | 1 << position
    all_bits = (1 << len(a)) - 1
    # A bit of the row is 0 where the common length grows by 1 at that word of `a`. So the number of
    # zeros is the common length with all of `a`.
    row = all_bits
    for word in b:
        matches = row & position_bits.get(word, 0)
        if matches:
            row = ((row + matches) | (row - matches)) & all_bits
    return len(a) - row.bit_count()


def holds_share(words: Sequence[str], within: Sequence[str], share: float) -> bool:
    """Return whether `within` contains at least a share (0 to 1) of `words` in the same order.

    False if there are no words.
    """
    needed = share * len(words)
    if not words or len(within) < needed:
        return False
    # The words in common, in any order, are at least as many as those in the same order, and are
    # counted much faster.
    if (Counter(words) & Counter(within)).total() < needed:
        return False
    return common_length(words, within) >= needed
