"""Inference: values per query become effects with intervals, tests and corrected p.

An *estimand* is a question to a ranking with a number for an answer. A *sample* is what it needs to
know of each query: two columns of numbers, numerator and denominator. Its value is
``Σ numerator / Σ denominator``, or Relative Δ of the two means. An *effect* is that value with
interval, p and details.

`effects` makes the effects of one table from its samples. All tables of audits are made by it, so
that they follow the same rules. The bootstrap draws queries, and all samples over the same queries
use the same draws, which saves time and changes no number. The change between two runs is in
`comparison.changes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.null_distributions.base import LabelEffects, NullDistribution
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import resampled_means, sum_repeats
from ranktilt.statistics.correction import correct
from ranktilt.statistics.inversion import infer
from ranktilt.statistics.permutation import sign_flip_ps, t_test_p
from ranktilt.statistics.two_way import Clusters, Influence


class ResampledTask(Protocol):
    """Values per query of one question, of one run or of two: a `Sample` or a `ChangeTask`."""

    @property
    def resampling_key(self) -> bytes:
        """Key of the queries that count; tasks with equal keys share resamples."""


Task = TypeVar("Task", bound=ResampledTask)
Answer = TypeVar("Answer")
Row = TypeVar("Row", bound=Effect)


def with_shared_resamples(
    tasks: Sequence[Task], compute: Callable[[list[Task]], Iterable[Answer]]
) -> list[Answer]:
    """Compute tasks over the same queries together, so that resamples are drawn once for all.

    `compute` gets tasks with equal keys. The answers are in the order of `tasks`.
    """
    indices_by_key: dict[bytes, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        indices_by_key[task.resampling_key].append(index)
    answers: dict[int, Answer] = {}
    for indices in indices_by_key.values():
        tasks_of_key = [tasks[index] for index in indices]
        answers.update(zip(indices, compute(tasks_of_key), strict=True))
    return [answers[index] for index in range(len(tasks))]


def resampling_key_of(mask: npt.NDArray[np.bool_], distinct: Ints | None) -> bytes:
    """Return a key of the queries that count, and of which of them repeat each other."""
    return mask.tobytes() + (b"" if distinct is None else distinct.tobytes())


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Numbers of each query behind one effect, before any statistics.

    Queries that *repeat each other* have the same text, or the same list and judgments. They are
    not independent, so the bootstrap draws them together, as one *distinct* query.
    """

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
    details: Mapping[str, float] = field(default_factory=dict)
    """Counts and means that are printed with the answer, for `Effect.details`."""
    twins: bool = True
    """Whether the groups are twins: a document of `b` is another version of one of `a`."""
    null: NullDistribution | None = None
    """Values under random labels, or under exchanged labels of twins; None if not computed."""
    clusters: Clusters | None = None
    """What each document adds to the value, for the part of the error that documents cause.

    For groups that are no twins, it is how much the value would change if the document had the mean
    label instead of its own. None if only queries make the value uncertain.
    """
    distinct: Ints | None = None
    """Number of each query; queries that repeat each other have one number. None if none does."""
    is_bounded: bool = True
    """Whether the value keeps to the estimand's bounds.

    A value that is corrected for wrong labels may lie beyond them.
    """

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

        `null` holds the value of each draw. `labels` says what each label adds. Labels are often
        drawn for each list separately, but a document has the same label in all lists; so `labels`
        also says by which factor the draws vary too little (`LabelEffects.spread`).
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
        """Return what each query and each document contributes to the error of the value."""
        return influence_of_ratio(
            self.estimand,
            self.rows,
            self.clusters,
            numbers=numbers_of(self.mask, self.distinct),
            distinct=self.distinct,
            is_centred=not self.twins,
        )

    @property
    def resampling_key(self) -> bytes:
        """Key of the queries that count; equal keys share resamples."""
        return resampling_key_of(self.mask, self.distinct)


def numbers_of(mask: npt.NDArray[np.bool_], distinct: Ints | None) -> Ints:
    """List the numbers of the distinct queries that count, in the order of `Sample.rows`.

    `mask` and `distinct` are those of `Sample`.
    """
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
    """Return what each query and each document contributes to the error of an estimand's value.

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
        Whether the totals of documents are effects of labels, minus the effect of a mean label. So
        it is for groups that are no twins; nothing more is subtracted from such totals.
    """
    numerator, denominator = rows
    # An estimand in percent is 100 times the ratio Σ total / Σ weight.
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
        Effects that are computed already, at most one for each run and pair of groups: the card
        begins with a Relative Δ. In the table each comes before all other effects of its run and
        pair, and its p is corrected together with theirs.
    primary : Estimand, optional
        The question that was chosen before the data were seen; see `correct_p_values`.
    """
    computed = with_shared_resamples(
        samples, lambda members: _effects_over_same_queries(members, options)
    )
    first_by_pair = {(effect.run, effect.a, effect.b): effect for effect in first_effects}
    ordered = []
    for effect in computed:
        first = first_by_pair.pop((effect.run, effect.a, effect.b), None)
        ordered += [effect] if first is None else [first, effect]
    # First effects of runs and pairs without a sample are left, and come last.
    return correct_p_values([*ordered, *first_by_pair.values()], options.correction, primary)


def _effects_over_same_queries(
    members: Sequence[Sample], options: InferenceOptions
) -> list[Effect]:
    """Compute the effects of samples over the same queries."""
    columns: list[Floats] = []  # numerator and denominator of each sample in turn
    differences: list[Floats] = []
    for sample in members:
        numerator, denominator = sample.rows
        columns += [numerator, denominator]
        differences.append(sample.estimand.differences(numerator, denominator))
    means = resampled_means(columns, resamples=options.resamples, seed=options.seed)
    flips = sign_flip_ps(differences, resamples=options.resamples, seed=options.seed)
    is_t_test = options.test == "t"
    computed = []
    for index, sample in enumerate(members):
        numerator_means, denominator_means = means[2 * index], means[2 * index + 1]
        resampled = sample.estimand.combine(numerator_means, denominator_means)
        checks = {"sign flips": flips[index]} if sample.twins else {}
        t_p = t_test_p(differences[index]) if sample.twins and is_t_test else None
        effect = _effect(sample, resampled, checks=checks, t_p=t_p, rounding=options.rounding)
        computed.append(effect)
    return computed


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
        test_name = "exchanged labels" if sample.twins else "shuffled labels"
        checks = {**checks, test_name: null.p}
        if not estimand.sided:
            # An answer about all groups together has no neutral value that an interval could
            # exclude. It can only be compared with the answers of random lists.
            p = null.p
    elif not sample.twins:
        # The mean of a measure by itself (`mean_sample`): no value of it is neutral.
        p = np.nan
    queries = int(mask.sum())
    is_defined = queries > 0 and not np.isnan(value)
    details = {**estimand.means(sample.numerator, sample.denominator), **sample.details}
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
