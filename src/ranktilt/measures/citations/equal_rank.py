"""Citation rate at equal rank: how often a retrieved page is cited, given where it was ranked.

The ratio e^θ of a Poisson regression of *cited* on group with query and rank effects. With an
effect for every query, its estimate is that of the multinomial regression within queries (Palmgren,
Biometrika 68(2), 1981), which is what is solved here: one coefficient a rank instead of one a
query.
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
QUESTION = "How many times as often is a page at the same rank cited if it is of group a?"
UNIT = "times"
FEWEST_CITATIONS = 10
"""Citations on a side below which the ratio is undefined."""
_SINGLE_RANKS = 10
"""Ranks with an effect each; deeper ones share the effect of their block."""
_BLOCKS = (10, 20, 50, 100, 200, 500, 1_000)
_LEAST_INFORMATION = 1e-6
"""Part of the citations that the group's own variation must carry."""
_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankRegression:
    """The fitted regression, over the rows of queries with a citation."""

    coefficient: float
    """θ, the log of the ratio."""
    expected: Floats
    """μ, the expected citations of each row."""
    residual_group: Floats
    """g̃, the group minus its μ-weighted query and rank effects."""


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates at equal rank, among retrieved pages; neutral is 1.

    NaN below ten citations on a side, and where groups never meet at comparable ranks.
    """
    cited = rows.weight * (rows.is_cited & rows.is_retrieved)
    counts = [
        float(np.sum(rows.is_cited & rows.is_retrieved & side)) for side in (rows.is_a, ~rows.is_a)
    ]
    value, influence = np.nan, np.full(len(rows), np.nan)
    per_query = rows.per_question(cited)
    used = rows.is_retrieved & (per_query[rows.question] > 0)
    if min(counts) >= FEWEST_CITATIONS:
        fit = _fit_rows(rows.select(used), cited[used])
        information = float(np.sum(fit.expected * fit.residual_group**2))
        # Where groups never meet at comparable ranks of a query, nothing is left of the group.
        if information > _LEAST_INFORMATION * float(cited.sum()):
            value = float(np.exp(fit.coefficient))
            scores = fit.residual_group * (cited[used] - fit.expected)
            influence = np.zeros(len(rows))
            influence[used] = scores / information
    support = rows.weight * rows.is_retrieved
    value_a, value_b = (_rate(cited, support, side) for side in (rows.is_a, ~rows.is_a))
    return CitationEstimate(
        value=value,
        value_a=value_a,
        value_b=value_b,
        scale="log ratio",
        neutral=1.0,
        distance=float(np.log(value)),
        influence=influence,
        support_a=support * rows.is_a,
        support_b=support * ~rows.is_a,
        citations_a=counts[0],
        citations_b=counts[1],
        exchange=Exchange(amount=_unexplained(rows, cited, used)),
    )


def _unexplained(rows: CitationRows, cited: Floats, used: Bools) -> Floats:
    """Return citations minus those that queries and ranks explain without groups: the score."""
    amount = np.zeros(len(rows))
    if used.any():
        fit = _fit_rows(rows.select(used), cited[used], has_group=False)
        amount[used] = cited[used] - fit.expected
    return amount


def rank_block(ranks: Ints) -> Ints:
    """Return the number of each rank's effect: ranks to 10 have their own, deeper ones share."""
    blocks = np.searchsorted(_BLOCKS, ranks, side="left") + _SINGLE_RANKS
    return np.where(ranks <= _SINGLE_RANKS, ranks - 1, blocks).astype(np.int64)


def _rate(cited: Floats, support: Floats, is_side: Bools) -> float:
    total = float(support[is_side].sum())
    return float(cited[is_side].sum()) / total if total > 0 else np.nan


def _fit_rows(rows: CitationRows, cited: Floats, *, has_group: bool = True) -> _RankRegression:
    """Fit the regression by Newton's method, with or without the group."""
    query = np.unique(rows.question, return_inverse=True)[1].astype(np.int64)
    block = np.unique(rank_block(rows.retrieval_rank), return_inverse=True)[1]
    # The first block is the reference; the last column is the group.
    design = np.zeros((len(query), int(block.max()) + 1))
    is_effect = block > 0
    design[np.flatnonzero(is_effect), block[is_effect] - 1] = 1.0
    if has_group:
        design[:, -1] = rows.is_a
    totals: Floats = np.bincount(query, weights=cited).astype(np.float64)
    coefficients = np.zeros(design.shape[1])
    # A tiny ridge holds the effect of a rank that nobody cites at a large negative number.
    ridge = np.diag(np.full(design.shape[1], 1e-8))
    for _step in range(_STEPS):
        expected = _expected(design @ coefficients, query, totals)
        centred = design - _means(design, expected, query, totals)[query]
        gradient = design.T @ (cited - expected)
        information = (centred * expected[:, None]).T @ centred
        step = np.linalg.solve(information + ridge, gradient)
        coefficients += np.clip(step, -2.0, 2.0)
        if np.abs(gradient).max() < _TOLERANCE * max(totals.sum(), 1.0):
            break
    expected = _expected(design @ coefficients, query, totals)
    centred = design - _means(design, expected, query, totals)[query]
    effects, group = centred[:, :-1], centred[:, -1]
    weights = np.sqrt(expected)
    projection = np.linalg.lstsq(effects * weights[:, None], group * weights, rcond=1e-9)[0]
    return _RankRegression(
        coefficient=float(coefficients[-1]),
        expected=expected,
        residual_group=group - effects @ projection,
    )


def _expected(linear: Floats, query: Ints, totals: Floats) -> Floats:
    """Return μ: the citations of each query, spread over its pages by their rates."""
    largest = np.full(len(totals), -np.inf)
    np.maximum.at(largest, query, linear)
    rates = np.exp(linear - largest[query])
    expected: Floats = rates * (totals / np.bincount(query, weights=rates))[query]
    return expected


def _means(design: Floats, expected: Floats, query: Ints, totals: Floats) -> Floats:
    """Return the μ-weighted mean of each column in each query, shape (n_queries, n_columns)."""
    sums = [
        np.bincount(query, weights=expected * column, minlength=len(totals)) for column in design.T
    ]
    return np.stack(sums, axis=1) / totals[:, None]
