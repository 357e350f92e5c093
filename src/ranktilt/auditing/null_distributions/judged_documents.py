"""Relative Δ under random labels of each query's relevant documents, and what each label adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

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


@dataclass(frozen=True, kw_only=True, eq=False)
class ShuffledRun:
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
    numbers = sorted(set(chain.from_iterable(task.groups for task in tasks)))
    groups = {number: _Group.from_judgments(shuffles.judgments, number) for number in numbers}
    runs = _ranked_groups(tasks, groups, measures, deltas_of)
    for rows, labels in shuffles.blocks("random band", *progress):
        drawn = np.ascontiguousarray(labels.T)
        is_member: dict[int, Floats] = {}
        ideal: dict[int, list[Floats]] = {}
        for number, group in groups.items():
            is_member[number] = (drawn[group.judgment] == number).astype(np.float64)
            ideal[number] = group.pool.best(measures, is_member[number])
        for ranked in runs:
            ranked.fill(rows, is_member, ideal)
    return deltas_of


def _ranked_groups(
    tasks: Sequence[ShuffledRun],
    groups: Mapping[int, _Group],
    measures: Sequence[Measure],
    deltas_of: Sequence[Floats],
) -> list[_RankedGroups]:
    """Put the tasks of each run together: its groups are summed once for all its pairs."""
    shared = {task.groups: groups[task.groups[0]].shared(groups[task.groups[1]]) for task in tasks}
    runs: dict[int, _RankedGroups] = {}
    for task, deltas in zip(tasks, deltas_of, strict=True):
        judged_run = task.judged_run
        ranked = runs.setdefault(id(judged_run), _RankedGroups(blocks={}, pairs=[]))
        for number in task.groups:
            if number not in ranked.blocks:
                ranked.blocks[number] = groups[number].ranked(judged_run, measures)
        ranked.pairs.append(
            _RankedPair(groups=task.groups, shared=shared[task.groups], deltas=deltas)
        )
    return list(runs.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankedPair:
    """Two groups of one run, whose Relative Δ is filled in."""

    groups: tuple[int, int]
    shared: tuple[Ints, Ints]
    """Positions of the queries of both, among the queries of either."""
    deltas: Floats
    """Relative Δ by measure and shuffle."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankedGroups:
    """The groups and pairs of groups of one run."""

    blocks: dict[int, RelevantBlocks]
    """Retrieved relevant documents, by number of the group."""
    pairs: list[_RankedPair]

    def fill(
        self,
        rows: slice,
        is_member: Mapping[int, Floats],
        ideal: Mapping[int, Sequence[Floats]],
    ) -> None:
        """Compute Relative Δ of every pair under the shuffles of these rows."""
        values = {
            number: _values(blocks.totals(is_member[number]), ideal[number])
            for number, blocks in self.blocks.items()
        }
        for pair in self.pairs:
            a, b = pair.groups
            rows_a, rows_b = pair.shared
            pair.deltas[:, rows] = _delta(values[a][:, rows_a], values[b][:, rows_b])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    """The relevant documents that can be of one group: all of the queries with any of the group."""

    queries: Ints
    judgment: Ints
    """Number of each document among the judgments."""
    pool: RelevantDocuments

    @classmethod
    def from_judgments(cls, judgments: Judgments, number: int) -> _Group:
        has_group = np.zeros(len(judgments.queries), dtype=bool)
        has_group[judgments.query[judgments.group == number]] = True
        is_candidate = has_group[judgments.query] & (judgments.group >= 0)
        order = np.lexsort((-judgments.grade, judgments.query))
        judgment = order[is_candidate[order]]
        queries, query = np.unique(judgments.query[judgment], return_inverse=True)
        pool = RelevantDocuments(query, judgments.grade[judgment])
        return cls(queries=queries, judgment=judgment, pool=pool)

    def shared(self, partner: _Group) -> tuple[Ints, Ints]:
        """Return the positions, in the queries of either group, of the queries of both."""
        _, here, there = np.intersect1d(
            self.queries, partner.queries, assume_unique=True, return_indices=True
        )
        return here, there

    def ranked(self, judged_run: JudgedRun, measures: Sequence[Measure]) -> RelevantBlocks:
        """Return which of these documents a run retrieves, and where."""
        ranking, keep = judged_run.ranking.head(deepest(measures))
        number = np.full(len(judged_run.judgments.query) + 1, -1)
        number[self.judgment] = np.arange(len(self.judgment))
        return RelevantBlocks.from_ranking(
            self.pool, measures, ranking, number[judged_run.judgment[keep]]
        )


def _values(totals: Sequence[Floats], best: Sequence[Floats]) -> Floats:
    """Divide what a group has by its ideal; NaN where it has no relevant document.

    Returns an array of the shape (n_measures, n_queries, shuffles).
    """
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
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
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
    entries = np.flatnonzero(sample.mask[ranking.query] & (weight > 0))
    origin = origins[judged_run.row[entries]]
    # No sum depends on how a tie is stored, or on which side is first.
    order = np.lexsort((weight[entries], origin, ranking.query[entries]))
    entries, origin = entries[order], origin[order]
    query, weight = ranking.query[entries], weight[entries]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.numerator + sample.denominator) / 2
    signed = np.where(is_first[entries], weight, -weight)
    share = weight * mean[query] / total[query]
    return Clusters(query=query, origin=origin, total=signed, weight=share)


def judged_labels(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
) -> LabelEffects:
    """List what each relevant document adds to ``M_a − M_b`` beyond a mean one of its query.

    ``±(y − mean y of the others)/ideal`` with y what it adds to `totals`, 0 for one that is not
    retrieved. Measures that are not sums over documents are taken as linear in the labels; a factor
    for all brings them to the scale of the means.
    """
    judgments = judged_run.judgments
    is_counted = np.isin(judgments.group, groups) & sample.mask[judgments.query]
    is_counted &= judgments.grade >= measure.grade
    counted = np.flatnonzero(is_counted)
    query, group = judgments.query[counted], judgments.group[counted]
    query_count = len(judgments.queries)
    judgment = judged_run.judgment
    is_relevant = judgment >= 0
    gains = np.zeros(len(judgment))
    if len(is_counted):
        counted_grade = np.where(is_counted, judgments.grade, 0.0)
        gains = np.where(is_relevant, counted_grade[judgment], 0.0)
    both = Judged(query, judgments.grade[counted], query_count)
    weight = label_weights(measure, judged_run.ranking, gains, both)
    added = sums(judgment[is_relevant], weight[is_relevant], len(is_counted))[counted]

    # From the ideal of both groups together to that of the document's group.
    is_first = group == groups[0]
    ideal = measure.ideal(both)
    ideal_a, ideal_b = (measure.ideal(judgments.of_group(number)) for number in groups)
    scale = np.where(is_first, ideal[query] / ideal_a[query], ideal[query] / ideal_b[query])
    scaled_sum = float((scale * added).sum())
    sample_sum = float((sample.numerator + sample.denominator)[sample.mask].sum())
    scale *= sample_sum / scaled_sum if scaled_sum > 0 else 1.0

    # From the mean of the query's *other* documents a document is farther than from that of all.
    count = np.bincount(query, minlength=query_count)
    mean = sums(query, added, query_count) / np.maximum(count, 1)
    stretch = count / np.maximum(count - 1, 1)
    total = np.where(is_first, scale, -scale) * stretch[query] * (added - mean[query])
    clusters = Clusters(
        query=query,
        origin=origins[judgments.row[counted]],
        total=total,
        weight=scale * added / 2,
    )
    return LabelEffects(clusters=clusters, draw=judgments.first_of_equal[counted])


def exchange_p(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
    options: InferenceOptions,
) -> float:
    """Return the p of a tilt among those under labels exchanged within origins.

    An origin's labels are exchanged in all queries alike.

    ``M_a − M_b`` is tested: its p is that of Relative Δ where ``M_a + M_b`` stays, as it does for
    linear measures.
    """
    seed = [options.seed, _SEED]
    if measure.linear and sample.clusters is not None:
        totals = sample.clusters.origin_totals
        exchanged = exchanged_sums(totals, draws=options.resamples, seed=seed)
        return shuffle_p(float(totals.sum()), exchanged)
    judgments = judged_run.judgments
    ranking, keep = judged_run.ranking.head(measure.cutoff)
    entry_judgment = judged_run.judgment[keep]
    is_counted = (entry_judgment >= 0) & np.isin(judgments.group[entry_judgment], groups)
    is_counted &= sample.mask[ranking.query]
    # A document that is not retrieved adds 0 whatever its label.
    retrieved = np.unique(entry_judgment[is_counted])
    query = np.unique(judgments.query[retrieved], return_inverse=True)[1]
    pool = RelevantDocuments(query, judgments.grade[retrieved])
    number = np.full(len(judgments.query) + 1, -1)
    number[retrieved] = np.arange(len(retrieved))
    blocks = RelevantBlocks.from_ranking(pool, [measure], ranking, number[entry_judgment])
    is_first = (judgments.group[retrieved] == groups[0])[:, None]
    origin = np.unique(origins[judgments.row[retrieved]], return_inverse=True)[1]
    origin_count = int(origin.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    null, step = [], max(_LABELS // max(len(retrieved), 1), 1)
    for start in range(0, options.resamples, step):
        draws = min(step, options.resamples - start)
        turned = rng.integers(0, 2, size=(origin_count, draws), dtype=np.int8)[origin] == 1
        null.append(_difference(blocks, (is_first != turned).astype(np.float64)))
    drawn = np.concatenate(null)
    observed = float(_difference(blocks, is_first.astype(np.float64))[0])
    return shuffle_p(observed, np.concatenate([drawn, -drawn]))


def _difference(blocks: RelevantBlocks, is_first: Floats) -> Floats:
    """Sum ``M_a − M_b`` over the queries, where `is_first` is 1 for documents of `a`, else 0."""
    total_a, total_b = blocks.totals(is_first)[0], blocks.totals(1.0 - is_first)[0]
    difference: Floats = (total_a - total_b).sum(axis=0)
    return difference
