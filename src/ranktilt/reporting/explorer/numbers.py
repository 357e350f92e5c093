"""Each query's part of a tilt, and which queries contribute the most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.breakdown import query_parts
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.data.runs.run import codes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_PAIRS = 6
"""Pairs of groups that an explorer carries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """An audit's numbers, query by query, for some of its runs."""

    pairs: tuple[Pair, ...]
    """The first pairs that were compared, at most `MOST_PAIRS`."""
    values: Floats
    """Runs × measures × (all and groups) × queries, in [0, 1].

    NaN without a relevant document in the group.
    """
    tilt: Floats
    """Runs × pairs × measures × queries: each query's part of Relative Δ, in points.

    Positive favours the first group.
    """
    heads: Ints
    """Runs × pairs × queries × 3: wins of the first, losses and ties of twins.

    These are the relevant twins, or all twins where none are judged.
    """

    @classmethod
    def from_audit(cls, audit: Audit, runs: Sequence[str]) -> Numbers:
        """Take the numbers of some runs, by name."""
        pairs = audit.pairs[:MOST_PAIRS]
        values = audit.values[[audit.runs.index(name) for name in runs]]
        tilt = np.empty((len(runs), len(pairs), len(audit.measures), len(audit.queries)))
        for number, pair in enumerate(pairs):
            a, b = (audit.groups.index(name) for name in pair)
            tilt[:, number] = query_parts(values[:, :, a], values[:, :, b])
        heads = _heads(audit, runs, pairs)
        return cls(pairs=pairs, values=values, tilt=tilt, heads=heads)

    def order(self, measure_index: int = 0) -> Ints:
        """Return the queries by their largest share of a run's tilt of the first pair, most first.

        The tilt is on one measure, or the difference of wins and losses without measures.
        """
        heads = self.heads[:, :1]
        pulls: Floats = np.abs(heads[..., 0] - heads[..., 1]).astype(np.float64)
        if self.tilt.shape[2]:
            pulls = np.abs(np.nan_to_num(self.tilt[:, :1, measure_index]))
        total = pulls.sum(axis=-1, keepdims=True)
        shares = np.divide(pulls, total, out=np.zeros(pulls.shape), where=total > 0)
        return np.argsort(-shares.max(axis=(0, 1), initial=0.0), kind="stable")


def _heads(audit: Audit, runs: Sequence[str], pairs: Sequence[Pair]) -> Ints:
    """Return wins, losses and ties of every run, pair and query."""
    heads = np.zeros((len(runs), len(pairs), len(audit.queries), 3), dtype=np.int64)
    counts = audit.pair_counts.filter(pl.col("relevant")) if audit.measures else audit.pair_counts
    query = codes(counts["query"], pl.Series(audit.queries, dtype=pl.String))
    run = codes(counts["run"], pl.Series(runs, dtype=pl.String))
    numbers = counts.select("wins", "losses", "ties").to_numpy()
    for number, (a, b) in enumerate(pairs):
        is_of_pair = ((counts["a"] == a) & (counts["b"] == b)).to_numpy()
        counted = is_of_pair & (run >= 0) & (query >= 0)
        np.add.at(heads[:, number], (run[counted], query[counted]), numbers[counted])
    return heads
