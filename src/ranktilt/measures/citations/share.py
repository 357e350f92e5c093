"""Share of citations: which part of the cited pages is of a group.

The pages that answers cite are of two groups, a and b. The *pool* is what an answer could have
cited: the pages that the engine consulted (read before it answered) or, where that is unknown, the
pages that were retrieved for the query.
"""

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
"""Name of the question in reports."""
QUESTION = "Which part of all citations goes to group a?"
"""The question in words."""
UNIT = "%"
"""Unit of the value."""


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return group a's share of citations, |K_a| / (|K_a| + |K_b|), in percent.

    K_a are the citations of group a. Its share alone does not say whether it is favoured: a group
    with half of the citations may also be half of what could have been cited. So neutral, the value
    that favours neither group, is group a's share of the pool; NaN where the pool is unknown.
    """
    return share_estimate(rows, rows.weight * rows.is_cited)


def share_estimate(rows: CitationRows, amount: Floats) -> CitationEstimate:
    """Return group a's share of an amount over cited pages, compared with its share of the pool.

    Queries without a pool are left out of both shares if others have one, so that both shares are
    of the same queries. The error is that of the difference of the two shares.

    Parameters
    ----------
    rows : CitationRows
        The pages of answers.
    amount : array of float
        What each row adds, shape (n_rows,): a citation, a first citation or cited words, times the
        row's weight.
    """
    pool = rows.is_consulted if rows.is_consulted.any() else rows.is_retrieved
    in_pool = rows.weight * pool
    # Whether the query of a row has a pool; without any pool, all queries count.
    has_pool = (rows.per_question(in_pool) > 0)[rows.question]
    if not pool.any():
        has_pool = np.ones(len(rows), dtype=np.bool_)
    amount = amount * has_pool
    share = weighted_share(rows, amount)
    pool_share = weighted_share(rows, in_pool)
    support = rows.weight * (pool if pool.any() else rows.is_cited)
    is_counted = rows.is_cited & has_pool
    # Summed over group a, these amounts are its share of citations minus its share of the pool.
    exchange = Exchange(amount=_parts_of_total(amount) - _parts_of_total(in_pool))
    percent, distance = 100 * share.value, 100 * (share.value - pool_share.value)
    influence = 100 * (share.influence - pool_share.influence)
    citations_a = float(np.sum(is_counted & rows.is_a))
    citations_b = float(np.sum(is_counted & ~rows.is_a))
    return CitationEstimate(
        value=percent,
        value_a=percent,
        value_b=100 * (1 - share.value),
        scale="share",
        neutral=100 * pool_share.value,
        distance=distance,
        influence=influence,
        support_a=support * rows.is_a,
        support_b=support * ~rows.is_a,
        citations_a=citations_a,
        citations_b=citations_b,
        exchange=exchange,
    )


def _parts_of_total(amount: Floats) -> Floats:
    """Return each row's part of the total amount, from 0 to 1; all 0 where the total is 0."""
    total = float(amount.sum())
    return amount / total if total > 0 else np.zeros(len(amount))
