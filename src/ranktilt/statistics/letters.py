"""Compact letter displays: many pairwise decisions as a few shared letters.

A table of rankers has a letter or several for each one. Two rankers that share a letter cannot be
distinguished; two without a common letter differ. The algorithm, "insert and absorb", is by
H.-P. Piepho, Journal of Computational and Graphical Statistics 13(2), 2004.
"""

from __future__ import annotations

from string import ascii_letters

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


def letter_sets(differs: Bools) -> list[tuple[int, ...]]:
    """Return the largest sets of members of which no two differ; each set is a letter.

    There is one set of all members at first. Each pair of members that differ splits every set that
    holds both, into one set without the first and one without the second (insert). A set that is
    part of another set is dropped (absorb).

    Parameters
    ----------
    differs : ndarray of bool, shape (n, n)
        Which two members differ; symmetric, False on the diagonal.

    Returns
    -------
    list of tuple of int
        Numbers of the members of each set, in rising order. Sets are in the order of their first
        members, then of the next. Every member is in at least one set.
    """
    count = len(differs)
    sets = [frozenset(range(count))] if count else []
    for first, second in zip(*np.nonzero(np.triu(differs)), strict=True):
        both = {int(first), int(second)}
        parts = list[frozenset[int]]()
        for members in sets:
            parts += [members - {member} for member in both] if both <= members else [members]
        sets = _absorbed(parts)
    return sorted(tuple(sorted(members)) for members in sets)


def _absorbed(sets: list[frozenset[int]]) -> list[frozenset[int]]:
    """Drop the sets that lie within another one, and repetitions."""
    distinct = list(dict.fromkeys(sets))
    return [members for members in distinct if not _lies_within(members, distinct)]


def _lies_within(members: frozenset[int], sets: list[frozenset[int]]) -> bool:
    """Tell whether a set of members is a part of another one."""
    return any(members < wider for wider in sets)


def compact_letters(differs: Bools) -> list[str]:
    """Return the letters of each member: two share a letter exactly where they do not differ.

    Parameters
    ----------
    differs : ndarray of bool, shape (n, n)
        Which two members differ, as in `letter_sets`; the first member gets ``a``.

    Returns
    -------
    list of str
        Such as ``["a", "ab", "b"]``. Beyond 52 sets a letter has a number: ``a2``.
    """
    letters = [""] * len(differs)
    for index, members in enumerate(letter_sets(differs)):
        round_number, position = divmod(index, len(ascii_letters))
        letter = ascii_letters[position] + (str(round_number + 1) if round_number else "")
        for member in members:
            letters[member] += letter
    return letters
