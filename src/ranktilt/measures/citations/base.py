"""The pages of answers as arrays, and the estimate that a question makes of them.

An *answer* is what an engine wrote for a query, and cites *pages*. Each page belongs to one of two
groups, *a* and *b*. A *question* is what is asked about them, such as which group is cited more
often. The *pool* is what an answer could have cited. *Neutral* is the value of a question at which
neither group is favoured: 1 for a ratio of rates, the group's share of the pool for a share of
citations. The *influence* of a row is what it adds to the error of an estimate: the error is the
root of the sum of squared influences, which are first summed within queries and within units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Scale = Literal["share", "log ratio"]
"""Scale on which the error of an estimate is symmetric: percentage points for a share, the natural
logarithm for a ratio."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationRows:
    """Pages of two groups in answers: one row for each page of each answer.

    All arrays have the same length. A page that is in three answers has three rows.
    """

    question: Ints
    """Number of the query (the question that the engine answered), from 0."""
    cluster: Ints
    """Number of the page's unit, from 0.

    The unit is the pages that are labelled together, such as those of its domain. Pages of one unit
    are one observation of the label, so that errors are clustered by unit.
    """
    weight: Floats
    """Weight of the row's answer: all answers to one query weigh as much as one answer.

    Proportional to 1 / the number of answers to the query.
    """
    is_a: Bools
    """Whether the page is of group a; it is of group b otherwise."""
    is_cited: Bools
    """Whether the answer cites the page."""
    is_first: Bools
    """Whether the page is the first citation of its answer."""
    is_consulted: Bools
    """Whether the engine read the page before it answered; all False where nobody recorded it."""
    retrieval_rank: Ints
    """Rank in the list that was retrieved for the query, from 1; 0 where not retrieved."""
    cited_words: Floats
    """Words of the answer that the page supports.

    NaN where the answer does not say which words a citation supports.
    """
    part: Ints | None = None
    """Number of the page's part, from 0.

    Parts are pages whose labels err equally often, such as short ones; None where all do.
    """
    membership: Floats | None = None
    """How much of the page counts for group a, from its label and how often labels are wrong.

    None where labels are taken as they are, so that a page counts 1 for group a, or 0.
    """

    def __len__(self) -> int:
        return len(self.question)

    @cached_property
    def question_count(self) -> int:
        """Number of queries: the highest number in `question`, plus 1."""
        return int(self.question.max()) + 1 if len(self) else 0

    @cached_property
    def cell(self) -> Ints:
        """Number of the combination of query and unit that a row belongs to, from 0.

        The two-way variance subtracts the sums by cell, because the sums by query and the sums by
        unit both contain them.
        """
        unit_count = int(self.cluster.max(initial=0)) + 1
        _, numbers = np.unique(self.question * unit_count + self.cluster, return_inverse=True)
        cells: Ints = numbers.astype(np.int64)
        return cells

    @cached_property
    def is_retrieved(self) -> Bools:
        """Whether the page is in the list that was retrieved for the query."""
        return self.retrieval_rank > 0

    def select(self, mask: Bools) -> CitationRows:
        """Return the rows of a mask; queries and clusters keep their numbers."""
        return CitationRows(
            question=self.question[mask],
            cluster=self.cluster[mask],
            weight=self.weight[mask],
            is_a=self.is_a[mask],
            is_cited=self.is_cited[mask],
            is_first=self.is_first[mask],
            is_consulted=self.is_consulted[mask],
            retrieval_rank=self.retrieval_rank[mask],
            cited_words=self.cited_words[mask],
            part=None if self.part is None else self.part[mask],
            membership=None if self.membership is None else self.membership[mask],
        )

    def per_question(self, values: Floats) -> Floats:
        """Sum the values of rows by query, shape (n_questions,)."""
        sums = np.bincount(self.question, weights=values, minlength=self.question_count)
        return sums.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """The amounts that a permutation test adds up, anew for each exchange of labels.

    To exchange labels is to deal the labels of units (such as domains) out again at random. The
    test asks how often a random exchange of the labels of units gives a value as far from
    neutral as the observed one. With [a] = 1 for rows of group a and 0 for others, its statistic is

    - without `support`: Σ amount · [a]. The amounts sum to 0, and so does the statistic on average.
    - with `support`: ln(rate_a / rate_b), where rate = (Σ amount + ½) / (Σ support + ½) over the
      rows of the group. The halves give a group without a citation a finite value too.
    """

    amount: Floats
    """What each row adds to the sum of its group, such as a citation, shape (n_rows,)."""
    support: Floats | None = None
    """What each row adds to the denominator of its group; None where the statistic is a sum."""
    distance: float | None = None
    """How far from neutral the value is, where that is not the statistic of the labels.

    If labels of some pages are wrong more often than those of others, the statistics of exchanged
    labels do not scatter around neutral. Their distances from their own mean are then compared with
    this distance.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationEstimate:
    """The value of one question about two groups, with what its error and its test need."""

    value: float
    """Ratio a / b, or group a's part in percent; NaN where undefined."""
    value_a: float
    """Group a's rate from 0 to 1, or its part in percent; NaN where undefined."""
    value_b: float
    """Group b's rate from 0 to 1, or its part in percent; NaN where undefined."""
    scale: Scale
    """Scale on which the estimate's error is symmetric."""
    neutral: float
    """Value that favours neither group; NaN where it is unknown."""
    distance: float
    """Distance of the value from neutral on `scale`.

    ln(value / neutral) for a ratio, value − neutral in points for a share.
    """
    influence: Floats
    """What each row adds to the error of `distance`, shape (n_rows,); sums to 0."""
    support_a: Floats
    """Weight of each row in the denominator of group a, shape (n_rows,).

    The effective number of units behind the group is computed from it.
    """
    support_b: Floats
    """Weight of each row in the denominator of group b, shape (n_rows,)."""
    citations_a: float
    """Number of citations of group a that count, without weights."""
    citations_b: float
    """Number of citations of group b that count, without weights."""
    exchange: Exchange
    """The amounts that the test by exchanged labels adds up."""
    uncited_variance: float = 0.0
    """Variance of `distance` that no row shows, because a group has no citation that could vary."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationShare:
    """A group's share of an amount, from 0 to 1, and what each row adds to its error."""

    value: float
    """The share; NaN where the amounts add up to 0."""
    influence: Floats
    """What each row adds to the error of the share, shape (n_rows,); sums to 0.

    All 0 where the amounts add up to 0.
    """


def weighted_share(rows: CitationRows, amount: Floats) -> CitationShare:
    """Return group a's share of an amount: Σ amount · [a] / Σ amount.

    `amount` is what each row adds, shape (n_rows,), and [a] is 1 for rows of group a and 0 for
    others. The influence of a row is amount · ([a] − share) / Σ amount, the derivative of the ratio
    by the row's weight. Where rows have a `membership`, it takes the place of [a].
    """
    total = float(amount.sum())
    if total <= 0:
        return CitationShare(value=np.nan, influence=np.zeros(len(rows)))
    if rows.membership is not None:
        share = float((amount * rows.membership).sum()) / total
        return CitationShare(value=share, influence=amount * (rows.membership - share) / total)
    share = float(amount[rows.is_a].sum()) / total
    return CitationShare(value=share, influence=amount * (rows.is_a - share) / total)
