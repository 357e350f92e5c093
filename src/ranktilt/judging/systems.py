"""Systems under human grades and under a judge's: means, orders, and pairs that change places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import optimize, stats

from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.judging.grades import Graded
from ranktilt.judging.result import Estimate, Fate, RankAgreement, SystemPair, SystemScore
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.run import Run
from ranktilt.statistics.bootstrap import interval, resampled_means
from ranktilt.statistics.correction import holm
from ranktilt.statistics.permutation import t_test_p
from ranktilt.statistics.rank_correlation import kendall_tau, rank_biased_overlap, top_weighted_tau

RESAMPLES = 1_000
"""Of coefficients of whole orders, which are computed anew for each."""
_WITHIN = 1.96


class SystemValues(NamedTuple):
    """One measure of every system and query under the human grades and under one judge's, on the same pairs."""

    judge: str
    measure: Measure
    runs: tuple[str, ...]
    queries: tuple[str, ...]
    human: Floats
    judged: Floats
    """(systems, queries), without NaN."""
    rescaled: Floats
    """The human grades on the judge's scale; see `on_scale_of`."""
    more: Floats
    """Under the judge, in queries that humans did not grade: (systems, further queries)."""


def system_values(
    graded: Graded, runs: Sequence[Run], measures: Sequence[Measure]
) -> tuple[list[SystemValues], list[str]]:
    """Measure every run under both judges' grades of the pairs that both graded, on queries that count under both."""
    rescaled = on_scale_of(graded.pairs)
    pairs = graded.pairs.with_columns(rescaled=rescaled, whole=rescaled.round())
    columns = [_values(pairs, column, runs, measures) for column in ("human", "judged", "rescaled", "whole")]
    further = _values(graded.more, "grade", runs, measures) if graded.more.height else None
    names = pairs["query_id"].unique(maintain_order=True)
    found, notes = [], list[str]()
    for number, measure in enumerate(measures):
        human, judged, graded_as, relevant_as = (column[number] for column in columns)
        known = ~np.isnan(human + judged).any(axis=0)
        if not known.any():
            raise UserError(f"{graded.judge}: no query has a relevant document under both judges, for {measure!r}")
        if not known.all():
            left = counted(int((~known).sum()), "query", "queries")
            notes.append(f"{graded.judge}, {measure!r}: {left} without a relevant document under one judge left out")
        more = np.empty((len(runs), 0)) if further is None else further[number]
        more = more[:, ~np.isnan(more).any(0)]
        queries = tuple(names.filter(pl.Series(known)))
        scaled = relevant_as if measure.binary else graded_as
        scaled = np.where(np.isnan(scaled), human, scaled)  # where nothing is relevant on the judge's scale
        of = graded.judge, measure, tuple(run.name for run in runs), queries
        found.append(SystemValues(*of, human[:, known], judged[:, known], scaled[:, known], more))
    return found, notes


def on_scale_of(pairs: pl.DataFrame) -> pl.Series:
    """Put human grades on the judge's scale: the mean grade that it gives to each, made to rise with the human grade.

    A judge whose grades are a rising function of the human ones gives the same numbers, and so cannot prefer anybody.
    """
    means = pairs.group_by("human").agg(pl.col("judged").mean(), pl.len().alias("weight")).sort("human")
    judged, weight = (means[name].to_numpy().astype(np.float64) for name in ("judged", "weight"))
    rising = optimize.isotonic_regression(judged, weights=weight).x
    return pairs["human"].replace_strict(means["human"], pl.Series(rising), return_dtype=pl.Float64)


def _values(pairs: pl.DataFrame, column: str, runs: Sequence[Run], measures: Sequence[Measure]) -> Floats:
    """Every measure of every run and query: (measures, systems, queries)."""
    docs = pairs.select(id="doc_id").unique(maintain_order=True).with_columns(text=pl.lit(""))
    queries = pairs.select(id="query_id").unique(maintain_order=True).with_columns(text=pl.lit(""))
    collection = Collection(docs, queries, pairs.select("query_id", "doc_id", grade=pl.col(column).cast(pl.Float64)))
    groups = grouping(collection, None)
    judgments = Judgments.of(collection, groups)
    aligned = (Aligned.of(run, collection, judgments) for run in runs)
    return np.stack([group_values(run, measures, groups, "expected")[:, 0] for run in aligned], axis=1)


def rank_agreement(values: SystemValues, *, seed: int) -> RankAgreement:
    """Compare the two orders of systems; intervals over queries, turned round the value (basic bootstrap)."""
    human, judged = values.human.mean(1), values.judged.mean(1)
    coefficients = {
        "tau": kendall_tau,
        "tau_a": lambda one, two: kendall_tau(one, two, "a"),
        "tau_ap": top_weighted_tau,
        "rbo": rank_biased_overlap,
    }
    columns = [*values.human, *values.judged]
    means = np.stack(resampled_means(columns, resamples=RESAMPLES, seed=seed))
    both = means.reshape(2, len(human), RESAMPLES)
    estimates = {}
    for name, coefficient in coefficients.items():
        samples = np.array([coefficient(one, two) for one, two in zip(*np.moveaxis(both, 2, 1), strict=True)])
        estimates[name] = _turned(coefficient(human, judged), samples, 0.0 if name == "rbo" else -1.0)
    away = judged - human
    spread = _WITHIN * float(np.std(away, ddof=1)) if len(away) > 1 else np.nan
    bias, moved = float(away.mean()), human - human.mean()
    slope = float(moved @ judged / (moved @ moved)) if moved.any() else np.nan
    return RankAgreement(
        values.judge, repr(values.measure), len(human), values.human.shape[1], **estimates, bias=bias,
        limits=(bias - spread, bias + spread), slope=slope,
    )  # fmt: skip


def _turned(value: float, samples: Floats, lowest: float) -> Estimate:
    """A basic bootstrap interval: resampling queries adds noise to both orders, which lowers every coefficient."""
    found = interval(samples)
    low, high = np.clip([2 * value - found.high, 2 * value - found.low], lowest, 1.0).tolist()
    return Estimate(value, low, high)


def system_scores(values: SystemValues, families: Mapping[str, str], *, resamples: int, seed: int) -> list[SystemScore]:
    """Give every system's means and ranks, and how much further than the mean system the judge raises it."""
    away = values.judged - values.human
    relative = away - away.mean(0)
    samples = resampled_means(list(relative), resamples=resamples, seed=seed)
    means = [one.mean(1) for one in (values.human, values.judged)]
    ranks = [stats.rankdata(-one) for one in means]
    found = []
    for number, name in enumerate(values.runs):
        spread = interval(samples[number])
        over = Estimate(float(relative[number].mean()), spread.low, spread.high)
        human, judged, human_rank, judged_rank = (float(column[number]) for column in (*means, *ranks))
        of = values.judge, repr(values.measure), name, families.get(name, "")
        found.append(SystemScore(*of, human, judged, human_rank, judged_rank, over))
    return found


def system_pairs(values: SystemValues) -> Iterator[SystemPair]:
    """Test every two systems under both judges; give those that differ significantly under either."""
    first, second = np.triu_indices(len(values.runs), 1)
    differences = [one[first] - one[second] for one in (values.human, values.judged)]
    ps = [holm(np.array([t_test_p(row) for row in rows])) for rows in differences]
    for place, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        human, judged = (float(rows[place].mean()) for rows in differences)
        better, worse = (a, b) if human >= 0 else (b, a)
        human_p, judged_p = (float(p[place]) for p in ps)
        turned = -1.0 if human < 0 else 1.0
        fate = _fate(abs(human), turned * judged, human_p < ALPHA, judged_p < ALPHA)
        if fate != "neither":
            yield SystemPair(
                values.judge, repr(values.measure), values.runs[better], values.runs[worse], abs(human),
                turned * judged, human_p, judged_p, fate,
            )  # fmt: skip


def _fate(human: float, judged: float, human_shown: bool, judged_shown: bool) -> Fate:
    """What becomes of a difference that humans show, or do not, under the judge."""
    if human_shown:
        return "reversed" if judged < 0 else "agrees" if judged_shown else "lost"
    return "new" if judged_shown else "neither"
