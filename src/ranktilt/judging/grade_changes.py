"""How the grades of two judges differ over the same pairs: mean grades, and the tilt of grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.judging.drift_match import JudgeMatch
from ranktilt.judging.drift_result import JudgeChange
from ranktilt.judging.records import FEWEST_QUERIES, Estimate
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import interval, resampled_means
from ranktilt.statistics.correction import interval_error
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import Clusters, Influence, TwoWayVariance, combine_influences

Ints = npt.NDArray[np.int64]
_NO_INFERENCE = Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan)
"""Inference where there are too few queries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _GradeMean:
    """A mean over rows of graded pairs, or twins, under both judges."""

    rows: pl.DataFrame
    """``query_id``, ``origin``, and the values ``new`` and ``old`` of both judges."""
    factor: float = 1.0
    """What the mean is multiplied with in a sum of means."""


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
class _MeanChange:
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


def _mean_change(
    means: Sequence[_GradeMean], *, bound: float, resamples: int, seed: int
) -> _MeanChange | None:
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
    return _MeanChange(
        new=new,
        old=old,
        change=change,
        growth=growth,
        rows=sum(mean.rows.height for mean in means),
        queries=queries,
        effective_n=variance.effective_n,
    )


def _query_sums(means: Sequence[_GradeMean]) -> list[_QuerySums]:
    """Sum the rows of each query; all means have the same queries and numbers of origins."""
    every = pl.concat([mean.rows.select("query_id", "origin") for mean in means])
    queries = every["query_id"].unique().sort()
    origins = every["origin"].unique().sort()
    sums = []
    for mean in means:
        query = _numbers(mean.rows["query_id"], queries)
        origin = _numbers(mean.rows["origin"], origins)
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


def _numbers(names: pl.Series, known: pl.Series) -> Ints:
    """Return the place of each name among the known ones."""
    index = pl.DataFrame({"name": known}).with_row_index("number")
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


def _twin_means(pairs: pl.DataFrame, twins: Sequence[str]) -> Iterator[_GradeMean]:
    """Yield the mean gap between the grades of twins; nothing where no twins were graded.

    Twins are two versions of one document for one query. Those with different human grades are left
    out, as in an audit. `pairs` has ``query_id``, ``origin``, ``source``, ``human``, ``new``,
    ``old``.
    """
    first, second = (pairs.filter(pl.col("source") == name) for name in twins)
    both = first.join(second, on=["query_id", "origin"], suffix="_b")
    both = both.filter(pl.col("human").eq_missing(pl.col("human_b")))
    if both["query_id"].n_unique() >= FEWEST_QUERIES:
        rows = both.select(
            "query_id",
            "origin",
            new=pl.col("new") - pl.col("new_b"),
            old=pl.col("old") - pl.col("old_b"),
        )
        yield _GradeMean(rows=rows.sort("query_id", "origin"))


def _source_means(pairs: pl.DataFrame, twins: Sequence[str]) -> Iterator[_GradeMean]:
    """Yield how much higher than humans the judges grade each of two sources, the second minus.

    Only pairs with a human grade count, so that a source with better documents is not favoured.
    """
    graded = pairs.drop_nulls("human").with_columns(
        new=pl.col("new") - pl.col("human"), old=pl.col("old") - pl.col("human")
    )
    for name, factor in zip(twins, (1.0, -1.0), strict=True):
        yield _GradeMean(rows=graded.filter(pl.col("source") == name), factor=factor)


def grade_changes(match: JudgeMatch, top: int, options: ComparisonOptions) -> Iterator[JudgeChange]:
    """Yield the change of the mean grade, of all documents and of each source, and of the tilt."""
    every = [_GradeMean(rows=match.pairs)]
    change = _inferred(match.judge, every, float(top), options)
    if change is None:
        return
    yield replace(change, question="grade")
    if not match.twins:
        return
    for source in match.pairs["source"].drop_nulls().unique().sort():
        rows = match.pairs.filter(pl.col("source") == source)
        change = _inferred(match.judge, [_GradeMean(rows=rows)], float(top), options)
        if change is not None:
            yield replace(change, question="grade", subject=source)
    means = list(_twin_means(match.pairs, match.twins))
    is_of_twins = bool(means)
    if not means:
        means = list(_source_means(match.pairs, match.twins))
    tilt = _inferred(match.judge, means, 2.0 * top, options, is_tilt=True)
    if tilt is not None:
        first, second = match.twins
        yield replace(tilt, question="tilt", a=first, b=second, is_of_twins=is_of_twins)


def _inferred(
    judge: str,
    means: Sequence[_GradeMean],
    bound: float,
    options: ComparisonOptions,
    *,
    is_tilt: bool = False,
) -> JudgeChange | None:
    """Return a change of grades with its interval; None without rows."""
    compared = _mean_change(means, bound=bound, resamples=options.resamples, seed=options.seed)
    if compared is None:
        return None
    change = JudgeChange.without_interval(
        judge, compared.new, compared.old, pairs=compared.rows, queries=compared.queries
    )
    change = replace(
        change,
        low=compared.change.low,
        high=compared.change.high,
        error=interval_error(compared.change.low, compared.change.high, compared.effective_n),
        p=compared.change.p,
        effective_n=compared.effective_n,
    )
    return _with_growth(change, compared) if is_tilt else change


def _with_growth(change: JudgeChange, compared: _MeanChange) -> JudgeChange:
    return replace(
        change,
        growth=abs(compared.new) - abs(compared.old),
        growth_low=compared.growth.low,
        growth_high=compared.growth.high,
    )


def same_grades(pairs: pl.DataFrame, options: ComparisonOptions) -> Estimate:
    """Return the share of pairs with the same grade, with an interval over queries."""
    if not pairs.height:
        return Estimate(np.nan)
    by_query = pairs.group_by("query_id", maintain_order=True).agg(
        same=(pl.col("new") == pl.col("old")).sum(), pairs=pl.len()
    )
    same, number = (by_query[name].cast(pl.Float64).to_numpy() for name in ("same", "pairs"))
    value = float(same.sum() / number.sum())
    if by_query.height < FEWEST_QUERIES:
        return Estimate(value)
    means = resampled_means([same, number], resamples=options.resamples, seed=options.seed)
    spread = interval(means[0] / means[1])
    return Estimate(value, spread.low, spread.high)
