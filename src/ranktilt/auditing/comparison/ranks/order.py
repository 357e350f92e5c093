"""Order runs by their answers to one question, and test every two of them.

The order is by the distance of an answer from its neutral value, which favours nobody. If audits
are corrected for label errors, all answers are divided by one number J, which is 1 if labels are
right and 0 if they say nothing about groups. J comes from error rates, which are uncertain
themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import isnan

import numpy as np

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.ranks.answers import RunAnswer
from ranktilt.auditing.comparison.ranks.result import RankedRun, RunDifference
from ranktilt.auditing.effects import Change
from ranktilt.auditing.label_errors.changes import widened_gap, with_rate_error
from ranktilt.auditing.significance import Sample, correct_p_values
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats
from ranktilt.progress import report
from ranktilt.statistics.bootstrap import FEWEST_ROWS, resampled_means
from ranktilt.statistics.inversion import infer, student_p
from ranktilt.statistics.label_errors import Gap
from ranktilt.statistics.letters import compact_letters
from ranktilt.statistics.ranks import rank_intervals
from ranktilt.statistics.two_way import Influence, combine_influences

MOST_LETTERS = 26
"""Most different letters of an order; if more are needed, no run gets letters.

Runs that share a letter cannot be distinguished.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ResampledRun:
    """A run's answer over the queries that count for every run, with its bootstrap values."""

    answer: RunAnswer
    """The answer."""
    resampled: Floats
    """Values of the answer in resamples of the queries, which are the same for all runs."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.answer.run

    @property
    def sample(self) -> Sample:
        """Values per query behind the answer."""
        return self.answer.sample

    @cached_property
    def value(self) -> float:
        """The value in the unit in which it is printed; effectiveness in percent."""
        return _scale(self.sample) * self.answer.value

    @property
    def distance_from_neutral(self) -> float:
        """The value minus the value that favours nobody."""
        return self.value - self.answer.neutral

    @cached_property
    def influence(self) -> Influence:
        """What queries and documents contribute to the error of the value."""
        influence = self.sample.influence()
        # The weights of an influence add up to 1, so that `scaled` only multiplies.
        return influence.scaled(100.0) if isinstance(self.sample.estimand, Measure) else influence

    @cached_property
    def columns_key(self) -> bytes:
        """Key of the values per query: equal for runs with the same answer in each query."""
        numerator, denominator = self.sample.rows
        return numerator.tobytes() + denominator.tobytes()


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderedRuns:
    """Runs in the order of their answers, the highest first, with a test of every two."""

    runs: tuple[ResampledRun, ...]
    """The runs."""
    changes: tuple[Change, ...]
    """Differences of every two runs: the higher minus the lower."""
    excluded: int
    """Number of queries that count for some runs, but not for all."""
    query_counts: Mapping[str, int]
    """Number of queries that count for each run."""
    rate_error: float
    """Relative standard error of J, if answers are corrected for label errors; else 0."""

    @property
    def identical(self) -> list[tuple[str, ...]]:
        """Names of runs with the same answer in each query, a tuple for each such set of runs."""
        names_by_columns: dict[bytes, list[str]] = {}
        for run in self.runs:
            names_by_columns.setdefault(run.columns_key, []).append(run.name)
        return [tuple(names) for names in names_by_columns.values() if len(names) > 1]


def _scale(sample: Sample) -> float:
    """Return the factor from an estimand's values to printed ones: means are in percent."""
    return 100.0 if isinstance(sample.estimand, Measure) else 1.0


def order_runs(
    answers: Sequence[RunAnswer], options: ComparisonOptions, *, rate_error: float
) -> OrderedRuns:
    """Order runs by their answers, and test every two over the queries that count for all.

    `rate_error` is the relative standard error of J, if answers are corrected for label errors.
    """
    masks = np.array([answer.sample.mask for answer in answers])
    is_counted = np.asarray(masks.all(axis=0))
    runs = _resampled_runs([answer.over(is_counted) for answer in answers], options)
    # A run has no value if too few queries count for all runs; it comes last.
    runs.sort(key=lambda run: np.nan_to_num(run.distance_from_neutral, nan=-np.inf), reverse=True)
    changes: list[Change] = []
    pair_count = len(runs) * (len(runs) - 1) // 2
    for higher, lower in combinations(runs, 2):
        change = with_rate_error(
            _difference(higher, lower), higher.answer.observed, lower.answer.observed, rate_error
        )
        changes.append(change)
        report("pairs of runs", len(changes), pair_count)
    excluded = int(masks.any(axis=0).sum() - is_counted.sum())
    return OrderedRuns(
        runs=tuple(runs),
        changes=tuple(changes),
        excluded=excluded,
        query_counts={answer.run: int(answer.sample.mask.sum()) for answer in answers},
        rate_error=rate_error,
    )


def _resampled_runs(answers: Sequence[RunAnswer], options: ComparisonOptions) -> list[ResampledRun]:
    """Resample the queries of all runs together."""
    columns: list[Floats] = []
    for answer in answers:
        columns += answer.sample.rows
    means = resampled_means(columns, resamples=options.resamples, seed=options.seed)
    runs = []
    for index, answer in enumerate(answers):
        numerator_means, denominator_means = means[2 * index], means[2 * index + 1]
        values = answer.sample.estimand.combine(numerator_means, denominator_means)
        runs.append(ResampledRun(answer=answer, resampled=_scale(answer.sample) * values))
    return runs


def _difference(higher: ResampledRun, lower: ResampledRun) -> Change:
    """Test the difference of two runs; its interval is the same as if only these were compared.

    Its p is the larger of two: that of the interval, and that of Student's t. A p that is corrected
    for many pairs of runs comes from far in the tail, where resamples of few queries say too
    little. In simulations with 12 equal runs and 25 queries, the interval alone showed some
    difference in 8 of 100 draws, and both together in 3.
    """
    sample, neutral = higher.sample, higher.answer.neutral - lower.answer.neutral
    variance = combine_influences([higher.influence, lower.influence], [1.0, -1.0]).variance()
    lowest, highest = sample.bounds
    if isinstance(sample.estimand, Measure):
        lowest, highest = -np.inf, np.inf
    value = higher.value - lower.value
    inference = infer(
        higher.resampled - lower.resampled,
        value,
        variance=variance,
        neutral=neutral,
        bounds=(lowest - highest, highest - lowest),
    )
    t_p = student_p(value, variance=variance, neutral=neutral)
    p = inference.p if isnan(t_p) else max(inference.p, t_p)
    query_count, twins = int(sample.mask.sum()), sample.twins and lower.sample.twins
    return Change(
        run=higher.name,
        old_run=lower.name,
        estimand=sample.estimand,
        a=sample.a,
        b=sample.b,
        value=value,
        low=inference.low,
        high=inference.high,
        error=inference.error,
        p=p,
        p_corrected=np.nan,
        queries=query_count,
        dropped=inference.dropped,
        twins=twins,
        effective_n=variance.effective_n,
        new=higher.value,
        old=lower.value,
        neutral_new=higher.answer.neutral,
        neutral_old=lower.answer.neutral,
    )


def ranks_of_orders(
    orders: Sequence[OrderedRuns], correction: str
) -> tuple[list[RankedRun], list[RunDifference]]:
    """Return the ranks of all runs in several orders, and the differences of every two runs.

    The p of all orders are corrected together.
    """
    changes = list(chain.from_iterable(order.changes for order in orders))
    corrected_changes = iter(correct_p_values(changes, correction))
    ranks: list[RankedRun] = []
    differences: list[RunDifference] = []
    for order in orders:
        changes_of_order = [next(corrected_changes) for _ in order.changes]
        ranks += _ranks(order, changes_of_order)
        differences += map(_run_difference, changes_of_order)
    return ranks, differences


def _ranks(order: OrderedRuns, changes: Sequence[Change]) -> list[RankedRun]:
    """Return the interval of each run's rank, and its letters.

    `changes` are the order's differences, with corrected p.
    """
    count = len(order.runs)
    # Whether the run of a row is shown to be above that of a column. The changes are in the order
    # of the upper triangle.
    is_above = np.zeros((count, count), dtype=bool)
    is_above[np.triu_indices(count, 1)] = [change.is_shown for change in changes]
    intervals = rank_intervals(is_above)
    letters = compact_letters(is_above | is_above.T, most=MOST_LETTERS)
    ranks = []
    for index, run in enumerate(order.runs):
        sample = run.sample
        low, high = _interval(run, order.rate_error)
        rank = RankedRun(
            run=run.name,
            estimand=sample.estimand,
            a=sample.a,
            b=sample.b,
            value=run.value,
            low=low,
            high=high,
            neutral=run.answer.neutral,
            best_rank=int(intervals.best[index]),
            worst_rank=int(intervals.worst[index]),
            letters=letters[index],
            queries=int(sample.mask.sum()),
        )
        ranks.append(rank)
    return ranks


def _interval(run: ResampledRun, rate_error: float) -> tuple[float, float]:
    """Return the interval of a run's value; NaN if there are too few queries for one."""
    sample, neutral, variance = run.sample, run.answer.neutral, run.influence.variance()
    if not variance.effective_n >= FEWEST_ROWS:  # also where it is NaN
        return np.nan, np.nan
    lowest, highest = sample.bounds
    inference = infer(
        run.resampled,
        run.value,
        variance=variance,
        neutral=neutral,
        bounds=(_scale(sample) * lowest, _scale(sample) * highest),
    )
    observed = run.answer.observed
    if observed is None or not observed.error_parts:
        return inference.low, inference.high
    gap = Gap(
        value=run.distance_from_neutral,
        low=inference.low - neutral,
        high=inference.high - neutral,
        error=inference.error,
        p=inference.p,
    )
    wider = widened_gap(gap, np.array(observed.error_parts), rate_error)
    return neutral + wider.low, neutral + wider.high


def _run_difference(change: Change) -> RunDifference:
    """Return the part of a change that a file holds for each of the many pairs of runs."""
    return RunDifference(
        higher=change.run,
        lower=change.old_run,
        question=repr(change.estimand),
        a=change.a,
        b=change.b,
        value=change.value,
        low=change.low,
        high=change.high,
        p=change.p,
        p_corrected=change.p_corrected,
        is_shown=change.is_shown,
    )
