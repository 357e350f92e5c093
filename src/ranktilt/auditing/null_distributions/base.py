"""One null distribution, and the labels that are drawn for it."""

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
"""Group of each document in each draw; −1 for none."""
SHUFFLES = 1000
_ENTRIES = 1 << 18
"""Labels drawn together: what is made of them stays in the processor's cache."""
_FEWEST = 32
"""Shuffles drawn together, where memory holds them: with fewer, the cost of a step dominates."""
_BYTES = 128
"""Memory for each label drawn, at most."""
_SHARE = 4


class NullDistribution(NamedTuple):
    """The range that random labels give, and how extreme a value is in it."""

    low: float
    high: float
    """95 % of random labels lie between."""
    p: float
    """Two-sided, of the value among random labels: a check beside the p of an effect."""
    median: float = 0.0

    @classmethod
    def from_draws(cls, value: float, draws: Floats, spread: float = 1.0) -> NullDistribution:
        """Compare a value with draws, once these are widened `spread` times around their median."""
        median = float(np.nanmedian(draws)) if (~np.isnan(draws)).any() else np.nan
        wide = draws if spread == 1 else median + spread * (draws - median)
        ends = interval(wide)
        return cls(low=ends.low, high=ends.high, p=shuffle_p(value, wide), median=median)


class LabelEffects(NamedTuple):
    """What labels add beyond what any label would, and which of them are drawn together."""

    clusters: Clusters
    draw: Ints
    """Number of the draw that gives each entry its label."""

    @property
    def spread(self) -> float:
        """Factor by which random labels scatter more where a document has one label everywhere.

        ``√(Σ_origin (Σ c)² / Σ_draw (Σ c)²)`` over what entries add (c), at least 1: labels that
        are drawn apart for each list scatter as the square root of the lower sum, those of
        documents as the square root of the upper one.
        """
        total = self.clusters.total
        by_draw = float((sums(self.draw, total) ** 2).sum())
        by_origin = float((sums(self.clusters.origin, total) ** 2).sum())
        return float(np.sqrt(max(by_origin / by_draw, 1.0))) if by_draw > 0 else 1.0


def enough(tests: int) -> int:
    """Return how many shuffles a table of so many tests needs for its checks to mean anything."""
    return max(SHUFFLES, 50 * tests)


def shuffled_labels(
    judgments: Judgments, seed: int | np.random.Generator, shuffles: int = SHUFFLES
) -> DrawnLabels:
    """Shuffle the labels of each query's relevant documents, alike where judgments are alike.

    Returns an array of the shape (shuffles, n_judgments).
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
    """Shuffled labels of relevant documents, which all runs and measures share.

    They are drawn in small blocks, each time alike, and never held together.
    """

    judgments: Judgments
    seed: int
    count: int = SHUFFLES

    def blocks(
        self, label: str, done: float = 0.0, share: float = 1.0
    ) -> Iterator[tuple[slice, DrawnLabels]]:
        """Draw block by block, and report progress under `label`.

        The draws are a `share` of the work, of which the part `done` is over before.
        """
        rng = np.random.default_rng(self.seed)
        width = max(len(self.judgments.group), 1)
        affordable = memory_limit() // (_SHARE * _BYTES * width)
        step = max(_ENTRIES // width, min(_FEWEST, affordable), 1)
        for start in range(0, self.count, step):
            rows = slice(start, min(start + step, self.count))
            yield rows, shuffled_labels(self.judgments, rng, rows.stop - start)
            report(label, round(self.count * (done + share * rows.stop / self.count)), self.count)

    def batches(self, tasks: int, numbers: int) -> Iterator[slice]:
        """Cut tasks into parts whose results, `numbers` for each shuffle, fit into memory."""
        step = max(memory_limit() // _SHARE // max(8 * numbers * self.count, 1), 1)
        return (slice(start, min(start + step, tasks)) for start in range(0, tasks, step))
