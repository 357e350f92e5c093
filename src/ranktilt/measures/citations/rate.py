"""Citation rate: how often a page that an engine could cite is cited, compared by group.

Pages are of two groups, a and b. The *pool* is the pages that an answer could have cited: those
that the engine consulted (read before it answered), or those that were retrieved for the query. The
citation rate of a group g is the part of its pages in the pool that are cited: |K_g ∩ C| / |C_g|,
where K is what an answer cites and C the pool, summed over answers. The value of the question is
the rate of a divided by the rate of b; it is *neutral*, and favours neither group, at 1.
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
)

NAME = "citation rate"
"""Name of the question in reports."""
QUESTION = "How many times as often is a consulted page cited if it is of group a?"
"""The question in words."""
UNIT = "times"
"""Unit of the value."""
_HALF_CITATION = 0.5
"""Added to citations and pages of both groups, for the error, where one group is never cited."""
_UNCITED_VARIANCE = 1.0
"""Variance of the logarithm of a rate without a citation.

With it, the upper end of the 95 % interval of half a citation is that of Poisson's distribution for
none, 3.69 citations: ln(3.69 / 0.5) = 2.0, which is 1.96 errors of 1.02.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class _GroupCount:
    """The pages of one group in the pool, counted by the weights of their answers."""

    is_member: Bools
    """Whether a row is of the group, shape (n_rows,)."""
    pages: float
    """Weighted number of pages in the pool."""
    cited: float
    """Weighted number of cited pages in the pool."""
    citations: float
    """Number of cited pages in the pool, without weights."""

    @property
    def rate(self) -> float:
        """Citation rate; NaN where no page of the group is in the pool."""
        return _quotient(self.cited, self.pages)


def estimate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates of consulted pages, a / b; neutral is 1."""
    return rate_ratio(rows, rows.is_consulted)


def rate_ratio(rows: CitationRows, pool: Bools) -> CitationEstimate:
    """Return how many times as often group a's pages of a pool are cited; neutral is 1.

    `pool` is a mask of the rows whose pages could have been cited. The ratio is NaN where a group
    has no page in the pool, or neither is cited. Where only group a is cited, it is infinite.
    """
    cited = rows.weight * (rows.is_cited & pool)
    in_pool = rows.weight * pool
    group_a = _count_group(rows, rows.is_a, cited=cited, in_pool=in_pool, pool=pool)
    group_b = _count_group(rows, ~rows.is_a, cited=cited, in_pool=in_pool, pool=pool)
    distance, influence, uncited_variance = np.nan, np.full(len(rows), np.nan), 0.0
    if min(group_a.pages, group_b.pages) > 0 and max(group_a.cited, group_b.cited) > 0:
        # The error is that of a logarithm, and a rate of 0 has none. So half a citation is added to
        # both groups (Haldane, Annals of Human Genetics 20(4), 1956). It goes into the error alone;
        # the value stays what was counted.
        is_uncited = min(group_a.cited, group_b.cited) == 0
        added = _HALF_CITATION if is_uncited else 0.0
        uncited_variance = _UNCITED_VARIANCE if is_uncited else 0.0
        rate_a = (group_a.cited + added) / (group_a.pages + added)
        rate_b = (group_b.cited + added) / (group_b.pages + added)
        distance = float(np.log(rate_a / rate_b))
        # The derivative of ln rate_a − ln rate_b by the weight of a row. Rows differ from the rate
        # that was counted, so that those of a group sum to 0 and a group without a citation adds
        # nothing, whichever queries hold its pages.
        part_a = group_a.is_member * (cited - group_a.rate * in_pool) / (rate_a * group_a.pages)
        part_b = group_b.is_member * (cited - group_b.rate * in_pool) / (rate_b * group_b.pages)
        influence = part_a - part_b
    # A group that is never cited is cited 0 times as often as the other, or the other ∞ times.
    value = _quotient(group_a.rate, group_b.rate)
    if group_b.rate == 0 and group_a.rate > 0:
        value = np.inf
    return CitationEstimate(
        value=value,
        value_a=group_a.rate,
        value_b=group_b.rate,
        scale="log ratio",
        neutral=1.0,
        distance=distance,
        influence=influence,
        support_a=in_pool * rows.is_a,
        support_b=in_pool * ~rows.is_a,
        citations_a=group_a.citations,
        citations_b=group_b.citations,
        exchange=Exchange(amount=cited, support=in_pool),
        uncited_variance=uncited_variance,
    )


def _count_group(
    rows: CitationRows, is_member: Bools, *, cited: Floats, in_pool: Floats, pool: Bools
) -> _GroupCount:
    """Count the pages of a group in the pool.

    `is_member` and `pool` are masks of rows. `cited` and `in_pool` are the weights of cited rows,
    and of all rows, of the pool; 0 for other rows.
    """
    return _GroupCount(
        is_member=is_member,
        pages=float(in_pool[is_member].sum()),
        cited=float(cited[is_member].sum()),
        citations=float(np.sum(rows.is_cited & pool & is_member)),
    )


def _quotient(part: float, total: float) -> float:
    """Return part / total; NaN where the total is 0 or NaN."""
    return part / total if total > 0 else np.nan
