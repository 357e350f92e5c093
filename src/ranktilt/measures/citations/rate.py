"""Citation rate: how often a consulted, or a retrieved, page of a group is cited."""

from __future__ import annotations

import numpy as np

from ranktilt.measures.citations.base import (
    Bools,
    CitationEstimate,
    CitationRows,
    Exchange,
)

NAME = "citation rate"
QUESTION = "How many times as often is a consulted page cited if it is of group a?"
UNIT = "times"


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates |K_g ∩ C| / |C_g| given consulted; neutral is 1."""
    return rate_ratio(rows, rows.is_consulted)


def rate_ratio(rows: CitationRows, pool: Bools) -> CitationEstimate:
    """Return how many times as often group a's pages of a pool are cited; neutral is 1.

    Where a group is never cited, half a citation is added to both for the error alone (Haldane,
    Annals of Human Genetics 20(4), 1956).
    """
    cited = rows.weight * (rows.is_cited & pool)
    in_pool = rows.weight * pool
    sides = rows.is_a, ~rows.is_a
    totals = [float(in_pool[side].sum()) for side in sides]
    counts = [float(cited[side].sum()) for side in sides]
    value_a, value_b = (_ratio(count, total) for count, total in zip(counts, totals, strict=True))
    distance, influence = np.nan, np.full(len(rows), np.nan)
    if min(totals) > 0 and max(counts) > 0:
        added = 0.0 if min(counts) > 0 else 0.5
        rates = [(counts[i] + added) / (totals[i] + added) for i in (0, 1)]
        distance = float(np.log(rates[0] / rates[1]))
        influence = np.zeros(len(rows))
        for sign, side, rate, total in zip((1, -1), sides, rates, totals, strict=True):
            influence += sign * side * (cited - rate * in_pool) / (rate * total)
    citations = [float(np.sum(rows.is_cited & pool & side)) for side in sides]
    # A side that is never cited is 0 times, or ∞ times, as often cited, whichever side it is.
    value = _ratio(value_a, value_b)
    if value_b == 0 and value_a > 0:
        value = np.inf
    return CitationEstimate(
        value=value,
        value_a=value_a,
        value_b=value_b,
        scale="log ratio",
        neutral=1.0,
        distance=distance,
        influence=influence,
        support_a=in_pool * rows.is_a,
        support_b=in_pool * ~rows.is_a,
        citations_a=citations[0],
        citations_b=citations[1],
        exchange=Exchange(amount=cited, support=in_pool),
    )


def _ratio(part: float, total: float) -> float:
    return part / total if total > 0 else np.nan
