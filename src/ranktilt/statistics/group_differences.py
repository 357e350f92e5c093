"""Whether groups of queries differ: Welch's test with documents in its error, and shuffled groups.

A *score* is what a query adds to an estimate: its residual at the value over all queries,
``total − ratio · weight``. If all groups have the same ratio, the scores of each group have a mean
of 0, whatever the weights of its queries are. So one statistic serves means, ratios, and the log of
a ratio, whose scores are its influence.

Two tests, of which the larger p counts:

- Welch's F (Biometrika 38, 1951), which lets the groups scatter differently. Documents that many
  queries of a group share make its mean less certain than its queries tell; what they add to the
  covariance of the group means is added (Cameron, Gelbach & Miller 2011), as far as it adds, and a
  group has no more degrees of freedom than documents.
- The same statistic among those of shuffled groups. It is exact where queries could have been of
  any group, and studentized, so that it stays valid where the groups scatter differently (Pauly,
  Brunner & Konietschke, Journal of the Royal Statistical Society B 77(2), 2015).

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


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryScores:
    """What each query adds to an estimate, and what each of its documents adds to that."""

    score: Floats
    """Score of each query, shape (n_queries,)."""
    query: Ints
    """Query of each cell, a document under a query; empty where documents are not known."""
    origin: Ints
    """Number of each cell's document, from 0."""
    residual: Floats
    """Part of each cell in the score of its query."""
    weight: Floats
    """Weight of each cell."""

    @classmethod
    def from_scores(cls, score: Floats) -> QueryScores:
        """Return scores whose documents are not known."""
        none = np.empty(0, dtype=np.int64)
        return cls(score=score, query=none, origin=none, residual=np.empty(0), weight=np.empty(0))

    def select(self, mask: npt.NDArray[np.bool_]) -> QueryScores:
        """Return the scores of some queries, numbered anew, with their cells."""
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
    """The larger of both."""
    shuffle_p: float
    """p among shuffled groups."""
    welch_p: float
    """p of Welch's test, with what documents add to its error."""


@dataclass(frozen=True, kw_only=True)
class GroupDifferences:
    """All groups tested together, and each against all others."""

    together: DifferenceTest
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
        Number of shuffles, and where they start.
    """
    count = int(group.max()) + 1
    together_p, rest_ps = _shuffle_ps(scores.score, group, resamples=resamples, seed=seed)
    against_rest = []
    for number in range(count):
        is_member = (group == number).astype(np.int64)
        against_rest.append(_larger(rest_ps[number], welch_p(scores, is_member)))
    return GroupDifferences(
        together=_larger(together_p, welch_p(scores, group)), against_rest=tuple(against_rest)
    )


def _larger(shuffle_p: float, of_welch: float) -> DifferenceTest:
    return DifferenceTest(
        p=float(np.fmax(shuffle_p, of_welch)), shuffle_p=shuffle_p, welch_p=of_welch
    )


def welch_p(scores: QueryScores, group: Ints) -> float:
    """Return the p of Welch's test that all groups have the same mean score.

    Without documents it is that of Welch's analysis of variance. 1 where no score varies.
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
    # A group whose queries all agree, as on 0, has the scatter of the others.
    variances = np.where(variances > 0, variances, pooled) / sizes
    documents = effective_documents(scores, group)
    covariance = np.diag(variances) + _of_documents(scores, group, means, sizes)
    # Differences from the first group hold all that groups can differ in.
    contrast = np.hstack([-np.ones((len(sizes) - 1, 1)), np.eye(len(sizes) - 1)])
    differences = contrast @ means
    distance = float(differences @ np.linalg.solve(contrast @ covariance @ contrast.T, differences))
    precision = 1 / variances
    share = 1 - precision / precision.sum()
    between = len(sizes) - 1
    freedom = np.fmax(np.fmin(sizes, documents) - 1, _EPSILON)
    spare = float((share**2 / freedom).sum())
    correction = 1 + 2 * (between - 1) / (between * (between + 2)) * spare
    within = between * (between + 2) / (3 * spare)
    return float(special.fdtrc(between, within, distance / between / correction))


def effective_documents(scores: QueryScores, group: Ints) -> Floats:
    """Return the effective number of documents behind each group (Kish 1965).

    NaN where documents are not known. `group` may be −1 for queries of no group.
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


def _of_documents(scores: QueryScores, group: Ints, means: Floats, sizes: Floats) -> Floats:
    """Return what shared documents add to the covariance of the group means, where they add.

    ``V_o − V_qo``: the products of residuals of one document under two different queries. It may be
    negative in some direction, which is then left as if documents were not shared.
    """
    count = len(sizes)
    if not len(scores.query):
        return np.zeros((count, count))
    query = scores.query
    query_weight = np.bincount(query, weights=scores.weight, minlength=len(group))[query]
    cells = np.bincount(query, minlength=len(group))[query]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(query_weight > 0, scores.weight / query_weight, 1 / cells)
    # Centred within the group, or a difference between groups would count as its own error.
    residual = (scores.residual - means[group[query]] * share) / sizes[group[query]]
    origin = np.unique(scores.origin, return_inverse=True)[1]
    totals = np.zeros((count, int(origin.max()) + 1))
    np.add.at(totals, (group[query], origin), residual)
    cells_squared = np.bincount(group[query], weights=residual**2, minlength=count)
    values, vectors = np.linalg.eigh(totals @ totals.T - np.diag(cells_squared))
    added: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    documents = effective_documents(scores, group)
    # G / (G − 1), as for one estimate: few documents show too little of their scatter.
    stretch = np.sqrt(documents / np.fmax(documents - 1, _EPSILON))
    stretch = np.where(np.isnan(stretch), 1.0, stretch)  # a group whose documents are not known
    added *= np.outer(stretch, stretch)
    return added


def _shuffle_ps(
    score: Floats, group: Ints, *, resamples: int, seed: int
) -> tuple[float, list[float]]:
    """Return the p of all groups together and of each against the rest, among shuffled groups."""
    count = int(group.max()) + 1
    ordered = score[np.argsort(group, kind="stable")]
    sizes = np.bincount(group).astype(np.float64)
    if not float(((score - score.mean()) ** 2).sum()) > _EPSILON**2:
        return 1.0, [1.0] * count
    observed_all, observed_rest = _statistics(ordered[None, :], sizes)
    hits_all, hits_rest = 0, np.zeros(count, dtype=np.int64)
    for shuffled in _shuffles(ordered, resamples, seed):
        statistic, against_rest = _statistics(shuffled, sizes)
        hits_all += int((statistic >= observed_all[0] * (1 - _EPSILON)).sum())
        hits_rest += (against_rest >= observed_rest[0] * (1 - _EPSILON)).sum(axis=0)
    together = (1 + hits_all) / (1 + resamples)
    return together, ((1 + hits_rest) / (1 + resamples)).tolist()


def _shuffles(ordered: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield shuffled scores in blocks, of shape (draws, n_queries)."""
    rng = np.random.default_rng([seed, len(ordered)])
    for start, stop in blocks(resamples, len(ordered)):
        copies = np.broadcast_to(ordered, (stop - start, len(ordered)))
        yield rng.permuted(copies, axis=1)


def _statistics(ordered: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return Welch's statistic of each draw, and the squared t of each group against the rest.

    `ordered` has the scores of the first group first, then those of the second, and so on. One
    query with the scatter of all is added to each group's variance: a few equal scores do not make
    a group certain.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    totals = np.add.reduceat(ordered, starts, axis=1)
    squares = np.add.reduceat(ordered**2, starts, axis=1)
    whole_total = totals.sum(axis=1, keepdims=True)
    whole_square = squares.sum(axis=1, keepdims=True)
    size = float(sizes.sum())
    overall = (whole_square - whole_total**2 / size) / (size - 1)
    means, errors = _moderated(totals, squares, sizes, overall)
    precision = 1 / errors
    centre = (precision * means).sum(axis=1, keepdims=True) / precision.sum(axis=1, keepdims=True)
    together: Floats = (precision * (means - centre) ** 2).sum(axis=1)
    rest_means, rest_errors = _moderated(
        whole_total - totals, whole_square - squares, size - sizes, overall
    )
    against_rest: Floats = (means - rest_means) ** 2 / (errors + rest_errors)
    return together, against_rest


def _moderated(
    totals: Floats, squares: Floats, sizes: Floats, overall: Floats
) -> tuple[Floats, Floats]:
    """Return means and their squared errors, with one more query of the overall variance."""
    within = np.maximum(squares - totals**2 / sizes, 0.0)
    return totals / sizes, (within + overall) / sizes / sizes
