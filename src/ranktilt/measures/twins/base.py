"""Twins in a run: where both documents of a pair stand, query by query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Bools, Floats, Ints, Ranking
from ranktilt.statistics.two_way import Clusters

_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class TwinLists:
    """What a question about twins is given: a run, and the pairs of documents to look for in it."""

    ranking: Ranking
    docs: Ints
    """Row of each entry's document; negative for one that does not count."""
    pairs: Ints
    """Rows of the first and of the second group's document of each pair: (n_pairs, 2)."""
    relevant: tuple[Ints, Ints]
    """Query and row of every relevant document, retrieved or not. A pair is relevant if either side is."""
    wanted: tuple[Ints, Ints] | None = None
    """Query and pair of every relevant pair, retrieved or not; None where nothing is judged."""
    scored: bool = True
    """Whether scores say more than the order."""

    @property
    def queries(self) -> int:
        return len(self.ranking.offsets) - 1

    @cached_property
    def meetings(self) -> Meetings:
        """Pairs of which a query retrieved a side."""
        return _meetings(self)

    @cached_property
    def below(self) -> Floats:
        """Rank of each entry, counted from the one after the last of its query; negative. Tied ones have the middle."""
        below: Floats = (
            mid_ranks(self.ranking) - (np.diff(self.ranking.offsets) + 1)[self.ranking.query]
        )
        return below

    @cached_property
    def entries(self) -> Positions:
        """Where each (query, document) stands."""
        return Positions.from_ranking(self.ranking, self.docs)

    @cached_property
    def partners(self) -> Partners:
        """For each row of the first group, the rows of its twins."""
        return Partners.from_pairs(
            self.pairs, int(max(self.docs.max(initial=-1), self.pairs.max(initial=-1))) + 1
        )


def mid_ranks(ranking: Ranking) -> Floats:
    """Rank of each entry from 1; tied documents have the middle of their ranks."""
    return np.repeat(ranking.before + (ranking.sizes + 1) / 2, ranking.sizes)


class Meetings(NamedTuple):
    """Pairs of which a query retrieved a side: one entry each."""

    query: Ints
    doc: Ints
    """Row of one of the two documents."""
    outcome: npt.NDArray[np.int8]
    """1 where the first side wins, −1 where it loses, 0 for a tie."""
    both: Bools
    other: Bools
    """Neither side is relevant."""


def _meetings(lists: TwinLists) -> Meetings:
    """All meetings, found in blocks of queries that a table of queries and documents has room for."""
    known = lists.docs >= 0
    query, docs, scores = lists.ranking.query[known], lists.docs[known], lists.ranking.scores[known]
    n_docs = int(max(docs.max(initial=-1), lists.pairs.max(initial=-1))) + 1
    step = max(_CELLS // max(n_docs, 1), 1)
    of_a, of_b = (
        Partners.from_pairs(lists.pairs, n_docs),
        Partners.from_pairs(lists.pairs[:, ::-1], n_docs),
    )
    table = np.full(min(step, max(lists.queries, 1)) * n_docs, -np.inf)
    marks = np.zeros(len(table), dtype=bool)
    asked, judged = _by_query(lists.relevant, n_docs)
    found = []
    for first in range(0, lists.queries, step):
        last = min(first + step, lists.queries)
        part = slice(*np.searchsorted(query, (first, last)))
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
        outcome = (own > theirs).astype(np.int8) - (own < theirs)
        outcome[len(outcome) - len(lone) :] = -1
        both, other = ~np.isneginf(table[twin]), ~(marks[here[entry]] | marks[twin])
        found.append(Meetings(first + owner[entry], row[entry], outcome, both, other))
        table[here], marks[right] = -np.inf, False
    nothing = np.empty(0, dtype=np.int64)
    none = Meetings(
        nothing, nothing, nothing.astype(np.int8), nothing.astype(bool), nothing.astype(bool)
    )
    return Meetings(*map(np.concatenate, zip(*found, strict=True))) if found else none


def _by_query(judged: tuple[Ints, Ints], n_docs: int) -> tuple[Ints, Ints]:
    """Queries, rising, and rows of some documents below `n_docs`."""
    query, row = judged
    query, row = query[row < n_docs], row[row < n_docs]
    order = np.argsort(query, kind="stable")
    return query[order], row[order]


class Positions(NamedTuple):
    """Where each (query, document) stands in a run."""

    keys: Ints
    place: Ints
    width: int

    @classmethod
    def from_ranking(cls, ranking: Ranking, docs: Ints) -> Positions:
        """Find them; a negative row stands nowhere."""
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


class Partners(NamedTuple):
    """For each document row, the rows of its twins on the other side."""

    start: Ints
    length: Ints
    partner: Ints

    @classmethod
    def from_pairs(cls, pairs: Ints, n_docs: int) -> Partners:
        """Sort pairs of rows below `n_docs` by their first."""
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


class Answers(NamedTuple):
    """One run's answers, query by query: the value is ``Σ total / Σ weight``."""

    total: Floats
    weight: Floats
    """What each query counts: pairs, or 1; 0 where it says nothing."""
    parts: dict[str, float] = {}  # noqa: RUF012
    """Counts behind it, shown beside it."""
    clusters: Clusters | None = None
    """What each comparison of twins adds; in place of an origin the row of one of the two documents."""


@dataclass(frozen=True, repr=False)
class TwinEstimand(Estimand):
    """A question about twins: two documents of one origin, one of each group."""

    pairs: str = field(default="all", kw_only=True)

    kind = "twins"
    unit = "pair"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("all", "relevant", "other")}

    def answers(self, lists: TwinLists) -> Answers:
        """Answer it for each query of a run."""
        raise NotImplementedError
