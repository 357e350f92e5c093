"""Systems under human grades and under a judge's: means, orders, and pairs that change places.

A system is a ranker whose run is evaluated; a judge is whoever gives the grades that are compared
with the human ones. "Under" a judge means: by its grades. So every system has two values of a
measure for each query, and systems have two orders by their means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from ranktilt.auditing.effects import ALPHA
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import QueriesWithoutRelevant
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.records import (
    FEWEST_QUERIES,
    Estimate,
    Fate,
    RankAgreement,
    SystemPair,
    SystemScore,
)
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import blocks, interval, resampled_means
from ranktilt.statistics.correction import holm
from ranktilt.statistics.judges.rank_correlation import (
    coefficient_interval,
    kendall_tau,
    near_resamples,
    rank_biased_overlap,
    top_weighted_tau,
)
from ranktilt.statistics.permutation import t_test_p

RESAMPLES = 1_000
"""Resamples for coefficients of orders: fewer than elsewhere, because these are slow to compute."""
_LIMITS_OF_AGREEMENT = 1.96
"""Half-width of the limits of agreement, in standard deviations: 95 % of normal differences.

Bland and Altman, The Lancet 327, 1986.
"""
_CELLS_AT_ONCE = 1 << 15
"""Numbers to compute at a time, which fit the processor's cache."""

Coefficient = Callable[[Floats, Floats], Floats]
"""Function that compares two orders of systems.

It takes the human means and the judge's, of shape (…, systems), and returns the coefficients.
"""
_COEFFICIENTS: Mapping[str, tuple[Coefficient, float]] = {
    "tau": (kendall_tau, -1.0),
    "tau_a": (partial(kendall_tau, variant="a"), -1.0),
    "tau_ap": (top_weighted_tau, -1.0),
    "rbo": (rank_biased_overlap, 0.0),
}
"""Functions that compare two orders by the name of their coefficient, each with its least value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemValues:
    """One measure of all systems and queries, under human grades and under one judge."""

    judge: str
    """Name of the judge."""
    measure: str
    """Notation of the measure."""
    bounds: tuple[float, float]
    """Smallest and largest value that the measure can have."""
    runs: tuple[str, ...]
    """Names of the systems."""
    queries: tuple[str, ...]
    """Ids of the queries."""
    human: Floats
    """Values under human grades, of shape (systems, queries), without NaN."""
    judged: Floats
    """Values under the judge, of the same shape."""
    rescaled_human: Floats
    """Values under human grades that were put on the judge's scale, by `rescaled_human_grades`.

    They are `human` if grades are unknown.
    """
    further_judged: Floats
    """Values under the judge in queries without human grades: (systems, further queries)."""

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough queries for intervals."""
        return len(self.queries) >= FEWEST_QUERIES

    def subset(self, runs: tuple[str, ...], queries: tuple[str, ...]) -> SystemValues:
        """Return the values of some systems and queries, by name, in the given order."""
        if (runs, queries) == (self.runs, self.queries):
            return self
        row_of = {run: row for row, run in enumerate(self.runs)}
        column_of = {query: column for column, query in enumerate(self.queries)}
        rows = [row_of[run] for run in runs]
        cells = np.ix_(rows, [column_of[query] for query in queries])
        return replace(
            self,
            runs=runs,
            queries=queries,
            human=self.human[cells],
            judged=self.judged[cells],
            rescaled_human=self.rescaled_human[cells],
            further_judged=self.further_judged[rows],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ResampledOrders:
    """Means of all systems in resamples of the queries, each of shape (resamples, systems).

    Near resamples lie closer to the observed means. The intervals of coefficients need both, as
    `ranktilt.statistics.judges.rank_correlation.coefficient_interval` explains.
    """

    human: Floats
    """Means under human grades."""
    judged: Floats
    """Means under the judge."""
    near_human: Floats
    """Means under human grades in resamples near the observed ones."""
    near_judged: Floats
    """Means under the judge in resamples near the observed ones."""

    def coefficients(self, coefficient: Coefficient) -> tuple[Floats, Floats]:
        """Return a coefficient of each resample, and of each near resample."""
        return (
            _coefficient_in_parts(coefficient, self.human, self.judged),
            _coefficient_in_parts(coefficient, self.near_human, self.near_judged),
        )


def resampled_orders(values: SystemValues, resamples: int, seed: int) -> ResampledOrders:
    """Return the means of systems in resamples of the queries.

    The draws depend only on `seed` and the number of queries, so judges of the same queries get the
    same draws and can be compared.
    """
    human, judged = _resampled_means(values, resamples, seed)
    return ResampledOrders(
        human=human,
        judged=judged,
        near_human=near_resamples(values.human.mean(1), human),
        near_judged=near_resamples(values.judged.mean(1), judged),
    )


def system_values(
    pairs_of_judge: GradedPairs, runs: Sequence[Run], measures: Sequence[Measure]
) -> tuple[list[SystemValues], list[Note]]:
    """Measure every run under the grades of humans and of the judge.

    Only pairs that both graded count, and only queries in which a measure is defined under both:
    most measures need a relevant document.

    Returns
    -------
    tuple of list of SystemValues and list of Note
        The values of each measure, and notes on queries that are left out.

    Raises
    ------
    UserError
        If a measure is defined for no query.
    """
    rescaled = rescaled_human_grades(pairs_of_judge.table)
    pairs = pairs_of_judge.table.with_columns(rescaled=rescaled, whole=rescaled.round())
    values_by_grades = [
        _measure_values(pairs, column, runs, measures)
        for column in ("human", "judged", "rescaled", "whole")
    ]
    further = None
    if pairs_of_judge.further_grades.height:
        further = _measure_values(pairs_of_judge.further_grades, "grade", runs, measures)
    query_ids = pairs["query_id"].unique(maintain_order=True)
    measured, notes = list[SystemValues](), list[Note]()
    for index, measure in enumerate(measures):
        human, judged, by_rescaled, by_whole = (values[index] for values in values_by_grades)
        is_defined = ~np.isnan(human + judged).any(axis=0)
        if not is_defined.any():
            raise UserError(
                f"{pairs_of_judge.judge}: no query has a relevant document under both judges, "
                f"for {measure!r}"
            )
        if not is_defined.all():
            lacking = QueriesWithoutRelevant(
                judge=pairs_of_judge.judge, measure=repr(measure), queries=int((~is_defined).sum())
            )
            notes.append(lacking)
        further_judged = np.empty((len(runs), 0)) if further is None else further[index]
        is_defined_further = ~np.isnan(further_judged).any(axis=0)
        # A binary measure counts a document as relevant from a whole grade on.
        rescaled_human = by_whole if measure.binary else by_rescaled
        # After rescaling a query may have nothing relevant, so that the measure is undefined.
        rescaled_human = np.where(np.isnan(rescaled_human), human, rescaled_human)
        run_names = tuple(run.name for run in runs)
        values = SystemValues(
            judge=pairs_of_judge.judge,
            measure=repr(measure),
            bounds=measure.bounds,
            runs=run_names,
            queries=tuple(query_ids.filter(pl.Series(is_defined))),
            human=human[:, is_defined],
            judged=judged[:, is_defined],
            rescaled_human=rescaled_human[:, is_defined],
            further_judged=further_judged[:, is_defined_further],
        )
        measured.append(values)
    return measured, notes


def rescaled_human_grades(pairs: pl.DataFrame) -> pl.Series:
    """Return human grades on the judge's scale.

    Each human grade becomes the mean grade that the judge gives to pairs with this human grade. The
    means are made to rise with the human grade, by isotonic regression. A judge whose grades are a
    rising function of the human ones then gives the same numbers, and so cannot prefer any system.
    `pairs` has the columns ``human`` and ``judged``.
    """
    from scipy import optimize  # imported on use: it takes half a second

    means = (
        pairs.group_by("human").agg(pl.col("judged").mean(), pl.len().alias("weight")).sort("human")
    )
    judged, weight = (means[name].to_numpy().astype(np.float64) for name in ("judged", "weight"))
    rising = optimize.isotonic_regression(judged, weights=weight).x
    return pairs["human"].replace_strict(means["human"], pl.Series(rising), return_dtype=pl.Float64)


def _measure_values(
    pairs: pl.DataFrame, column: str, runs: Sequence[Run], measures: Sequence[Measure]
) -> Floats:
    """Return every measure of every run and query, of shape (measures, systems, queries).

    `pairs` has ``query_id`` and ``doc_id``, and grades in `column`.
    """
    # Measures of relevance need only grades, so that texts may be empty.
    docs = pairs.select(id="doc_id").unique(maintain_order=True).with_columns(text=pl.lit(""))
    queries = pairs.select(id="query_id").unique(maintain_order=True).with_columns(text=pl.lit(""))
    collection = Collection(
        docs, queries, pairs.select("query_id", "doc_id", grade=pl.col(column).cast(pl.Float64))
    )
    groups = grouping(collection, None)  # a single group of all documents
    judgments = Judgments.from_collection(collection, groups)
    judged_runs = (JudgedRun.from_run(run, collection, judgments) for run in runs)
    # The expected values over the orders of tied documents, for the only group.
    values_of_runs = [group_values(run, measures, groups, "expected")[:, 0] for run in judged_runs]
    return np.stack(values_of_runs, axis=1)


def rank_agreement(values: SystemValues, *, seed: int, resamples: int = RESAMPLES) -> RankAgreement:
    """Compare the human order of systems with the judge's, with intervals over queries.

    `seed` and `resamples` are those of the bootstrap over queries.
    """
    human, judged = values.human.mean(1), values.judged.mean(1)
    orders = resampled_orders(values, resamples, seed) if values.has_intervals else None
    estimates = {}
    for name, (coefficient, least) in _COEFFICIENTS.items():
        value = float(coefficient(human, judged))
        estimates[name] = Estimate(value)
        if orders is not None and not np.isnan(value):
            samples, near_samples = orders.coefficients(coefficient)
            ends = coefficient_interval(value, samples, near_samples, least=least)
            estimates[name] = Estimate(value, *ends)
    difference = judged - human
    bias = float(difference.mean())
    spread = (
        _LIMITS_OF_AGREEMENT * float(np.std(difference, ddof=1)) if len(difference) > 1 else np.nan
    )
    centred = human - human.mean()
    slope = float(centred @ judged / (centred @ centred)) if centred.any() else np.nan
    return RankAgreement(
        judge=values.judge,
        measure=values.measure,
        systems=len(human),
        queries=len(values.queries),
        tau=estimates["tau"],
        tau_a=estimates["tau_a"],
        tau_ap=estimates["tau_ap"],
        rbo=estimates["rbo"],
        bias=bias,
        limits=(bias - spread, bias + spread),
        slope=slope,
    )


def _resampled_means(values: SystemValues, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return each system's means under humans and the judge in resamples of the queries.

    Both have the shape (resamples, systems).
    """
    # Resampled together, so that human and judged values have the same draws of queries.
    means = resampled_means([*values.human, *values.judged], resamples=resamples, seed=seed)
    by_resample = np.stack(means, axis=1)
    systems = len(values.runs)
    return by_resample[:, :systems], by_resample[:, systems:]


def _coefficient_in_parts(coefficient: Coefficient, human: Floats, judged: Floats) -> Floats:
    """Compute a coefficient of many resamples, in parts whose tables fit the cache.

    `human` and `judged` are means in resamples. The table of a resample has a cell for every two
    systems.
    """
    parts = []
    for start, stop in blocks(len(human), human.shape[1] ** 2, _CELLS_AT_ONCE):
        parts.append(coefficient(human[start:stop], judged[start:stop]))
    return np.concatenate(parts)


def system_scores(
    values: SystemValues, families: Mapping[str, str], *, resamples: int, seed: int
) -> list[SystemScore]:
    """Return the means and ranks of every system, and how far the judge raises it above average.

    `families` holds the family of each system; a system may have none. `resamples` and `seed` are
    those of the bootstrap over queries.
    """
    from scipy import stats  # imported on use: it takes half a second

    difference = values.judged - values.human
    relative = difference - difference.mean(axis=0)  # beyond the query's average over systems
    samples = resampled_means(list(relative), resamples=resamples, seed=seed)
    human, judged = values.human.mean(1), values.judged.mean(1)
    human_rank, judged_rank = stats.rankdata(-human), stats.rankdata(-judged)
    scores = []
    for index, run in enumerate(values.runs):
        spread = interval(samples[index])
        raised = Estimate(float(relative[index].mean()))
        if values.has_intervals:
            raised = raised._replace(low=spread.low, high=spread.high)
        score = SystemScore(
            judge=values.judge,
            measure=values.measure,
            run=run,
            family=families.get(run, ""),
            human=float(human[index]),
            judged=float(judged[index]),
            human_rank=float(human_rank[index]),
            judged_rank=float(judged_rank[index]),
            relative=raised,
        )
        scores.append(score)
    return scores


def system_pairs(values: SystemValues) -> Iterator[SystemPair]:
    """Test every two systems under humans and the judge; yield those that differ under either.

    The tests are paired t tests over queries with Holm's correction over all pairs of systems.
    """
    first, second = np.triu_indices(len(values.runs), 1)  # indices of every two systems
    human_differences = values.human[first] - values.human[second]
    judged_differences = values.judged[first] - values.judged[second]
    human_ps, judged_ps = _corrected_ps(human_differences), _corrected_ps(judged_differences)
    for index, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        human = float(human_differences[index].mean())
        judged = float(judged_differences[index].mean())
        better, worse = a, b
        if human < 0:  # the better system is the one with the higher human mean
            human, judged, better, worse = -human, -judged, b, a
        human_p, judged_p = float(human_ps[index]), float(judged_ps[index])
        fate = _fate(judged, human_p < ALPHA, judged_p < ALPHA)
        if fate != "neither":
            yield SystemPair(
                judge=values.judge,
                measure=values.measure,
                better=values.runs[better],
                worse=values.runs[worse],
                human=human,
                judged=judged,
                human_p=human_p,
                judged_p=judged_p,
                fate=fate,
            )


def _corrected_ps(differences: Floats) -> Floats:
    """Return Holm's p of each pair of systems, from paired t tests over queries."""
    return holm(np.array([t_test_p(per_query) for per_query in differences]))


def _fate(judged: float, is_shown_by_humans: bool, is_shown_by_judge: bool) -> Fate:
    """Return what becomes of a difference of two systems under the judge.

    `judged` is the difference under the judge: above 0 if it agrees about the better system. A
    difference is shown if its corrected p is below .05.
    """
    if not is_shown_by_humans:
        return "new" if is_shown_by_judge else "neither"
    if judged < 0:
        return "reversed"
    return "agrees" if is_shown_by_judge else "lost"
