"""Compare judges with each other, by their agreement with humans.

A coefficient is Cohen's κ of grades, or Kendall's τ-b of the order of systems; a system is a ranker
whose run is evaluated. A judge's coefficient says how far it agrees with humans. Two judges are
compared by the difference of their coefficients in the same resamples of the queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.judging.agreement import QueryDraws
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.records import FEWEST_QUERIES, AgreementStatistic, JudgeComparison
from ranktilt.judging.systems.systems import RESAMPLES, SystemValues, resampled_orders
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.correction import correct
from ranktilt.statistics.judges.agreement import cohen_kappa
from ranktilt.statistics.judges.coefficient_difference import coefficient_difference
from ranktilt.statistics.judges.rank_correlation import kendall_tau
from ranktilt.statistics.two_way import effective_number

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class _ResampledCoefficient:
    """A coefficient of one judge, over all queries and in resamples of them."""

    value: float
    """The coefficient."""
    samples: Floats
    """The coefficient in each resample; empty if there are too few queries."""
    near_samples: Floats | None
    """For τ-b, the coefficient in resamples that lie closer to the observed means.

    Intervals of orders need them, as `ranktilt.statistics.rank_correlation.coefficient_interval`
    explains; None for κ.
    """
    queries: int
    """Number of queries."""
    effective_n: float
    """Effective number of queries."""


def compare_kappas(
    pairs_of_judges: Sequence[GradedPairs], *, top: int, correction: str, draws: QueryDraws
) -> list[JudgeComparison]:
    """Compare every two judges by Cohen's κ with humans, on the pairs that both graded.

    Below six queries there are no intervals.

    Parameters
    ----------
    pairs_of_judges : sequence of GradedPairs
        For each judge, the pairs that it and humans graded.
    top : int
        Highest grade of the scale, which begins at 0.
    correction : {"holm", "bonferroni"}
        Correction of the p of all comparisons.
    draws : QueryDraws
        Resamples of the queries, the same for both judges.
    """
    grids = _grids(pairs_of_judges, top=top, draws=draws)
    # The better judge of two is the first, so that most differences are above 0.
    order = sorted(grids, key=lambda judge: -_sort_value(grids[judge].kappa))
    comparisons = []
    for judge_a, judge_b in combinations(order, 2):
        graded_by_both = grids[judge_a].is_graded & grids[judge_b].is_graded
        kappas = [grids[judge].resampled_kappa(graded_by_both) for judge in (judge_a, judge_b)]
        comparisons.append(_comparison((judge_a, judge_b), "kappa", "", kappas))  # no measure
    return _with_corrected_p(comparisons, correction)


def compare_orders(
    every_values: Sequence[SystemValues], *, correction: str, seed: int, resamples: int = RESAMPLES
) -> list[JudgeComparison]:
    """Compare every two judges by Kendall's τ-b with humans, on the systems and queries of both.

    Below six queries there are no intervals.

    Parameters
    ----------
    every_values : sequence of SystemValues
        Values of systems for each query, by judge and measure.
    correction : {"holm", "bonferroni"}
        Correction of the p of all comparisons by one measure.
    seed, resamples : int
        Random seed and number of resamples of the queries, the same for both judges.
    """
    comparisons = list[JudgeComparison]()
    for measure in dict.fromkeys(values.measure for values in every_values):
        judged = [values for values in every_values if values.measure == measure]
        taus = _Taus(resamples=resamples, seed=seed)
        judged.sort(key=lambda values: -_sort_value(taus.tau_of(values).value))
        of_measure = []
        for values_a, values_b in combinations(judged, 2):
            judge_taus = [taus.tau_of(values) for values in in_common(values_a, values_b)]
            pair = values_a.judge, values_b.judge
            of_measure.append(_comparison(pair, "tau", measure, judge_taus))
        comparisons += _with_corrected_p(of_measure, correction)
    return comparisons


def _sort_value(value: float) -> float:
    """Return a value to sort by in falling order, which puts undefined ones last."""
    return -np.inf if np.isnan(value) else value


def _comparison(
    judges: tuple[str, str],
    statistic: AgreementStatistic,
    measure: str,
    coefficients: Sequence[_ResampledCoefficient],
) -> JudgeComparison:
    """Return the comparison of two judges by one coefficient.

    `measure` orders the systems for ``tau``, and is empty for ``kappa``. `coefficients`
    are those of both judges. The caller corrects the p.
    """
    coefficient_a, coefficient_b = coefficients
    samples, near_samples = np.empty(0), None
    if coefficient_a.queries >= FEWEST_QUERIES:
        samples = coefficient_a.samples - coefficient_b.samples
        if coefficient_a.near_samples is not None and coefficient_b.near_samples is not None:
            near_samples = coefficient_a.near_samples - coefficient_b.near_samples
    difference = coefficient_difference(
        coefficient_a.value - coefficient_b.value,
        samples,
        effective_n=coefficient_a.effective_n,
        near_samples=near_samples,
    )
    return JudgeComparison(
        judge_a=judges[0],
        judge_b=judges[1],
        statistic=statistic,
        measure=measure,
        queries=coefficient_a.queries,
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        p_corrected=np.nan,
    )


def _with_corrected_p(
    comparisons: Sequence[JudgeComparison], correction: str
) -> list[JudgeComparison]:
    """Correct the p of comparisons together."""
    corrected = correct([comparison.p for comparison in comparisons], correction).tolist()
    return [
        replace(comparison, p_corrected=p)
        for comparison, p in zip(comparisons, corrected, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _GradeGrid:
    """One judge's grades of all pairs that humans and any judge graded.

    All judges have the same pairs in the same order, so that masks of pairs can be combined.
    """

    query: Ints
    """Index of each pair's query."""
    human: Ints
    """Human grade of each pair."""
    judged: Ints
    """The judge's grades; −1 if it gave none."""
    top: int
    """Highest grade."""
    draws: QueryDraws
    """Resamples of the queries."""
    computed: dict[bytes, _ResampledCoefficient] = field(default_factory=dict)
    """Coefficients by the mask of the pairs that count, as bytes.

    Judges mostly grade the same pairs, so that κ of a judge is computed once for all comparisons.
    """

    @property
    def is_graded(self) -> Bools:
        """Which pairs the judge graded."""
        return self.judged >= 0

    @property
    def kappa(self) -> float:
        """Cohen's κ over all pairs that the judge graded."""
        return float(cohen_kappa(self._tables(self.is_graded).sum(0)))

    def resampled_kappa(self, counts: Bools) -> _ResampledCoefficient:
        """Return κ over some pairs, and in resamples of their queries.

        `counts` is a mask of the pairs that count.
        """
        key = counts.tobytes()
        if key not in self.computed:
            self.computed[key] = self._compute(counts)
        return self.computed[key]

    def _compute(self, counts: Bools) -> _ResampledCoefficient:
        """Compute what `resampled_kappa` returns."""
        tables = self._tables(counts)
        queries = len(tables)
        samples = np.empty(0)
        if queries >= FEWEST_QUERIES:
            samples = cohen_kappa(self.draws.resampled_sums(tables))
        return _ResampledCoefficient(
            value=float(cohen_kappa(tables.sum(0))),
            samples=samples,
            near_samples=None,
            queries=queries,
            effective_n=effective_number(tables.sum((1, 2))),
        )

    def _tables(self, counts: Bools) -> Floats:
        """Count, for each query, the pairs with each human grade and each grade of the judge.

        `counts` is a mask of the pairs that count. The shape is (queries, grades, grades); queries
        without such a pair are left out.
        """
        size = self.top + 1
        queries, query = np.unique(self.query[counts], return_inverse=True)
        # Index of each pair's cell, if all tables are written row by row, one after the other.
        cell = (query * size + self.human[counts]) * size + self.judged[counts]
        shape = len(queries), size, size
        return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _grids(
    pairs_of_judges: Sequence[GradedPairs], *, top: int, draws: QueryDraws
) -> Mapping[str, _GradeGrid]:
    """Return each judge's grades of all pairs that humans and any judge graded."""
    rows = [
        pairs_of_judge.table.select("query_id", "doc_id", "human")
        for pairs_of_judge in pairs_of_judges
    ]
    if not rows:
        return {}
    pairs = pl.concat(rows).unique(["query_id", "doc_id"], maintain_order=True)
    pairs = pairs.with_columns(query=pl.col("query_id").rank("dense") - 1)
    query, human = (pairs[name].cast(pl.Int64).to_numpy() for name in ("query", "human"))
    grids = {}
    for pairs_of_judge in pairs_of_judges:
        judged = pairs.join(
            pairs_of_judge.table.select("query_id", "doc_id", "judged"),
            on=["query_id", "doc_id"],
            how="left",
            maintain_order="left",
        )["judged"]
        grids[pairs_of_judge.judge] = _GradeGrid(
            query=query,
            human=human,
            judged=judged.fill_null(-1).cast(pl.Int64).to_numpy(),
            top=top,
            draws=draws,
        )
    return grids


@dataclass(frozen=True, kw_only=True, eq=False)
class _Taus:
    """Kendall's τ-b of judges; each is computed once, and used in several comparisons."""

    resamples: int
    """Number of resamples."""
    seed: int
    """Seed of the resamples."""
    computed: dict[tuple[str, tuple[str, ...], tuple[str, ...]], _ResampledCoefficient] = field(
        default_factory=dict
    )
    """τ-b by judge, systems and queries."""

    def tau_of(self, values: SystemValues) -> _ResampledCoefficient:
        """Return τ-b of one judge with humans, over all queries and in resamples of them."""
        key = values.judge, values.runs, values.queries
        if key not in self.computed:
            self.computed[key] = self._compute(values)
        return self.computed[key]

    def _compute(self, values: SystemValues) -> _ResampledCoefficient:
        """Compute what `tau_of` returns."""
        samples, near_samples = np.empty(0), None
        if values.has_intervals:
            orders = resampled_orders(values, self.resamples, self.seed)
            samples, near_samples = orders.coefficients(kendall_tau)
        return _ResampledCoefficient(
            value=float(kendall_tau(values.human.mean(1), values.judged.mean(1))),
            samples=samples,
            near_samples=near_samples,
            queries=len(values.queries),
            effective_n=float(len(values.queries)),
        )


def in_common(first: SystemValues, second: SystemValues) -> tuple[SystemValues, SystemValues]:
    """Return the values of two judges for the systems and queries that both have, in one order."""
    runs = tuple(run for run in first.runs if run in second.runs)
    queries = tuple(query for query in first.queries if query in second.queries)
    return first.subset(runs, queries), second.subset(runs, queries)
