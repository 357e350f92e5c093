"""Means of grades under two judges, or under one, with intervals over queries and documents."""

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
    """A mean over rows of graded pairs, or twins, under both judges."""

    rows: pl.DataFrame
    """``query_id``, ``origin``, and the values ``new`` and ``old`` of both judges."""
    factor: float = 1.0
    """Factor of the mean in a sum of means, such as −1 where it is subtracted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _QuerySums:
    """The sums of each query behind one mean, and what each document adds."""

    new: Floats
    """Sum of the new judge's values of each query."""
    old: Floats
    """Sum of the old judge's values."""
    weight: Floats
    """Number of rows of each query."""
    clusters: Clusters
    """What each row adds to the difference."""
    factor: float
    """Factor of the mean."""


@dataclass(frozen=True, kw_only=True)
class MeanChange:
    """A sum of means under both judges, its change, and the growth of its distance from 0."""

    new: float
    """Value under the new judge."""
    old: float
    """Value under the old judge."""
    change: Inference
    """Interval and p of new − old."""
    growth: Inference
    """Interval and p of |new| − |old|."""
    rows: int
    """Rows behind it."""
    queries: int
    """Queries behind it."""
    effective_n: float
    """Effective number of queries or documents, whichever is smaller."""


def mean_change(
    means: Sequence[GradeMean], *, bound: float, resamples: int, seed: int
) -> MeanChange | None:
    """Compare a sum of means under two judges, over queries and documents; None without rows.

    The same resamples of queries count for both judges. The variance is clustered by query and by
    document, as for every effect of an audit. `bound` is the largest absolute change.
    """
    if any(not mean.rows.height for mean in means):
        return None
    sums = _query_sums(means)
    new, old = (_total(sums, side) for side in ("new", "old"))
    variance = _variance(sums)
    queries = len(sums[0].weight)
    change, growth = _NO_INFERENCE, _NO_INFERENCE
    if queries >= FEWEST_QUERIES:
        new_samples, old_samples = _resampled(sums, resamples, seed)
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
    """Sum the rows of each query; all means have the same queries and numbers of origins."""
    all_rows = pl.concat([mean.rows.select("query_id", "origin") for mean in means])
    queries = all_rows["query_id"].unique().sort()
    origins = all_rows["origin"].unique().sort()
    sums = []
    for mean in means:
        query = _indices(mean.rows["query_id"], queries)
        origin = _indices(mean.rows["origin"], origins)
        new, old = (mean.rows[side].cast(pl.Float64).to_numpy() for side in ("new", "old"))
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
    joined = pl.DataFrame({"name": names}).join(index, on="name", how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64)


def _total(sums: Sequence[_QuerySums], side: str) -> float:
    """Return the sum of means under one judge."""
    parts = [part.factor * getattr(part, side).sum() / part.weight.sum() for part in sums]
    return float(sum(parts))


def _variance(sums: Sequence[_QuerySums]) -> TwoWayVariance:
    """Return the variance of new − old over other queries and documents."""
    influences = []
    for part in sums:
        difference = part.new - part.old
        ratio = float(difference.sum() / part.weight.sum())
        residual = difference - ratio * part.weight
        influence = Influence.from_ratio(residual, part.weight, part.clusters, ratio=ratio)
        influences.append(influence.scaled(1.0))
    if len(influences) == 1:
        return influences[0].variance()
    return combine_influences(influences, [part.factor for part in sums]).variance()


def _resampled(sums: Sequence[_QuerySums], resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return the sum of means under both judges in resamples of the queries."""
    new_samples, old_samples = np.zeros(resamples), np.zeros(resamples)
    for part in sums:
        new, old, weight = resampled_means(
            [part.new, part.old, part.weight], resamples=resamples, seed=seed
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            new_samples += part.factor * new / weight
            old_samples += part.factor * old / weight
    return new_samples, old_samples
