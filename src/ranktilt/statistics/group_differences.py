"""Whether groups of queries differ: Welch's test with documents in its error, and shuffled groups.

An estimate is a ratio over queries, ``Σ total / Σ weight``. The *score* of a query is what it adds
to the estimate, ``total − ratio · weight``, with the ratio over all queries. If all groups have the
same ratio, the scores of each group have a mean of 0, whatever the weights of its queries are. So
one test serves means, ratios, and the log of a ratio.

A score is a sum over *cells*: a cell is one document under one query. Two tests are made, and the
larger p counts:

- Welch's F (Biometrika 38, 1951), which allows the groups to have different variances. If many
  queries of a group share documents, its mean is less certain than the number of its queries says.
  So the covariance of the group means gets a term for shared documents (Cameron, Gelbach & Miller
  2011), but never becomes smaller by it. A group has at most as many degrees of freedom as
  documents.
- A permutation test, which compares the same statistic with its values for shuffled groups. It is
  exact if the groups mean nothing. The statistic divides by the groups' variances, so that the test
  stays valid if these differ (Pauly, Brunner & Konietschke, Journal of the Royal Statistical
  Society B 77(2), 2015).

docs/measures/statistics.md explains the rule to users; benchmarks/intervals.py measures the level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ranktilt.statistics.bootstrap import blocks
from ranktilt.statistics.two_way import effective_number, sums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_EPSILON = 1e-12
"""Relative difference below which two statistics count as equal, and the rest is rounding.

It is also the smallest number of degrees of freedom, so that nothing is divided by 0.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryScores:
    """What each query adds to an estimate, and what each of its documents adds to that."""

    score: Floats
    """Score of each query, shape (n_queries,)."""
    query: Ints
    """Query of each cell, a document under a query; negative for a cell that belongs to no query.

    Empty if documents are not known.
    """
    origin: Ints
    """Number of the origin of each cell's document, from 0: a document with all its rewrites."""
    residual: Floats
    """Part of each cell in the score of its query."""
    weight: Floats
    """Weight of each cell."""

    @classmethod
    def from_scores(cls, score: Floats) -> QueryScores:
        """Return scores whose documents are not known."""
        no_cells = np.empty(0, dtype=np.int64)
        return cls(
            score=score,
            query=no_cells,
            origin=no_cells,
            residual=np.empty(0),
            weight=np.empty(0),
        )

    def select(self, mask: npt.NDArray[np.bool_]) -> QueryScores:
        """Return the scores of the queries of a mask, numbered anew, with their cells."""
        number = np.cumsum(mask) - 1
        has_query = self.query >= 0
        is_kept = has_query & mask[np.where(has_query, self.query, 0)]
        return QueryScores(
            score=self.score[mask],
            query=number[self.query[is_kept]],
            origin=self.origin[is_kept],
            residual=self.residual[is_kept],
            weight=self.weight[is_kept],
        )


@dataclass(frozen=True, kw_only=True)
class DifferenceTest:
    """Whether the means of groups differ."""

    p: float
    """The larger of the two p below."""
    shuffle_p: float
    """p of the permutation test."""
    welch_p: float
    """p of Welch's test, whose error includes what shared documents add."""


@dataclass(frozen=True, kw_only=True)
class GroupDifferences:
    """All groups tested together, and each against all others."""

    together: DifferenceTest
    """Test of all groups."""
    against_rest: tuple[DifferenceTest, ...]
    """A test for each group, in the order of their numbers."""


def group_differences(
    scores: QueryScores, group: Ints, *, resamples: int, seed: int
) -> GroupDifferences:
    """Test whether groups of queries differ, all together and each against all others.

    Parameters
    ----------
    scores : QueryScores
        Scores of the queries.
    group : ndarray of int64, shape (n_queries,)
        Group of each query, from 0 without gaps; each has at least two queries.
    resamples, seed : int
        Number of shuffles, and their seed.
    """
    count = int(group.max()) + 1
    together_p, rest_ps = _shuffle_ps(scores.score, group, resamples=resamples, seed=seed)
    against_rest = []
    for number in range(count):
        is_member = (group == number).astype(np.int64)
        against_rest.append(_difference_test(rest_ps[number], welch_p(scores, is_member)))
    return GroupDifferences(
        together=_difference_test(together_p, welch_p(scores, group)),
        against_rest=tuple(against_rest),
    )


def _difference_test(shuffle_p: float, p_of_welch: float) -> DifferenceTest:
    """Join the p of both tests; if one is NaN, the other counts."""
    return DifferenceTest(
        p=float(np.fmax(shuffle_p, p_of_welch)), shuffle_p=shuffle_p, welch_p=p_of_welch
    )


def welch_p(scores: QueryScores, group: Ints) -> float:
    """Return the p of Welch's test that all groups have the same mean score.

    If documents are not known, it is the p of Welch's analysis of variance. 1 if all scores are
    equal, and 0 if they differ between groups but never within one.
    """
    sizes = np.bincount(group).astype(np.float64)
    means = np.bincount(group, weights=scores.score) / sizes
    centred = scores.score - means[group]
    squares = np.bincount(group, weights=centred**2)
    pooled = float(squares.sum()) / max(len(group) - len(sizes), 1)
    if not float(((scores.score - scores.score.mean()) ** 2).sum()) > _EPSILON**2:
        return 1.0
    if not pooled > 0:
        return 0.0
    variances = squares / (sizes - 1)
    # A group whose queries all have the same score gets the variance of all groups together: so few
    # queries do not show that it has none.
    variances = np.where(variances > 0, variances, pooled) / sizes
    documents = effective_documents(scores, group)
    covariance = np.diag(variances) + _document_covariance(scores, group, means, sizes)
    # All groups are equal exactly if none differs from the first.
    contrast = np.hstack([-np.ones((len(sizes) - 1, 1)), np.eye(len(sizes) - 1)])
    differences = contrast @ means
    distance = float(differences @ np.linalg.solve(contrast @ covariance @ contrast.T, differences))
    # Welch's correction of F, and his degrees of freedom between and within groups.
    precision = 1 / variances
    share = 1 - precision / precision.sum()
    between = len(sizes) - 1
    freedom = np.fmax(np.fmin(sizes, documents) - 1, _EPSILON)
    uncertainty = float((share**2 / freedom).sum())
    correction = 1 + 2 * (between - 1) / (between * (between + 2)) * uncertainty
    within = between * (between + 2) / (3 * uncertainty)
    return float(special.fdtrc(between, within, distance / between / correction))


def effective_documents(scores: QueryScores, group: Ints) -> Floats:
    """Return the effective number of documents of each group, (Σ w)² / Σ w² (Kish 1965).

    w is the weight of each document in the group's queries. NaN if documents are not known. `group`
    may be −1 for queries of no group.
    """
    count = int(group.max(initial=-1)) + 1
    numbers = np.full(count, np.nan)
    has_query = scores.query >= 0
    group_of_cell = np.where(has_query, group[np.where(has_query, scores.query, 0)], -1)
    for number in range(count):
        is_member = group_of_cell == number
        if is_member.any():
            weight = sums(scores.origin[is_member], scores.weight[is_member])
            numbers[number] = effective_number(weight)
    return numbers


def _document_covariance(scores: QueryScores, group: Ints, means: Floats, sizes: Floats) -> Floats:
    """Return what shared documents add to the covariance of the group means.

    It is ``V_o − V_qo``, the variance over documents minus that over cells. What is left are the
    products of residuals of one document under two different queries. This matrix may have negative
    eigenvalues, by which documents would make the means more certain; they are set to 0.
    """
    count = len(sizes)
    if not len(scores.query):
        return np.zeros((count, count))
    query = scores.query
    query_weight = np.bincount(query, weights=scores.weight, minlength=len(group))[query]
    cells = np.bincount(query, minlength=len(group))[query]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(query_weight > 0, scores.weight / query_weight, 1 / cells)
    # The mean of the group is subtracted, or a difference between groups would count as error.
    residual = (scores.residual - means[group[query]] * share) / sizes[group[query]]
    origin = np.unique(scores.origin, return_inverse=True)[1]
    totals = np.zeros((count, int(origin.max()) + 1))
    np.add.at(totals, (group[query], origin), residual)
    squares_of_cells = np.bincount(group[query], weights=residual**2, minlength=count)
    values, vectors = np.linalg.eigh(totals @ totals.T - np.diag(squares_of_cells))
    covariance: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    documents = effective_documents(scores, group)
    # The factor G / (G − 1) of a variance: few documents vary less around their own mean.
    stretch = np.sqrt(documents / np.fmax(documents - 1, _EPSILON))
    stretch = np.where(np.isnan(stretch), 1.0, stretch)  # a group whose documents are not known
    covariance *= np.outer(stretch, stretch)
    return covariance


def _shuffle_ps(
    score: Floats, group: Ints, *, resamples: int, seed: int
) -> tuple[float, list[float]]:
    """Return the p of the permutation test: of all groups together, and of each against the rest.

    Scores are in order of group, so shuffling them is the same as shuffling the groups.
    """
    count = int(group.max()) + 1
    ordered = score[np.argsort(group, kind="stable")]
    sizes = np.bincount(group).astype(np.float64)
    if not float(((score - score.mean()) ** 2).sum()) > _EPSILON**2:
        return 1.0, [1.0] * count
    observed_together, observed_rest = _statistics(ordered[None, :], sizes)
    hits_together, hits_rest = 0, np.zeros(count, dtype=np.int64)
    for shuffled in _shuffles(ordered, resamples, seed):
        together, against_rest = _statistics(shuffled, sizes)
        hits_together += int((together >= observed_together[0] * (1 - _EPSILON)).sum())
        hits_rest += (against_rest >= observed_rest[0] * (1 - _EPSILON)).sum(axis=0)
    # The observed groups count as one more shuffle, so that no p is 0.
    together_p = (1 + hits_together) / (1 + resamples)
    return together_p, ((1 + hits_rest) / (1 + resamples)).tolist()


def _shuffles(ordered: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield shuffled scores in blocks, of shape (draws, n_queries)."""
    rng = np.random.default_rng([seed, len(ordered)])
    for start, stop in blocks(resamples, len(ordered)):
        copies = np.broadcast_to(ordered, (stop - start, len(ordered)))
        yield rng.permuted(copies, axis=1)


def _statistics(ordered: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return Welch's statistic of each draw, and the squared t of each group against the rest.

    Each row of `ordered` is a draw: the scores of the first group, then those of the second, and so
    on, with the numbers of queries in `sizes`.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    totals = np.add.reduceat(ordered, starts, axis=1)
    squares = np.add.reduceat(ordered**2, starts, axis=1)
    total_of_all = totals.sum(axis=1, keepdims=True)
    squares_of_all = squares.sum(axis=1, keepdims=True)
    size = float(sizes.sum())
    overall_variance = (squares_of_all - total_of_all**2 / size) / (size - 1)
    means, errors = _moderated_means(totals, squares, sizes, overall_variance)
    precision = 1 / errors
    centre = (precision * means).sum(axis=1, keepdims=True) / precision.sum(axis=1, keepdims=True)
    together: Floats = (precision * (means - centre) ** 2).sum(axis=1)
    rest_means, rest_errors = _moderated_means(
        total_of_all - totals, squares_of_all - squares, size - sizes, overall_variance
    )
    against_rest: Floats = (means - rest_means) ** 2 / (errors + rest_errors)
    return together, against_rest


def _moderated_means(
    totals: Floats, squares: Floats, sizes: Floats, overall_variance: Floats
) -> tuple[Floats, Floats]:
    """Return the means of groups and their squared standard errors.

    Each group's sum of squares gets one more query that is as far from the mean as the overall
    variance says. Otherwise a few queries with equal scores would have no error at all.
    """
    squares_within = np.maximum(squares - totals**2 / sizes, 0.0)
    return totals / sizes, (squares_within + overall_variance) / sizes / sizes
