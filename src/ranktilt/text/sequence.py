"""How much of one sequence stands in another in the same order: the longest common subsequence, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def common_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence of two sequences of words.

    Parameters
    ----------
    a, b : sequence of str
        Words (or letters), compared to the letter; the order of the two does not matter.

    Returns
    -------
    int
        From 0, nothing in common, to the length of the shorter sequence. Exact: bit-parallel, one addition of a
        whole number as wide as `a` for each word of `b`.

    References
    ----------
    Hyyrö, "Bit-parallel LCS-length computation revisited", AWOCA 2004.
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
    """Tell whether enough of one sequence's words stand in another, in the same order.

    Parameters
    ----------
    of : sequence of str
        The sequence whose words are counted.
    within : sequence of str
        The one they are looked for in.
    share : float
        Share of the words of `of`, 0 to 1, that must be in the longest common subsequence.

    Returns
    -------
    bool
        False where `of` is empty. The subsequence is only computed where the lengths and then the counts of each
        word allow so many, which for most pairs they do not.
    """
    needed = share * len(of)
    if not of or len(within) < needed:
        return False
    if (Counter(of) & Counter(within)).total() < needed:
        return False
    return common_length(of, within) >= needed
