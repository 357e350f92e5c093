"""Relative Δ of twins under exchanged labels: origins, not only queries, as evidence (MEASURES, sec. 3 and 6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.band import null_deltas
from ranktilt.auditing.evaluate import Aligned
from ranktilt.auditing.tilt import Side, Statistics
from ranktilt.measures.base import Measure
from ranktilt.measures.inference import exchanged, shuffle_p
from ranktilt.measures.origins import Cells
from ranktilt.measures.relevance import LINEAR, label_weights

Floats = npt.NDArray[np.float64]
_LABELS = 1 << 24


def relevant_cells(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], side: Side, origins: pl.Series
) -> Cells:
    """List what each relevant document adds to ``M_a − M_b``, beside its share of ``(M_a + M_b) / 2``.

    Parameters
    ----------
    aligned : Aligned
        The run, ties broken as the values' were.
    measure : Measure
        What was computed.
    groups : tuple of int
        Numbers of two groups that are twins.
    side : Side
        Their per-query values.
    origins : polars.Series
        Origin of each document of the collection.

    Returns
    -------
    Cells
        Of the queries that count; the totals of a query add up to ``M_a − M_b``, the weights to ``(M_a + M_b) / 2``.
    """
    judgments, ranking, at = aligned.judgments, aligned.ranking, aligned.judgment
    group, grade = (np.where(at >= 0, numbers[at], -1) for numbers in (judgments.group, judgments.grade))
    judged = judgments.of_group(groups[0])
    every = [group == groups[0], group == groups[1]]
    chosen = [every[0] | every[1]] if measure.name in LINEAR else every
    weight = sum((label_weights(measure, ranking, np.where(one, grade, 0.0), judged) for one in chosen), np.zeros(1))
    held = np.flatnonzero(side.mask[ranking.query] & (weight > 0))
    query, weight = ranking.query[held], weight[held]
    total = np.bincount(query, weights=weight, minlength=len(side.mask))
    mean = (side.values_a + side.values_b) / 2
    origin = origins.gather(aligned.row[held]).rank("dense").to_numpy().astype(np.int64) - 1
    cells = Cells(query, origin, np.where(every[0][held], weight, -weight), weight * mean[query] / total[query])
    return cells.together(aligned.distinct)


def exchange_p(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], cells: Cells, *, origins: pl.Series, how: Statistics
) -> float:
    """Give the two-sided p of a tilt among those under labels exchanged within origins, the same way in all queries."""
    if measure.name in LINEAR:
        nets = cells.nets
        return shuffle_p(float(nets.sum()), exchanged(nets, draws=how.resamples, seed=[how.seed, 7]))
    judgments = aligned.judgments
    mine = np.flatnonzero(np.isin(judgments.group, groups))
    origin = origins.gather(judgments.row[mine]).rank("dense").to_numpy().astype(np.int64) - 1
    rng, number = np.random.default_rng([how.seed, 7]), int(origin.max(initial=-1)) + 1
    observed = judgments.group[None].astype(np.int8)
    null = [null_deltas(aligned, [measure], [groups], observed)[0][0]]
    step = max(_LABELS // max(len(judgments.group), 1), 1)
    for start in range(0, how.resamples, step):
        turned = rng.integers(0, 2, size=(min(step, how.resamples - start), number), dtype=np.int8)[:, origin]
        labels = np.repeat(observed, len(turned), axis=0)
        labels[:, mine] = np.where(turned, sum(groups) - observed[:, mine], observed[:, mine])
        null.append(null_deltas(aligned, [measure], [groups], labels)[0][0])
    return shuffle_p(float(null[0][0]), np.concatenate(null[1:]))
