"""Inference: values per query become effects with intervals, tests and corrected p.

All inference of audits is here, so that every table follows the same rules. `effects` computes one
table from its samples; `mean_changes` and `contrast_changes` compare two runs. A *sample* holds two
columns of numbers per query, numerator and denominator, from which an estimand computes its value:
``Σ numerator / Σ denominator``, or Relative Δ of the two means. Tasks over the same queries share
bootstrap resamples: they are a *family*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.null_distributions.base import LabelEffects, NullDistribution
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import resampled_means, shared_numbering, sum_repeats
from ranktilt.statistics.correction import correct
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.permutation import sign_flip_ps, t_test_p
from ranktilt.statistics.two_way import Clusters, Influence, TwoWayVariance, combine_influences

Task = TypeVar("Task", "Sample", "ChangeTask")
Answer = TypeVar("Answer")
Row = TypeVar("Row", bound=Effect)


def by_family(
    tasks: Sequence[Task], compute: Callable[[list[Task]], Iterable[Answer]]
) -> list[Answer]:
    """Compute tasks over the same queries together, so that they share resamples.

    `compute` gets the tasks of one family. The answers are returned in the order of `tasks`.
    """
    families: dict[bytes, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        families[task.family].append(index)
    answers: dict[int, Answer] = {}
    for indices in families.values():
        family = [tasks[index] for index in indices]
        answers.update(zip(indices, compute(family), strict=True))
    return [answers[index] for index in range(len(tasks))]


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Values to compare, with a column of one value per query for each run or group.

    A query counts if all its values are defined.
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
    def family(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return family_of(self.mask, self.distinct)


def family_of(mask: npt.NDArray[np.bool_], distinct: Ints | None) -> bytes:
    """Return a key of the queries that count, and of which of them repeat each other."""
    return mask.tobytes() + (b"" if distinct is None else distinct.tobytes())


def resampled(members: Sequence[Columns], *, resamples: int, seed: int) -> list[Floats]:
    """Bootstrap the means of columns over the same queries.

    Returns an array of the shape (n_columns, resamples) for each of `members`.
    """
    sums: list[Floats] = []
    for columns in members:
        sums += columns.sums
    means = iter(resampled_means(sums, resamples=resamples, seed=seed))
    return [np.array([next(means) for _ in columns.sums]) for columns in members]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Numbers of each query behind one effect, before any statistics."""

    run: str
    """Name of the run."""
    estimand: Estimand
    """Question that is answered."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    numerator: Floats
    """Total of each query; for Relative Δ, the first group's value."""
    denominator: Floats
    """Weight of each query; for Relative Δ, the second group's value."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Further counts, for the effect's details."""
    twins: bool = True
    """Whether the groups are twins: a document of `b` is another version of one of `a`."""
    null: NullDistribution | None = None
    """Values under random labels, or under exchanged labels of twins; None if not computed."""
    clusters: Clusters | None = None
    """What each document adds to the value.

    For groups that are no twins, it is what the document's label adds beyond a mean label.
    """
    distinct: Ints | None = None
    """Number of each query; queries that repeat each other have one number. None if none does."""
    is_bounded: bool = True
    """Whether the value keeps to the estimand's bounds: False if corrected for label errors."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return self.estimand.bounds if self.is_bounded else (-np.inf, np.inf)

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which queries count."""
        return self.estimand.counts(self.numerator, self.denominator)

    @property
    def value(self) -> float:
        """The answer."""
        return self.estimand.value(self.numerator, self.denominator)

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Numerator and denominator of each distinct query that counts.

        The numbers of queries that repeat each other are summed.
        """
        mask = self.mask
        distinct = None if self.distinct is None else self.distinct[mask]
        numerator = sum_repeats(self.numerator[mask], distinct)
        return numerator, sum_repeats(self.denominator[mask], distinct)

    def with_random_labels(self, null: Floats, labels: LabelEffects | None = None) -> Sample:
        """Return the sample, of groups that are no twins, with its values under random labels.

        `null` holds the value of each draw. `labels` says what each label adds, and how much more
        the value varies if a document has the same label in all lists.
        """
        spread, clusters = (1.0, None) if labels is None else (labels.spread, labels.clusters)
        drawn = NullDistribution.from_draws(self.value, null, spread)
        return replace(self, twins=False, null=drawn, clusters=clusters)

    @property
    def neutral(self) -> float:
        """Value that favours nobody: the estimand's for twins, else the median of random labels."""
        if self.twins or self.null is None:
            return self.estimand.neutral
        return self.null.median

    def influence(self) -> Influence:
        """Return how much queries and documents contribute to the error of the value."""
        return influence_of_ratio(
            self.estimand,
            self.rows,
            self.clusters,
            numbers=numbers_of(self.mask, self.distinct),
            distinct=self.distinct,
            is_centred=not self.twins,
        )

    @property
    def family(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return family_of(self.mask, self.distinct)


def numbers_of(mask: npt.NDArray[np.bool_], distinct: Ints | None) -> Ints:
    """List the numbers of the distinct queries that count, in the order of `Sample.rows`."""
    return np.flatnonzero(mask) if distinct is None else np.unique(distinct[mask])


def influence_of_ratio(
    estimand: Estimand,
    rows: tuple[Floats, Floats],
    clusters: Clusters | None,
    *,
    numbers: Ints,
    distinct: Ints | None,
    is_centred: bool,
) -> Influence:
    """Return how much queries and documents contribute to the error of an estimand's value.

    Parameters
    ----------
    estimand : Estimand
        The question.
    rows : (array, array)
        Numerator and denominator of each distinct query that counts, as in `Sample.rows`.
    clusters : Clusters or None
        What each document adds; None if only queries make the value uncertain.
    numbers : array
        Numbers of the queries of `rows`.
    distinct : array or None
        Number of each query, as in `Sample.distinct`.
    is_centred : bool
        Whether the totals of documents are effects of labels, minus the effect of a mean label.
    """
    numerator, denominator = rows
    ratio = float(estimand.combine(numerator.sum(), denominator.sum())) / estimand.per_ratio
    residual = estimand.residuals(numerator, denominator, ratio)
    weight = estimand.denominator(numerator, denominator)
    if clusters is None:
        influence = Influence.from_queries(residual, weight)
    else:
        entries = clusters.merge_repeats(distinct).renumber_queries(numbers)
        influence = Influence.from_ratio(
            residual, weight, entries, ratio=0.0 if is_centred else ratio
        )
    return influence.scaled(estimand.per_ratio)


def mean_sample(
    run: str, measure: Measure, group: str, values: Floats, distinct: Ints | None
) -> Sample:
    """Return the sample whose value is the mean of a measure over queries.

    `values` are the measure's values per query over the documents of `group`; NaN where undefined.
    `distinct` is that of `Sample`.
    """
    is_known = ~np.isnan(values)
    return Sample(
        run=run,
        estimand=measure,
        a=group,
        b=group,
        numerator=np.where(is_known, values, 0.0),
        denominator=is_known.astype(np.float64),
        twins=False,
        distinct=distinct,
    )


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """Options of how effects get their intervals and p."""

    resamples: int
    """Number of bootstrap resamples, and of sign flips."""
    seed: int
    """Random seed."""
    test: str
    """Where the p of twins comes from.

    ``interval``: the level at which the interval first excludes the neutral value. ``t``: a paired
    t test.
    """
    correction: str
    """Correction for several tests: ``holm`` or ``bonferroni``."""
    rounding: str
    """Rounding of both means before Relative Δ: ``none``, or ``paper`` as published tables do."""


def effects(
    samples: Sequence[Sample],
    options: InferenceOptions,
    *,
    first_effects: Iterable[Effect] = (),
    primary: Estimand | None = None,
) -> tuple[Effect, ...]:
    """Give every sample of one table its value, interval and corrected p.

    Parameters
    ----------
    samples : sequence of Sample
        Values per query, in the order of the table.
    options : InferenceOptions
        Options of intervals and tests.
    first_effects : iterable of Effect, optional
        Effects that are computed already, at most one for each run and pair of groups. In the table
        each comes before all other effects of its run and pair.
    primary : Estimand, optional
        The question that was chosen before the data were seen; see `correct_p_values`.
    """
    computed = by_family(samples, lambda members: _family_effects(members, options))
    first_by_pair = {(effect.run, effect.a, effect.b): effect for effect in first_effects}
    ordered = []
    for effect in computed:
        first = first_by_pair.pop((effect.run, effect.a, effect.b), None)
        ordered += [effect] if first is None else [first, effect]
    # What is left is of runs and pairs without a sample.
    return correct_p_values([*ordered, *first_by_pair.values()], options.correction, primary)


def _family_effects(members: Sequence[Sample], options: InferenceOptions) -> list[Effect]:
    """Compute the effects of samples over the same queries."""
    columns: list[Floats] = []
    differences: list[Floats] = []
    for sample in members:
        numerator, denominator = sample.rows
        columns += [numerator, denominator]
        differences.append(sample.estimand.differences(numerator, denominator))
    means = resampled_means(columns, resamples=options.resamples, seed=options.seed)
    flips = sign_flip_ps(differences, resamples=options.resamples, seed=options.seed)
    is_t_test = options.test == "t"
    family = []
    for index, sample in enumerate(members):
        numerator_means, denominator_means = means[2 * index], means[2 * index + 1]
        resampled = sample.estimand.combine(numerator_means, denominator_means)
        checks = {"sign flips": flips[index]} if sample.twins else {}
        t_p = t_test_p(differences[index]) if sample.twins and is_t_test else None
        effect = _effect(sample, resampled, checks=checks, t_p=t_p, rounding=options.rounding)
        family.append(effect)
    return family


def _effect(
    sample: Sample,
    resampled: Floats,
    *,
    checks: Mapping[str, float],
    t_p: float | None,
    rounding: str,
) -> Effect:
    """Return the effect of a sample, whose corrected p is still to be computed.

    `resampled` are its values in the bootstrap. `checks` are further p by the name of their test.
    `t_p` is the p of a t test, which replaces that of the interval.
    """
    estimand, mask, null = sample.estimand, sample.mask, sample.null
    value = estimand.value(sample.numerator, sample.denominator, rounding=rounding)
    variance = sample.influence().variance()
    # Rounding is for the printed value; the interval is that of the exact one.
    inference = infer(
        resampled,
        estimand.value(sample.numerator, sample.denominator),
        variance=variance,
        neutral=sample.neutral,
        bounds=sample.bounds,
    )
    p = inference.p if t_p is None else t_p
    null_low, null_high, null_median = 0.0, 0.0, 0.0
    if null is not None:
        null_low, null_high = np.clip((null.low, null.high), *sample.bounds).tolist()
        null_median = null.median
        labels = "exchanged labels" if sample.twins else "shuffled labels"
        checks = {**checks, labels: null.p}
        if not estimand.sided:  # about all groups at once: nothing is neutral but random lists
            p = null.p
    elif not sample.twins:  # a mean by itself: no value of it is neutral
        p = np.nan
    queries = int(mask.sum())
    is_defined = queries > 0 and not np.isnan(value)
    details = {**estimand.means(sample.numerator, sample.denominator), **sample.parts}
    return Effect(
        run=sample.run,
        estimand=estimand,
        a=sample.a,
        b=sample.b,
        value=value,
        low=inference.low,
        high=inference.high,
        error=inference.error,
        p=p if is_defined else np.nan,
        p_corrected=np.nan,
        queries=queries,
        excluded=len(mask) - queries,
        dropped=inference.dropped,
        null_low=null_low,
        null_high=null_high,
        null_median=null_median,
        twins=sample.twins,
        details=details,
        effective_n=variance.effective_n,
        checks=checks,
    )


def correct_p_values(
    uncorrected: Sequence[Row], correction: str, primary: Estimand | None = None
) -> tuple[Row, ...]:
    """Correct the p of one table's effects for several tests.

    `correction` is ``holm`` or ``bonferroni``. Answers to the `primary` question, which was chosen
    before the data were seen, are corrected together, and all others together. Effects of
    descriptive estimands are no tests: they keep their p.
    """
    rows = [replace(effect, p_corrected=effect.p, family_size=1) for effect in uncorrected]
    primary_indices: list[int] = []
    secondary_indices: list[int] = []
    for index, effect in enumerate(uncorrected):
        if effect.estimand.descriptive:
            continue
        is_primary = primary is not None and effect.measure == repr(primary)
        (primary_indices if is_primary else secondary_indices).append(index)
    for indices in (primary_indices, secondary_indices):
        ps = [uncorrected[index].p for index in indices]
        tests = max(sum(not np.isnan(p) for p in ps), 1)
        for index, p in zip(indices, correct(ps, correction), strict=True):
            rows[index] = replace(uncorrected[index], p_corrected=float(p), family_size=tests)
    return tuple(rows)


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
    parts: Mapping[str, float] = field(default_factory=dict)
    """Further counts of the new answer, such as its number of pairs."""
    is_bounded: bool = True
    """Whether both answers keep to the estimand's bounds; see `Sample`."""
    known_variance: TwoWayVariance | None = None
    """Variance of new − old, where it does not follow from `clusters`."""

    @property
    def family(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return self.columns.family

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
            details=dict(self.parts),
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
        parts=new.parts,
        is_bounded=new.is_bounded and old.is_bounded,
    )


def mean_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare the mean of a measure under two runs, in percent; both are resampled together.

    Documents have no labels here, so only queries make a difference uncertain.
    """

    def family_changes(members: list[ChangeTask]) -> Iterator[Change]:
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

    return by_family(tasks, family_changes)


def contrast_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare answers that combine two columns, such as Relative Δ, under two runs.

    Both runs are resampled together.
    """

    def family_changes(members: list[ChangeTask]) -> Iterator[Change]:
        means = resampled([task.columns for task in members], resamples=resamples, seed=seed)
        for task, resampled_columns in zip(members, means, strict=True):
            yield _contrast_change(task, resampled_columns)

    return by_family(tasks, family_changes)


def _contrast_change(task: ChangeTask, resampled_columns: Floats) -> Change:
    """Infer the change of one answer, and the growth of its distance from the neutral value.

    `resampled_columns` are the means of `ChangeTask.columns` in the bootstrap, of shape
    (4, resamples).
    """
    (neutral, old_neutral), combine = task.neutral_values, task.estimand.combine
    # The first two columns are a of the new and the old run, the last two are b.
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
