"""Relative Δ of twins under exchanged labels: origins, not only queries, as evidence (MEASURES, sec. 3 and 6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import Sample, Statistics
from ranktilt.auditing.evaluate import Aligned
from ranktilt.measures.base import Measure
from ranktilt.measures.relabelled import Held, Pool
from ranktilt.measures.relevance import label_weights
from ranktilt.statistics.permutation import exchanged, shuffle_p
from ranktilt.statistics.two_way import Cells

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_LABELS = 1 << 20


def relevant_cells(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], sample: Sample, origins: pl.Series
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
    sample : Sample
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
    chosen = [every[0] | every[1]] if measure.linear else every
    weight = sum((label_weights(measure, ranking, np.where(one, grade, 0.0), judged) for one in chosen), np.zeros(1))
    held = np.flatnonzero(sample.mask[ranking.query] & (weight > 0))
    origin = _numbered(origins, aligned.row[held])
    # No sum depends on how a tie is stored, or on which side is first.
    order = np.lexsort((weight[held], origin, ranking.query[held]))
    held, origin = held[order], origin[order]
    query, weight = ranking.query[held], weight[held]
    total = np.bincount(query, weights=weight, minlength=len(sample.mask))
    mean = (sample.one + sample.two) / 2
    cells = Cells(query, origin, np.where(every[0][held], weight, -weight), weight * mean[query] / total[query])
    return cells.together(aligned.distinct)


def exchange_p(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], sample: Sample, *, origins: pl.Series, how: Statistics
) -> float:
    """Give the two-sided p of a tilt among those under labels exchanged within origins, the same way in all queries.

    ``M_a − M_b`` is tested: its p is that of Relative Δ where ``M_a + M_b`` stays, as it does for linear measures.
    """
    seed = [how.seed, 7]
    if measure.linear and sample.cells is not None:
        nets = sample.cells.nets
        return shuffle_p(float(nets.sum()), exchanged(nets, draws=how.resamples, seed=seed))
    judgments, (ranking, keep) = aligned.judgments, aligned.ranking.head(measure.cutoff)
    at = aligned.judgment[keep]
    counts = (at >= 0) & np.isin(judgments.group[at], groups) & sample.mask[ranking.query]
    place = np.unique(at[counts])  # what is not retrieved adds 0 whatever its label
    pool = Pool(np.unique(judgments.query[place], return_inverse=True)[1], judgments.grade[place])
    number = np.full(len(judgments.query) + 1, -1)
    number[place] = np.arange(len(place))
    held = Held.of(pool, [measure], ranking, number[at])
    first = (judgments.group[place] == groups[0])[:, None]
    origin, rng = _numbered(origins, judgments.row[place]), np.random.default_rng(seed)
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


def _numbered(origins: pl.Series, rows: Ints) -> Ints:
    """Number the origins of some documents by name, so that the order of the documents does not matter."""
    return origins.gather(rows).rank("dense").to_numpy().astype(np.int64) - 1
