"""Search by compiled code: queries in groups that fit into the memory, parts of them in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, pairwise
from threading import local
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ranktilt.parallel.executor import executor
from ranktilt.parallel.memory_limits import memory_limit
from ranktilt.progress import report
from ranktilt.rankers.lexical.compiler import COMPILED_FROM, compiler
from ranktilt.rankers.lexical.index import Ints
from ranktilt.rankers.lexical.index_files import Postings, PostingTable

if TYPE_CHECKING:
    from ranktilt.rankers.lexical.compiled_search import Lists, WeighedPostings, Workspace

Scores = npt.NDArray[np.float64]
_POSTING = 192
"""Bytes of memory for a posting, while it is read and weighed by numpy."""
_WEIGHED_POSTING = 24
"""Bytes of memory for a posting of `weighed_postings`."""
_POSTINGS_A_PART = 131_072
"""Postings to weigh at a time."""
_QUERIES_A_PART = 64
"""Queries that a thread searches at a time."""


@dataclass(frozen=True, kw_only=True)
class QueryLists:
    """The best documents of each query, best first."""

    offsets: Ints
    """Where each query's list starts, and where the last one ends."""
    docs: npt.NDArray[np.int32]
    """Rows of documents."""
    scores: Scores

    def by_query(self) -> Iterator[tuple[Ints, Scores]]:
        """Yield documents and scores of each query."""
        for low, high in pairwise(self.offsets.tolist()):
            yield self.docs[low:high].astype(np.int64), self.scores[low:high]


@dataclass(frozen=True, kw_only=True)
class CompiledSearch:
    """A compiled function with the postings and queries that it searches."""

    search_lists: Callable[..., int]
    table: PostingTable
    queries: sp.csr_array
    """How often each query holds each term of the table."""

    def lists(
        self,
        *,
        weigh: Callable[[Postings], Scores],
        keys: npt.NDArray[np.uint64],
        depth: int,
        label: str,
    ) -> QueryLists:
        """Return each query's best documents; ties fall by key.

        `weigh` returns a weight for each posting, at least 0. `label` names the work in reports of
        progress.
        """
        # The empty arrays give the result its type where there is no query.
        sizes = [np.zeros(1, np.int64)]
        docs, scores = [np.empty(0, np.int32)], [np.empty(0)]
        total, done = self.queries.shape[0], 0
        starts, terms = self.queries.indptr, self.queries.indices
        posting_counts = np.diff(self.table.offsets)
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            # As few groups as possible: each one weighs the frequent terms again, and those are
            # most of all postings.
            most = memory_limit() // _WEIGHED_POSTING
            for first, last in query_groups(starts, terms, posting_counts, most):
                needed = np.unique(terms[starts[first] : starts[last]]).astype(np.int64)
                weighed = weighed_postings(self.table, needed, weigh=weigh, depth=depth, pool=pool)
                search = PostingSearch(
                    search_lists=self.search_lists,
                    weighed=weighed,
                    terms=needed,
                    queries=self.queries,
                    keys=keys,
                    depth=depth,
                    least=np.zeros(total),
                )
                for part_sizes, part_docs, part_scores in search.lists(first, last, pool):
                    sizes.append(part_sizes)
                    docs.append(part_docs)
                    scores.append(part_scores)
                    done += len(part_sizes)
                    report(label, done, total)
        return QueryLists(
            offsets=np.cumsum(np.concatenate(sizes)),
            docs=np.concatenate(docs),
            scores=np.concatenate(scores),
        )


@dataclass(frozen=True, kw_only=True)
class PostingSearch:
    """The compiled search of some queries in the postings of their terms; threads may share it."""

    search_lists: Callable[..., int]
    weighed: WeighedPostings
    """Postings of all terms of the queries."""
    terms: Ints
    """Number of each of these terms, ascending."""
    queries: sp.csr_array
    """What each query's terms count; each row in the order in which weights are added."""
    keys: npt.NDArray[np.uint64]
    """Tie key of each document."""
    depth: int
    least: Scores
    """Score of each query below which no document is wanted; 0 for none."""
    is_rounded: bool = False
    """Whether scores are rounded to float32."""
    _of_thread: local = field(default_factory=local, repr=False)

    def lists(self, first: int, last: int, pool: ThreadPoolExecutor) -> Iterator[Lists]:
        """Yield the lists of the queries from a first to before a last, in parts, by threads."""
        bounds = [*range(first, last, _QUERIES_A_PART), last]
        return chain.from_iterable(pool.map(self._lists_of_part, pairwise(bounds)))

    def _lists_of_part(self, bounds: tuple[int, int]) -> list[Lists]:
        """Return the lists of some queries; in several parts where one buffer cannot hold them."""
        from ranktilt.rankers.lexical.compiled_search import ListBuffer, QueryTerms

        queries, size = self.queries, len(self.keys)
        first, last = bounds
        lists = []
        while first < last:
            starts = queries.indptr[first : last + 1].astype(np.int64)
            span = slice(starts[0], starts[-1])
            part = QueryTerms(
                starts=starts - starts[0],
                positions=np.searchsorted(self.terms, queries.indices[span]).astype(np.int64),
                counts=queries.data[span].astype(np.float64),
                least=self.least[first:last],
                depth=self.depth,
                is_rounded=self.is_rounded,
            )
            # Equal keys at the end of a list can make it longer than the depth.
            room = max((last - first) * min(self.depth, size), size)
            buffer = ListBuffer(
                lengths=np.empty(last - first, np.int64),
                rows=np.empty(room, np.int32),
                scores=np.empty(room),
            )
            count = self.search_lists(self.weighed, part, self._workspace(), buffer)
            lengths = buffer.lengths[:count]
            end = int(lengths.sum())
            lists.append((lengths, buffer.rows[:end], buffer.scores[:end]))
            first += count
        return lists

    def _workspace(self) -> Workspace:
        """Return the room of this thread, which its queries use one after the other."""
        from ranktilt.rankers.lexical.compiled_search import workspace

        if not hasattr(self._of_thread, "workspace"):
            most_terms = int(np.diff(self.queries.indptr).max(initial=1))
            self._of_thread.workspace = workspace(self.keys, most_terms)
        room: Workspace = self._of_thread.workspace
        return room


def weighed_postings(
    table: PostingTable,
    terms: Ints,
    *,
    weigh: Callable[[Postings], Scores],
    depth: int,
    pool: ThreadPoolExecutor,
) -> WeighedPostings:
    """Return the postings of some terms, in order of their numbers, for lists of a depth.

    They are weighed in parts that fit into a processor's cache, which takes a third of the time.
    """
    from ranktilt.rankers.lexical.compiled_search import WORD, WeighedPostings

    sizes = np.diff(table.offsets)[terms]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    weights = np.empty(starts[-1])
    highest, safe = np.zeros(len(terms)), np.zeros(len(terms))
    # Bitmaps of terms from this size on take no more memory than their weights.
    frequent = np.flatnonzero(sizes * WORD > len(table.lengths))
    slots = np.full(len(terms), -1, np.int64)
    slots[frequent] = np.arange(len(frequent))
    words = -(-len(table.lengths) // WORD)
    bits = np.zeros((len(frequent), words), np.uint64)
    ranks = np.zeros((len(frequent), words + 1), np.int32)

    def fill(bounds: tuple[int, int]) -> None:
        low, high = bounds
        part = weights[starts[low] : starts[high]]
        part[:] = weigh(table.postings(terms[low:high]))
        part_starts = starts[low:high] - starts[low]
        highest[low:high] = np.maximum.reduceat(part, part_starts)
        for position in range(low, high):
            if sizes[position] >= depth:
                term_weights = weights[starts[position] : starts[position + 1]]
                rank = sizes[position] - depth
                safe[position] = np.partition(term_weights, rank)[rank]
            if slots[position] >= 0:
                start = table.offsets[terms[position]]
                holds_term = np.zeros(WORD * words, np.bool_)
                holds_term[table.rows[start : start + sizes[position]]] = True
                slot_bits = np.packbits(holds_term, bitorder="little").view("<u8")
                bits[slots[position]] = slot_bits
                np.cumsum(np.bitwise_count(slot_bits), out=ranks[slots[position], 1:])

    parts = np.searchsorted(starts, np.arange(0, starts[-1], _POSTINGS_A_PART), side="right") - 1
    bounds = np.unique(np.append(parts, len(terms)))
    list(pool.map(fill, pairwise(bounds.tolist())))
    return WeighedPostings(
        rows=np.asarray(table.rows).view(np.uint32),
        first_rows=table.offsets[terms].astype(np.int64),
        weights=weights,
        starts=starts,
        highest=highest,
        safe=safe,
        slots=slots,
        bits=bits,
        ranks=ranks,
    )


def compiled_search(table: PostingTable, queries: sp.csr_array) -> CompiledSearch | None:
    """Return the compiled search of these queries.

    None where numba cannot be used, where there is too little to do for it, or on a cluster, whose
    machines may not have it.
    """
    additions = int(np.diff(table.offsets)[queries.indices].sum())
    if additions < COMPILED_FROM or executor().workers > 1:
        return None
    search_lists = compiler().search_lists
    if search_lists is None:
        return None
    return CompiledSearch(search_lists=search_lists, table=table, queries=queries)


def query_groups(
    starts: Ints, terms_of_queries: Ints, sizes: Ints, most: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield first and last of consecutive queries whose postings fit into the memory together.

    A group has at least one query. `starts` has where each query's terms start in
    `terms_of_queries`, `sizes` the number of each term's postings, and `most` the most postings of
    a group: by default, as many as numpy can weigh within the memory.
    """
    if most is None:
        most = memory_limit() // _POSTING
    group_terms: set[int] = set()
    first = postings = 0
    for query, (low, high) in enumerate(pairwise(starts.tolist())):
        query_terms = set(terms_of_queries[low:high].tolist())
        added_terms = query_terms - group_terms
        added_postings = int(sizes[list(added_terms)].sum())
        if added_postings and query > first and postings + added_postings > most:
            yield first, query
            group_terms, first, postings = set(), query, 0
            added_terms = query_terms
            added_postings = int(sizes[list(added_terms)].sum())
        group_terms |= added_terms
        postings += added_postings
    if first < len(starts) - 1:
        yield first, len(starts) - 1


def rarest_first(queries: sp.csr_array, sizes: Ints) -> sp.csr_array:
    """Return queries with the terms of each in the order in which their weights are added.

    The term with the fewest documents is first, so that a search may leave out the last ones.
    `sizes` has the number of documents of each term.
    """
    query = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
    order = np.lexsort((queries.indices, sizes[queries.indices], query))
    ordered = (queries.data[order], queries.indices[order], queries.indptr)
    return sp.csr_array(ordered, shape=queries.shape)
