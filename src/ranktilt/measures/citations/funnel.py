"""Where a group's share of citations comes from: questions, exposure, selection, unretrieved.

S_cited − S_pool is split exactly, by telescoping:

- *questions*: S̃_pool − S_pool. Questions with more citations may hold more of a group.
- *exposure*: E − S̃_pool. E is what rank alone would give: each query's citations, spread over its
  retrieved pages by the citation rate ĉ of their ranks.
- *selection*: S_cited∩retrieved − E. What the engine picks beyond rank.
- *unretrieved*: S_cited − S_cited∩retrieved. What it cites without having retrieved it.

S̃_pool and E weigh each query by its citations among retrieved pages. (With the share of all
retrieved pages in place of E, *selection* reads +14 to −16 points where there is none; with an
unweighted pool, *exposure* reads +14.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranktilt.measures.citations.base import CitationRows, Floats, Ints, weighted_share

_FEWEST_PAGES = 20
"""Retrieved pages at a rank below which its rate is joined with the next rank's."""
Term = Literal["questions", "exposure", "selection", "unretrieved", "total"]
TERMS: tuple[Term, ...] = ("questions", "exposure", "selection", "unretrieved")


@dataclass(frozen=True, kw_only=True, eq=False)
class FunnelTerm:
    """A part of the difference between a group's share of citations and of the pool."""

    name: Term
    points: float
    """In percentage points of the share of citations."""
    influence: Floats
    """What each row adds to its error, in points, shape (n_rows,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Share:
    """A share, and what each row adds to its error."""

    value: float
    influence: Floats


def funnel_terms(rows: CitationRows) -> list[FunnelTerm]:
    """Return the four terms, which add up to the difference, and their total, in this order.

    All are NaN where no retrieved page is cited.
    """
    in_pool = rows.weight * rows.is_retrieved
    pool = _plain_share(rows, in_pool)
    cited = _plain_share(rows, rows.weight * rows.is_cited)
    cited_retrieved = _plain_share(rows, in_pool * rows.is_cited)
    rates = rank_rates(rows)
    weighted_pool = _spread_share(rows, in_pool)
    by_rank = _spread_share(rows, in_pool * rates[rows.retrieval_rank], by_rank=rates)
    steps = (pool, weighted_pool, by_rank, cited_retrieved, cited)
    terms = []
    for name, before, after in zip(TERMS, steps[:-1], steps[1:], strict=True):
        terms.append(_difference(name, before, after))
    terms.append(_difference("total", pool, cited))
    return terms


def rank_rates(rows: CitationRows) -> Floats:
    """Return ĉ, the citation rate of each rank over queries and groups; index 0 is not a rank.

    A rank with few retrieved pages is joined with the next ones.
    """
    deepest = int(rows.retrieval_rank.max(initial=0))
    in_pool = rows.weight * rows.is_retrieved
    pages = np.bincount(rows.retrieval_rank[rows.is_retrieved], minlength=deepest + 1)
    supports = np.bincount(rows.retrieval_rank, weights=in_pool, minlength=deepest + 1)
    cited = np.bincount(rows.retrieval_rank, weights=in_pool * rows.is_cited, minlength=deepest + 1)
    rates = np.zeros(deepest + 1)
    for block in rank_blocks(pages):
        support = supports[block].sum()
        rates[block] = cited[block].sum() / support if support else 0.0
    return rates


def rank_blocks(pages: Ints) -> list[Ints]:
    """Return the ranks that share a rate; `pages` counts the retrieved pages at each rank."""
    blocks, block = list[list[int]](), list[int]()
    for rank in range(1, len(pages)):
        block.append(rank)
        if pages[block].sum() >= _FEWEST_PAGES:
            blocks.append(block)
            block = []
    if block and blocks:
        blocks[-1] += block
    elif block:
        blocks.append(block)
    return [np.array(ranks) for ranks in blocks]


def _plain_share(rows: CitationRows, amount: Floats) -> _Share:
    value, influence = weighted_share(rows, amount)
    return _Share(value=value, influence=influence)


def _difference(name: Term, before: _Share, after: _Share) -> FunnelTerm:
    return FunnelTerm(
        name=name,
        points=100 * (after.value - before.value),
        influence=100 * (after.influence - before.influence),
    )


def _spread_share(rows: CitationRows, amount: Floats, *, by_rank: Floats | None = None) -> _Share:
    """Return group a's share if each query's citations were spread over its pages by an amount.

    With rates `by_rank` in the amount, their own error counts too.
    """
    citations = rows.weight * (rows.is_cited & rows.is_retrieved)
    per_query = rows.per_question(citations)
    amounts = rows.per_question(amount)
    total = float(per_query.sum())
    if total <= 0:
        return _Share(value=np.nan, influence=np.full(len(rows), np.nan))
    with np.errstate(divide="ignore", invalid="ignore"):
        query_share = rows.per_question(amount * rows.is_a) / amounts
    query_share = np.where(per_query > 0, query_share, 0.0)
    value = float(np.sum(per_query * query_share)) / total
    spread = np.divide(per_query, amounts, out=np.zeros_like(amounts), where=amounts > 0)
    distance = rows.is_a - query_share[rows.question]
    influence = citations * (query_share[rows.question] - value)
    influence = influence + spread[rows.question] * amount * distance
    if by_rank is not None:
        influence = influence + _rate_influence(rows, by_rank, spread, distance)
    return _Share(value=value, influence=influence / total)


def _rate_influence(rows: CitationRows, rates: Floats, spread: Floats, distance: Floats) -> Floats:
    """Return what each row adds through the rates that it helps to estimate."""
    in_pool = rows.weight * rows.is_retrieved
    ranks = rows.retrieval_rank
    sensitivity = np.bincount(
        ranks, weights=spread[rows.question] * in_pool * distance, minlength=len(rates)
    )
    pages = np.bincount(ranks[rows.is_retrieved], minlength=len(rates))
    per_unit = np.zeros(len(rates))
    for block in rank_blocks(pages):
        support = float(in_pool[np.isin(ranks, block)].sum())
        if support:
            per_unit[block] = sensitivity[block].sum() / support
    return per_unit[ranks] * in_pool * (rows.is_cited - rates[ranks])
