"""Means of grades under two judges, and how they change, with intervals over queries and documents.

The judges are two versions of one: new and old. A number may be a sum of several means, each with a
factor: a tilt is the mean of one source minus the mean of another, with factors 1 and −1.

Grades of one query are not independent of each other, and neither are grades of one document. So
the variance is clustered by both. It is computed from *influences*: how much each query and each
document pulls a mean away from its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.judging.records import FEWEST_QUERIES
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import resampled_means
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import Clusters, Influence, TwoWayVariance, combine_influences

Ints = npt.NDArray[np.int64]
_NO_INFERENCE = Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan)
"""Inference where there are too few queries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GradeMean:
    """A mean under both judges, over graded pairs or over twins (two versions of one text)."""

    rows: pl.DataFrame
    """``query_id``, ``origin``, and the values ``new`` and ``old`` of both judges.

    ``origin`` identifies the document or the twins. A judge that is alone has 0 as ``old``.
    """
    factor: float = 1.0
    """Factor of the mean in a sum of means, such as −1 where it is subtracted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _QuerySums:
    """The sums of each query behind one mean, and the rows for its variance."""

    new: Floats
    """Sum of the new judge's values of each query."""
    old: Floats
    """Sum of the old judge's values."""
    weight: Floats
    """Number of rows of each query."""
    clusters: Clusters
    """Query, origin, and new − old of each row."""
    factor: float
    """Factor of the mean in the sum of means."""


@dataclass(frozen=True, kw_only=True)
class MeanChange:
    """A sum of means under both judges, its change, and how much further from 0 it is."""

    new: float
    """Value under the new judge."""
    old: float
    """Value under the old judge."""
    change: Inference
    """Interval and p of new − old."""
    growth: Inference
    """Interval and p of |new| − |old|, which is above 0 if the new value is further from 0."""
    rows: int
    """Number of graded pairs or twins behind the sum."""
    queries: int
    """Number of their queries."""
    effective_n: float
    """Effective number of queries or documents, whichever is smaller."""


def mean_change(
    means: Sequence[GradeMean], *, bound: float, resamples: int, seed: int
) -> MeanChange | None:
    """Compare a sum of means under two judges.

    The variance is clustered by query and by document, as for every effect of an audit.

    Parameters
    ----------
    means : sequence of GradeMean
        Means that are added up.
    bound : float
        Largest change that is possible, either way.
    resamples, seed : int
        Bootstrap resamples of the queries, the same for both judges; random seed.

    Returns
    -------
    MeanChange or None
        None if one of the means has no row. Below six queries there are no intervals.
    """
    if any(not mean.rows.height for mean in means):
        return None
    sums = _query_sums(means)
    new, old = (_sum_of_means(sums, judge) for judge in ("new", "old"))
    variance = _variance(sums)
    queries = len(sums[0].weight)
    change, growth = _NO_INFERENCE, _NO_INFERENCE
    if queries >= FEWEST_QUERIES:
        new_samples, old_samples = _resampled_sums_of_means(sums, resamples, seed)
        change = infer(
            new_samples - old_samples,
            new - old,
            variance=variance,
            neutral=0.0,
            bounds=(-bound, bound),
        )
        growth = infer(
            np.abs(new_samples) - np.abs(old_samples),
            abs(new) - abs(old),
            variance=variance,
            neutral=0.0,
            bounds=(-bound, bound),
        )
    return MeanChange(
        new=new,
        old=old,
        change=change,
        growth=growth,
        rows=sum(mean.rows.height for mean in means),
        queries=queries,
        effective_n=variance.effective_n,
    )


def _query_sums(means: Sequence[GradeMean]) -> list[_QuerySums]:
    """Sum the rows of each query, for each mean.

    All means have the same list of queries and of origins, so that they can be added up.
    """
    all_rows = pl.concat([mean.rows.select("query_id", "origin") for mean in means])
    queries = all_rows["query_id"].unique().sort()
    origins = all_rows["origin"].unique().sort()
    sums = []
    for mean in means:
        query = _indices(mean.rows["query_id"], queries)
        origin = _indices(mean.rows["origin"], origins)
        new, old = (mean.rows[judge].cast(pl.Float64).to_numpy() for judge in ("new", "old"))
        ones = np.ones(len(query))
        clusters = Clusters(query=query, origin=origin, total=new - old, weight=ones)
        new_sum, old_sum, weight = (
            np.bincount(query, weights=values, minlength=len(queries)).astype(np.float64)
            for values in (new, old, ones)
        )
        query_sums = _QuerySums(
            new=new_sum, old=old_sum, weight=weight, clusters=clusters, factor=mean.factor
        )
        sums.append(query_sums)
    return sums


def _indices(names: pl.Series, distinct_names: pl.Series) -> Ints:
    """Return the index of each name in a list of distinct names."""
    index = pl.DataFrame({"name": distinct_names}).with_row_index("number")
    table = pl.DataFrame({"name": names})
    numbered = table.join(index, on="name", how="left", maintain_order="left")
    return numbered["number"].to_numpy().astype(np.int64)


def _sum_of_means(sums: Sequence[_QuerySums], judge: str) -> float:
    """Return the sum of means under the ``new`` or the ``old`` judge."""
    means = [mean.factor * getattr(mean, judge).sum() / mean.weight.sum() for mean in sums]
    return float(sum(means))


def _variance(sums: Sequence[_QuerySums]) -> TwoWayVariance:
    """Return the variance of new − old over other queries and documents."""
    influences = []
    for mean in sums:
        difference = mean.new - mean.old
        ratio = float(difference.sum() / mean.weight.sum())
        residual = difference - ratio * mean.weight
        influence = Influence.from_ratio(residual, mean.weight, mean.clusters, ratio=ratio)
        # Scaled weights add up to 1, so that means over different numbers of rows can be combined.
        influences.append(influence.scaled(1.0))
    if len(influences) == 1:
        return influences[0].variance()
    return combine_influences(influences, [mean.factor for mean in sums]).variance()


def _resampled_sums_of_means(
    sums: Sequence[_QuerySums], resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the sum of means under both judges in resamples of the queries."""
    new_samples, old_samples = np.zeros(resamples), np.zeros(resamples)
    for mean in sums:
        new, old, weight = resampled_means(
            [mean.new, mean.old, mean.weight], resamples=resamples, seed=seed
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            new_samples += mean.factor * new / weight
            old_samples += mean.factor * old / weight
    return new_samples, old_samples
