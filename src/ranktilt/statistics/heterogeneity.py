"""How much of the variance over queries is more than noise: of documents, or of repeats.

**By documents.** Each query's documents are split into two random halves; each half has a tilt.
Where queries differ in their tilt, both halves of a query agree; where they do not, they are
unrelated. The correlation r of the halves over queries is that of half as many documents. Stepped
up to all of them by Spearman and Brown (British Journal of Psychology 3, 1910), ``2r / (1 + r)``,
it is the share of the variance that other documents of the same queries would show again.

The mean over all splits has a closed form, so nothing is drawn. Of a query with score e = Σ r_o and
n documents of equal weight, the halves' product has the mean ``(e² − Σ r_o²) / 4 · n / (n − 1)``.
With unequal weights n is the effective number of documents (Kish 1965).

**By repeats** of an engine whose answers are random: the mean over the R repeats of a query has the
variance MS_queries / R over queries, of which MS_residual / R is noise of the engine. So the share
``1 − MS_residual / MS_queries`` is what as many new repeats of the same queries would show again:
the reliability of Hoyt (Psychometrika 6, 1941), which is Cronbach's alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.statistics.bootstrap import Floats, resampled_means
from ranktilt.statistics.group_differences import QueryScores
from ranktilt.statistics.repeats import repeat_anova
from ranktilt.statistics.two_way import sums

FEWEST_DOCUMENTS = 1.5
"""Effective number of a query's documents below which they cannot be split."""
FEWEST_SPLIT = 10
"""Queries that can be split, or have repeats, below which no share is given."""


@dataclass(frozen=True, kw_only=True)
class RepeatableShare:
    """The share of the variance over queries that other documents or repeats would show again."""

    share: float
    """From 0 to 1; NaN where too few queries can be split, or nothing varies."""
    low: float
    high: float
    """95 % interval over other queries."""
    queries: int
    """Queries with enough documents to split, or with every repeat."""


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
    return _share(float(repeatable.sum() / total.sum()), drawn, queries)


def repeat_share(table: Floats, *, resamples: int, seed: int) -> RepeatableShare:
    """Return the share by repeats, from scores of the shape (n_queries, n_repeats).

    An estimate below 0 is 0: queries differ less than the noise of their repeats explains.
    """
    queries, repeats = table.shape
    anova = repeat_anova(table)
    if queries < FEWEST_SPLIT or anova is None or not anova.mean_square_queries > 0:
        return RepeatableShare(share=np.nan, low=np.nan, high=np.nan, queries=queries)
    mean = table.mean(axis=1)
    scatter = ((table - mean[:, None]) ** 2).sum(axis=1)
    columns = [mean, mean**2, scatter, *table.T]
    of_all, of_squares, of_scatter, *of_repeats = resampled_means(
        columns, resamples=resamples, seed=seed
    )
    # Sums of squares of each resample, a query: all of them are sums over its queries.
    between = repeats * (of_squares - of_all**2)
    as_wholes = ((np.array(of_repeats) - of_all) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = 1 - (of_scatter - as_wholes) / ((repeats - 1) * between)
    share = 1 - anova.mean_square_residual / anova.mean_square_queries
    return _share(share, drawn, queries)


def _share(share: float, drawn: Floats, queries: int) -> RepeatableShare:
    """Return a share with its interval, all within 0 and 1."""
    low, high = np.nanquantile(drawn, [0.025, 0.975]).tolist()
    return RepeatableShare(
        share=_within(share), low=_within(low), high=_within(high), queries=queries
    )


def _within(share: float) -> float:
    return float(np.clip(share, 0.0, 1.0))
