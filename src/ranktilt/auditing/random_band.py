"""What random labels would show: shuffled within queries, over a list's first ranks, or exchanged within origins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.judged_rankings import Aligned, Judgments, deepest
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.executing.memory_limits import memory_limit
from ranktilt.measures.base import GroupEstimand, Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.permuted_labels import Held, RelevantDocuments
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.progress import report
from ranktilt.statistics.bootstrap import blocks
from ranktilt.statistics.permutation import exchanged, shuffle_p
from ranktilt.statistics.two_way import Clusters

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
    """Group labels of the relevant judgments, shuffled within each query, alike where judgments are: (shuffles, n)."""
    rng = np.random.default_rng(seed)
    labels = np.full((shuffles, len(judgments.group)), -1, dtype=np.int8)
    labelled = np.flatnonzero(judgments.group >= 0)
    group, query = judgments.group[labelled].astype(np.int8), judgments.query[labelled]
    labels[:, labelled] = group[np.argsort(query + rng.random((shuffles, len(query))), axis=1, kind="stable")]
    first = judgments.first_of_equal
    return labels if (first == np.arange(len(first))).all() else labels[:, first]


@dataclass(frozen=True)
class Shuffles:
    """Shuffled labels that all runs and measures share: drawn in small blocks, each time alike, never held together."""

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
    """Relative Δ of every measure under each shuffle, in percent: an array (n_measures, shuffles) for each task."""
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
    pool: RelevantDocuments

    @classmethod
    def of(cls, judgments: Judgments, number: int) -> _Group:
        mine = np.zeros(len(judgments.queries), dtype=bool)
        mine[judgments.query[judgments.group == number]] = True
        order = np.lexsort((-judgments.grade, judgments.query))
        place = order[(mine[judgments.query] & (judgments.group >= 0))[order]]
        queries, query = np.unique(judgments.query[place], return_inverse=True)
        return cls(queries, place, RelevantDocuments(query, judgments.grade[place]))

    def shared(self, other: _Group) -> tuple[Ints, Ints]:
        """Places, in the queries of either group, of those that both have."""
        _, here, there = np.intersect1d(self.queries, other.queries, assume_unique=True, return_indices=True)
        return here, there

    def held(self, aligned: Aligned, measures: Sequence[Measure]) -> Held:
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


_CELLS = 1 << 20
_BAND = "random band of the page"


@dataclass(frozen=True)
class TopRanks:
    """The first ranks of one run, and what of them each document holds."""

    ranking: Ranking
    row: Ints
    """Row in the collection of each document on it; -1 for one that it does not hold."""
    judgment: Ints
    """Position among the relevant judgments; -1 where it is not relevant."""
    share: Floats
    known: npt.NDArray[np.bool_]
    """Queries that count."""

    @classmethod
    def of(cls, aligned: Aligned, asked: GroupEstimand, documents: int) -> TopRanks:
        """Cut a run at the estimand's cutoff for a collection of so many documents."""
        ranking, keep = aligned.ranking.head(asked.cutoff)
        weights = asked.weights(ranking)
        if weights is None:
            raise ValueError(f"{asked!r} is no difference of two groups' sums")
        row = aligned.row[keep]
        held = (np.diff(ranking.offsets) > 0) & aligned.judgments.known_query
        row = np.where(row < documents, row, -1)
        return cls(ranking, row, aligned.judgment[keep], weights, held)

    def difference(self, signs: npt.NDArray[np.int8]) -> Floats:
        """NDSR_a − NDSR_b of each query; `signs` holds 1, −1 or 0 for each document of the collection."""
        sign = np.where(self.row >= 0, signs[self.row], 0)
        return np.where(self.known, self._sum(sign == 1) - self._sum(sign == -1), 0.0)

    def clusters(self, signs: npt.NDArray[np.int8]) -> Clusters:
        """List what each document on a page adds to `difference`; in place of an origin its row."""
        held = (self.row >= 0) & self.known[self.ranking.query]
        row, share = self.row[held], self.share[held]
        return Clusters(self.ranking.query[held], row, signs[row] * share, share)

    def _sum(self, mine: npt.NDArray[np.bool_]) -> Floats:
        n = len(self.ranking.offsets) - 1
        return np.bincount(self.ranking.query, weights=np.where(mine, self.share, 0.0), minlength=n).astype(np.float64)

    def held(self, relevant: bool) -> tuple[Ints, Floats]:
        """List what relevant documents, by judgment, or the others, by row, hold of all pages together."""
        here = (self.row >= 0) & self.known[self.ranking.query] & ((self.judgment >= 0) == relevant)
        number = (self.judgment if relevant else self.row)[here]
        found = np.bincount(number, weights=self.share[here])
        held = np.flatnonzero(found)
        return held, found[held].astype(np.float64)


def share_bands(pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles) -> Iterator[Floats]:
    """Each group's mean NDSR on the first ranks of each run under random labels: (n_groups, shuffles) for each run.

    A relevant document has a label of the query's relevant ones; any other the one that a shuffle of the collection's
    labels gives it, the same in all queries and runs, because one document in many lists is one label. Labels of
    documents that are relevant to some query are shuffled apart; documents without a label keep none.
    """
    for part in shuffles.batches(len(pages), len(groups.names)):
        share = (part.stop - part.start) / len(pages) / 2
        yield from _bands(pages[part], groups, shuffles, (part.start / len(pages), share))


def _bands(
    pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles, progress: tuple[float, float]
) -> Iterator[Floats]:
    totals = [np.zeros((len(groups.names), shuffles.count)) for _ in pages]
    done, share = progress
    relevant, others = ([page.held(which) for page in pages] for which in (True, False))
    for rows, labels in shuffles.blocks(_BAND, done, share):
        for total, (place, weights) in zip(totals, relevant, strict=True):
            _count(total[:, rows], labels[:, place], weights)
    code, apart = groups.code.astype(np.int8), strata(groups, shuffles.judgments)
    parts = [[_within(stratum, *held) for held in others] for stratum in apart]
    rng = np.random.default_rng([shuffles.seed, 1])
    for start, stop in blocks(shuffles.count, len(code), _CELLS):
        for stratum, held in zip(apart, parts, strict=True):
            drawn = rng.permuted(np.broadcast_to(code[stratum], (stop - start, len(stratum))), axis=1)
            for total, (place, weights) in zip(totals, held, strict=True):
                _count(total[:, start:stop], drawn[:, place], weights)
        report(_BAND, round(shuffles.count * (done + share + share * stop / shuffles.count)), shuffles.count)
    return (total / max(int(page.known.sum()), 1) for total, page in zip(totals, pages, strict=True))


def strata(groups: Groups, judgments: Judgments) -> tuple[Ints, Ints]:
    """Rows of the labelled documents that are relevant to some query, and of the others."""
    ever = np.zeros(len(groups.code), dtype=bool)
    ever[judgments.row[judgments.row < len(ever)]] = True
    relevant, other = (np.flatnonzero(some & (groups.code >= 0)) for some in (ever, ~ever))
    return relevant, other


def _within(rows: Ints, held: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Places in `rows` of the documents that are held and among them, and what they hold."""
    _, place, mine = np.intersect1d(rows, held, assume_unique=True, return_indices=True)
    return place, weights[mine]


def _count(total: Floats, labels: npt.NDArray[np.int8], weights: Floats) -> None:
    """Add to each group what the documents with its label hold, draw by draw."""
    draws, bins = len(labels), len(total) + 1
    place = labels + (bins * np.arange(draws) + 1)[:, None]
    sums = np.bincount(place.ravel(), weights=np.tile(weights, draws), minlength=draws * bins)
    total += sums.reshape(draws, bins)[:, 1:].T


def signs_of(groups: Groups, pair: Pair) -> npt.NDArray[np.int8]:
    """1 for documents of the first group of a pair, −1 for those of the second, 0 for all others."""
    a, b = (groups.names.index(name) for name in pair)
    signs: npt.NDArray[np.int8] = (groups.code == a).astype(np.int8) - (groups.code == b).astype(np.int8)
    return signs


def share_difference(signs: npt.NDArray[np.int8]) -> float:
    """Difference of the two groups' shares of the collection."""
    return float(signs.sum(dtype=np.int64)) / max(len(signs), 1)


def all_paired(signs: npt.NDArray[np.int8], rows: Ints) -> bool:
    """Whether each document of either group has exactly one twin in the other."""
    sides = [
        np.unique(rows[:, side]).size == len(rows) == int((signs == sign).sum()) for side, sign in ((0, 1), (1, -1))
    ]
    return all(sides)


_LABELS = 1 << 20


def exchange_p(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], sample: Sample, *, origins: Ints, how: InferenceOptions
) -> float:
    """Give the two-sided p of a tilt among those under labels exchanged within origins, the same way in all queries.

    ``M_a − M_b`` is tested: its p is that of Relative Δ where ``M_a + M_b`` stays, as it does for linear measures.
    """
    seed = [how.seed, 7]
    if measure.linear and sample.clusters is not None:
        totals = sample.clusters.origin_totals
        return shuffle_p(float(totals.sum()), exchanged(totals, draws=how.resamples, seed=seed))
    judgments, (ranking, keep) = aligned.judgments, aligned.ranking.head(measure.cutoff)
    at = aligned.judgment[keep]
    counts = (at >= 0) & np.isin(judgments.group[at], groups) & sample.mask[ranking.query]
    place = np.unique(at[counts])  # what is not retrieved adds 0 whatever its label
    pool = RelevantDocuments(np.unique(judgments.query[place], return_inverse=True)[1], judgments.grade[place])
    number = np.full(len(judgments.query) + 1, -1)
    number[place] = np.arange(len(place))
    held = Held.of(pool, [measure], ranking, number[at])
    first = (judgments.group[place] == groups[0])[:, None]
    origin = np.unique(origins[judgments.row[place]], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    null, step = [], max(_LABELS // max(len(place), 1), 1)
    for start in range(0, how.resamples, step):
        draws = min(step, how.resamples - start)
        turned = rng.integers(0, 2, size=(int(origin.max(initial=-1)) + 1, draws), dtype=np.int8)[origin] == 1
        null.append(_difference(held, (first != turned).astype(np.float64)))
    found = np.concatenate(null)
    return shuffle_p(float(_difference(held, first.astype(np.float64))[0]), np.concatenate([found, -found]))


def _difference(held: Held, first: Floats) -> Floats:
    """Sum of ``M_a − M_b`` over the queries, where `first` marks the documents of `a`."""
    difference: Floats = (held.totals(first)[0] - held.totals(1.0 - first)[0]).sum(axis=0)
    return difference
