"""The change of an answer from an old run to a new one, with interval and p.

Both runs ranked the same queries, and are resampled together, so that a query that is hard for both
does not count as a difference. A `ChangeTask` holds the values per query of one question under both
runs; `mean_changes` and `contrast_changes` make a `Change` of each. Tasks over the same queries
share bootstrap resamples, which saves time and changes no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Change
from ranktilt.auditing.significance import (
    Sample,
    influence_of_ratio,
    numbers_of,
    resampling_key_of,
    with_shared_resamples,
)
from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import resampled_means, shared_numbering, sum_repeats
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.two_way import Clusters, Influence, TwoWayVariance, combine_influences


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Values to compare, with a column of one value per query for each run or group.

    A query counts if all its values are defined. Queries that *repeat each other* have the same
    text, or the same list and judgments; together they are one *distinct* query.
    """

    values: Floats
    """The values, of shape (n_columns, n_queries)."""
    distinct: Ints | None
    """Number of each query; queries that repeat each other have one number. None if none does."""

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which queries count."""
        return np.asarray(~np.isnan(self.values).any(axis=0))

    @property
    def queries(self) -> int:
        """Number of queries that count."""
        return int(self.mask.sum())

    @property
    def means(self) -> Floats:
        """Mean of each column over the queries that count."""
        known = np.ascontiguousarray(self.values[:, self.mask])
        return np.array([np.mean(column) if len(column) else np.nan for column in known])

    @cached_property
    def sums(self) -> list[Floats]:
        """Each column, with a value for each distinct query that counts.

        The values of queries that repeat each other are summed.
        """
        return [self._sum_repeats(column) for column in self.values]

    @property
    def sizes(self) -> Floats:
        """Number of queries behind each distinct query."""
        return self._sum_repeats(np.ones(len(self.mask)))

    def _sum_repeats(self, column: Floats) -> Floats:
        """Keep the queries that count, and sum those that repeat each other."""
        distinct = None if self.distinct is None else self.distinct[self.mask]
        return sum_repeats(column[self.mask], distinct)

    @property
    def resampling_key(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return resampling_key_of(self.mask, self.distinct)


def resampled(members: Sequence[Columns], *, resamples: int, seed: int) -> list[Floats]:
    """Bootstrap the means of columns over the same queries.

    Returns an array of the shape (n_columns, resamples) for each of `members`.
    """
    sums: list[Floats] = []
    for columns in members:
        sums += columns.sums
    means = iter(resampled_means(sums, resamples=resamples, seed=seed))
    return [np.array([next(means) for _ in columns.sums]) for columns in members]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangeTask:
    """Values per query of one question under a new and an old run, before any statistics."""

    run: str
    """Name of the new run."""
    old_run: str
    """Name of the old run."""
    estimand: Estimand
    """Question that is answered."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    columns: Columns
    """Columns of the new and the old run in turn: new a, old a, new b, old b.

    For Relative Δ, a and b are both groups' values; for other estimands, they are numerator and
    denominator. The mean of a measure has two columns, new and old.
    """
    clusters: tuple[Clusters | None, Clusters | None] = (None, None)
    """What documents add to the answers of the new and the old run.

    Both number queries and origins in the same way.
    """
    neutral_values: tuple[float, float] = (0.0, 0.0)
    """Neutral values of the new and the old run."""
    twins: bool = True
    """Whether the groups are twins in both runs."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Further counts of the new answer, such as its number of pairs."""
    is_bounded: bool = True
    """Whether both answers keep to the estimand's bounds; see `Sample`."""
    known_variance: TwoWayVariance | None = None
    """Variance of new − old, where it does not follow from `clusters`."""

    @property
    def resampling_key(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return self.columns.resampling_key

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value of new − old."""
        if not self.is_bounded:
            return -np.inf, np.inf
        lowest, highest = self.estimand.bounds
        return lowest - highest, highest - lowest

    def variance(self) -> TwoWayVariance:
        """Return the variance of new − old over other queries and other documents."""
        if self.known_variance is not None:
            return self.known_variance
        new_a, old_a, new_b, old_b = self.columns.sums
        new_clusters, old_clusters = self.clusters
        new = self._influence((new_a, new_b), new_clusters)
        old = self._influence((old_a, old_b), old_clusters)
        difference = combine_influences([new, old], [1.0, -1.0])
        return difference.variance()

    def _influence(self, rows: tuple[Floats, Floats], clusters: Clusters | None) -> Influence:
        """Return what queries and documents contribute to one run's answer."""
        return influence_of_ratio(
            self.estimand,
            rows,
            clusters,
            numbers=numbers_of(self.columns.mask, self.columns.distinct),
            distinct=self.columns.distinct,
            is_centred=not self.twins,
        )

    def change(self, new: float, old: float, inference: Inference, **fields: float) -> Change:
        """Return the change from the old to the new answer; its p is corrected later.

        `inference` is the interval and p of new − old. `fields` are further fields of `Change`.
        """
        queries = self.columns.queries
        excluded = len(self.columns.mask) - queries
        return Change(
            run=self.run,
            estimand=self.estimand,
            a=self.a,
            b=self.b,
            value=new - old,
            low=inference.low,
            high=inference.high,
            error=inference.error,
            p=inference.p,
            p_corrected=np.nan,
            queries=queries,
            excluded=excluded,
            dropped=inference.dropped,
            twins=self.twins,
            details=dict(self.details),
            old_run=self.old_run,
            new=new,
            old=old,
            **fields,  # type: ignore[arg-type]
        )


def contrast_task(
    new: Sample, old: Sample, neutral_values: tuple[float, float] = (0.0, 0.0)
) -> ChangeTask:
    """Pair two runs' answers to one question, over the queries that count for both.

    `neutral_values` are those of the new and the old answer.
    """
    columns_of_runs = [
        np.where(sample.mask, (sample.numerator, sample.denominator), np.nan)
        for sample in (new, old)
    ]
    # New numerator, old numerator, new denominator, old denominator.
    columns = np.stack(columns_of_runs, axis=1).reshape(4, -1)
    return ChangeTask(
        run=new.run,
        old_run=old.run,
        estimand=new.estimand,
        a=new.a,
        b=new.b,
        columns=Columns(values=columns, distinct=shared_numbering([new.distinct, old.distinct])),
        clusters=(new.clusters, old.clusters),
        neutral_values=neutral_values,
        twins=new.twins and old.twins,
        details=new.details,
        is_bounded=new.is_bounded and old.is_bounded,
    )


def mean_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the mean of a measure under two runs, in percent.

    This is effectiveness, over all documents. No labels of groups are involved, so only queries
    make the difference uncertain.
    """

    def changes_over_same_queries(members: list[ChangeTask]) -> Iterator[Change]:
        columns: list[Floats] = []
        for task in members:
            columns += task.columns.sums
        sizes = members[0].columns.sizes
        *resampled_sums, resampled_sizes = resampled_means(
            [*columns, sizes], resamples=resamples, seed=seed
        )
        for index, task in enumerate(members):
            new, old = (100 * task.columns.means).tolist()
            new_sums, old_sums = task.columns.sums
            difference = new_sums - old_sums
            mean = (
                float(new_sums.sum() - old_sums.sum()) / float(sizes.sum()) if len(sizes) else 0.0
            )
            residual = difference - mean * sizes
            influence = Influence.from_queries(residual, sizes).scaled(100.0)
            resampled_new, resampled_old = resampled_sums[2 * index : 2 * index + 2]
            inference = infer(
                100 * (resampled_new / resampled_sizes - resampled_old / resampled_sizes),
                new - old,
                variance=influence.variance(),
                neutral=0.0,
                bounds=(-np.inf, np.inf),
            )
            yield task.change(new, old, inference, effective_n=influence.variance().effective_n)

    return with_shared_resamples(tasks, changes_over_same_queries)


def contrast_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare answers about two groups, such as Relative Δ, under two runs.

    Each answer combines two columns of values per query, numerator and denominator.
    """

    def changes_over_same_queries(members: list[ChangeTask]) -> Iterator[Change]:
        means = resampled([task.columns for task in members], resamples=resamples, seed=seed)
        for task, resampled_columns in zip(members, means, strict=True):
            yield _contrast_change(task, resampled_columns)

    return with_shared_resamples(tasks, changes_over_same_queries)


def _contrast_change(task: ChangeTask, resampled_columns: Floats) -> Change:
    """Infer the change of one answer, and the growth of its distance from the neutral value.

    `resampled_columns` are the means of `ChangeTask.columns` in the bootstrap, of shape
    (4, resamples).
    """
    (neutral, old_neutral), combine = task.neutral_values, task.estimand.combine
    # The first two columns are `a` of the new and the old run, the last two are `b` of both.
    values, old_values = combine(resampled_columns[:2], resampled_columns[2:])
    new, old = combine(task.columns.means[:2], task.columns.means[2:]).tolist()
    variance = task.variance()
    difference = infer(
        values - old_values,
        new - old,
        variance=variance,
        neutral=neutral - old_neutral,
        bounds=task.bounds,
    )
    growth = abs(new - neutral) - abs(old - old_neutral)
    growth_inference = infer(
        np.abs(values - neutral) - np.abs(old_values - old_neutral),
        growth,
        variance=variance,
        neutral=0.0,
        bounds=(-np.inf, np.inf),
    )
    return task.change(
        new,
        old,
        difference,
        effective_n=variance.effective_n,
        neutral_new=neutral,
        neutral_old=old_neutral,
        growth=growth,
        growth_low=growth_inference.low,
        growth_high=growth_inference.high,
        growth_error=growth_inference.error,
    )
