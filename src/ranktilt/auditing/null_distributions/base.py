"""The null distribution of one answer, and the labels that are drawn for it.

The *label* of a document is its group. The null distribution is the values that an answer has when
labels are drawn at random. Its median is the neutral value of groups that are no twins, and the
range of its middle 95 % is the *random band*. *Twins* are two versions of one document, one in each
group. An *origin* is a document with all its versions.
"""

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
"""Index of the group of each document in each draw, of shape (draws, documents); −1 for none."""
SHUFFLES = 1000
"""Fewest shuffles; `shuffle_count` asks for more if there are many tests.

The ends of the random band are then the 25th smallest and the 25th largest value.
"""
MOST_LABELS = 1 << 20
"""Most labels to draw at a time, so that memory does not grow with the number of draws."""
_LABELS_PER_BLOCK = 1 << 18
"""Labels of a block of shuffles: arrays of this size stay in the processor's cache."""
_FEWEST_SHUFFLES_PER_BLOCK = 32
"""With fewer shuffles, the overhead of a block dominates. Little memory may still force fewer."""
_BYTES_PER_LABEL = 128
"""Most bytes of memory that the arrays of a block need for each label."""
_MEMORY_PARTS = 4
"""A block of shuffles, or the results of a batch of tasks, may fill this fraction of the memory:
one part of four."""


class NullDistribution(NamedTuple):
    """The range of an answer's values under random labels, and how extreme the answer is in it."""

    low: float
    """Lower end of the random band, the range of the middle 95 % of the values."""
    high: float
    """Upper end of the random band."""
    p: float
    """Two-sided p of the answer among the values: a check of the p from the answer's interval."""
    median: float = 0.0
    """Median of the values, which is neutral for groups that are no twins."""

    @classmethod
    def from_draws(cls, value: float, draws: Floats, spread: float = 1.0) -> NullDistribution:
        """Return the null distribution of an answer and its p.

        Parameters
        ----------
        value : float
            The answer with the observed labels.
        draws : array
            Its value under each draw of random labels; NaN where undefined.
        spread : float, optional
            Factor by which the distance of each draw from the median is stretched first, as
            `LabelEffects.spread` computes it.
        """
        median = float(np.nanmedian(draws)) if (~np.isnan(draws)).any() else np.nan
        stretched = draws if spread == 1 else median + spread * (draws - median)
        band = interval(stretched)
        return cls(low=band.low, high=band.high, p=shuffle_p(value, stretched), median=median)

    @classmethod
    def without_band(cls, p: float) -> NullDistribution:
        """Return a null distribution of which only the p is known or shown.

        Its neutral value is 0, as it is for twins.
        """
        return cls(low=0.0, high=0.0, p=p)


class LabelEffects(NamedTuple):
    """What each document's label adds to an answer, and which labels are drawn together."""

    clusters: Clusters
    """Effect of each document's label in each query, minus the effect of a mean label."""
    draw_number: Ints
    """Number of the random draw that decides the label of each row of `clusters`.

    Rows with equal numbers always get the same label. If labels are shuffled list by list, every
    row has its own number, although a document may have several rows.
    """

    @property
    def spread(self) -> float:
        """Factor by which an answer varies more if a document has one label in all lists.

        Random labels are often drawn for each list separately, although a document has the same
        label in all of them. Then the draws vary too little: what a document gains in one list by
        a random label it may lose in the next.

        With c for the totals of `clusters`, the variance of the answer is in proportion to
        ``Σ_draw (Σ c)²`` under labels drawn this way, and to ``Σ_origin (Σ c)²`` if each origin has
        one label. The factor is the square root of the second over the first, and at least 1.
        """
        total = self.clusters.total
        by_draw = float((sums(self.draw_number, total) ** 2).sum())
        by_origin = float((sums(self.clusters.origin, total) ** 2).sum())
        return float(np.sqrt(max(by_origin / by_draw, 1.0))) if by_draw > 0 else 1.0


def shuffle_count(tests: int) -> int:
    """Return how many shuffles a table with this number of tests needs.

    With n shuffles no p is below 2 / (1 + n), and a correction for several tests multiplies it by
    up to `tests`. With 50 shuffles for each test, the smallest corrected p is 2 · tests / (1 + 50 ·
    tests), which is below .05.
    """
    return max(SHUFFLES, 50 * tests)


def shuffled_labels(
    judgments: Judgments, seed: int | np.random.Generator, shuffles: int = SHUFFLES
) -> DrawnLabels:
    """Shuffle the labels of each query's relevant documents `shuffles` times.

    Queries with equal judgments have equal shuffles. Documents without a label keep none. Returns
    an array of shape (shuffles, n_judgments).
    """
    rng = np.random.default_rng(seed)
    labels = np.full((shuffles, len(judgments.group)), -1, dtype=np.int8)
    labelled = np.flatnonzero(judgments.group >= 0)
    group, query = judgments.group[labelled].astype(np.int8), judgments.query[labelled]
    # Judgments are sorted by query, and random parts are below 1: sorted keys shuffle the documents
    # within each query alone.
    keys = query + rng.random((shuffles, len(query)))
    labels[:, labelled] = group[np.argsort(keys, axis=1, kind="stable")]
    first = judgments.first_of_equal
    has_no_repeats = bool((first == np.arange(len(first))).all())
    return labels if has_no_repeats else labels[:, first]


@dataclass(frozen=True, kw_only=True)
class Shuffles:
    """Shuffled labels of relevant documents, the same for all runs and measures.

    All of them might not fit into memory, so they are drawn in small blocks, from the same seed
    each time.
    """

    judgments: Judgments
    """Judgments whose labels are shuffled."""
    seed: int
    """Random seed."""
    count: int = SHUFFLES
    """Number of shuffles."""

    def blocks(
        self, title: str, done: float = 0.0, share: float = 1.0
    ) -> Iterator[tuple[slice, DrawnLabels]]:
        """Yield the shuffled labels, block by block, and report progress.

        Each block comes with its slice of the `count` shuffles; its labels have the shape
        (shuffles of the block, n_judgments). `title` names the progress bar. All shuffles together
        are a `share` of its work, after a share `done` of it.
        """
        rng = np.random.default_rng(self.seed)
        label_count = max(len(self.judgments.group), 1)
        affordable = memory_limit() // (_MEMORY_PARTS * _BYTES_PER_LABEL * label_count)
        fewest = min(_FEWEST_SHUFFLES_PER_BLOCK, affordable)
        step = max(_LABELS_PER_BLOCK // label_count, fewest, 1)
        for start in range(0, self.count, step):
            block = slice(start, min(start + step, self.count))
            yield block, shuffled_labels(self.judgments, rng, block.stop - start)
            done_share = done + share * block.stop / self.count
            report(title, round(self.count * done_share), self.count)

    def batches(self, tasks: int, floats_per_shuffle: int) -> Iterator[slice]:
        """Cut a number of tasks into slices whose results fit into memory.

        The result of a task is `floats_per_shuffle` numbers for each shuffle.
        """
        bytes_per_task = 8 * floats_per_shuffle * self.count
        step = max(memory_limit() // _MEMORY_PARTS // max(bytes_per_task, 1), 1)
        return (slice(start, min(start + step, tasks)) for start in range(0, tasks, step))
