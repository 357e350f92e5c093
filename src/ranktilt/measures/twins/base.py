"""Find twins in a run: the ranks of both documents of a pair, query by query.

*Twins* are two versions of one document, and a *pair* is two twins. The *first side* of a pair is
the version in the first of two compared groups, the *second side* the version in the second.
Documents have numbers: their rows in the collection. An *entry* is a retrieved document of the flat
list of a `Ranking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Bools, Floats, Ints, Ranking
from ranktilt.statistics.two_way import Clusters

_MOST_CELLS = 1 << 22
"""Most cells of a `_MeetingTable`, so that its scores take at most 32 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinLists:
    """The input of a question about twins: a run, and the pairs of documents to look for in it."""

    ranking: Ranking
    """Ranking of all queries."""
    docs: Ints
    """Number of each entry's document; negative for a document that does not count."""
    pairs: Ints
    """Numbers of each pair's documents, the first side's first; shape (n_pairs, 2)."""
    relevant: tuple[Ints, Ints]
    """Query and document number of every relevant document, retrieved or not.

    A pair is relevant if either of its documents is.
    """
    relevant_pairs: tuple[Ints, Ints] | None = None
    """Query of every relevant pair, retrieved or not, and its index in `pairs`.

    None if nothing is judged.
    """
    scored: bool = True
    """Whether the run has scores, and not only an order."""

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self.ranking.offsets) - 1

    @cached_property
    def meetings(self) -> Meetings:
        """Every pair and query where the query retrieved at least one side, with the outcome."""
        return _meetings(self)

    @cached_property
    def ranks_from_end(self) -> Floats:
        """Rank of each entry minus the rank after the last entry of its query; always negative.

        Tied documents have their middle rank. A document that was not retrieved counts as being at
        the rank after the last, which is 0 here.
        """
        after_last = np.diff(self.ranking.offsets) + 1
        ranks: Floats = mid_ranks(self.ranking) - after_last[self.ranking.query]
        return ranks

    @cached_property
    def entries(self) -> Positions:
        """Index to find the entry of a query and a document."""
        return Positions.from_ranking(self.ranking, self.docs)

    @cached_property
    def partners(self) -> Partners:
        """Index to find the twins of each document of the first side."""
        document_count = int(max(self.docs.max(initial=-1), self.pairs.max(initial=-1))) + 1
        return Partners.from_pairs(self.pairs, document_count)


def mid_ranks(ranking: Ranking) -> Floats:
    """Return the rank of each entry from 1; tied documents have the middle of their ranks."""
    return np.repeat(ranking.before + (ranking.sizes + 1) / 2, ranking.sizes)


class Meetings(NamedTuple):
    """Pairs of which a query retrieved at least one side: a row for each such pair and query.

    A side that was not retrieved is ranked below every retrieved document. This is a NamedTuple, so
    that the meetings of several blocks of queries can be concatenated field by field.
    """

    query: Ints
    """Number of the query."""
    doc: Ints
    """Number of one of the two documents."""
    outcome: npt.NDArray[np.int8]
    """1 if the first side is ranked higher, −1 if the second is, 0 for a tie."""
    both_retrieved: Bools
    """Whether both sides are retrieved."""
    is_irrelevant: Bools
    """Whether neither side is relevant."""

    @classmethod
    def empty(cls) -> Meetings:
        """Return a table without rows."""
        return cls(
            query=np.empty(0, dtype=np.int64),
            doc=np.empty(0, dtype=np.int64),
            outcome=np.empty(0, dtype=np.int8),
            both_retrieved=np.empty(0, dtype=bool),
            is_irrelevant=np.empty(0, dtype=bool),
        )


def _meetings(lists: TwinLists) -> Meetings:
    """Find all meetings, in blocks of queries whose `_MeetingTable` fits into memory."""
    is_known = lists.docs >= 0
    query = lists.ranking.query[is_known]
    docs, scores = lists.docs[is_known], lists.ranking.scores[is_known]
    document_count = int(max(docs.max(initial=-1), lists.pairs.max(initial=-1))) + 1
    block_length = max(_MOST_CELLS // max(document_count, 1), 1)
    table = _MeetingTable.from_pairs(
        lists.pairs, queries=min(block_length, max(lists.queries, 1)), document_count=document_count
    )
    relevant_query, relevant_doc = _sorted_by_query(lists.relevant, document_count)
    blocks = []
    for start in range(0, lists.queries, block_length):
        stop = min(start + block_length, lists.queries)
        entries = slice(*np.searchsorted(query, (start, stop)))
        judged = slice(*np.searchsorted(relevant_query, (start, stop)))
        relevant_cells = (relevant_query[judged] - start) * document_count + relevant_doc[judged]
        block = table.meetings(
            query[entries] - start, docs[entries], scores[entries], relevant_cells
        )
        blocks.append(block._replace(query=start + block.query))
    if not blocks:
        return Meetings.empty()
    return Meetings(*map(np.concatenate, zip(*blocks, strict=True)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _MeetingTable:
    """Scores and relevance of a block of queries, in cells of a table of queries and documents.

    The table is used again for each block: to look a twin up in it is faster than to search.
    """

    document_count: int
    """Columns of the table; a cell is ``query · document_count + document``."""
    twins_of_first: Partners
    """Twins of each document of the first side."""
    twins_of_second: Partners
    """Twins of each document of the second side."""
    scores: Floats
    """Score in each cell; −∞ where the document is not retrieved."""
    relevant: Bools
    """Whether the document of each cell is relevant to the query."""

    @classmethod
    def from_pairs(cls, pairs: Ints, *, queries: int, document_count: int) -> _MeetingTable:
        """Make an empty table for blocks of at most this many queries."""
        cells = queries * document_count
        return cls(
            document_count=document_count,
            twins_of_first=Partners.from_pairs(pairs, document_count),
            twins_of_second=Partners.from_pairs(pairs[:, ::-1], document_count),
            scores=np.full(cells, -np.inf),
            relevant=np.zeros(cells, dtype=bool),
        )

    def meetings(self, query: Ints, docs: Ints, scores: Floats, relevant_cells: Ints) -> Meetings:
        """Find the meetings of one block, whose queries are numbered from 0.

        `query`, `docs` and `scores` describe the block's entries, and `relevant_cells` are the
        cells of its relevant documents. The cells that are filled in are emptied again, for the
        next block.
        """
        cells = query * self.document_count + docs
        self.scores[cells], self.relevant[relevant_cells] = scores, True
        # A row for each retrieved document of the first side and each of its twins.
        entry_index, twin = self.twins_of_first.expand(docs)
        # A pair whose second side was retrieved alone is a meeting too, which the second side wins.
        lone_entry, lone_twin = self.twins_of_second.expand(docs)
        lone_twin_cells = query[lone_entry] * self.document_count + lone_twin
        is_alone = np.isneginf(self.scores[lone_twin_cells])
        lone_entry, lone_twin = lone_entry[is_alone], lone_twin[is_alone]
        entry_index, twin = (
            np.concatenate([entry_index, lone_entry]),
            np.concatenate([twin, lone_twin]),
        )
        twin_cells = query[entry_index] * self.document_count + twin
        entry_scores, twin_scores = scores[entry_index], self.scores[twin_cells]
        outcome = (entry_scores > twin_scores).astype(np.int8) - (entry_scores < twin_scores)
        outcome[len(outcome) - len(lone_entry) :] = -1
        meetings = Meetings(
            query=query[entry_index],
            doc=docs[entry_index],
            outcome=outcome,
            both_retrieved=~np.isneginf(twin_scores),
            is_irrelevant=~(self.relevant[cells[entry_index]] | self.relevant[twin_cells]),
        )
        self.scores[cells], self.relevant[relevant_cells] = -np.inf, False
        return meetings


def _sorted_by_query(judged: tuple[Ints, Ints], document_count: int) -> tuple[Ints, Ints]:
    """Return queries and documents of the judgments, sorted by query.

    Documents with numbers from `document_count` on are left out: no pair has them.
    """
    query, doc = judged
    query, doc = query[doc < document_count], doc[doc < document_count]
    order = np.argsort(query, kind="stable")
    return query[order], doc[order]


class Positions(NamedTuple):
    """Index from a query and a document to the entry of a run."""

    keys: Ints
    """Query and document as one number, ``query · width + document``, in rising order."""
    entries: Ints
    """Entry of each key."""
    width: int
    """Number of documents, so that each key is unique."""

    @classmethod
    def from_ranking(cls, ranking: Ranking, docs: Ints) -> Positions:
        """Index the entries by query and document; a negative document number is left out."""
        width = int(docs.max(initial=-1)) + 1
        entries = np.flatnonzero(docs >= 0)
        keys = ranking.query[entries] * width + docs[entries]
        order = np.argsort(keys)
        return cls(keys=keys[order], entries=entries[order], width=width)

    def find(self, query: Ints, doc: Ints) -> Ints:
        """Return the entry of each query and document; −1 if the document was not retrieved."""
        if not len(self.keys):
            return np.full(len(query), -1)
        keys = query * self.width + doc
        index = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_retrieved = (self.keys[index] == keys) & (doc < self.width)
        return np.where(is_retrieved, self.entries[index], -1)


class Partners(NamedTuple):
    """Twins on the other side of each document."""

    start: Ints
    """Index in `partner` of the first twin of each document."""
    length: Ints
    """Number of twins of each document."""
    partner: Ints
    """Numbers of twins: document d has ``length[d]`` of them, from ``start[d]`` on."""

    @classmethod
    def from_pairs(cls, pairs: Ints, document_count: int) -> Partners:
        """Index pairs of documents by their first; numbers are below `document_count`."""
        order = np.argsort(pairs[:, 0], kind="stable")
        count = np.bincount(pairs[:, 0], minlength=document_count)
        return cls(start=np.cumsum(count) - count, length=count, partner=pairs[order, 1])

    def expand(self, docs: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return a row for each document and each of its twins.

        The two arrays are the index of the document in `docs`, and the number of the twin. A
        negative document number has no twins.
        """
        if not len(self.length):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        count = np.where(docs >= 0, self.length[docs], 0)
        if self.length.max(initial=0) <= 1:  # the usual case, for which no rows are repeated
            index = np.flatnonzero(count)
            return index, self.partner[self.start[docs[index]]]
        index = np.repeat(np.arange(len(docs)), count)
        position_among_twins = np.arange(len(index)) - np.repeat(np.cumsum(count) - count, count)
        return index, self.partner[self.start[docs[index]] + position_among_twins]


class TwinAnswers(NamedTuple):
    """Answers of one run, a row for each query; the value is ``Σ total / Σ weight``."""

    total: Floats
    """Total of each query."""
    weight: Floats
    """Weight of each query: its pairs, or 1; 0 if it says nothing."""
    details: dict[str, float] = {}  # noqa: RUF012
    """Counts and shares that are printed with the value, by name."""
    clusters: Clusters | None = None
    """What each comparison of twins adds, for the standard error over documents.

    Their `origin` has the number of one of the two documents. The caller replaces it by the number
    of the twins' common origin, with `Clusters.with_origins`.
    """


@dataclass(frozen=True, repr=False)
class TwinEstimand(Estimand):
    """A question about twins: two versions of one document, one in each group."""

    pairs: str = field(default="all", kw_only=True)
    """Twins that count: ``all``; ``relevant``, those that are relevant to the query; ``other``,
    those that are not."""

    kind = "twins"
    unit = "pair"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": ("all", "relevant", "other")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is not None:
            raise UserError(
                f"measure {self.name} takes no cutoff: it looks for twins in the whole list"
            )

    def answers(self, lists: TwinLists) -> TwinAnswers:
        """Answer the question for each query of a run."""
        raise NotImplementedError
