"""How the grades of two judges differ over the same pairs: mean grades, and the tilt of grades.

The judges are the new and the old one of a comparison. The *tilt* of grades is how much higher a
judge grades documents of the first of two sources than of the second. With twins, two versions of
one text, it is their mean grade gap; else it is the mean of the judge's grade minus the human one,
for the first source minus the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.judging.drift.match import JudgeMatch
from ranktilt.judging.drift.result import JudgeChange
from ranktilt.judging.grade_means import GradeMean, MeanChange, mean_change
from ranktilt.judging.records import FEWEST_QUERIES, Estimate
from ranktilt.statistics.bootstrap import interval, resampled_means
from ranktilt.statistics.correction import interval_error


def _twin_means(pairs: pl.DataFrame, twins: Sequence[str]) -> Iterator[GradeMean]:
    """Yield the mean grade gap of twins; nothing if fewer than six queries have graded twins.

    Twins with different human grades are left out, as in an audit. `pairs` has ``query_id``,
    ``origin``, ``source``, ``human``, ``new`` and ``old``; `twins` are the two sources.
    """
    first, second = (pairs.filter(pl.col("source") == name) for name in twins)
    graded_twins = first.join(second, on=["query_id", "origin"], suffix="_b")
    graded_twins = graded_twins.filter(pl.col("human").eq_missing(pl.col("human_b")))
    if graded_twins["query_id"].n_unique() >= FEWEST_QUERIES:
        rows = graded_twins.select(
            "query_id",
            "origin",
            new=pl.col("new") - pl.col("new_b"),
            old=pl.col("old") - pl.col("old_b"),
        )
        yield GradeMean(rows=rows.sort("query_id", "origin"))


def _source_means(pairs: pl.DataFrame, twins: Sequence[str]) -> Iterator[GradeMean]:
    """Yield how much higher than humans the judges grade the first source, and minus the second.

    Only pairs with a human grade count, so that better documents of a source do not count as a
    tilt. `pairs` has ``query_id``, ``origin``, ``source``, ``human``, ``new`` and ``old``; `twins`
    are the two sources.
    """
    graded = pairs.drop_nulls("human").with_columns(
        new=pl.col("new") - pl.col("human"), old=pl.col("old") - pl.col("human")
    )
    for name, factor in zip(twins, (1.0, -1.0), strict=True):
        yield GradeMean(rows=graded.filter(pl.col("source") == name), factor=factor)


def grade_changes(match: JudgeMatch, top: int, options: ComparisonOptions) -> Iterator[JudgeChange]:
    """Yield the change of the mean grade, of all documents and of each source, and of the tilt.

    `top` is the highest grade. A mean grade changes by at most `top`. A tilt, which lies between
    −`top` and `top`, changes by at most twice as much.
    """
    all_pairs = [GradeMean(rows=match.pairs)]
    change = _grade_change(match.judge, all_pairs, float(top), options)
    if change is None:  # no pair was graded by both judges
        return
    yield replace(change, question="grade")
    if not match.twins:
        return
    for source in match.pairs["source"].drop_nulls().unique().sort():
        rows = match.pairs.filter(pl.col("source") == source)
        change = _grade_change(match.judge, [GradeMean(rows=rows)], float(top), options)
        if change is not None:
            yield replace(change, question="grade", subject=source)
    means = list(_twin_means(match.pairs, match.twins))
    is_of_twins = bool(means)
    if not means:
        means = list(_source_means(match.pairs, match.twins))
    tilt = _grade_change(match.judge, means, 2.0 * top, options, is_tilt=True)
    if tilt is not None:
        first, second = match.twins
        yield replace(tilt, question="tilt", a=first, b=second, is_of_twins=is_of_twins)


def _grade_change(
    judge: str,
    means: Sequence[GradeMean],
    bound: float,
    options: ComparisonOptions,
    *,
    is_tilt: bool = False,
) -> JudgeChange | None:
    """Return the change of a sum of means of grades, with its interval; None without rows.

    `bound` is the largest possible change. A tilt (`is_tilt`) also gets its growth. The caller adds
    the fields that say which grades or sources the change is about.
    """
    compared = mean_change(means, bound=bound, resamples=options.resamples, seed=options.seed)
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


def _with_growth(change: JudgeChange, compared: MeanChange) -> JudgeChange:
    """Add how much further from 0 the new tilt is, whichever source it favours."""
    return replace(
        change,
        growth=abs(compared.new) - abs(compared.old),
        growth_low=compared.growth.low,
        growth_high=compared.growth.high,
    )


def same_grades(pairs: pl.DataFrame, options: ComparisonOptions) -> Estimate:
    """Return the share of pairs that both judges gave the same grade, with its interval.

    `pairs` has ``query_id``, ``new`` and ``old``. Below six queries there is no interval.
    """
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
