"""Relative Δ of twins under exchanged labels: origins, not only queries, as evidence (MEASURES, sec. 3 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.band import Labels, Shuffles, null_deltas
from ranktilt.auditing.evaluate import Aligned
from ranktilt.auditing.tilt import Side, Statistics
from ranktilt.measures.base import Measure
from ranktilt.measures.inference import exchanged, shuffle_p
from ranktilt.measures.origins import Cells
from ranktilt.measures.relevance import LINEAR, label_weights

Ints = npt.NDArray[np.int64]


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
    origin = _numbered(origins, aligned.row[held])
    cells = Cells(query, origin, np.where(every[0][held], weight, -weight), weight * mean[query] / total[query])
    return cells.together(aligned.distinct)


def exchange_p(
    aligned: Aligned, measure: Measure, groups: tuple[int, int], cells: Cells, *, origins: pl.Series, how: Statistics
) -> float:
    """Give the two-sided p of a tilt among those under labels exchanged within origins, the same way in all queries."""
    if measure.name in LINEAR:
        nets = cells.nets
        return shuffle_p(float(nets.sum()), exchanged(nets, draws=how.resamples, seed=[how.seed, 7]))
    labels = Exchanges(aligned.judgments, how.seed, how.resamples, groups, origins)
    [[null]] = null_deltas([(aligned, groups)], [measure], labels)
    [[observed]] = null_deltas([(aligned, groups)], [measure], replace(labels, count=1, turned=False))
    return shuffle_p(float(observed[0]), null)


@dataclass(frozen=True)
class Exchanges(Shuffles):
    """Labels of two groups exchanged within origins, the same way in all queries.

    Parameters
    ----------
    groups : tuple of int
        Numbers of the two groups.
    origins : polars.Series
        Origin of each document of the collection.
    turned : bool, optional
        Whether labels are exchanged at all.
    """

    groups: tuple[int, int] = (0, 1)
    origins: pl.Series = field(default_factory=pl.Series)
    turned: bool = True

    def draw(self, rng: np.random.Generator, count: int) -> Labels:
        """Toss a coin for each origin, `count` times."""
        group = self.judgments.group.astype(np.int8)
        labels = np.repeat(group[None], count, axis=0)
        if not self.turned:
            return labels
        mine = np.flatnonzero(np.isin(group, self.groups))
        origin = _numbered(self.origins, self.judgments.row[mine])
        turned = rng.integers(0, 2, size=(count, int(origin.max(initial=-1)) + 1), dtype=np.int8)[:, origin]
        labels[:, mine] = np.where(turned == 1, sum(self.groups) - group[mine], group[mine])
        return labels


def _numbered(origins: pl.Series, rows: Ints) -> Ints:
    """Number the origins of some documents by name, so that the order of the documents does not matter."""
    return origins.gather(rows).rank("dense").to_numpy().astype(np.int64) - 1
