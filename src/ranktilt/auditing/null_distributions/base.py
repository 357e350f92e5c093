"""The null distribution of one answer, and the labels that are drawn for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.judgments import Judgments
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.parallel.memory_limits import memory_limit
from ranktilt.progress import report
from ranktilt.statistics.bootstrap import interval
from ranktilt.statistics.permutation import shuffle_p
from ranktilt.statistics.two_way import Clusters, sums

DrawnLabels = npt.NDArray[np.int8]
"""Index of the group of each document in each draw; −1 for none."""
SHUFFLES = 1000
"""Usual number of shuffles for a p; `enough` asks for more if there are many tests."""
_LABELS_IN_BLOCK = 1 << 18
"""Labels of a block of shuffles: arrays of this size stay in the processor's cache."""
_SHUFFLES_IN_BLOCK = 32
"""Fewest shuffles of a block, if memory allows: below, the overhead of a block dominates."""
_BYTES_A_LABEL = 128
"""Most bytes of memory that the arrays of a block need for each label."""
_MEMORY_PARTS = 4
"""A block, or a batch of results, may fill one of so many equal parts of the memory."""


class NullDistribution(NamedTuple):
    """The range that random labels give, and how extreme a value is in it."""

    low: float
    """Lower end of the random band: the range of the middle 95 % of random labels."""
    high: float
    """Upper end of the random band."""
    p: float
    """Two-sided p of the value among random labels; a check beside the p of the effect."""
    median: float = 0.0
    """Median under random labels, which is neutral for groups that are no twins."""

    @classmethod
    def from_draws(cls, value: float, draws: Floats, spread: float = 1.0) -> NullDistribution:
        """Return the distribution of draws under random labels, and the p of a value in it.

        The draws are first moved away from their median, `spread` times as far; see
        `LabelEffects.spread`.
        """
        median = float(np.nanmedian(draws)) if (~np.isnan(draws)).any() else np.nan
        wide = draws if spread == 1 else median + spread * (draws - median)
        ends = interval(wide)
        return cls(low=ends.low, high=ends.high, p=shuffle_p(value, wide), median=median)


class LabelEffects(NamedTuple):
    """What each document's label adds to an answer, and which labels are drawn together."""

    clusters: Clusters
    """Effect of each document's label in each query, minus the effect of a mean label."""
    draw: Ints
    """Number of the draw that decides each element of `clusters`; equal numbers share a draw."""

    @property
    def spread(self) -> float:
        """Factor by which random labels vary more if a document has the same label everywhere.

        ``√(Σ_origin (Σ c)² / Σ_draw (Σ c)²)`` with c what elements add, at least 1. Labels that are
        drawn for each list separately vary as the square root of the lower sum, labels of documents
        as the square root of the upper one.
        """
        total = self.clusters.total
        by_draw = float((sums(self.draw, total) ** 2).sum())
        by_origin = float((sums(self.clusters.origin, total) ** 2).sum())
        return float(np.sqrt(max(by_origin / by_draw, 1.0))) if by_draw > 0 else 1.0


def enough(tests: int) -> int:
    """Return the number of shuffles for a table with so many tests.

    With n shuffles no p is below 2 / (1 + n), and a correction multiplies it by up to `tests`: 50
    shuffles for each test leave it below 0.05.
    """
    return max(SHUFFLES, 50 * tests)


def shuffled_labels(
    judgments: Judgments, seed: int | np.random.Generator, shuffles: int = SHUFFLES
) -> DrawnLabels:
    """Shuffle the labels of each query's relevant documents.

    Queries with equal judgments have equal shuffles. Returns an array of shape (shuffles,
    n_judgments).
    """
    rng = np.random.default_rng(seed)
    labels = np.full((shuffles, len(judgments.group)), -1, dtype=np.int8)
    labelled = np.flatnonzero(judgments.group >= 0)
    group, query = judgments.group[labelled].astype(np.int8), judgments.query[labelled]
    keys = query + rng.random((shuffles, len(query)))
    labels[:, labelled] = group[np.argsort(keys, axis=1, kind="stable")]
    first = judgments.first_of_equal
    return labels if (first == np.arange(len(first))).all() else labels[:, first]


@dataclass(frozen=True, kw_only=True)
class Shuffles:
    """Shuffled labels of relevant documents, the same for all runs and measures.

    They are drawn in small blocks, the same each time, since all of them might not fit into memory.
    """

    judgments: Judgments
    """Judgments whose labels are shuffled."""
    seed: int
    """Random seed."""
    count: int = SHUFFLES
    """Number of shuffles."""

    def blocks(
        self, label: str, done: float = 0.0, share: float = 1.0
    ) -> Iterator[tuple[slice, DrawnLabels]]:
        """Yield each block of draws with its labels, and report progress under `label`.

        A block is a slice of the draws; its labels have the shape (draws, n_judgments). For the
        progress bar, the draws are a `share` of the work, and the part `done` is already done.
        """
        rng = np.random.default_rng(self.seed)
        width = max(len(self.judgments.group), 1)
        affordable = memory_limit() // (_MEMORY_PARTS * _BYTES_A_LABEL * width)
        step = max(_LABELS_IN_BLOCK // width, min(_SHUFFLES_IN_BLOCK, affordable), 1)
        for start in range(0, self.count, step):
            draws = slice(start, min(start + step, self.count))
            yield draws, shuffled_labels(self.judgments, rng, draws.stop - start)
            done_share = done + share * draws.stop / self.count
            report(label, round(self.count * done_share), self.count)

    def batches(self, tasks: int, numbers: int) -> Iterator[slice]:
        """Cut tasks into parts whose results fit into memory: `numbers` floats a shuffle."""
        bytes_a_task = 8 * numbers * self.count
        step = max(memory_limit() // _MEMORY_PARTS // max(bytes_a_task, 1), 1)
        return (slice(start, min(start + step, tasks)) for start in range(0, tasks, step))
