"""Retrieved, consulted, cited: each group's share of a stage, and what made it change.

A page is first retrieved for a query, then consulted (read) by the engine, then cited in its
answer. Pages belong to groups, and two groups, a and b, are compared at a time. The results are the
records of `effect`. `ranktilt.measures.citations.funnel` defines the parts into which the change of
a share is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranktilt.citing.effect import FunnelPart, RankRate, Stage, StageShare
from ranktilt.citing.inference.infer import PlainSpread, plain_spread
from ranktilt.citing.prepare import CitationInputs
from ranktilt.measures.citations.base import Bools, CitationRows, weighted_share
from ranktilt.measures.citations.funnel import funnel_terms

RANK_BANDS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, 20), (21, 50), (51, 10_000))
"""First and last rank of each band for which a citation rate is given.

Bands are wider at lower ranks, and the last one holds all that follow.
"""


def stage_shares(inputs: CitationInputs, pairs: Sequence[tuple[str, str]]) -> list[StageShare]:
    """Return each group's share of what was retrieved, consulted and cited, with intervals.

    For every pair and stage, group a comes first and then group b.
    """
    shares = []
    for a, b in pairs:
        rows = inputs.pair_rows(a, b)
        for stage, mask in stage_masks(rows).items():
            share = weighted_share(rows, rows.weight * mask)
            percent, influence = 100 * share.value, 100 * share.influence
            spread = plain_spread(rows, percent, influence, support=mask, bounds=(0.0, 100.0))
            pages = int(np.sum(mask & rows.is_a))
            shares.append(
                StageShare(
                    stage=stage,
                    group=a,
                    value=percent,
                    low=spread.low,
                    high=spread.high,
                    over=spread.over,
                    pages=pages,
                )
            )
            shares.append(
                StageShare(
                    stage=stage,
                    group=b,
                    value=100 * (1 - share.value),
                    low=100 - spread.high,
                    high=100 - spread.low,
                    over=spread.over,
                    pages=int(mask.sum()) - pages,
                )
            )
    return shares


def stage_masks(rows: CitationRows) -> dict[Stage, Bools]:
    """Return, for each stage that is known, a mask of the rows that are in it."""
    stages: dict[Stage, Bools] = {}
    if rows.is_retrieved.any():
        stages["retrieved"] = rows.is_retrieved
    if rows.is_consulted.any():
        stages["consulted"] = rows.is_consulted
    stages["cited"] = rows.is_cited
    if rows.is_retrieved.any():
        stages["cited without being retrieved"] = rows.is_cited & ~rows.is_retrieved
    return stages


def funnel_parts(inputs: CitationInputs, pairs: Sequence[tuple[str, str]]) -> list[FunnelPart]:
    """Split the difference between group a's shares of citations and of retrieved pages into parts.

    There are four parts and their total for each pair; none if no retrieved list is known.
    """
    parts = []
    for a, b in pairs:
        rows = inputs.pair_rows(a, b)
        if not rows.is_retrieved.any():
            continue
        support = rows.is_retrieved | rows.is_cited
        for term in funnel_terms(rows):
            spread = plain_spread(rows, term.points, term.influence, support=support)
            parts.append(
                FunnelPart(
                    name=term.name,
                    a=a,
                    b=b,
                    value=term.points,
                    low=spread.low,
                    high=spread.high,
                    over=spread.over,
                    p=spread.p,
                )
            )
    return parts


def rank_rates(inputs: CitationInputs) -> list[RankRate]:
    """Return how often pages at a rank are cited, by group; nothing if no list is known.

    Pages that were consulted without being retrieved have rank 0.
    """
    rates = list[RankRate]()
    if not (inputs.rows["retrieval_rank"] > 0).any():
        return rates
    for group in inputs.groups:
        rows = inputs.group_rows(group)
        for first, last in RANK_BANDS:
            mask = (first <= rows.retrieval_rank) & (rows.retrieval_rank <= last)
            deepest = min(last, int(rows.retrieval_rank[mask].max(initial=0)))
            rates += _band_rate(rows, mask, group, (first, deepest))
        rates += _band_rate(rows, rows.is_consulted & ~rows.is_retrieved, group, (0, 0))
    return rates


def _band_rate(
    rows: CitationRows, mask: Bools, group: str, ranks: tuple[int, int]
) -> Iterator[RankRate]:
    """Yield the citation rate of a group in a band of ranks; nothing if it has no page there.

    `rows` are those of the group, `mask` says which of them are in the band, and `ranks` are the
    first and last rank of the band.
    """
    if not mask.any():
        return
    spread = _citation_rate(rows, mask)
    first, last = ranks
    yield RankRate(
        first=first,
        last=last,
        group=group,
        value=spread.value,
        low=spread.low,
        high=spread.high,
        over=spread.over,
        pages=int(mask.sum()),
    )


def _citation_rate(rows: CitationRows, mask: Bools) -> PlainSpread:
    """Return the citation rate of the rows of a mask, which are of one group, with its interval."""
    amount = rows.weight * mask
    total = float(amount.sum())
    rate = float((amount * rows.is_cited).sum()) / total
    influence = amount * (rows.is_cited - rate) / total
    return plain_spread(rows, rate, influence, support=mask, bounds=(0.0, 1.0))
