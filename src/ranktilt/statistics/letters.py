"""Compact letter displays: many pairwise decisions as a few shared letters.

A table of rankers, for example, has one or more letters for each ranker. Two rankers that share a
letter cannot be distinguished; two without a common letter differ. The rankers are called *members*
here. The algorithm, "insert and absorb", is by H.-P. Piepho, Journal of Computational and Graphical
Statistics 13(2), 2004.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from string import ascii_letters
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


def letter_sets(differs: Bools) -> list[tuple[int, ...]]:
    """Return the largest sets of members of which no two differ; each set is a letter.

    Piepho's algorithm splits a set at each pair that differs (insert) and drops a set that is part
    of another (absorb). The sets that it leaves are the maximal cliques of the graph in which two
    members are connected if they do not differ. The algorithm of C. Bron and J. Kerbosch for them
    (Communications of the ACM 16(9), 1973) takes a thousandth of the time for a hundred members.

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
    return sorted(_maximal_sets(differs))


class _Search(NamedTuple):
    """A set of which no two members differ, and which may grow: a state of Bron and Kerbosch."""

    members: tuple[int, ...]
    """Members of the set."""
    candidates: frozenset[int]
    """Members that could join the set."""
    known: frozenset[int]
    """Members that could join too, but only to sets that other branches of the search return."""


def _maximal_sets(differs: Bools) -> Iterator[tuple[int, ...]]:
    """Yield the largest sets of members of which no two differ, in no order."""
    count = len(differs)
    alike = ~np.asarray(differs, dtype=bool)
    np.fill_diagonal(alike, False)
    neighbours = [frozenset(np.flatnonzero(row).tolist()) for row in alike]
    start = _Search(members=(), candidates=frozenset(range(count)), known=frozenset())
    stack = [start] if count else []
    while stack:
        members, candidates, known = stack.pop()
        if not candidates and not known:
            yield tuple(sorted(members))
            continue
        # Every largest set has the pivot or a member that differs from it. So only these need to be
        # tried; the pivot with the most neighbours leaves the fewest.
        joinable = {member: len(candidates & neighbours[member]) for member in candidates | known}
        pivot = max(sorted(joinable), key=joinable.__getitem__)
        for member in sorted(candidates - neighbours[pivot]):
            near = neighbours[member]
            stack.append(
                _Search(
                    members=(*members, member), candidates=candidates & near, known=known & near
                )
            )
            candidates, known = candidates - {member}, known | {member}


def compact_letters(differs: Bools, most: int | None = None) -> list[str]:
    """Return the letters of each member: two share a letter exactly where they do not differ.

    Parameters
    ----------
    differs : ndarray of bool, shape (n, n)
        Which two members differ, as in `letter_sets`; the first member gets ``a``.
    most : int, optional
        Most letters. If more are needed, which nobody could read, all members get an empty text.

    Returns
    -------
    list of str
        Such as ``["a", "ab", "b"]``. Beyond 52 sets a letter has a number: ``a2``.
    """
    letters = [""] * len(differs)
    # One set too many is enough to know that there are too many.
    last = None if most is None else most + 1
    sets = sorted(islice(_maximal_sets(differs), last))
    if most is not None and len(sets) > most:
        return letters
    for index, members in enumerate(sets):
        alphabet_number, position = divmod(index, len(ascii_letters))
        letter = ascii_letters[position] + (str(alphabet_number + 1) if alphabet_number else "")
        for member in members:
            letters[member] += letter
    return letters
