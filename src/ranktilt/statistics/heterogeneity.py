"""How much of the variance over queries is real: more than noise of documents, or of repeats.

The *tilt* of a query is how far its list favours one of two groups. Queries differ in their tilt
by chance alone, because each retrieves other documents, or because an engine answers at random. The
*repeatable share* is the part of the variance over queries that the same queries would show again
with other documents, or in new repeats.

**By documents.** Each query's documents are split into two random halves, and each half has a tilt.
If queries really differ, the two halves of a query agree; if they do not, the halves are unrelated.
The correlation r of the halves over queries is for half of the documents. For all documents it is
``2r / (1 + r)``, by the formula of Spearman and Brown (British Journal of Psychology 3, 1910); this
is the repeatable share.

The mean over all splits has a closed form, so nothing is drawn. Let a query have the score
``e = Σ r_o``, to which its n documents, of equal weight, add their residuals r_o. Then the product
of the two halves has the mean ``(e² − Σ r_o²) / 4 · n / (n − 1)``. With unequal weights, n is the
effective number of documents (Kish 1965).

**By repeats** of an engine whose answers are random. The mean over the R repeats of a query has the
variance MS_queries / R over queries, of which MS_residual / R is noise of the engine (MS are the
mean squares of an analysis of variance). So the repeatable share is ``1 − MS_residual /
MS_queries``: the reliability of Hoyt (Psychometrika 6, 1941), which is Cronbach's alpha.
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
"""Fewest queries that can be split, or that have repeats, for a share."""


@dataclass(frozen=True, kw_only=True)
class RepeatableShare:
    """The share of the variance over queries that other documents or repeats would show again."""

    share: float
    """The share, from 0 to 1; NaN if too few queries can be split, or nothing varies."""
    low: float
    """Lower end of its 95 % interval over other queries."""
    high: float
    """Upper end of this interval."""
    queries: int
    """Number of queries with enough documents to split, or with every repeat."""


def split_half_share(scores: QueryScores, *, resamples: int, seed: int) -> RepeatableShare:
    """Return the repeatable share by split halves of the documents.

    Parameters
    ----------
    scores : QueryScores
        Scores of the queries, with the residuals of their documents.
    resamples, seed : int
        Number of resamples of the queries for the interval, and their seed.

    Returns
    -------
    RepeatableShare
        An estimate below 0 becomes 0: the halves agree less than unrelated halves do by chance.
    """
    count = len(scores.score)
    weight = sums(scores.query, scores.weight, count)
    squared_weight = sums(scores.query, scores.weight**2, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        documents = np.where(squared_weight > 0, weight**2 / squared_weight, 0.0)
    can_split = documents >= FEWEST_DOCUMENTS
    queries = int(can_split.sum())
    # The formula of the module's docstring: e², Σ r_o² and n / (n − 1). The factor 1/4 cancels.
    total = scores.score[can_split] ** 2
    noise = sums(scores.query, scores.residual**2, count)[can_split]
    stretch = documents[can_split] / (documents[can_split] - 1)
    repeatable = (total - noise) * stretch
    if queries < FEWEST_SPLIT or not total.sum() > 0:
        return RepeatableShare(share=np.nan, low=np.nan, high=np.nan, queries=queries)
    means = resampled_means([repeatable, total], resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled_shares = means[0] / means[1]
    return _with_interval(float(repeatable.sum() / total.sum()), resampled_shares, queries)


def repeat_share(table: Floats, *, resamples: int, seed: int) -> RepeatableShare:
    """Return the repeatable share by repeats of an engine.

    Parameters
    ----------
    table : ndarray of float64, shape (n_queries, n_repeats)
        Score of each query in each repeat.
    resamples, seed : int
        Number of resamples of the queries for the interval, and their seed.

    Returns
    -------
    RepeatableShare
        An estimate below 0 becomes 0: queries differ less than the noise of their repeats explains.
    """
    queries, repeats = table.shape
    anova = repeat_anova(table)
    if queries < FEWEST_SPLIT or anova is None or not anova.mean_square_queries > 0:
        return RepeatableShare(share=np.nan, low=np.nan, high=np.nan, queries=queries)
    mean = table.mean(axis=1)
    scatter = ((table - mean[:, None]) ** 2).sum(axis=1)
    columns = [mean, mean**2, scatter, *table.T]
    grand_means, mean_squares, mean_scatters, *repeat_means = resampled_means(
        columns, resamples=resamples, seed=seed
    )
    # The sums of squares of the analysis of variance of each resample, divided by its number of
    # queries. All of them are made from means over the queries of the resample.
    between_queries = repeats * (mean_squares - grand_means**2)
    between_repeats = ((np.array(repeat_means) - grand_means) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        residual = mean_scatters - between_repeats
        resampled_shares = 1 - residual / ((repeats - 1) * between_queries)
    share = 1 - anova.mean_square_residual / anova.mean_square_queries
    return _with_interval(share, resampled_shares, queries)


def _with_interval(share: float, resampled_shares: Floats, queries: int) -> RepeatableShare:
    """Return a share with its interval; all three numbers are brought into the range 0 to 1."""
    low, high = np.nanquantile(resampled_shares, [0.025, 0.975]).tolist()
    return RepeatableShare(
        share=_clipped(share), low=_clipped(low), high=_clipped(high), queries=queries
    )


def _clipped(share: float) -> float:
    return float(np.clip(share, 0.0, 1.0))
