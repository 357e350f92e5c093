"""Relative Δ under random labels of relevant documents, and what each of these labels adds.

A *judgment* is one relevant document of one query, and a *label* is the group of a document.
``M_a`` and ``M_b`` are the values of a measure over the documents of group a and of group b. Labels
of groups that are not twins are shuffled among each query's relevant documents. *Twins* are two
versions of one document, their *origin*, a version in each group; their labels are exchanged, in
all queries alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ranktilt.auditing.judged_run import JudgedRun, deepest
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import (
    MOST_LABELS,
    DrawnLabels,
    LabelEffects,
    Shuffles,
)
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.permuted_labels import RelevantBlocks, RelevantDocuments
from ranktilt.measures.ranking import Bools, Floats, Ints, Judged
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.bootstrap import blocks
from ranktilt.statistics.permutation import exchanged_sums, shuffle_p
from ranktilt.statistics.two_way import Clusters, sums

_EXCHANGE_SEED = 7
"""Second part of the seed of exchanges; no other null distribution uses it."""


# ---- groups that are not twins ------------------------------------------------------------------


def judged_labels(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
) -> LabelEffects:
    """List what each relevant document adds to ``M_a − M_b``, compared with its query's others.

    For a document of a it is ``(y − mean y of the other documents) / ideal``, for a document of b
    the negative. ``y`` is what the document adds to its group's total: 0 if it is not retrieved.
    ``ideal`` is the total of the group's best ranking. The mean is subtracted because random labels
    exchange documents with each other: only the difference from the others matters.

    RR is not a sum over documents. It is approximated by one, and then multiplied by one factor, so
    that both groups' sums are right together.

    `groups` are the indexes of a and b, `sample` holds both groups' values of each query, and
    `origins` has the number of each document's origin, by row.
    """
    judgments = judged_run.judgments
    is_counted = np.isin(judgments.group, groups) & sample.mask[judgments.query]
    is_counted &= judgments.grade >= measure.gain_grade
    counted = np.flatnonzero(is_counted)
    query, is_first = judgments.query[counted], judgments.group[counted] == groups[0]
    query_count = len(judgments.queries)
    both = Judged(query=query, grade=judgments.grade[counted], n_queries=query_count)
    added = _added_by_judgments(judged_run, measure, is_counted, both)[counted]

    # `added` is a share of the ideal of both groups together; a group's value is divided by the
    # ideal of that group alone.
    ideal = measure.ideal(both)
    ideal_a, ideal_b = (measure.ideal(judgments.of_group(group)) for group in groups)
    scale = np.where(is_first, ideal[query] / ideal_a[query], ideal[query] / ideal_b[query])
    # For a measure that is a sum over documents, both sums are equal.
    scaled_sum = float((scale * added).sum())
    sample_sum = float((sample.numerator + sample.denominator)[sample.mask].sum())
    scale *= sample_sum / scaled_sum if scaled_sum > 0 else 1.0

    # A document's distance from the mean of the n − 1 others is n / (n − 1) times its distance from
    # the mean of all n.
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
    # Queries with equal judgments share their shuffles.
    return LabelEffects(clusters=clusters, draw_number=judgments.first_of_equal[counted])


def _added_by_judgments(
    judged_run: JudgedRun, measure: Measure, is_counted: Bools, both: Judged
) -> Floats:
    """Return what each judgment adds to its query's value, as if both groups were one group.

    `is_counted` says which judgments are of the two groups and count, and `both` are these. A
    judgment adds 0 if it does not count, or its document is not retrieved.
    """
    judgments, judgment = judged_run.judgments, judged_run.judgment
    is_relevant = judgment >= 0
    gains = np.zeros(len(judgment))
    if len(is_counted):
        counted_grade = np.where(is_counted, judgments.grade, 0.0)
        gains = np.where(is_relevant, counted_grade[judgment], 0.0)
    weight = label_weights(measure, judged_run.ranking, gains, both)
    return sums(judgment[is_relevant], weight[is_relevant], len(is_counted))


# ---- twins --------------------------------------------------------------------------------------


def relevant_clusters(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
) -> Clusters:
    """List what each retrieved relevant document of twins adds to ``M_a − M_b``.

    Its weight is its share of ``(M_a + M_b) / 2``. `groups` are the indexes of a and b, `sample`
    holds both groups' values of each query, and `origins` has the number of each document's origin,
    by row.
    """
    judgments, ranking, judgment = judged_run.judgments, judged_run.ranking, judged_run.judgment
    # Few of a list's documents are relevant, and the arrays of all entries may have millions.
    relevant = np.flatnonzero(judgment >= 0)
    group, grade = judgments.group[judgment[relevant]], judgments.grade[judgment[relevant]]
    # Twins have the same grades, so that both groups have the ideal of the first.
    judged = judgments.of_group(groups[0])
    is_first, is_second = group == groups[0], group == groups[1]
    # A linear measure gives a document the same weight whichever group it is of. In RR the weight
    # depends on which documents of its own group are ranked above, so each group is read alone.
    sides = [is_first | is_second] if measure.linear else [is_first, is_second]
    weight = np.zeros(len(relevant))
    for is_side in sides:
        gains = np.zeros(len(judgment))
        gains[relevant[is_side]] = grade[is_side]
        weight = weight + label_weights(measure, ranking, gains, judged)[relevant]
    is_counted = sample.mask[ranking.query[relevant]] & (weight > 0)
    entries, weight, is_first = relevant[is_counted], weight[is_counted], is_first[is_counted]
    origin = origins[judged_run.row[entries]]
    # Floats are added in this order, whatever the order of tied documents in the file and whichever
    # group is named first: otherwise the last digits of the error would change.
    order = np.lexsort((weight, origin, ranking.query[entries]))
    query, origin = ranking.query[entries[order]], origin[order]
    weight, is_first = weight[order], is_first[order]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.numerator + sample.denominator) / 2
    signed = np.where(is_first, weight, -weight)
    share = weight * mean[query] / total[query]
    return Clusters(query=query, origin=origin, total=signed, weight=share)


def exchange_p(
    judged_run: JudgedRun,
    measure: Measure,
    groups: tuple[int, int],
    sample: Sample,
    *,
    origins: Ints,
    options: InferenceOptions,
) -> float:
    """Return the p of ``M_a − M_b`` among its values under labels exchanged within origins.

    An origin's two labels are exchanged in all queries alike, or in none. For linear measures,
    which are sums over documents, the exchange leaves ``M_a + M_b`` as it is, so this is also the p
    of Relative Δ. `sample` and `origins` are those of `relevant_clusters`.
    """
    seed = [options.seed, _EXCHANGE_SEED]
    if measure.linear and sample.clusters is not None:
        totals = sample.clusters.origin_totals
        exchanged = exchanged_sums(totals, draws=options.resamples, seed=seed)
        return shuffle_p(float(totals.sum()), exchanged)
    twins = _RetrievedTwins.from_run(judged_run, measure, groups, sample, origins=origins)
    null = twins.exchanged_differences(draws=options.resamples, seed=seed)
    # A draw and the one that exchanges all other origins are equally likely and of opposite sign.
    return shuffle_p(twins.observed_difference, np.concatenate([null, -null]))


@dataclass(frozen=True, kw_only=True, eq=False)
class _RetrievedTwins:
    """The relevant documents of two groups of twins that a run retrieves within the cutoff.

    A document that is not retrieved adds 0 to a measure whatever its label.
    """

    relevant: RelevantBlocks
    """The documents in their tie blocks, of which measures are computed."""
    is_first: Bools
    """Whether each document is of the first group, a column of shape (n_documents, 1)."""
    origin: Ints
    """Number of each document's origin, from 0 without gaps."""

    @classmethod
    def from_run(
        cls,
        judged_run: JudgedRun,
        measure: Measure,
        groups: tuple[int, int],
        sample: Sample,
        *,
        origins: Ints,
    ) -> _RetrievedTwins:
        """Collect the documents; the parameters are those of `exchange_p`."""
        judgments = judged_run.judgments
        ranking, keep = judged_run.ranking.head(measure.cutoff)
        entry_judgment = judged_run.judgment[keep]
        is_counted = (entry_judgment >= 0) & np.isin(judgments.group[entry_judgment], groups)
        is_counted &= sample.mask[ranking.query]
        retrieved = np.unique(entry_judgment[is_counted])
        query = np.unique(judgments.query[retrieved], return_inverse=True)[1]
        pool = RelevantDocuments(query=query, grade=judgments.grade[retrieved])
        pool_position = _positions_in(retrieved, len(judgments.query))
        entry_position = pool_position[entry_judgment]
        return cls(
            relevant=RelevantBlocks.from_ranking(pool, [measure], ranking, entry_position),
            is_first=(judgments.group[retrieved] == groups[0])[:, None],
            origin=np.unique(origins[judgments.row[retrieved]], return_inverse=True)[1],
        )

    @property
    def observed_difference(self) -> float:
        """``M_a − M_b`` with the labels as they are, summed over the queries."""
        return float(_differences_by_draw(self.relevant, self.is_first.astype(np.float64))[0])

    def exchanged_differences(self, *, draws: int, seed: list[int]) -> Floats:
        """Return ``M_a − M_b`` in many draws, each with the labels of random origins exchanged.

        The measure is computed anew from the ranking in each draw.
        """
        origin_count = int(self.origin.max(initial=-1)) + 1
        rng = np.random.default_rng(seed)
        differences: list[Floats] = []
        for start, stop in blocks(draws, len(self.is_first), MOST_LABELS):
            size = origin_count, stop - start
            is_exchanged = rng.integers(0, 2, size=size, dtype=np.int8)[self.origin] == 1
            is_first_in_draw = (self.is_first != is_exchanged).astype(np.float64)
            differences.append(_differences_by_draw(self.relevant, is_first_in_draw))
        return np.concatenate(differences)


def _differences_by_draw(relevant: RelevantBlocks, is_first: Floats) -> Floats:
    """Sum ``M_a − M_b`` over the queries, draw by draw.

    `is_first` is 1 where a draw puts a document in a, and 0 where it puts it in b. Its shape is
    (n_documents, draws).
    """
    # `totals` returns a list with an array for each measure; here there is a single measure.
    [total_a], [total_b] = relevant.totals(is_first), relevant.totals(1.0 - is_first)
    difference: Floats = (total_a - total_b).sum(axis=0)
    return difference


def _positions_in(judgments: Ints, judgment_count: int) -> Ints:
    """Return a table that maps each of `judgment_count` judgments to its position in `judgments`.

    It maps judgments that are not among `judgments` to −1. The table has one more element, which is
    −1: an entry that is not relevant has the judgment −1, and NumPy reads index −1 as the last
    element.
    """
    table = np.full(judgment_count + 1, -1)
    table[judgments] = np.arange(len(judgments))
    return table


# ---- Relative Δ under shuffles ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class ShuffledRun:
    """A run and two groups, for which Relative Δ is computed under shuffled labels."""

    judged_run: JudgedRun
    """The run."""
    groups: tuple[int, int]
    """Indexes of both groups in `Groups.names`."""


def null_deltas(
    tasks: Sequence[ShuffledRun], measures: Sequence[Measure], shuffles: Shuffles
) -> Iterator[Floats]:
    """Compute Relative Δ of every measure under each shuffle, in percent.

    Yields an array of the shape (n_measures, shuffles) for each task.
    """
    for batch in shuffles.batches(len(tasks), len(measures)):
        yield from _deltas_of_batch(
            tasks[batch],
            measures,
            shuffles,
            done=batch.start / len(tasks),
            share=(batch.stop - batch.start) / len(tasks),
        )


def _deltas_of_batch(
    tasks: Sequence[ShuffledRun],
    measures: Sequence[Measure],
    shuffles: Shuffles,
    *,
    done: float,
    share: float,
) -> list[Floats]:
    """Compute Relative Δ of tasks whose results fit into memory together.

    For the progress bar, they are a `share` of the work, after a share `done` of it.
    """
    deltas_by_task = [np.empty((len(measures), shuffles.count)) for _ in tasks]
    group_indexes = sorted(set(chain.from_iterable(task.groups for task in tasks)))
    groups = {index: _Group.from_judgments(shuffles.judgments, index) for index in group_indexes}
    ranked_runs = _ranked_groups(tasks, groups, measures, deltas_by_task)
    for block, labels in shuffles.blocks("random band", done, share):
        shuffled = _ShuffledGroups.from_labels(labels, groups, measures)
        for ranked_run in ranked_runs:
            ranked_run.fill(block, shuffled)
    return deltas_by_task


@dataclass(frozen=True, kw_only=True, eq=False)
class _ShuffledGroups:
    """Which documents are in each group under a block of shuffles, by the group's index."""

    is_member: Mapping[int, Floats]
    """1 for each document of `_Group.judgment` that a shuffle puts in the group, else 0.

    Each array has the shape (n_documents, draws).
    """
    ideal: Mapping[int, Sequence[Floats]]
    """Total of the best ranking of the members, for each measure; shape (n_queries, draws)."""

    @classmethod
    def from_labels(
        cls, labels: DrawnLabels, groups: Mapping[int, _Group], measures: Sequence[Measure]
    ) -> _ShuffledGroups:
        """Read the members of each group from labels of shape (draws, n_judgments)."""
        # One copy, so that the documents of each group are read as whole rows.
        labels_of_judgment = np.ascontiguousarray(labels.T)
        is_member: dict[int, Floats] = {}
        ideal: dict[int, Sequence[Floats]] = {}
        for index, group in groups.items():
            is_member[index] = (labels_of_judgment[group.judgment] == index).astype(np.float64)
            ideal[index] = group.pool.ideal_totals(measures, is_member[index])
        return cls(is_member=is_member, ideal=ideal)


def _ranked_groups(
    tasks: Sequence[ShuffledRun],
    groups: Mapping[int, _Group],
    measures: Sequence[Measure],
    deltas_by_task: Sequence[Floats],
) -> list[_RankedGroups]:
    """Collect the tasks of each run.

    A group may be in several pairs of a run; its totals are then computed once for all of them. The
    results will be written in `deltas_by_task`.
    """
    shared_queries = {}
    for task in tasks:
        first, second = task.groups
        shared_queries[task.groups] = groups[first].shared_queries(groups[second])
    runs: dict[int, _RankedGroups] = {}
    for task, deltas in zip(tasks, deltas_by_task, strict=True):
        judged_run = task.judged_run
        ranked_run = runs.setdefault(id(judged_run), _RankedGroups(blocks={}, pairs=[]))
        for index in task.groups:
            if index not in ranked_run.blocks:
                ranked_run.blocks[index] = groups[index].retrieved(judged_run, measures)
        pair = _RankedPair(
            groups=task.groups, shared_queries=shared_queries[task.groups], deltas=deltas
        )
        ranked_run.pairs.append(pair)
    return list(runs.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankedPair:
    """Two groups of one run, for which Relative Δ is computed."""

    groups: tuple[int, int]
    """Indexes of both groups."""
    shared_queries: tuple[Ints, Ints]
    """Positions of the queries that both groups have: among the first's, and the second's."""
    deltas: Floats
    """Relative Δ of shape (n_measures, shuffles); `_RankedGroups.fill` writes it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _RankedGroups:
    """The groups of one run, and its pairs of groups."""

    blocks: dict[int, RelevantBlocks]
    """Retrieved relevant documents, by the group's index."""
    pairs: list[_RankedPair]
    """Pairs of groups for which Relative Δ is computed."""

    def fill(self, block: slice, shuffled: _ShuffledGroups) -> None:
        """Write Relative Δ of every pair under a block of shuffles in `_RankedPair.deltas`."""
        values = {
            index: _shares_of_ideal(
                retrieved.totals(shuffled.is_member[index]), shuffled.ideal[index]
            )
            for index, retrieved in self.blocks.items()
        }
        for pair in self.pairs:
            a, b = pair.groups
            queries_a, queries_b = pair.shared_queries
            pair.deltas[:, block] = _deltas_by_draw(
                values[a][:, queries_a], values[b][:, queries_b]
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    """The relevant documents that a shuffle may put in one group.

    Labels are shuffled within a query. So these are the labelled relevant documents, of any group,
    of the queries in which this group has at least one.
    """

    queries: Ints
    """The group's queries, by their position in `Judgments.queries`."""
    judgment: Ints
    """Position of each document among the judgments; query by query, the best grade first."""
    pool: RelevantDocuments
    """The documents, with queries numbered by their position in `queries`."""

    @classmethod
    def from_judgments(cls, judgments: Judgments, index: int) -> _Group:
        """Collect the relevant documents that a shuffle may put in a group."""
        has_group = np.zeros(len(judgments.queries), dtype=bool)
        has_group[judgments.query[judgments.group == index]] = True
        is_candidate = has_group[judgments.query] & (judgments.group >= 0)
        # In this order the group's best ranking takes its members as they come.
        order = np.lexsort((-judgments.grade, judgments.query))
        judgment = order[is_candidate[order]]
        queries, query = np.unique(judgments.query[judgment], return_inverse=True)
        pool = RelevantDocuments(query=query, grade=judgments.grade[judgment])
        return cls(queries=queries, judgment=judgment, pool=pool)

    def shared_queries(self, partner: _Group) -> tuple[Ints, Ints]:
        """Return the positions of the queries of both groups, in this group's and its partner's."""
        _, positions, partner_positions = np.intersect1d(
            self.queries, partner.queries, assume_unique=True, return_indices=True
        )
        return positions, partner_positions

    def retrieved(self, judged_run: JudgedRun, measures: Sequence[Measure]) -> RelevantBlocks:
        """Return which of these documents a run retrieves, and where."""
        ranking, keep = judged_run.ranking.head(deepest(measures))
        judgment_count = len(judged_run.judgments.query)
        pool_position = _positions_in(self.judgment, judgment_count)
        entry_position = pool_position[judged_run.judgment[keep]]
        return RelevantBlocks.from_ranking(self.pool, measures, ranking, entry_position)


def _shares_of_ideal(totals: Sequence[Floats], ideal_totals: Sequence[Floats]) -> Floats:
    """Divide each query's total by the total of its best ranking.

    Both are a list by measure. Returns an array of shape (n_measures, n_queries, draws); NaN if a
    shuffle leaves the group no relevant document.
    """
    total, ideal = np.stack(totals), np.stack(ideal_totals)
    with np.errstate(invalid="ignore"):
        return total / ideal


def _deltas_by_draw(a: Floats, b: Floats) -> Floats:
    """Compute Relative Δ of two groups' values; the result has the shape (n_measures, draws).

    `a` and `b` have the shape (n_measures, n_queries, draws). Only queries that both groups have
    under a shuffle count.
    """
    # NumPy adds up a single column in another order than several, and a shuffle's last digits
    # would depend on the size of its block. So a single column is computed twice.
    if a.shape[-1] == 1:
        return _deltas_by_draw(np.repeat(a, 2, axis=-1), np.repeat(b, 2, axis=-1))[:, :1]
    is_counted = ~(np.isnan(a) | np.isnan(b))
    count = np.maximum(is_counted.sum(axis=1), 1)
    mean_a = np.where(is_counted, a, 0.0).sum(axis=1) / count
    mean_b = np.where(is_counted, b, 0.0).sum(axis=1) / count
    return relative_delta(mean_a, mean_b)
