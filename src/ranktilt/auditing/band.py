"""The random band: what Relative Δ would be if labels meant nothing, for groups that are not twins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.evaluate import Aligned, Judgments, deepest
from ranktilt.measures.base import Measure
from ranktilt.measures.delta import relative_delta
from ranktilt.measures.relevance import Judged, Ranking, values
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SHUFFLES = 1000
_ENTRIES = 1 << 21


def enough(tests: int) -> int:
    """Shuffles for a table of so many tests: with fewer, no p could stay below .05 once corrected for them."""
    return max(SHUFFLES, 50 * tests)


def shuffled_labels(judgments: Judgments, seed: int, shuffles: int = SHUFFLES) -> npt.NDArray[np.int8]:
    """Group labels of the relevant judgments, shuffled within each query.

    Returns
    -------
    ndarray of int8, shape (shuffles, n_judgments)
        Each row gives every query as many relevant documents of each group as it has; documents without a
        group keep none.
    """
    rng = np.random.default_rng(seed)
    labels = np.empty((shuffles, len(judgments.group)), dtype=np.int8)
    labelled = np.flatnonzero(judgments.group >= 0)
    group, query = judgments.group[labelled], judgments.query[labelled]
    labels[:] = -1
    for row in labels:
        row[labelled] = group[np.argsort(query + rng.random(len(query)), kind="stable")]
    return labels


def null_deltas(
    aligned: Aligned, measures: Sequence[Measure], pairs: Sequence[tuple[int, int]], labels: npt.NDArray[np.int8]
) -> list[list[Floats]]:
    """Relative Δ of every measure under each shuffle of the labels.

    Parameters
    ----------
    aligned : Aligned
        The run.
    measures : sequence of Measure
        What to compute.
    pairs : sequence of (int, int)
        Numbers of the groups to compare.
    labels : ndarray
        As `shuffled_labels` gives them.

    Returns
    -------
    list of list of ndarray, each of shape (shuffles,)
        Per pair and measure, in percent.
    """
    ranking, keep = aligned.ranking.head(deepest(measures))
    at = aligned.judgment[keep]
    step = max(_ENTRIES // max(len(at), len(aligned.judgments.query), 1), 1)
    parts: list[list[list[Floats]]] = [[[] for _ in measures] for _ in pairs]
    groups = sorted({g for pair in pairs for g in pair})
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        tiled = _tile(ranking, len(block))
        found = {g: _tiled_values(measures, tiled, at, aligned.judgments, block == g) for g in groups}
        for (a, b), part in zip(pairs, parts, strict=True):
            for index, deltas in enumerate(part):
                deltas.append(_delta(found[a][index], found[b][index]))
        report(f"{aligned.run.name}: random band", start + len(block), len(labels))
    return [[np.concatenate(deltas) for deltas in part] for part in parts]


def _tile(ranking: Ranking, times: int) -> Ranking:
    """The same queries `times` over, side by side."""
    length = len(ranking.scores)
    offsets = (ranking.offsets[:-1] + np.arange(times)[:, None] * length).ravel()
    return Ranking(np.append(offsets, times * length), np.tile(ranking.scores, times))


def _tiled_values(
    measures: Sequence[Measure], tiled: Ranking, at: Ints, judgments: Judgments, mine: npt.NDArray[np.bool_]
) -> list[Floats]:
    """Values per measure of one group, of shape (shuffles, queries)."""
    shuffles, n = len(mine), len(judgments.queries)
    gains = np.where((at >= 0) & mine[:, at], judgments.grade[at], 0.0).ravel()
    query = (judgments.query + np.arange(shuffles)[:, None] * n)[mine]
    judged = Judged(query, np.broadcast_to(judgments.grade, mine.shape)[mine], shuffles * n)
    return [values(m, tiled, gains, judged).reshape(shuffles, n) for m in measures]


def _delta(a: Floats, b: Floats) -> Floats:
    both = ~(np.isnan(a) | np.isnan(b))
    count = np.maximum(both.sum(axis=1), 1)
    mean_a, mean_b = (np.where(both, side, 0.0).sum(axis=1) / count for side in (a, b))
    return relative_delta(mean_a, mean_b)
