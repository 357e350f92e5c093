"""Where a group's share of citations comes from: questions, exposure, selection, unretrieved.

Answers of an engine cite pages of two groups, a and b; below, "a group" is a. S_pool is group a's
share of what was retrieved (the *pool*), and S_cited its share of what was cited. The way from one
to the other has four steps. Each step is the difference of two shares that follow each other, so
the four add up to S_cited − S_pool exactly:

- *questions*: S̃_pool − S_pool. S̃_pool weighs each query by its citations among retrieved pages.
  Questions with more citations may hold more pages of a group.
- *exposure*: E − S̃_pool. E is what rank alone would give: each query's citations, spread over its
  retrieved pages by the citation rate ĉ of their ranks.
- *selection*: S_cited∩retrieved − E. What the engine picks beyond rank.
- *unretrieved*: S_cited − S_cited∩retrieved. What it cites without having retrieved it.

Two simpler definitions were tried in simulated worlds. With the share of all retrieved pages in
place of E, *selection* was +14 to −16 points where there was none. With a pool that weighs all
queries alike, *exposure* was +14. Definition: docs/measures/citations.md, "The funnel".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranktilt.measures.citations.base import (
    CitationRows,
    CitationShare,
    Floats,
    Ints,
    weighted_share,
)

_FEWEST_PAGES = 20
"""Retrieved pages at a rank below which its citation rate is that of a block of ranks."""
Term = Literal["questions", "exposure", "selection", "unretrieved", "total"]
"""Name of a step, or of their total."""
TERMS: tuple[Term, ...] = ("questions", "exposure", "selection", "unretrieved")
"""The four steps in their order; ``total`` is their sum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FunnelTerm:
    """One step of the way from group a's share of the pool to its share of citations."""

    name: Term
    """Name of the step."""
    points: float
    """Size of the step in percentage points; NaN where no retrieved page is cited."""
    influence: Floats
    """What each row adds to the error of the size, in points, shape (n_rows,)."""


def funnel_terms(rows: CitationRows) -> list[FunnelTerm]:
    """Return the four steps, and then their total.

    All are NaN where no retrieved page is cited.
    """
    in_pool = rows.weight * rows.is_retrieved
    rates = rank_rates(rows)
    pool = weighted_share(rows, in_pool)
    weighted_pool = _expected_share(rows, in_pool)
    by_rank = _expected_share(rows, in_pool * rates[rows.retrieval_rank], rates=rates)
    cited_retrieved = weighted_share(rows, in_pool * rows.is_cited)
    cited = weighted_share(rows, rows.weight * rows.is_cited)
    shares = (pool, weighted_pool, by_rank, cited_retrieved, cited)
    terms = []
    for name, before, after in zip(TERMS, shares[:-1], shares[1:], strict=True):
        terms.append(_funnel_term(name, before, after))
    terms.append(_funnel_term("total", pool, cited))
    return terms


def _funnel_term(name: Term, before: CitationShare, after: CitationShare) -> FunnelTerm:
    """Return a step of the funnel: the share after it minus the share before it, in points."""
    return FunnelTerm(
        name=name,
        points=100 * (after.value - before.value),
        influence=100 * (after.influence - before.influence),
    )


def rank_rates(rows: CitationRows) -> Floats:
    """Return ĉ, the citation rate of each rank over all queries and both groups.

    The rate of rank 3 is at index 3; index 0 is no rank, and its rate is 0. Ranks with few
    retrieved pages share a rate with the next ones (`rank_blocks`).
    """
    deepest = int(rows.retrieval_rank.max(initial=0))
    in_pool = rows.weight * rows.is_retrieved
    pages = np.bincount(rows.retrieval_rank[rows.is_retrieved], minlength=deepest + 1)
    weights = np.bincount(rows.retrieval_rank, weights=in_pool, minlength=deepest + 1)
    cited = np.bincount(rows.retrieval_rank, weights=in_pool * rows.is_cited, minlength=deepest + 1)
    rates = np.zeros(deepest + 1)
    for block in rank_blocks(pages):
        weight = weights[block].sum()
        rates[block] = cited[block].sum() / weight if weight else 0.0
    return rates


def rank_blocks(pages: Ints) -> list[Ints]:
    """Return the ranks that share a citation rate, block by block.

    A rank with at least 20 retrieved pages is a block of its own. Others are merged with the next
    ranks until the block has 20 pages. Ranks that are left at the end join the last block.

    Parameters
    ----------
    pages : array of int
        Retrieved pages at each rank; index 0 is no rank.
    """
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


def _expected_share(
    rows: CitationRows, amount: Floats, *, rates: Floats | None = None
) -> CitationShare:
    """Return group a's share if each query's citations were spread over its pages by an amount.

    With n_q the citations of query q among retrieved pages and s_q group a's part of the amount in
    this query, the share is S = Σ n_q s_q / Σ n_q. Two things vary, and add to a row's influence:
    how many citations a query has adds citation · (s_q − S), and which pages it holds adds the
    page's part of n_q times ([a] − s_q), where [a] is 1 for a page of group a and 0 for others.

    Parameters
    ----------
    rows : CitationRows
        The pages of answers.
    amount : array of float
        What a page's part of its query's citations is proportional to, shape (n_rows,).
    rates : array of float, optional
        The citation rate of each rank, if the amount contains it. Rates are estimated from the same
        rows, so that their own error counts too.
    """
    citations = rows.weight * (rows.is_cited & rows.is_retrieved)
    query_citations = rows.per_question(citations)
    query_amounts = rows.per_question(amount)
    total = float(query_citations.sum())
    if total <= 0:
        return CitationShare(value=np.nan, influence=np.full(len(rows), np.nan))
    is_a = rows.is_a if rows.membership is None else rows.membership
    # 0 / 0 in queries without an amount, which have no citations either.
    with np.errstate(divide="ignore", invalid="ignore"):
        query_share = rows.per_question(amount * is_a) / query_amounts
    query_share = np.where(query_citations > 0, query_share, 0.0)
    value = float(np.sum(query_citations * query_share)) / total
    # Citations of each query for one unit of the amount.
    per_amount = np.divide(
        query_citations,
        query_amounts,
        out=np.zeros_like(query_amounts),
        where=query_amounts > 0,
    )
    distance = is_a - query_share[rows.question]
    influence = citations * (query_share[rows.question] - value)
    influence = influence + per_amount[rows.question] * amount * distance
    if rates is not None:
        in_pool = rows.weight * rows.is_retrieved
        sensitivity = per_amount[rows.question] * in_pool * distance
        influence = influence + _rate_influence(rows, rates, sensitivity)
    return CitationShare(value=value, influence=influence / total)


def _rate_influence(rows: CitationRows, rates: Floats, sensitivity: Floats) -> Floats:
    """Return what each row adds to the error through the citation rates that it helps to estimate.

    `rates` is the citation rate of each rank. `sensitivity` is the derivative of group a's expected
    citations by the rate of a row's rank, shape (n_rows,). Summed over a block of ranks, it is the
    derivative by the block's rate, and a row moves that rate by (cited − rate) / pages of the
    block.
    """
    in_pool = rows.weight * rows.is_retrieved
    ranks = rows.retrieval_rank
    rank_sensitivity = np.bincount(ranks, weights=sensitivity, minlength=len(rates))
    pages = np.bincount(ranks[rows.is_retrieved], minlength=len(rates))
    per_page = np.zeros(len(rates))
    for block in rank_blocks(pages):
        weight = float(in_pool[np.isin(ranks, block)].sum())
        if weight:
            per_page[block] = rank_sensitivity[block].sum() / weight
    return per_page[ranks] * in_pool * (rows.is_cited - rates[ranks])
