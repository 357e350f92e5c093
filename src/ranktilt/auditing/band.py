"""The random band: what Relative Δ would be if labels meant nothing, for groups that are not twins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.evaluate import Aligned, Judgments, deepest
from ranktilt.executing.memory_limits import memory_limit
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.relabelled import Held, Pool
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]
Task = tuple[Aligned, tuple[int, int]]
"""A run, and the numbers of two groups."""
SHUFFLES = 1000
_ENTRIES = 1 << 18
"""Labels drawn together: what is made of them stays in the processor's cache."""
_FEWEST = 32
"""Shuffles drawn together, where the memory holds them: of fewer, what each step costs by itself is most of it."""
_BYTES = 128
"""Memory for each label drawn, at most."""
_SHARE = 4


def enough(tests: int) -> int:
    """Shuffles for a table of so many tests: with fewer, no p could stay below .05 once corrected for them."""
    return max(SHUFFLES, 50 * tests)


def shuffled_labels(judgments: Judgments, seed: int | np.random.Generator, shuffles: int = SHUFFLES) -> Labels:
    """Group labels of the relevant judgments, shuffled within each query.

    Returns
    -------
    ndarray of int8, shape (shuffles, n_judgments)
        Each row gives every query as many relevant documents of each group as it has, and the same ones to queries
        with the same judgments; documents without a group keep none.
    """
    rng = np.random.default_rng(seed)
    labels = np.full((shuffles, len(judgments.group)), -1, dtype=np.int8)
    labelled = np.flatnonzero(judgments.group >= 0)
    group, query = judgments.group[labelled].astype(np.int8), judgments.query[labelled]
    labels[:, labelled] = group[np.argsort(query + rng.random((shuffles, len(query))), axis=1, kind="stable")]
    first = judgments.first_of_equal
    return labels if (first == np.arange(len(first))).all() else labels[:, first]


@dataclass(frozen=True)
class Shuffles:
    """Shuffled labels that all runs and measures share: drawn in small blocks and never held together.

    Parameters
    ----------
    judgments : Judgments
        Whose labels.
    seed : int
        Of the draws: each time they are read, they are the same.
    count : int
        How many.
    """

    judgments: Judgments
    seed: int
    count: int = SHUFFLES

    def blocks(self, label: str, done: float = 0.0, share: float = 1.0) -> Iterator[tuple[slice, Labels]]:
        """Draw them block by block, and report under `label` that a `share` of the work is being done."""
        rng = np.random.default_rng(self.seed)
        width = max(len(self.judgments.group), 1)
        step = max(_ENTRIES // width, min(_FEWEST, memory_limit() // (_SHARE * _BYTES * width)), 1)
        for start in range(0, self.count, step):
            rows = slice(start, min(start + step, self.count))
            yield rows, shuffled_labels(self.judgments, rng, rows.stop - start)
            report(label, round(self.count * (done + share * rows.stop / self.count)), self.count)

    def batches(self, tasks: int, numbers: int) -> Iterator[slice]:
        """Cut tasks into parts whose results, so many numbers for each shuffle, are held in the memory together."""
        step = max(memory_limit() // _SHARE // max(8 * numbers * self.count, 1), 1)
        return (slice(start, min(start + step, tasks)) for start in range(0, tasks, step))


def null_deltas(tasks: Sequence[Task], measures: Sequence[Measure], shuffles: Shuffles) -> Iterator[Floats]:
    """Relative Δ of every measure under each shuffle of the labels.

    Parameters
    ----------
    tasks : sequence of (Aligned, (int, int))
        Runs, and the groups to compare on them.
    measures : sequence of Measure
        What to compute.
    shuffles : Shuffles
        The labels.

    Yields
    ------
    ndarray of float64, shape (n_measures, shuffles)
        Per task, in percent. Tasks are worked on together as far as their results fit into the
        memory.
    """
    for part in shuffles.batches(len(tasks), len(measures)):
        share = (part.stop - part.start) / len(tasks)
        yield from _deltas(tasks[part], measures, shuffles, (part.start / len(tasks), share))


def _deltas(
    tasks: Sequence[Task], measures: Sequence[Measure], shuffles: Shuffles, progress: tuple[float, float]
) -> list[Floats]:
    found = [np.empty((len(measures), shuffles.count)) for _ in tasks]
    groups = {g: _Group.of(shuffles.judgments, g) for g in sorted({g for _, pair in tasks for g in pair})}
    shared = {(a, b): groups[a].shared(groups[b]) for _, (a, b) in tasks}
    runs: dict[int, tuple[dict[int, Held], list[tuple[tuple[int, int], Floats]]]] = {}
    for (aligned, pair), deltas in zip(tasks, found, strict=True):
        held, asked = runs.setdefault(id(aligned), ({}, []))
        held.update({g: groups[g].held(aligned, measures) for g in pair if g not in held})
        asked.append((pair, deltas))
    for rows, labels in shuffles.blocks("random band", *progress):
        drawn = np.ascontiguousarray(labels.T)
        mine = {g: (drawn[group.place] == g).astype(np.float64) for g, group in groups.items()}
        best = {g: group.pool.best(measures, mine[g]) for g, group in groups.items()}
        for held, asked in runs.values():
            values = {g: _values(one.totals(mine[g]), best[g]) for g, one in held.items()}
            for (a, b), deltas in asked:
                at_a, at_b = shared[a, b]
                deltas[:, rows] = _delta(values[a][:, at_a], values[b][:, at_b])
    return found


@dataclass(frozen=True)
class _Group:
    """The relevant documents that can be one group's: those of the queries that have any of the group."""

    queries: Ints
    place: Ints
    """Number of each among the judgments."""
    pool: Pool

    @classmethod
    def of(cls, judgments: Judgments, number: int) -> _Group:
        mine = np.zeros(len(judgments.queries), dtype=bool)
        mine[judgments.query[judgments.group == number]] = True
        order = np.lexsort((-judgments.grade, judgments.query))
        place = order[(mine[judgments.query] & (judgments.group >= 0))[order]]
        queries, query = np.unique(judgments.query[place], return_inverse=True)
        return cls(queries, place, Pool(query, judgments.grade[place]))

    def shared(self, other: _Group) -> tuple[Ints, Ints]:
        """Places, in the queries of either group, of those that both have."""
        _, here, there = np.intersect1d(self.queries, other.queries, assume_unique=True, return_indices=True)
        return here, there

    def held(self, aligned: Aligned, measures: Sequence[Measure]) -> Held:
        """What a run holds of them."""
        ranking, keep = aligned.ranking.head(deepest(measures))
        number = np.full(len(aligned.judgments.query) + 1, -1)
        number[self.place] = np.arange(len(self.place))
        return Held.of(self.pool, measures, ranking, number[aligned.judgment[keep]])


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
