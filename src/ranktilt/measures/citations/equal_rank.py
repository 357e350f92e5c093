"""Citation rate at equal rank: how often a retrieved page is cited, given where it was ranked.

The pages that were retrieved for a query are of two groups, a and b. If those of one group are
ranked higher, they are cited more often for that reason alone. To compare pages at the same rank of
the same query, *cited* is regressed on group with an effect for each query and for each rank:

    expected citations of a page:  μ = exp(query effect + rank effect + θ · [page is of group a])

This is a Poisson regression, and the question's value is the ratio e^θ. An effect for every query
would be thousands of coefficients. They need not be estimated: with an effect for each query the
Poisson estimate of θ is that of the multinomial regression within queries (Palmgren, Biometrika
68(2), 1981), in which each query's citations are spread over its pages. That is what is solved
here, with one coefficient for each rank and one for the group.

The Mantel-Haenszel estimate over strata of query and rank would be simpler. But half of its strata
hold pages of one group only, and it gives 1.09 to 1.16 where the true ratio is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.citations.base import (
    Bools,
    CitationEstimate,
    CitationRows,
    Exchange,
    Floats,
    Ints,
)

NAME = "citation rate at equal rank"
"""Name of the question in reports."""
QUESTION = "How many times as often is a page at the same rank cited if it is of group a?"
"""The question in words."""
UNIT = "times"
"""Unit of the value."""
FEWEST_CITATIONS = 10
"""Citations of a group below which the ratio is undefined."""
_SINGLE_RANKS = 10
"""Ranks up to this one have an effect of their own; deeper ones share the effect of their block."""
_BLOCKS = (10, 20, 50, 100, 200, 500, 1_000)
"""Ends of the blocks of deeper ranks: 11 to 20 are one block, 21 to 50 the next, and so on.

All ranks beyond the last end are one block.
"""
_LEAST_INFORMATION = 1e-6
"""Information about θ, as a part of the citations, below which groups count as never compared.

If no query holds pages of both groups at comparable ranks, the information is 0 but for rounding.
"""
_STEPS = 100
"""Most steps of Newton's method; some ten are usual."""
_TOLERANCE = 1e-10
"""Largest gradient, as a part of the citations, at which the regression counts as solved."""
_RIDGE = 1e-8
"""Added to the information of each coefficient.

Without it, the effect of a rank that is never cited would be minus infinity; with it, it is a large
negative number.
"""
_LONGEST_STEP = 2.0
"""Largest change of a coefficient in one step, so that no first step overshoots far."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _RegressionInputs:
    """The pages of queries with a citation, as a regression takes them."""

    design: Floats
    """A row for each page, and a column for each coefficient.

    The columns are the rank effects but the first, which others are compared with, and last the
    group (1 for a). The last column is all 0 where the regression is fitted without the group.
    """
    query: Ints
    """Number of each page's query among those with a citation, from 0."""
    cited: Floats
    """Weighted citations of each page: its weight where it is cited, 0 otherwise."""
    query_citations: Floats
    """Weighted citations of each query, shape (n_queries,)."""

    def expected(self, coefficients: Floats) -> Floats:
        """Return μ: the citations of each query, spread over its pages by their rates.

        A page's rate is exp(design · coefficients). The query effect needs no coefficient, because
        it is what makes the expected citations of a query add up to those it has.
        """
        linear = self.design @ coefficients
        # The largest value of each query is subtracted, so that no exponential overflows. This
        # cancels below, where rates are divided by their sum in the query.
        largest = np.full(len(self.query_citations), -np.inf)
        np.maximum.at(largest, self.query, linear)
        rates = np.exp(linear - largest[self.query])
        per_rate = self.query_citations / np.bincount(self.query, weights=rates)
        expected: Floats = rates * per_rate[self.query]
        return expected

    def centred(self, expected: Floats) -> Floats:
        """Return the design minus its mean in each query, weighted by μ.

        This removes the query effects. `expected` is μ.
        """
        query_count = len(self.query_citations)
        sums = [
            np.bincount(self.query, weights=expected * column, minlength=query_count)
            for column in self.design.T
        ]
        means = np.stack(sums, axis=1) / self.query_citations[:, None]
        centred: Floats = self.design - means[self.query]
        return centred


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankRegression:
    """The fitted regression, over the pages of queries with a citation."""

    coefficient: float
    """θ, the logarithm of the ratio."""
    expected: Floats
    """μ, the expected citations of each page."""
    residual_group: Floats
    """g̃: what is left of the group (1 for a, 0 for b) after query and rank effects are removed.

    The effects are those of a regression of the group on queries and ranks, weighted by μ.
    """

    @property
    def information(self) -> float:
        """Σ μ g̃²: the information about θ, the inverse of its Poisson variance."""
        return float(np.sum(self.expected * self.residual_group**2))


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio e^θ of citation rates at equal rank, among retrieved pages; neutral is 1.

    NaN where a group has fewer than ten citations, or no query holds pages of both groups at
    comparable ranks. With g̃ as in `_RankRegression`, the influence of a row, what it adds to the
    error, is g̃ (cited − μ) / Σ μ g̃².
    """
    cited = rows.weight * (rows.is_cited & rows.is_retrieved)
    citations_a = float(np.sum(rows.is_cited & rows.is_retrieved & rows.is_a))
    citations_b = float(np.sum(rows.is_cited & rows.is_retrieved & ~rows.is_a))
    value, influence = np.nan, np.full(len(rows), np.nan)
    # A query without a citation says nothing about which of its pages is cited.
    has_citation = rows.per_question(cited)[rows.question] > 0
    is_used = rows.is_retrieved & has_citation
    if min(citations_a, citations_b) >= FEWEST_CITATIONS:
        fit = _fit_rows(rows.select(is_used), cited[is_used])
        information = fit.information
        if information > _LEAST_INFORMATION * float(cited.sum()):
            value = float(np.exp(fit.coefficient))
            scores = fit.residual_group * (cited[is_used] - fit.expected)
            influence = np.zeros(len(rows))
            influence[is_used] = scores / information
    in_pool = rows.weight * rows.is_retrieved
    exchange = Exchange(amount=_unexplained_citations(rows, cited, is_used))
    return CitationEstimate(
        value=value,
        value_a=_rate(cited, in_pool, rows.is_a),
        value_b=_rate(cited, in_pool, ~rows.is_a),
        scale="log ratio",
        neutral=1.0,
        distance=float(np.log(value)),
        influence=influence,
        support_a=in_pool * rows.is_a,
        support_b=in_pool * ~rows.is_a,
        citations_a=citations_a,
        citations_b=citations_b,
        exchange=exchange,
    )


def _unexplained_citations(rows: CitationRows, cited: Floats, is_used: Bools) -> Floats:
    """Return each row's citations minus those that query and rank explain without the group.

    Their sum over group a is the score of θ at 0. A permutation test can use it without a new fit
    for each exchange of labels. `cited` are weighted citations, and `is_used` is a mask of the rows
    of the regression.
    """
    amount = np.zeros(len(rows))
    if is_used.any():
        fit = _fit_rows(rows.select(is_used), cited[is_used], has_group=False)
        amount[is_used] = cited[is_used] - fit.expected
    return amount


def rank_block(ranks: Ints) -> Ints:
    """Return the number of each rank's effect, from 0; ranks beyond 10 share those of blocks."""
    blocks = np.searchsorted(_BLOCKS, ranks, side="left") + _SINGLE_RANKS
    return np.where(ranks <= _SINGLE_RANKS, ranks - 1, blocks).astype(np.int64)


def _rate(cited: Floats, in_pool: Floats, is_member: Bools) -> float:
    """Return a group's citation rate without regard to rank; NaN without a page in the pool.

    `cited` and `in_pool` are weights of cited and of retrieved rows, and `is_member` is a mask of
    the group's rows.
    """
    total = float(in_pool[is_member].sum())
    return float(cited[is_member].sum()) / total if total > 0 else np.nan


def _fit_rows(rows: CitationRows, cited: Floats, *, has_group: bool = True) -> _RankRegression:
    """Fit the regression by Newton's method, with or without the group.

    `rows` are those of queries with a citation, and `cited` their weighted citations. Each step
    solves information · step = gradient, where the gradient is Σ design (cited − μ) and the
    information Σ μ (design minus its mean in the query)².
    """
    inputs = _regression_inputs(rows, cited, has_group=has_group)
    coefficients = np.zeros(inputs.design.shape[1])
    ridge = np.diag(np.full(inputs.design.shape[1], _RIDGE))
    citations = max(inputs.query_citations.sum(), 1.0)
    for _step in range(_STEPS):
        expected = inputs.expected(coefficients)
        centred = inputs.centred(expected)
        gradient = inputs.design.T @ (cited - expected)
        information = (centred * expected[:, None]).T @ centred
        step = np.linalg.solve(information + ridge, gradient)
        coefficients += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(gradient).max() < _TOLERANCE * citations:
            break
    expected = inputs.expected(coefficients)
    centred = inputs.centred(expected)
    return _RankRegression(
        coefficient=float(coefficients[-1]),
        expected=expected,
        residual_group=_residual_group(centred, expected),
    )


def _regression_inputs(rows: CitationRows, cited: Floats, *, has_group: bool) -> _RegressionInputs:
    """Build the design: rank effects, and the group in the last column."""
    # Only queries and rank effects that occur get a number, from 0.
    _, query = np.unique(rows.question, return_inverse=True)
    _, block = np.unique(rank_block(rows.retrieval_rank), return_inverse=True)
    # A column for each effect but the first, and one for the group.
    design = np.zeros((len(query), int(block.max()) + 1))
    has_effect = block > 0
    design[np.flatnonzero(has_effect), block[has_effect] - 1] = 1.0
    if has_group:
        design[:, -1] = rows.is_a
    query_citations: Floats = np.bincount(query, weights=cited).astype(np.float64)
    return _RegressionInputs(
        design=design, query=query.astype(np.int64), cited=cited, query_citations=query_citations
    )


def _residual_group(centred: Floats, expected: Floats) -> Floats:
    """Return g̃: what is left of the group after query and rank effects are removed.

    `centred` is the design without its query effects. The rank effects are removed here, by least
    squares that are weighted by μ, `expected`.
    """
    effects, group = centred[:, :-1], centred[:, -1]
    weights = np.sqrt(expected)
    projection = np.linalg.lstsq(effects * weights[:, None], group * weights, rcond=1e-9)[0]
    residual: Floats = group - effects @ projection
    return residual
