"""Share of citations: how many of the cited pages are of a group."""

from __future__ import annotations

import numpy as np

from ranktilt.measures.citations.base import (
    CitationEstimate,
    CitationRows,
    Exchange,
    Floats,
    weighted_share,
)

NAME = "share of citations"
QUESTION = "Which part of all citations goes to group a?"
UNIT = "%"


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of citations, |K_a| / (|K_a| + |K_b|), in percent.

    Neutral is group a's share of what was consulted; where that is unknown, of what was retrieved;
    NaN where both are, for a share alone favours nobody. Queries whose pool is unknown count for
    neither. The error is that of the difference from neutral.
    """
    return share_estimate(rows, rows.weight * rows.is_cited)


def share_estimate(rows: CitationRows, amount: Floats) -> CitationEstimate:
    """Return group a's share of an amount over cited rows, against its share of the pool."""
    pool = rows.is_consulted if rows.is_consulted.any() else rows.is_retrieved
    in_pool = rows.weight * pool
    has_pool = (rows.per_question(in_pool) > 0)[rows.question]
    if not pool.any():
        has_pool = np.ones(len(rows), dtype=np.bool_)
    amount = amount * has_pool
    share, influence = weighted_share(rows, amount)
    pool_share, pool_influence = weighted_share(rows, in_pool)
    support = rows.weight * (pool if pool.any() else rows.is_cited)
    is_a, is_b = rows.is_a, ~rows.is_a
    citations = [float(np.sum(rows.is_cited & has_pool & side)) for side in (is_a, is_b)]
    exchange = Exchange(amount=_part(amount) - _part(in_pool))
    return CitationEstimate(
        value=100 * share,
        value_a=100 * share,
        value_b=100 * (1 - share),
        scale="share",
        neutral=100 * pool_share,
        distance=100 * (share - pool_share),
        influence=100 * (influence - pool_influence),
        support_a=support * is_a,
        support_b=support * is_b,
        citations_a=citations[0],
        citations_b=citations[1],
        exchange=exchange,
    )


def _part(amount: Floats) -> Floats:
    """Return each row's part of the total; 0 where the total is."""
    total = float(amount.sum())
    return amount / total if total > 0 else np.zeros(len(amount))
