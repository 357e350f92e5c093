"""The pages of answers as arrays, and the estimate that a question makes of them."""

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


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationRows:
    """Pages of two groups in answers, a row for each page of an answer; all arrays are as long."""

    question: Ints
    """Number of the query, from 0."""
    cluster: Ints
    """Number of the unit at which labels are constant, such as the page's domain, from 0."""
    weight: Floats
    """1 / the number of repeats of the query, so that every query counts as one answer."""
    is_a: Bools
    """Whether the page is of group a; it is of group b otherwise."""
    is_cited: Bools
    is_first: Bools
    """Whether the page is the first citation of its answer."""
    is_consulted: Bools
    retrieval_rank: Ints
    """Rank in the list that was retrieved for the query, from 1; 0 where not retrieved."""
    cited_words: Floats
    """Words of the answer that the page supports; NaN where the answer has no spans."""

    def __len__(self) -> int:
        return len(self.question)

    @cached_property
    def question_count(self) -> int:
        """Number of queries."""
        return int(self.question.max()) + 1 if len(self) else 0

    @cached_property
    def cell(self) -> Ints:
        """Number of the query and cluster that a row belongs to, from 0."""
        key = self.question * (int(self.cluster.max(initial=0)) + 1) + self.cluster
        cells: Ints = np.unique(key, return_inverse=True)[1].astype(np.int64)
        return cells

    @cached_property
    def is_retrieved(self) -> Bools:
        """Whether the page is in the retrieved list."""
        return self.retrieval_rank > 0

    def select(self, mask: Bools) -> CitationRows:
        """Return the rows of a mask; questions and clusters keep their numbers."""
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
        )

    def per_question(self, values: Floats) -> Floats:
        """Sum values by query."""
        sums = np.bincount(self.question, weights=values, minlength=self.question_count)
        return sums.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """What a test sums over the rows of group a when the labels of clusters are exchanged.

    Without `support` the statistic is Σ amount·[a], whose amounts sum to 0. With it, the statistic
    is the log of the ratio of (Σ amount + ½) / (Σ support + ½) of both groups, so that a group
    without a citation has a value too.
    """

    amount: Floats
    support: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CitationEstimate:
    """What a question says of two groups."""

    value: float
    """Ratio a / b, or group a's part in percent; NaN where undefined."""
    value_a: float
    value_b: float
    scale: Scale
    """Scale on which the estimate's error is symmetric."""
    neutral: float
    """Value that favours neither group; NaN where it is unknown."""
    distance: float
    """Distance of the value from neutral on `scale`."""
    influence: Floats
    """What each row adds to the error on `scale`, shape (n_rows,); sums to 0."""
    support_a: Floats
    """Weight of each row in the denominator of group a, shape (n_rows,)."""
    support_b: Floats
    citations_a: float
    """Citations of group a that count, not divided by repeats."""
    citations_b: float
    exchange: Exchange
    """What is summed anew where labels are exchanged."""


def weighted_share(rows: CitationRows, amount: Floats) -> tuple[float, Floats]:
    """Return group a's share of an amount, and what each row adds to its error.

    The influence is that of the ratio Σ amount·[a] / Σ amount.
    """
    total = float(amount.sum())
    if total <= 0:
        return np.nan, np.zeros(len(rows))
    share = float(amount[rows.is_a].sum()) / total
    return share, amount * (rows.is_a - share) / total
