"""Compiled search of postings whose weights are known, such as those of a sparse encoder."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ranktilt.rankers.dense.search import Matches
from ranktilt.rankers.lexical.compiler import compiler
from ranktilt.rankers.lexical.searching import PostingSearch

COMPILED_FROM = 50_000_000
"""Additions of weights from which the compiled search is used.

They take scipy's product of sparse matrices about as long as numba's import.
"""
_SMALLEST_PRODUCT = 1e-37
"""Product of two weights that float32 holds; a smaller one could become a score of 0."""


def compiled_matches(
    queries: sp.csr_matrix,
    postings: sp.csr_matrix,
    depth: int,
    *,
    least: npt.NDArray[np.float64],
    additions: int,
) -> Iterator[Matches] | None:
    """Search the postings of texts with compiled code; None where that cannot be used.

    Returns the best texts of each query, the best first, with all that are tied with the last one.
    The compiled search needs numba, enough to do, and weights above 0.

    Parameters
    ----------
    queries
        Weight of each term in each query, shape (queries, terms).
    postings
        Weight of each term in each text, shape (terms, texts).
    depth
        Texts of each query, at least 1.
    least
        Score of each query below which no text is wanted; 0 for none.
    additions
        Number of weights that the whole search adds up.
    """
    least_weights = _least(queries), _least(postings)
    if min(least_weights) <= 0 or np.prod(least_weights) < _SMALLEST_PRODUCT:
        return None
    if additions < COMPILED_FROM:
        return None
    search_lists = compiler().search_lists
    if search_lists is None:
        return None
    from ranktilt.rankers.lexical.compiled_search import WORD, WeighedPostings

    terms, texts = postings.shape
    starts = postings.indptr.astype(np.int64)
    highest = np.zeros(terms)
    is_used = np.flatnonzero(np.diff(starts))
    highest[is_used] = np.maximum.reduceat(postings.data, starts[is_used])
    rows, words = postings.indices.astype(np.uint32), -(-texts // WORD)
    no_bits, no_ranks = np.zeros((0, words), np.uint64), np.zeros((0, words + 1), np.int32)
    weighed = WeighedPostings(
        rows=rows,
        first_rows=starts[:-1],
        weights=postings.data,
        starts=starts,
        highest=highest,
        safe=np.zeros(terms),
        # Terms come in the order of the vocabulary, not the frequent ones last, so that none of
        # them can be left out and looked up later.
        slots=np.full(terms, -1, np.int64),
        bits=no_bits,
        ranks=no_ranks,
    )
    search = PostingSearch(
        search_lists=search_lists,
        weighed=weighed,
        terms=np.arange(terms),
        queries=queries,
        keys=np.zeros(texts, np.uint64),  # all texts with equal scores are tied
        depth=depth,
        least=least,
        is_rounded=True,
    )
    return _matches(search)


def _matches(search: PostingSearch) -> Iterator[Matches]:
    """Yield texts and scores of each query."""
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        for lengths, rows, scores in search.lists(0, search.queries.shape[0], pool):
            ends = np.cumsum(lengths)
            for low, high in zip(ends - lengths, ends, strict=True):
                yield rows[low:high].astype(np.int64), scores[low:high].astype(np.float32)


def _least(weights: sp.csr_matrix) -> float:
    """Return the least weight of a matrix; infinity where it has none."""
    return float(weights.data.min(initial=np.inf))
