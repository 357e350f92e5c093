"""Relative Δ under random labels, which are shuffled among each query's relevant documents.

A *judgment* is one relevant document of one query, and a *label* is the group of a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ranktilt.auditing.judged_run import JudgedRun, deepest
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import DrawnLabels, Shuffles
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.permuted_labels import RelevantBlocks, RelevantDocuments
from ranktilt.measures.ranking import Floats, Ints


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
    """Members of each group under a block of shuffles, by the group's index."""

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
    """Collect the tasks of each run, so that each of its groups is summed once for all pairs.

    The results will be written in `deltas_by_task`.
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
            index: _values(retrieved.totals(shuffled.is_member[index]), shuffled.ideal[index])
            for index, retrieved in self.blocks.items()
        }
        for pair in self.pairs:
            a, b = pair.groups
            queries_a, queries_b = pair.shared_queries
            pair.deltas[:, block] = _delta(values[a][:, queries_a], values[b][:, queries_b])


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
        pool_position = positions_in(self.judgment, judgment_count)
        entry_position = pool_position[judged_run.judgment[keep]]
        return RelevantBlocks.from_ranking(self.pool, measures, ranking, entry_position)


def positions_in(judgments: Ints, judgment_count: int) -> Ints:
    """Return a table that maps each of `judgment_count` judgments to its position in `judgments`.

    It maps judgments that are not among `judgments` to −1. The table has one more element, which is
    −1: an entry that is not relevant has the judgment −1, and NumPy reads index −1 as the last
    element.
    """
    table = np.full(judgment_count + 1, -1)
    table[judgments] = np.arange(len(judgments))
    return table


def _values(totals: Sequence[Floats], ideal_totals: Sequence[Floats]) -> Floats:
    """Divide each query's total by the total of its best ranking.

    Both are a list by measure. Returns an array of shape (n_measures, n_queries, draws); NaN if a
    shuffle leaves the group no relevant document.
    """
    total, ideal = np.stack(totals), np.stack(ideal_totals)
    with np.errstate(invalid="ignore"):
        return total / ideal


def _delta(a: Floats, b: Floats) -> Floats:
    """Compute Relative Δ of two groups' values; the result has the shape (n_measures, draws).

    `a` and `b` have the shape (n_measures, n_queries, draws). Only queries that both groups have
    under a shuffle count.
    """
    # NumPy adds up a single column in another order than several, and a shuffle's last digits
    # would depend on the size of its block. So a single column is computed twice.
    if a.shape[-1] == 1:
        return _delta(np.repeat(a, 2, axis=-1), np.repeat(b, 2, axis=-1))[:, :1]
    is_counted = ~(np.isnan(a) | np.isnan(b))
    count = np.maximum(is_counted.sum(axis=1), 1)
    mean_a = np.where(is_counted, a, 0.0).sum(axis=1) / count
    mean_b = np.where(is_counted, b, 0.0).sum(axis=1) / count
    return relative_delta(mean_a, mean_b)
