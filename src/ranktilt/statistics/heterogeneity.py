"""How much of the variance over queries is more than the noise of the documents behind each query.

Each query's documents are split into two random halves; each half has a tilt. Where queries differ
in their tilt, both halves of a query agree; where they do not, they are unrelated. The correlation
r of the halves over queries is that of half as many documents. Stepped up to all of them by
Spearman and Brown (British Journal of Psychology 3, 1910), ``2r / (1 + r)``, it is the share of the
variance that other documents of the same queries would show again.

The mean over all splits has a closed form, so nothing is drawn. Of a query with score e = Σ r_o and
n documents of equal weight, the halves' product has the mean ``(e² − Σ r_o²) / 4 · n / (n − 1)``.
With unequal weights n is the effective number of documents (Kish 1965).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.statistics.bootstrap import Floats, resampled_means
from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.two_way import sums

FEWEST_DOCUMENTS = 1.5
"""Effective number of a query's documents below which they cannot be split."""
FEWEST_SPLIT = 10
"""Queries that can be split below which no share is given."""


@dataclass(frozen=True, kw_only=True)
class RepeatableShare:
    """The share of the variance over queries that other documents would show again."""

    share: float
    """From 0 to 1; NaN where too few queries can be split, or nothing varies."""
    low: float
    high: float
    """95 % interval over other queries."""
    queries: int
    """Queries with enough documents to split."""


def split_half_share(scores: QueryScores, *, resamples: int, seed: int) -> RepeatableShare:
    """Return the share by split halves of the documents; never below 0.

    An estimate below 0 is 0: the halves agree less than unrelated ones happen to do.
    """
    count = len(scores.score)
    weight = sums(scores.query, scores.weight, count)
    squared_weight = sums(scores.query, scores.weight**2, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        documents = np.where(squared_weight > 0, weight**2 / squared_weight, 0.0)
    can_split = documents >= FEWEST_DOCUMENTS
    queries = int(can_split.sum())
    noise = sums(scores.query, scores.residual**2, count)[can_split]
    total = scores.score[can_split] ** 2
    stretch = documents[can_split] / (documents[can_split] - 1)
    repeatable = (total - noise) * stretch
    if queries < FEWEST_SPLIT or not total.sum() > 0:
        return RepeatableShare(share=np.nan, low=np.nan, high=np.nan, queries=queries)
    means = resampled_means([repeatable, total], resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = means[0] / means[1]
    low, high = np.nanquantile(drawn, [0.025, 0.975]).tolist()
    share, low, high = (_within(value) for value in (repeatable.sum() / total.sum(), low, high))
    return RepeatableShare(share=share, low=low, high=high, queries=queries)


def _within(share: Floats | float) -> float:
    return float(np.clip(share, 0.0, 1.0))
