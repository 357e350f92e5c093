"""Stability: how alike the citations of two answers to one query are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktilt.statistics.rank_correlation import list_overlap


def jaccard(pages_a: Sequence[str], pages_b: Sequence[str]) -> float:
    """Return the part of all cited pages that both cite, 0 to 1; NaN where neither cites one."""
    union = set(pages_a) | set(pages_b)
    return len(set(pages_a) & set(pages_b)) / len(union) if union else np.nan


def citation_overlap(pages_a: Sequence[str], pages_b: Sequence[str]) -> float:
    """Return the rank-biased overlap of two lists of citations, 0 to 1, in their order.

    NaN where neither cites a page, 0 where one of them does; see `list_overlap`.
    """
    if not pages_a and not pages_b:
        return np.nan
    depth = min(len(pages_a), len(pages_b))
    if not depth:
        return 0.0
    ranks_b = {page: rank for rank, page in enumerate(pages_b, start=1)}
    shared = [
        (rank, ranks_b[page]) for rank, page in enumerate(pages_a, start=1) if page in ranks_b
    ]
    ranks = np.array(shared, dtype=np.int64).reshape(-1, 2)
    return list_overlap(ranks[:, 0], ranks[:, 1], depth)
