"""Inference: what is computed per query becomes effects with intervals, tests and corrected p; the one place for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.effects import Change, Effect, Equivalence, Outcome
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import Interval as Spread
from ranktilt.statistics.bootstrap import in_all, interval, resampled_means, together
from ranktilt.statistics.correction import correct
from ranktilt.statistics.equivalence import smallest_margin, standard_error, t_interval, tost_p
from ranktilt.statistics.permutation import Systems, shuffle_p, sign_flip_ps, sign_test_p, swap_ps, t_test_p
from ranktilt.statistics.two_way import Clusters, Labels, widened

Task = TypeVar("Task", "Sample", "ChangeTask")
Found = TypeVar("Found")
Row = TypeVar("Row", bound=Effect)


def by_family(tasks: Sequence[Task], compute: Callable[[list[Task]], Iterable[Found]]) -> list[Found]:
    """Compute all tasks over the same queries at once, so that they share resamples; results stand in their order."""
    families: dict[bytes, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        families[task.family].append(index)
    found: dict[int, Found] = {}
    for members in families.values():
        found.update(zip(members, compute([tasks[i] for i in members]), strict=True))
    return [found[i] for i in range(len(tasks))]


@dataclass(frozen=True, eq=False)
class Columns:
    """Values (columns, queries), of which the queries count in which all are defined; `distinct`: what each repeats."""

    values: Floats
    distinct: Ints | None

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        return np.asarray(~np.isnan(self.values).any(axis=0))

    @property
    def queries(self) -> int:
        return int(self.mask.sum())

    @property
    def means(self) -> Floats:
        known = np.ascontiguousarray(self.values[:, self.mask])
        return np.array([np.mean(column) if len(column) else np.nan for column in known])

    @cached_property
    def sums(self) -> list[Floats]:
        """Each column over the distinct queries that count, summed where they repeat each other."""
        return [self._together(column) for column in self.values]

    @property
    def sizes(self) -> Floats:
        """How many queries each distinct query stands for."""
        return self._together(np.ones(len(self.mask)))

    @property
    def votes(self) -> int:
        """Distinct queries in which any of the values is above 0."""
        return int((np.sum(self.sums, axis=0) > 0).sum())

    def _together(self, column: Floats) -> Floats:
        return together(column[self.mask], None if self.distinct is None else self.distinct[self.mask])

    @property
    def family(self) -> bytes:
        return family_of(self.mask, self.distinct)


def family_of(mask: npt.NDArray[np.bool_], distinct: Ints | None) -> bytes:
    """Make a key of the queries that count and of those that they repeat."""
    return mask.tobytes() + (b"" if distinct is None else distinct.tobytes())


def resampled(members: Sequence[Columns], *, resamples: int, seed: int) -> list[Floats]:
    """Resampled means of columns over the same queries: an array of the shape (n_columns, resamples) each."""
    means = iter(resampled_means([c for one in members for c in one.sums], resamples=resamples, seed=seed))
    return [np.array([next(means) for _ in one.sums]) for one in members]


class Chance(NamedTuple):
    """What random labels give, and how far out a value lies among it."""

    low: float
    high: float
    """95 % of random labels lie between."""
    p: float
    level: float = 0.0
    """The median of random labels: half of them give more, half less."""

    @classmethod
    def of(cls, value: float, null: Floats, spread: float = 1.0) -> Chance:
        """Place a value among those under random labels, which lie `spread` times as far from their median."""
        level = float(np.nanmedian(null)) if (null == null).any() else np.nan
        wide = null if spread == 1 else level + spread * (null - level)
        band = interval(wide)
        return cls(band.low, band.high, shuffle_p(value, wide), level)


@dataclass(frozen=True)
class Sample:
    """Per-query numbers behind one effect, before any statistics.

    `one` and `two`: values of both groups for a contrast; else total and weight, of which the value is the ratio.
    `chance`: what random or exchanged labels give. `clusters`: what documents add. `distinct`: see `Aligned.distinct`.
    """

    run: str
    estimand: Estimand
    a: str
    b: str
    one: Floats
    two: Floats
    parts: Mapping[str, float] = field(default_factory=dict)
    twins: bool = True
    chance: Chance | None = None
    clusters: Clusters | None = None
    distinct: Ints | None = None

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        return self.estimand.counts(self.one, self.two)

    @property
    def value(self) -> float:
        return self.estimand.value(self.one, self.two)

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Both columns, summed over queries that repeat each other, of the queries that count."""
        mask = self.mask
        distinct = None if self.distinct is None else self.distinct[mask]
        return together(self.one[mask], distinct), together(self.two[mask], distinct)

    def among(self, null: Floats, labels: Labels | None = None) -> Sample:
        """Judge it by what random labels give; `labels`: how much further those of documents scatter."""
        spread, clusters = (1.0, None) if labels is None else (labels.spread, labels.clusters)
        return replace(self, twins=False, chance=Chance.of(self.value, null, spread), clusters=clusters)

    @property
    def family(self) -> bytes:
        return family_of(self.mask, self.distinct)


def mean_sample(run: str, of: Measure, group: str, values: Floats, distinct: Ints | None) -> Sample:
    """What lies behind the mean of per-query values, those that are defined."""
    known = ~np.isnan(values)
    total, weight = np.where(known, values, 0.0), known.astype(np.float64)
    return Sample(run, of, group, group, total, weight, twins=False, distinct=distinct)


@dataclass(frozen=True)
class InferenceOptions:
    """Resamples and sign flips, their seed, the paired test of twins, the correction, and the rounding of means."""

    resamples: int
    seed: int
    test: str
    correction: str
    rounding: str


def effects(
    samples: Sequence[Sample], how: InferenceOptions, *, beside: Iterable[Effect] = (), primary: Estimand | None = None
) -> tuple[Effect, ...]:
    """Give every sample of one table its value, interval and corrected p; those over the same queries share resamples.

    Effects `beside` are computed already and stand in the same table, each before the first sample of its run and pair.
    """
    made = by_family(samples, lambda members: _family(members, how))
    first = {(e.run, e.a, e.b): e for e in beside}
    ordered = []
    for effect in made:
        before = first.pop((effect.run, effect.a, effect.b), None)
        ordered += [effect] if before is None else [before, effect]
    return corrected([*ordered, *first.values()], how.correction, primary)


def _family(members: Sequence[Sample], how: InferenceOptions) -> list[Effect]:
    rows = [sample.rows for sample in members]
    means = resampled_means([column for pair in rows for column in pair], resamples=how.resamples, seed=how.seed)
    ps = _paired_ps(members, rows, how)
    found = []
    for place, (sample, pair) in enumerate(zip(members, rows, strict=True)):
        resampled = sample.estimand.combine(means[2 * place], means[2 * place + 1])
        found.append(_effect(sample, pair, resampled, ps[place], how.rounding))
    return found


def _paired_ps(members: Sequence[Sample], rows: Sequence[tuple[Floats, Floats]], how: InferenceOptions) -> list[float]:
    """The p over queries of each sample of twins; NaN for the others."""
    differences = {
        i: s.estimand.differences(*pair) for i, (s, pair) in enumerate(zip(members, rows, strict=True)) if s.twins
    }
    tests = {i: members[i].estimand.paired_test for i in differences}
    flipped = [i for i in differences if tests[i] == "sign flips" or (tests[i] == "by option" and how.test != "t")]
    signs = sign_flip_ps([differences[i] for i in flipped], resamples=how.resamples, seed=how.seed)
    ps = dict.fromkeys(range(len(members)), np.nan) | dict(zip(flipped, signs, strict=True))
    for i in differences.keys() - set(flipped):
        up, down = int((differences[i] > 0).sum()), int((differences[i] < 0).sum())
        ps[i] = sign_test_p(up, down) if tests[i] == "sign test" else t_test_p(differences[i])
    return list(ps.values())


def _effect(sample: Sample, rows: tuple[Floats, Floats], resampled: Floats, p: float, rounding: str) -> Effect:
    """One answer from the sums of its distinct queries, resampled values, and the p over queries of twins."""
    of, mask, chance = sample.estimand, sample.mask, sample.chance
    one, two = sample.one, sample.two
    value, low, high, level = of.value(one, two, rounding=rounding), 0.0, 0.0, 0.0
    if chance is not None:
        low, high = np.clip(chance[:2], *of.bounds).tolist()
        level = chance.level
        p = max(p, chance.p) if sample.twins else chance.p
    if sample.clusters is not None and len(rows[0]):
        resampled = _two_way(sample, rows, of.value(one, two), resampled)
    spread, n = interval(resampled), int(mask.sum())
    votes = int(of.informative(*rows).sum())
    if sample.clusters is not None:
        votes = min(votes, int(np.count_nonzero(np.bincount(sample.clusters.origin))))
    return Effect(
        sample.run, of, sample.a, sample.b, value, spread.low, spread.high, spread.error,
        np.nan if not n or np.isnan(value) else p, np.nan, n, len(mask) - n, spread.dropped, low, high, level,
        sample.twins, {**of.means(one, two), **sample.parts}, votes=votes,
    )  # fmt: skip


def _two_way(sample: Sample, rows: tuple[Floats, Floats], value: float, resampled: Floats) -> Floats:
    """Widen resampled values by what documents add to their variance."""
    if sample.clusters is None or value != value:
        return resampled
    of, level = sample.estimand, 0.0 if sample.twins or sample.chance is None else sample.chance.level
    beyond = sample.clusters.variance((value - level) / of.per_ratio)
    return np.clip(widened(resampled, value, of.residuals(*rows, value / of.per_ratio), beyond), *of.bounds)


def corrected(found: Sequence[Row], correction: str, primary: Estimand | None = None) -> tuple[Row, ...]:
    """Correct the p of all effects of one table together; those that only describe keep their own.

    Answers to the `primary` question, which was chosen before the data were seen, are a family of their own.
    """
    rows = [replace(e, p_corrected=e.p, tests=1) for e in found]
    families: dict[bool, list[int]] = {True: [], False: []}
    for place, e in enumerate(found):
        if not e.estimand.descriptive:
            families[primary is not None and e.measure == repr(primary)].append(place)
    for places in families.values():
        family = [found[place].p for place in places]
        tests = max(sum(p == p for p in family), 1)
        for place, p in zip(places, correct(family, correction), strict=True):
            rows[place] = replace(found[place], p_corrected=float(p), tests=tests)
    return tuple(rows)


class ChangeTask(NamedTuple):
    """Per-query values of one question under a new and an old run, before any statistics."""

    run: str
    old_run: str
    estimand: Estimand
    a: str
    b: str
    columns: Columns
    """Of the new and the old run in turn: of both groups, or total and weight; means have one column of each."""
    levels: tuple[float, float] = (0.0, 0.0)
    twins: bool = True
    parts: Mapping[str, float] = MappingProxyType({})
    """Counts that the estimand tells beside it."""

    @property
    def family(self) -> bytes:
        return self.columns.family

    def change(self, new: float, old: float, spread: Spread, p: float, **more: float) -> Change:
        """Make the row, whose p is not corrected yet."""
        queries = self.columns.queries
        return Change(
            self.run, self.estimand, self.a, self.b, new - old, *spread[:3], p, np.nan, queries,
            len(self.columns.mask) - queries, spread.dropped, twins=self.twins, votes=self.columns.votes,
            parts=dict(self.parts), old_run=self.old_run, new=new, old=old, **more,  # type: ignore[arg-type]
        )  # fmt: skip


def contrast_task(new: Sample, old: Sample, levels: tuple[float, float] = (0.0, 0.0)) -> ChangeTask:
    """Hold two runs' answers to one question side by side, on the queries that count for both."""
    sides = [np.where(one.mask, (one.one, one.two), np.nan) for one in (new, old)]
    columns = Columns(np.stack(sides, axis=1).reshape(4, -1), in_all([new.distinct, old.distinct]))
    twins = new.twins and old.twins
    return ChangeTask(new.run, old.run, new.estimand, new.a, new.b, columns, levels, twins, new.parts)


def mean_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int) -> list[Change]:
    """Compare effectiveness in percent, both runs resampled together; sign flips test it."""

    def compared(members: list[ChangeTask]) -> Iterator[Change]:
        columns = [c for task in members for c in task.columns.sums]
        *sums, sizes = resampled_means([*columns, members[0].columns.sizes], resamples=resamples, seed=seed)
        differences = [new - old for new, old in zip(columns[::2], columns[1::2], strict=True)]
        ps = sign_flip_ps(differences, resamples=resamples, seed=seed)
        for task, new, old, p in zip(members, sums[::2], sums[1::2], ps, strict=True):
            now, before = (100 * task.columns.means).tolist()
            yield task.change(now, before, interval(100 * (new / sizes - old / sizes)), p)

    return by_family(tasks, compared)


def contrast_changes(tasks: Sequence[ChangeTask], *, resamples: int, seed: int, test: bool = True) -> list[Change]:
    """Compare what two columns make, such as Relative Δ; the test exchanges runs query by query."""

    def compared(members: list[ChangeTask]) -> Iterator[Change]:
        means = resampled([task.columns for task in members], resamples=resamples, seed=seed)
        sums = [(task.columns.sums, task.estimand.combine) for task in members]
        every = [Systems(new_a, new_b, old_a, old_b, of) for (new_a, old_a, new_b, old_b), of in sums]
        ps = swap_ps(every, resamples=resamples, seed=seed) if test else [np.nan] * len(every)
        for task, samples, p in zip(members, means, ps, strict=True):
            yield _contrast_change(task, samples, p)

    return by_family(tasks, compared)


def _contrast_change(task: ChangeTask, samples: Floats, p: float) -> Change:
    (level, old_level), combine = task.levels, task.estimand.combine
    values, old_values = combine(samples[:2], samples[2:])
    grown = interval(np.abs(values - level) - np.abs(old_values - old_level))
    new, old = combine(task.columns.means[:2], task.columns.means[2:]).tolist()
    return task.change(
        new, old, interval(values - old_values), p, level_new=level, level_old=old_level,
        growth=abs(new - level) - abs(old - old_level), growth_low=grown.low, growth_high=grown.high,
        growth_error=grown.error,
    )  # fmt: skip


class EquivalenceTask(NamedTuple):
    """Per-query values of one ranker and measure on each side alone; NaN where a side has nothing relevant."""

    run: str
    measure: Measure
    a: str
    b: str
    one: Floats
    two: Floats
    pairs: int
    left_out: int


def equivalence_rows(tasks: Sequence[EquivalenceTask], *, margin: float, alpha: float) -> tuple[Equivalence, ...]:
    """Test each difference by two one-sided paired t tests, and by the two-sided one, corrected by Holm over all rows.

    The p of equivalence is not corrected: that *all* rows are equivalent is a claim that each must carry, which keeps
    the level (Berger 1982).
    """
    rows = corrected([_equivalence(task, margin, alpha) for task in tasks], "holm")
    return tuple(replace(row, outcome=outcome(row.p_equivalent, row.p_corrected, alpha)) for row in rows)


def outcome(p_equivalent: float, p_different: float, alpha: float) -> Outcome:
    """Tell what two p-values show together; that no difference is shown is never equivalence."""
    if np.isnan(p_equivalent) or np.isnan(p_different):
        return "not tested"
    if p_equivalent < alpha:
        return "different within the margin" if p_different < alpha else "equivalent"
    return "different" if p_different < alpha else "inconclusive"


def _equivalence(task: EquivalenceTask, margin: float, alpha: float) -> Equivalence:
    defined = ~(np.isnan(task.one) | np.isnan(task.two))
    one, two = task.one[defined], task.two[defined]
    difference = one - two
    value, mean_a, mean_b = (float(np.mean(x)) if len(x) else np.nan for x in (difference, one, two))
    low, high = t_interval(difference)
    return Equivalence(
        task.run, task.measure, task.a, task.b, value, low, high, standard_error(difference), t_test_p(difference),
        np.nan, len(difference), int((~defined).sum()), parts={"mean_a": mean_a, "mean_b": mean_b}, margin=margin,
        p_equivalent=tost_p(difference, margin), smallest=smallest_margin(difference, alpha), pairs=task.pairs,
        left_out=task.left_out,
    )  # fmt: skip
