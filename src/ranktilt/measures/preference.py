"""Twins against each other: which of two versions of one document stands higher."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_CELLS = 1 << 22


class PairCounts(NamedTuple):
    """Per query, over pairs of twins with at least one side retrieved; arrays of shape (n_queries,)."""

    wins: Ints
    """The first side stands higher, or is retrieved alone."""
    losses: Ints
    """The second side stands higher, or is retrieved alone."""
    ties: Ints
    """Both retrieved with the same score."""
    both: Ints
    """Both retrieved."""


def pair_counts(
    offsets: Ints,
    docs: Ints,
    scores: Floats,
    pairs: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_] | None = None,
) -> PairCounts:
    """Count wins, losses and ties of twins in a run.

    Parameters
    ----------
    offsets, docs, scores : ndarray
        A run: query ``i`` owns the entries ``offsets[i]:offsets[i + 1]``; documents are rows.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of the first and of the second side's document of each pair.
    chosen : ndarray of bool, shape (n_entries,), optional
        Entries whose pairs count, such as the relevant ones; a pair counts if either entry is chosen.

    Returns
    -------
    PairCounts
        An unretrieved twin stands below every retrieved document.
    """
    marked = np.ones(len(docs), dtype=bool) if chosen is None else chosen
    return split_pair_counts(offsets, docs, scores, pairs, marked)[0]


def split_pair_counts(
    offsets: Ints, docs: Ints, scores: Floats, pairs: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> tuple[PairCounts, PairCounts]:
    """Count wins, losses and ties apart for pairs with a chosen entry and for all others.

    Parameters
    ----------
    offsets, docs, scores, pairs, chosen : ndarray
        As for `pair_counts`.

    Returns
    -------
    tuple of PairCounts
        Of the chosen pairs, and of the others.
    """
    n_docs = int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1
    n_queries = len(offsets) - 1
    totals = np.zeros((4, n_queries, 2), dtype=np.int64)
    step = max(_CELLS // max(n_docs, 1), 1)
    of_a, of_b = _Partners.of(pairs, n_docs), _Partners.of(pairs[:, ::-1], n_docs)
    query = np.repeat(np.arange(n_queries), np.diff(offsets))
    table = np.full(min(step, max(n_queries, 1)) * n_docs, -np.inf)
    marks = np.zeros(len(table), dtype=bool)
    for first in range(0, n_queries, step):
        last = min(first + step, n_queries)
        part = slice(offsets[first], offsets[last])
        owner = query[part] - first
        here = owner * n_docs + docs[part]
        table[here], marks[here] = scores[part], chosen[part]
        entry, partner = of_a.expand(docs[part])
        twin = owner[entry] * n_docs + partner
        mine, theirs = scores[part][entry], table[twin]
        cell = 2 * owner[entry] + ~(marks[here[entry]] | marks[twin])
        lone, lone_partner = of_b.expand(docs[part])
        alone = lone[np.isneginf(table[owner[lone] * n_docs + lone_partner])]
        for total, cells in (
            (totals[0], cell[mine > theirs]),
            (totals[1], np.concatenate([cell[mine < theirs], 2 * owner[alone] + ~chosen[part][alone]])),
            (totals[2], cell[mine == theirs]),
            (totals[3], cell[~np.isneginf(theirs)]),
        ):
            total[first:last] = np.bincount(cells, minlength=2 * (last - first)).reshape(-1, 2)
        table[here], marks[here] = -np.inf, False
    return PairCounts(*totals[:, :, 0]), PairCounts(*totals[:, :, 1])


class _Partners(NamedTuple):
    """For each document row, the rows of its twins on the other side."""

    start: Ints
    length: Ints
    partner: Ints

    @classmethod
    def of(cls, pairs: Ints, n_docs: int) -> _Partners:
        order = np.argsort(pairs[:, 0], kind="stable")
        count = np.bincount(pairs[:, 0], minlength=n_docs)
        return cls(np.cumsum(count) - count, count, pairs[order, 1])

    def expand(self, docs: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Each (entry, twin): positions in `docs`, and rows of their twins."""
        count = self.length[docs]
        if self.length.max(initial=0) <= 1:
            entry = np.flatnonzero(count)
            return entry, self.partner[self.start[docs[entry]]]
        entry = np.repeat(np.arange(len(docs)), count)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        return entry, self.partner[self.start[docs[entry]] + within]
