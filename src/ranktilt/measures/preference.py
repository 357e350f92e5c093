"""Twins against each other, and who fills the page: measures of preference that need no judgments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.measures.origins import Cells
from ranktilt.measures.relevance import Ranking, discounts

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NO_CELLS = Cells(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
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
    alone: Ints
    """Of the wins, those of a first side that is retrieved alone."""


def split_pair_counts(
    offsets: Ints, docs: Ints, scores: Floats, pairs: Ints, relevant: tuple[Ints, Ints]
) -> tuple[PairCounts, PairCounts]:
    """Count wins, losses and ties of twins in a run, apart for relevant pairs and for all others.

    Parameters
    ----------
    offsets, docs, scores : ndarray
        A run: query ``i`` owns the entries ``offsets[i]:offsets[i + 1]``; documents are rows.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of the first and of the second side's document of each pair.
    relevant : tuple of ndarray of int64, each of shape (n_judgments,)
        Query and row of every relevant document, retrieved or not. A pair is relevant if either side is, so it stays
        on its side of the count when one of its documents drops out of the run.

    Returns
    -------
    tuple of PairCounts
        Of the relevant pairs, and of the others. An unretrieved twin stands below every retrieved document.
    """
    totals = np.zeros((5, len(offsets) - 1, 2), dtype=np.int64)
    for first, last, met in _meetings(offsets, docs, scores, pairs, relevant):
        cell = 2 * met.query + met.other
        whole, won = met.both, met.outcome > 0
        for total, chosen in zip(totals, (won, met.outcome < 0, met.outcome == 0, whole, won & ~whole), strict=True):
            total[first:last] = np.bincount(cell[chosen], minlength=2 * (last - first)).reshape(-1, 2)
    return PairCounts(*totals[:, :, 0]), PairCounts(*totals[:, :, 1])


def meeting_cells(
    offsets: Ints, docs: Ints, scores: Floats, pairs: Ints, relevant: tuple[Ints, Ints]
) -> tuple[Cells, Cells]:
    """List what `split_pair_counts` counts: 1 for a win of the first side, −1 for a loss, each with the weight 1.

    Parameters
    ----------
    offsets, docs, scores, pairs, relevant
        As for `split_pair_counts`.

    Returns
    -------
    tuple of Cells
        Of the relevant pairs, and of the others; in place of an origin the row of one of the two documents.
    """
    found: list[list[Cells]] = [[], []]
    for first, _, met in _meetings(offsets, docs, scores, pairs, relevant):
        for kept, mine in zip(found, (~met.other, met.other), strict=True):
            won = met.outcome[mine].astype(np.float64)
            kept.append(Cells(first + met.query[mine], met.doc[mine], won, np.ones(len(won))))
    one, two = (Cells(*map(np.concatenate, zip(*kept, strict=True))) if kept else NO_CELLS for kept in found)
    return one, two


class _Meetings(NamedTuple):
    """Pairs of which a query retrieved a side: one entry each."""

    query: Ints
    """Counted from the first of its block."""
    doc: Ints
    """Row of one of the two documents."""
    outcome: Ints
    """1 where the first side wins, −1 where it loses, 0 for a tie."""
    both: npt.NDArray[np.bool_]
    other: npt.NDArray[np.bool_]
    """Neither side is relevant."""


def _meetings(
    offsets: Ints, docs: Ints, scores: Floats, pairs: Ints, relevant: tuple[Ints, Ints]
) -> Iterator[tuple[int, int, _Meetings]]:
    """All meetings in blocks of queries; beside them the first query of each block and the first after it."""
    n_docs = int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1
    n_queries = len(offsets) - 1
    step = max(_CELLS // max(n_docs, 1), 1)
    of_a, of_b = _Partners.of(pairs, n_docs), _Partners.of(pairs[:, ::-1], n_docs)
    query = np.repeat(np.arange(n_queries), np.diff(offsets))
    table = np.full(min(step, max(n_queries, 1)) * n_docs, -np.inf)
    marks = np.zeros(len(table), dtype=bool)
    asked, judged = _by_query(relevant, n_docs)
    for first in range(0, n_queries, step):
        last = min(first + step, n_queries)
        part = slice(offsets[first], offsets[last])
        mine = slice(*np.searchsorted(asked, (first, last)))
        owner, row = query[part] - first, docs[part]
        here, right = owner * n_docs + row, (asked[mine] - first) * n_docs + judged[mine]
        table[here], marks[right] = scores[part], True
        entry, partner = of_a.expand(row)
        lone, missed = of_b.expand(row)
        absent = np.isneginf(table[owner[lone] * n_docs + missed])
        lone, missed = lone[absent], missed[absent]
        entry, partner = np.concatenate([entry, lone]), np.concatenate([partner, missed])
        twin = owner[entry] * n_docs + partner
        own, theirs = scores[part][entry], table[twin]
        outcome = (own > theirs).astype(np.int64) - (own < theirs)
        outcome[len(outcome) - len(lone) :] = -1
        both = ~np.isneginf(table[twin])
        yield first, last, _Meetings(owner[entry], row[entry], outcome, both, ~(marks[here[entry]] | marks[twin]))
        table[here], marks[right] = -np.inf, False


def _by_query(cells: tuple[Ints, Ints], n_docs: int) -> tuple[Ints, Ints]:
    """Queries, rising, and rows of some documents below `n_docs`."""
    query, row = cells
    query, row = query[row < n_docs], row[row < n_docs]
    order = np.argsort(query, kind="stable")
    return query[order], row[order]


def page_shares(ranking: Ranking, depth: int) -> Floats:
    """Share of the first page that each document holds, in expectation over ties.

    Parameters
    ----------
    ranking : Ranking
        The run.
    depth : int
        Ranks that make the page (k).

    Returns
    -------
    ndarray of float64, shape (n_entries,)
        In [0, 1], adding up to 1 over a query's documents: ``1/log2(1 + rank)`` over its sum down to rank
        ``min(k, length of the list)``; tied documents share their block's mean, ranks below k hold nothing. Summed
        over the documents of a group it is NDSR@k (MEASURES: who fills the page, relevant or not?).
    """
    low, high = (np.minimum(end, depth) for end in (ranking.before, ranking.before + ranking.sizes))
    running = discounts(int(high.max(initial=0)))
    # A block of one takes its own discount: the difference of running sums would lose its last digits.
    alone = (ranking.sizes == 1) & (high > low)
    held = np.where(alone, 1 / np.log2(2.0 + low), running[high] - running[low]) / ranking.sizes
    length = np.minimum(np.diff(ranking.offsets), depth)
    return np.repeat(held / running[length][ranking.block_query], ranking.sizes)


def mid_ranks(ranking: Ranking) -> Floats:
    """Rank of each entry from 1; tied documents have the middle of their ranks."""
    return np.repeat(ranking.before + (ranking.sizes + 1) / 2, ranking.sizes)


def _below(ranking: Ranking) -> Floats:
    """Rank of each entry, counted from the one after the last of its query; negative."""
    below: Floats = mid_ranks(ranking) - (np.diff(ranking.offsets) + 1)[ranking.query]
    return below


class Gaps(NamedTuple):
    """Per query, sums over pairs of twins; arrays of shape (n_queries,)."""

    total: Floats
    """Sum of the gaps; positive where the first side stands higher."""
    pairs: Ints
    """Pairs in the sum."""
    absent: Ints
    """Of these, sides that were not retrieved."""
    cells: Cells
    """The single gaps, each with the weight 1; in place of an origin the row of the first side's document."""


def rank_gaps(ranking: Ranking, docs: Ints, pairs: Ints, wanted: tuple[Ints, Ints]) -> Gaps:
    """Sum, per query, by how many ranks the first side of each wanted pair stands higher.

    Parameters
    ----------
    ranking : Ranking
        The run.
    docs : ndarray of int64, shape (n_entries,)
        Row of each entry's document; negative for one that belongs to no pair.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of the first and of the second side's document of each pair.
    wanted : tuple of ndarray of int64, each of shape (n_wanted,)
        Query and pair of each comparison, retrieved or not.

    Returns
    -------
    Gaps
        Of ``rank_b − rank_a``; tied documents have their mid-rank, a document that was not retrieved has the rank
        after the last of its query.
    """
    query, pair = wanted
    entries = _Entries.of(ranking, docs)
    below = _below(ranking)
    places = [entries.find(query, pairs[pair, side]) for side in (0, 1)]
    a, b = (np.where(at >= 0, below[at], 0.0) if len(below) else np.zeros(len(at)) for at in places)
    n = len(ranking.offsets) - 1
    absent = np.bincount(query, weights=(places[0] < 0).astype(np.int64) + (places[1] < 0), minlength=n)
    total = np.bincount(query, weights=b - a, minlength=n).astype(np.float64)
    cells = Cells(query, pairs[pair, 0], b - a, np.ones(len(query)))
    return Gaps(total, np.bincount(query, minlength=n), absent.astype(np.int64), cells)


def rank_gap_sums(ranking: Ranking, docs: Ints, pairs: Ints) -> tuple[Floats, Cells]:
    """Sum `rank_gaps` over every pair of the collection, per query; unretrieved pairs add nothing.

    Parameters
    ----------
    ranking, docs, pairs
        As for `rank_gaps`.

    Returns
    -------
    totals : ndarray of float64, shape (n_queries,)
        Ranks; positive where the first side stands higher.
    cells : Cells
        What each retrieved document of a pair adds; the weights of a query add up to 1. In place of an origin its row.
    """
    width = int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1
    side = np.bincount(pairs[:, 1], minlength=width) - np.bincount(pairs[:, 0], minlength=width)
    known = docs >= 0
    below = _below(ranking)
    weights = np.where(known, below * side[np.where(known, docs, 0)], 0.0) if width else np.zeros(len(docs))
    totals = np.bincount(ranking.query, weights=weights, minlength=len(ranking.offsets) - 1).astype(np.float64)
    query = ranking.query[known]
    return totals, Cells(query, docs[known], weights[known], 1.0 / np.bincount(query)[query])


def score_gaps(ranking: Ranking, docs: Ints, pairs: Ints) -> tuple[Gaps, Floats]:
    """Sum, per query, how far apart the scores of twins are; only pairs with both sides retrieved.

    Parameters
    ----------
    ranking, docs, pairs
        As for `rank_gaps`.

    Returns
    -------
    gaps : Gaps
        Of ``(s_a − s_b)/sd`` with the standard deviation of the query's retrieved scores; 0 where all are equal.
    raw : ndarray of float64, shape (n_queries,)
        Sums of ``s_a − s_b``.
    """
    n = len(ranking.offsets) - 1
    entry, partner = _Partners.of(pairs, int(max(docs.max(initial=-1), pairs.max(initial=-1))) + 1).expand(docs)
    query = ranking.query[entry]
    at = _Entries.of(ranking, docs).find(query, partner)
    entry, query, at = entry[at >= 0], query[at >= 0], at[at >= 0]
    # One order whichever side is first: floats added in another order would not negate exactly.
    order = np.lexsort((np.maximum(entry, at), np.minimum(entry, at)))
    entry, query, at = entry[order], query[order], at[order]
    gap = ranking.scores[entry] - ranking.scores[at]
    spread = _spread(ranking)[query]
    scaled = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    raw, total = (np.bincount(query, weights=w, minlength=n).astype(np.float64) for w in (gap, scaled))
    cells = Cells(query, docs[entry], scaled, np.ones(len(query)))
    return Gaps(total, np.bincount(query, minlength=n), np.zeros(n, dtype=np.int64), cells), raw


def _spread(ranking: Ranking) -> Floats:
    """Standard deviation of each query's scores."""
    n = len(ranking.offsets) - 1
    count = np.maximum(np.diff(ranking.offsets), 1)
    mean = np.bincount(ranking.query, weights=ranking.scores, minlength=n) / count
    off = ranking.scores - mean[ranking.query]
    return np.sqrt(np.bincount(ranking.query, weights=off * off, minlength=n) / count)


class _Entries(NamedTuple):
    """Where each (query, document) stands in a run."""

    keys: Ints
    place: Ints
    width: int

    @classmethod
    def of(cls, ranking: Ranking, docs: Ints) -> _Entries:
        width = int(docs.max(initial=-1)) + 1
        place = np.flatnonzero(docs >= 0)
        keys = ranking.query[place] * width + docs[place]
        order = np.argsort(keys)
        return cls(keys[order], place[order], width)

    def find(self, query: Ints, doc: Ints) -> Ints:
        """Entry of each (query, document); -1 where it was not retrieved."""
        if not len(self.keys):
            return np.full(len(query), -1)
        wanted = query * self.width + doc
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where((self.keys[at] == wanted) & (doc < self.width), self.place[at], -1)


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
        """Each (entry, twin): positions in `docs`, and rows of their twins; negative rows have none."""
        if not len(self.length):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        count = np.where(docs >= 0, self.length[docs], 0)
        if self.length.max(initial=0) <= 1:
            entry = np.flatnonzero(count)
            return entry, self.partner[self.start[docs[entry]]]
        entry = np.repeat(np.arange(len(docs)), count)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        return entry, self.partner[self.start[docs[entry]] + within]
