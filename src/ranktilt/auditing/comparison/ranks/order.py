"""Order runs by their answers to one question, and test every two of them."""

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
"""Most letters of an order; where more are needed, there are none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ResampledRun:
    """A run's answer over the queries that count for every run, with its resamples."""

    answer: RunAnswer
    """The answer."""
    draws: Floats
    """Its value in resamples of the queries, which are the same for all runs."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.answer.run

    @property
    def sample(self) -> Sample:
        """Columns behind the answer."""
        return self.answer.sample

    @cached_property
    def value(self) -> float:
        """The value; effectiveness in percent."""
        return _unit(self.sample) * self.answer.value

    @property
    def lead(self) -> float:
        """The value minus the neutral one."""
        return self.value - self.answer.neutral

    @cached_property
    def influence(self) -> Influence:
        """What queries and documents contribute to the error of the value."""
        influence = self.sample.influence()
        # The weights of an influence add up to 1, so that `scaled` only multiplies.
        return influence.scaled(100.0) if isinstance(self.sample.estimand, Measure) else influence

    @cached_property
    def columns(self) -> bytes:
        """Key of its numbers: equal for runs that answer alike in each query."""
        numerator, denominator = self.sample.rows
        return numerator.tobytes() + denominator.tobytes()


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderedRuns:
    """Runs in the order of their answers, the highest first, with a test of every two."""

    runs: tuple[ResampledRun, ...]
    """The runs."""
    changes: tuple[Change, ...]
    """Differences of every two, each of the higher run to the lower one."""
    excluded: int
    """Queries that count for some runs, and not for all."""
    query_counts: Mapping[str, int]
    """Number of queries that count for each run."""
    rate_error: float
    """Relative error of rates of label errors, by which all answers are scaled."""

    @property
    def identical(self) -> list[tuple[str, ...]]:
        """Names of runs that answer alike in each query, one tuple a set."""
        members = dict[bytes, list[str]]()
        for run in self.runs:
            members.setdefault(run.columns, []).append(run.name)
        return [tuple(names) for names in members.values() if len(names) > 1]


def _unit(sample: Sample) -> float:
    """Return the factor from an estimand's values to those of a comparison."""
    return 100.0 if isinstance(sample.estimand, Measure) else 1.0


def ordered_runs(
    answers: Sequence[RunAnswer], options: ComparisonOptions, *, rate_error: float
) -> OrderedRuns:
    """Order runs by their answers, and test every two over the queries that count for all.

    `rate_error` is the relative error of rates of label errors, by which all answers are scaled.
    """
    masks = np.array([answer.sample.mask for answer in answers])
    counts = np.asarray(masks.all(axis=0))
    runs = _resampled_runs([answer.over(counts) for answer in answers], options)
    # A run without a value, which only too few queries leave, is the last one.
    runs.sort(key=lambda run: np.nan_to_num(run.lead, nan=-np.inf), reverse=True)
    changes, pair_count = list[Change](), len(runs) * (len(runs) - 1) // 2
    for higher, lower in combinations(runs, 2):
        change = with_rate_error(
            _difference(higher, lower), higher.answer.observed, lower.answer.observed, rate_error
        )
        changes.append(change)
        report("pairs of runs", len(changes), pair_count)
    excluded = int(masks.any(axis=0).sum() - counts.sum())
    return OrderedRuns(
        runs=tuple(runs),
        changes=tuple(changes),
        excluded=excluded,
        query_counts={answer.run: int(answer.sample.mask.sum()) for answer in answers},
        rate_error=rate_error,
    )


def _resampled_runs(answers: Sequence[RunAnswer], options: ComparisonOptions) -> list[ResampledRun]:
    """Resample the queries of all runs together."""
    columns = list[Floats]()
    for answer in answers:
        columns += answer.sample.rows
    means = resampled_means(columns, resamples=options.resamples, seed=options.seed)
    runs = []
    for index, answer in enumerate(answers):
        draws = answer.sample.estimand.combine(means[2 * index], means[2 * index + 1])
        runs.append(ResampledRun(answer=answer, draws=_unit(answer.sample) * draws))
    return runs


def _difference(higher: ResampledRun, lower: ResampledRun) -> Change:
    """Test the difference of two runs: its interval is that of a comparison of the two.

    Its p is the larger one of the interval and of Student's t. Resamples of few queries say too
    little of the far tail, where a p is that is corrected for many pairs: of 12 equal runs and 25
    queries, the interval alone showed some difference in 8 of 100 draws, and both in 3.
    """
    sample, neutral = higher.sample, higher.answer.neutral - lower.answer.neutral
    variance = combine_influences([higher.influence, lower.influence], [1.0, -1.0]).variance()
    lowest, highest = sample.estimand.bounds
    if isinstance(sample.estimand, Measure):
        lowest, highest = -np.inf, np.inf
    value = higher.value - lower.value
    inference = infer(
        higher.draws - lower.draws,
        value,
        variance=variance,
        neutral=neutral,
        bounds=(lowest - highest, highest - lowest),
    )
    by_t = student_p(value, variance=variance, neutral=neutral)
    p = inference.p if isnan(by_t) else max(inference.p, by_t)
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


def ranked(
    orders: Sequence[OrderedRuns], correction: str
) -> tuple[list[RankedRun], list[RunDifference]]:
    """Return the ranks of all runs by orders of one family, which are corrected together."""
    changes = list(chain.from_iterable(order.changes for order in orders))
    corrected_changes = iter(correct_p_values(changes, correction))
    ranks, differences = list[RankedRun](), list[RunDifference]()
    for order in orders:
        changes_of_order = [next(corrected_changes) for _ in order.changes]
        ranks += _ranks(order, changes_of_order)
        differences += map(_run_difference, changes_of_order)
    return ranks, differences


def _ranks(order: OrderedRuns, changes: Sequence[Change]) -> list[RankedRun]:
    """Return the interval of each run's rank, and its letters."""
    count = len(order.runs)
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
    """Return the interval of a run's value; NaN where an audit would show none."""
    sample, neutral, variance = run.sample, run.answer.neutral, run.influence.variance()
    if not variance.effective_n >= FEWEST_ROWS:
        return np.nan, np.nan
    inference = infer(
        run.draws,
        run.value,
        variance=variance,
        neutral=neutral,
        bounds=(_unit(sample) * sample.bounds[0], _unit(sample) * sample.bounds[1]),
    )
    observed = run.answer.observed
    if observed is None or not observed.error_parts:
        return inference.low, inference.high
    gap = Gap(
        value=run.lead,
        low=inference.low - neutral,
        high=inference.high - neutral,
        error=inference.error,
        p=inference.p,
    )
    wide = widened_gap(gap, np.array(observed.error_parts), rate_error)
    return neutral + wide.low, neutral + wide.high


def _run_difference(change: Change) -> RunDifference:
    """Keep of a difference what a file of many pairs has room for."""
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
