"""Relative Δ under random labels of each query's relevant documents, and what each label adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranktilt.auditing.judged_run import JudgedRun, deepest
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import LabelEffects, Shuffles
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.permuted_labels import RelevantBlocks, RelevantDocuments
from ranktilt.measures.ranking import Floats, Ints, Judged
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.permutation import exchanged_sums, shuffle_p
from ranktilt.statistics.two_way import Clusters, sums

_LABELS = 1 << 20
_SEED = 7


class ShuffledRun(NamedTuple):
    """A run whose labels are shuffled, for one pair of groups."""

    judged_run: JudgedRun
    groups: tuple[int, int]
    """Numbers of both groups."""


def null_deltas(
    tasks: Sequence[ShuffledRun], measures: Sequence[Measure], shuffles: Shuffles
) -> Iterator[Floats]:
    """Compute Relative Δ of every measure under each shuffle, in percent.

    Yields an array of the shape (n_measures, shuffles) for each task.
    """
    for part in shuffles.batches(len(tasks), len(measures)):
        share = (part.stop - part.start) / len(tasks)
        yield from _deltas(tasks[part], measures, shuffles, (part.start / len(tasks), share))


def _deltas(
    tasks: Sequence[ShuffledRun],
    measures: Sequence[Measure],
    shuffles: Shuffles,
    progress: tuple[float, float],
) -> list[Floats]:
    deltas_of = [np.empty((len(measures), shuffles.count)) for _ in tasks]
    numbers = sorted({number for _, pair in tasks for number in pair})
    groups = {number: _Group.from_judgments(shuffles.judgments, number) for number in numbers}
    shared = {(a, b): groups[a].shared(groups[b]) for _, (a, b) in tasks}
    # Groups of one run are summed once for all its pairs.
    runs: dict[int, tuple[dict[int, RelevantBlocks], list[tuple[tuple[int, int], Floats]]]] = {}
    for (judged_run, pair), deltas in zip(tasks, deltas_of, strict=True):
        held, pairs = runs.setdefault(id(judged_run), ({}, []))
        held.update({g: groups[g].held(judged_run, measures) for g in pair if g not in held})
        pairs.append((pair, deltas))
    for rows, labels in shuffles.blocks("random band", *progress):
        drawn = np.ascontiguousarray(labels.T)
        mine = {
            number: (drawn[group.place] == number).astype(np.float64)
            for number, group in groups.items()
        }
        best = {number: group.pool.best(measures, mine[number]) for number, group in groups.items()}
        for held, pairs in runs.values():
            values = {
                number: _values(ranked.totals(mine[number]), best[number])
                for number, ranked in held.items()
            }
            for (a, b), deltas in pairs:
                at_a, at_b = shared[a, b]
                deltas[:, rows] = _delta(values[a][:, at_a], values[b][:, at_b])
    return deltas_of


@dataclass(frozen=True)
class _Group:
    """The relevant documents that can be one group's: those of the queries with any of the group."""

    queries: Ints
    place: Ints
    """Number of each among the judgments."""
    pool: RelevantDocuments

    @classmethod
    def from_judgments(cls, judgments: Judgments, number: int) -> _Group:
        mine = np.zeros(len(judgments.queries), dtype=bool)
        mine[judgments.query[judgments.group == number]] = True
        order = np.lexsort((-judgments.grade, judgments.query))
        place = order[(mine[judgments.query] & (judgments.group >= 0))[order]]
        queries, query = np.unique(judgments.query[place], return_inverse=True)
        return cls(queries, place, RelevantDocuments(query, judgments.grade[place]))

    def shared(self, other: _Group) -> tuple[Ints, Ints]:
        """Places, in the queries of either group, of those that both have."""
        _, here, there = np.intersect1d(
            self.queries, other.queries, assume_unique=True, return_indices=True
        )
        return here, there

    def held(self, judged_run: JudgedRun, measures: Sequence[Measure]) -> RelevantBlocks:
        ranking, keep = judged_run.ranking.head(deepest(measures))
        number = np.full(len(judged_run.judgments.query) + 1, -1)
        number[self.place] = np.arange(len(self.place))
        return RelevantBlocks.from_ranking(
            self.pool, measures, ranking, number[judged_run.judgment[keep]]
        )


def _values(totals: Sequence[Floats], best: Sequence[Floats]) -> Floats:
    """Values of shape (measures, queries, shuffles); NaN where the group has no relevant document."""
    total, ideal = np.stack(totals), np.stack(best)
    with np.errstate(invalid="ignore"):
        return total / ideal


def _delta(a: Floats, b: Floats) -> Floats:
    if a.shape[-1] == 1:  # whose sum would add up in another order than that of several shuffles
        return _delta(np.repeat(a, 2, axis=-1), np.repeat(b, 2, axis=-1))[:, :1]
    both = ~(np.isnan(a) | np.isnan(b))
    count = np.maximum(both.sum(axis=1), 1)
    mean_a, mean_b = (np.where(both, side, 0.0).sum(axis=1) / count for side in (a, b))
    return relative_delta(mean_a, mean_b)


def relevant_clusters(
    judged_run: JudgedRun, measure: Measure, groups: tuple[int, int], sample: Sample, origins: Ints
) -> Clusters:
    """List what each relevant document of twins adds to ``M_a − M_b``.

    The weight is its share of ``(M_a + M_b) / 2``.
    """
    judgments, ranking, at = judged_run.judgments, judged_run.ranking, judged_run.judgment
    group = np.where(at >= 0, judgments.group[at], -1)
    grade = np.where(at >= 0, judgments.grade[at], -1)
    judged = judgments.of_group(groups[0])
    is_first, is_second = group == groups[0], group == groups[1]
    chosen = [is_first | is_second] if measure.linear else [is_first, is_second]
    weight = np.zeros(len(at))
    for side in chosen:
        weight = weight + label_weights(measure, ranking, np.where(side, grade, 0.0), judged)
    held = np.flatnonzero(sample.mask[ranking.query] & (weight > 0))
    origin = origins[judged_run.row[held]]
    # No sum depends on how a tie is stored, or on which side is first.
    order = np.lexsort((weight[held], origin, ranking.query[held]))
    held, origin = held[order], origin[order]
    query, weight = ranking.query[held], weight[held]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.numerator + sample.denominator) / 2
    signed = np.where(is_first[held], weight, -weight)
    return Clusters(query, origin, signed, weight * mean[query] / total[query])


def judged_labels(
    judged_run: JudgedRun, measure: Measure, groups: tuple[int, int], sample: Sample, origins: Ints
) -> LabelEffects:
    """List what each relevant document adds to ``M_a − M_b`` beyond a mean one of its query.

    ``±(y − mean y of the others)/ideal`` with y what it adds to `totals`, 0 for one that is not
    retrieved. Measures that are not sums over documents are taken as linear in the labels; a factor
    for all brings them to the scale of the means.
    """
    judgments = judged_run.judgments
    counts = np.isin(judgments.group, groups) & sample.mask[judgments.query]
    counts &= judgments.grade >= measure.grade
    held = np.flatnonzero(counts)
    query, group, n = judgments.query[held], judgments.group[held], len(judgments.queries)
    at = judged_run.judgment
    listed = at[at >= 0]
    gains = np.zeros(len(at))
    if len(counts):
        gains = np.where(at >= 0, np.where(counts, judgments.grade, 0.0)[at], 0.0)
    both = Judged(query, judgments.grade[held], n)
    weight = label_weights(measure, judged_run.ranking, gains, both)
    adds = sums(listed, weight[at >= 0], len(counts))[held]
    ideal = measure.ideal(both)
    of_group = [measure.ideal(judgments.of_group(number)) for number in groups]
    scale = np.where(group == groups[0], *(ideal[query] / each[query] for each in of_group))
    count = np.bincount(query, minlength=n)
    mean = sums(query, adds, n) / np.maximum(count, 1)
    whole = float((scale * adds).sum())
    mine = float((sample.numerator + sample.denominator)[sample.mask].sum())
    scale *= mine / whole if whole > 0 else 1.0
    # Beside the mean of the query's other documents, which is so much farther than the mean of all.
    others = count / np.maximum(count - 1, 1)
    total = np.where(group == groups[0], scale, -scale) * others[query] * (adds - mean[query])
    clusters = Clusters(query, origins[judgments.row[held]], total, scale * adds / 2)
    return LabelEffects(clusters, judgments.first_of_equal[held])


def exchange_p(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
    how: InferenceOptions,
) -> float:
    """Give the p of a tilt among those under labels exchanged within origins, in all queries alike.

    ``M_a − M_b`` is tested: its p is that of Relative Δ where ``M_a + M_b`` stays, as it does for
    linear measures.
    """
    seed = [how.seed, _SEED]
    if measure.linear and sample.clusters is not None:
        totals = sample.clusters.origin_totals
        return shuffle_p(
            float(totals.sum()), exchanged_sums(totals, draws=how.resamples, seed=seed)
        )
    judgments, (ranking, keep) = judged_run.judgments, judged_run.ranking.head(measure.cutoff)
    at = judged_run.judgment[keep]
    counts = (at >= 0) & np.isin(judgments.group[at], groups) & sample.mask[ranking.query]
    place = np.unique(at[counts])  # what is not retrieved adds 0 whatever its label
    query = np.unique(judgments.query[place], return_inverse=True)[1]
    pool = RelevantDocuments(query, judgments.grade[place])
    number = np.full(len(judgments.query) + 1, -1)
    number[place] = np.arange(len(place))
    held = RelevantBlocks.from_ranking(pool, [measure], ranking, number[at])
    first = (judgments.group[place] == groups[0])[:, None]
    origin = np.unique(origins[judgments.row[place]], return_inverse=True)[1]
    origin_count = int(origin.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    null, step = [], max(_LABELS // max(len(place), 1), 1)
    for start in range(0, how.resamples, step):
        draws = min(step, how.resamples - start)
        turned = rng.integers(0, 2, size=(origin_count, draws), dtype=np.int8)[origin] == 1
        null.append(_difference(held, (first != turned).astype(np.float64)))
    drawn = np.concatenate(null)
    observed = float(_difference(held, first.astype(np.float64))[0])
    return shuffle_p(observed, np.concatenate([drawn, -drawn]))


def _difference(held: RelevantBlocks, first: Floats) -> Floats:
    """Sum of ``M_a − M_b`` over the queries, where `first` marks the documents of `a`."""
    difference: Floats = (held.totals(first)[0] - held.totals(1.0 - first)[0]).sum(axis=0)
    return difference
