"""Find a document that comes twice in the list of one query, which no run may have.

An *entry* is one document in the list of one query. Every run is checked when it is made, and may
have millions of entries. So a fast check comes first, which the usual run passes. Only if that
fails, a slower search finds which entry is repeated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.data.runs.run_entries import Int64

_ENTRIES_PER_SORT = 16_384
"""Most entries that the fast check sorts together."""
_QUERIES_PER_SORT = 64
"""Most queries whose entries the fast check sorts together."""


def first_repeated(queries: Int64, docs: Int64 | npt.NDArray[np.int32]) -> int | None:
    """Return the first entry whose query and document occurred before; None if there is none.

    `queries` and `docs` have the number of each entry's query and document.
    """
    queries = np.asarray(queries, dtype=np.int64)
    if not _may_have_repeated(queries, docs):
        return None
    # A number for each pair of query and document. Equal numbers are neighbours once sorted, and a
    # stable sort leaves them in the order of their entries.
    pair_numbers = queries * (int(docs.max(initial=0)) + 1) + docs
    order = np.argsort(pair_numbers, kind="stable")
    repeated = order[1:][np.diff(pair_numbers[order]) == 0]
    return int(repeated.min()) if len(repeated) else None


def _may_have_repeated(queries: Int64, docs: Int64 | npt.NDArray[np.int32]) -> bool:
    """Return whether a query has a document twice, or its entries do not follow each other.

    The entries of a few queries are sorted at a time, because short arrays of small numbers sort
    four times as fast. That works only if the entries of each query follow each other; if they do
    not, the slower search decides.
    """
    if (np.diff(queries) < 0).any():
        return True
    document_count = int(docs.max(initial=0)) + 1
    start = 0
    while start < len(docs):
        end = _end_of_block(queries, start)
        # Within a block queries are numbered from 0, so that the numbers of pairs stay small.
        block_queries = queries[start:end] - queries[start]
        pair_numbers = block_queries * document_count + docs[start:end]
        if document_count * _QUERIES_PER_SORT <= 1 << 32:
            pair_numbers = pair_numbers.astype(np.uint32)
        pair_numbers.sort()
        if (pair_numbers[1:] == pair_numbers[:-1]).any():
            return True
        start = end
    return False


def _end_of_block(queries: Int64, start: int) -> int:
    """Return where the block of entries to sort together ends that begins with entry `start`.

    A block has all entries of its queries. It is as large as `_ENTRIES_PER_SORT` and
    `_QUERIES_PER_SORT` allow, and has at least one query.
    """
    first_query = queries[start]
    end = int(np.searchsorted(queries, first_query + _QUERIES_PER_SORT))
    end = min(start + _ENTRIES_PER_SORT, end)
    if end >= len(queries):
        return end
    # `end` may be in the middle of a query, which then goes into the next block.
    start_of_last_query = int(np.searchsorted(queries, queries[end]))
    if start_of_last_query > start:
        return start_of_last_query
    return int(np.searchsorted(queries, first_query, side="right"))
