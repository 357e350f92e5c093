"""Stability: how alike the citations of two answers to one query are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktilt.statistics.judges.rank_correlation import list_overlap


def jaccard(pages_a: Sequence[str], pages_b: Sequence[str]) -> float:
    """Return how alike the cited pages of two answers are, without regard to their order.

    It is Jaccard similarity: of all pages that either answer cites, the part that both cite. 1
    where both cite the same pages, 0 where they share none, NaN where neither cites a page.
    """
    union = set(pages_a) | set(pages_b)
    return len(set(pages_a) & set(pages_b)) / len(union) if union else np.nan


def citation_overlap(pages_a: Sequence[str], pages_b: Sequence[str]) -> float:
    """Return the rank-biased overlap of the pages that two answers cite, in their order.

    It lies between 0 and 1, and early citations count more (Webber, Moffat & Zobel, ACM TOIS 28(4),
    2010). Only as many citations as the shorter list has are compared. NaN where neither answer
    cites a page, 0 where only one of them does.
    """
    if not pages_a and not pages_b:
        return np.nan
    depth = min(len(pages_a), len(pages_b))
    if not depth:
        return 0.0
    ranks_b = {page: rank for rank, page in enumerate(pages_b, start=1)}
    # The rank in either list of each page that both have.
    shared_ranks_a, shared_ranks_b = list[int](), list[int]()
    for rank, page in enumerate(pages_a, start=1):
        if page in ranks_b:
            shared_ranks_a.append(rank)
            shared_ranks_b.append(ranks_b[page])
    return list_overlap(
        np.array(shared_ranks_a, dtype=np.int64), np.array(shared_ranks_b, dtype=np.int64), depth
    )
