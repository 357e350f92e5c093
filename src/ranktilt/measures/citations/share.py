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
    NaN where both are, for a share alone favours nobody. The error is that of the difference from
    neutral.
    """
    return share_estimate(rows, rows.weight * rows.is_cited)


def share_estimate(rows: CitationRows, amount: Floats) -> CitationEstimate:
    """Return group a's share of an amount over cited rows, against its share of the pool."""
    share, influence = weighted_share(rows, amount)
    pool = rows.is_consulted if rows.is_consulted.any() else rows.is_retrieved
    pool_share, pool_influence = weighted_share(rows, rows.weight * pool)
    support = pool if pool.any() else rows.is_cited
    return CitationEstimate(
        value=100 * share,
        value_a=100 * share,
        value_b=100 * (1 - share),
        scale="share",
        neutral=100 * pool_share,
        distance=100 * (share - pool_share),
        influence=100 * (influence - pool_influence),
        support_a=rows.weight * (support & rows.is_a),
        support_b=rows.weight * (support & ~rows.is_a),
        citations_a=float(np.sum(rows.is_cited & rows.is_a)),
        citations_b=float(np.sum(rows.is_cited & ~rows.is_a)),
        exchange=Exchange(amount=_part(amount) - _part(rows.weight * pool)),
    )


def _part(amount: Floats) -> Floats:
    """Return each row's part of the total; 0 where the total is."""
    total = float(amount.sum())
    return amount / total if total > 0 else np.zeros(len(amount))
