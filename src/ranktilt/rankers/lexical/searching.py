"""Search by compiled code: queries in groups that fit into the memory, parts of them in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
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
    from ranktilt.rankers.lexical.compiled_search import Lists

Scores = npt.NDArray[np.float64]
_POSTING = 192
"""Bytes of memory for a posting, while it is read and weighed."""
_QUERIES_A_PART = 64


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

    search_lists: Callable[..., Lists]
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
        starts = self.queries.indptr
        posting_counts = np.diff(self.table.offsets)
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            for first, last in query_groups(starts, self.queries.indices, posting_counts):
                search = self._group_search(first, last, weigh=weigh, keys=keys, depth=depth)
                bounds = [*range(first, last, _QUERIES_A_PART), last]
                for part_sizes, part_docs, part_scores in pool.map(search, pairwise(bounds)):
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

    def _group_search(
        self,
        first: int,
        last: int,
        *,
        weigh: Callable[[Postings], Scores],
        keys: npt.NDArray[np.uint64],
        depth: int,
    ) -> Callable[[tuple[int, int]], Lists]:
        """Return a function that searches for some queries of a group, from a first to a last."""
        from ranktilt.rankers.lexical.compiled_search import QueryTerms, WeighedPostings

        starts, terms = self.queries.indptr, self.queries.indices
        needed = np.unique(terms[starts[first] : starts[last]]).astype(np.int64)
        postings = self.table.postings(needed)
        weighed = WeighedPostings(
            rows=postings.rows,
            weights=weigh(postings),
            starts=np.concatenate([[0], np.cumsum(postings.sizes)]).astype(np.int64),
        )
        positions = np.searchsorted(needed, terms).astype(np.int64)
        counts = self.queries.data.astype(np.float64)

        def search_part(bounds: tuple[int, int]) -> Lists:
            part_starts = starts[bounds[0] : bounds[1] + 1].astype(np.int64)
            part = QueryTerms(starts=part_starts, positions=positions, counts=counts)
            return self.search_lists(weighed, part, keys, depth)

        return search_part


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


def query_groups(starts: Ints, terms_of_queries: Ints, sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield first and last of consecutive queries whose postings fit into the memory together.

    A group has at least one query. `starts` has where each query's terms start in
    `terms_of_queries`, and `sizes` the number of each term's postings.
    """
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
