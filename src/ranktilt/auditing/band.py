"""The random band: what Relative Δ would be if labels meant nothing, for groups that are not twins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.evaluate import Aligned, Judgments
from ranktilt.measures.base import Measure
from ranktilt.measures.delta import relative_delta
from ranktilt.measures.relevance import Judged, Ranking, values

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SHUFFLES = 1000
_ENTRIES = 1 << 21


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
    aligned: Aligned, measures: Sequence[Measure], pair: tuple[int, int], labels: npt.NDArray[np.int8]
) -> list[Floats]:
    """Relative Δ of every measure under each shuffle of the labels.

    Parameters
    ----------
    aligned : Aligned
        The run.
    measures : sequence of Measure
        What to compute.
    pair : tuple of int
        Numbers of the two groups.
    labels : ndarray
        As `shuffled_labels` gives them.

    Returns
    -------
    list of ndarray, each of shape (shuffles,)
        In percent.
    """
    cutoffs = [m.cutoff for m in measures]
    depth = None if None in cutoffs else max(c for c in cutoffs if c is not None)
    ranking, keep = aligned.ranking.head(depth)
    at = aligned.judgment[keep]
    judgments = aligned.judgments
    step = max(_ENTRIES // max(len(at), len(judgments.query), 1), 1)
    parts: list[list[Floats]] = [[] for _ in measures]
    for start in range(0, len(labels), step):
        block = labels[start : start + step]
        for index, m in enumerate(measures):
            sides = [_tiled(m, ranking, at, judgments, block == g) for g in pair]
            parts[index].append(_delta(*sides))
    return [np.concatenate(p) for p in parts]


def _tiled(m: Measure, ranking: Ranking, at: Ints, judgments: Judgments, mine: npt.NDArray[np.bool_]) -> Floats:
    """Values per (shuffle, query) of one group: the queries of all shuffles laid side by side."""
    shuffles, n = len(mine), len(judgments.queries)
    shift = np.arange(shuffles)[:, None]
    offsets = (ranking.offsets[:-1] + shift * len(at)).ravel()
    tiled = Ranking(np.append(offsets, shuffles * len(at)), np.tile(ranking.scores, shuffles))
    gains = (
        np.where((at >= 0) & mine[:, at], judgments.grade[at], 0.0) if len(mine[0]) else np.zeros((shuffles, len(at)))
    )
    query = (judgments.query + shift * n)[mine]
    grade = np.broadcast_to(judgments.grade, mine.shape)[mine]
    return values(m, tiled, gains.ravel(), Judged(query, grade, shuffles * n)).reshape(shuffles, n)


def _delta(a: Floats, b: Floats) -> Floats:
    both = ~(np.isnan(a) | np.isnan(b))
    count = np.maximum(both.sum(axis=1), 1)
    mean_a, mean_b = (np.where(both, side, 0.0).sum(axis=1) / count for side in (a, b))
    return relative_delta(mean_a, mean_b)
