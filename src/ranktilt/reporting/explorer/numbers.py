"""What each query brings to a tilt, and which queries bring the most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.breakdown import parts
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.data.run import codes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_PAIRS = 6


@dataclass(frozen=True, eq=False)
class Numbers:
    """An audit's numbers, query by query, for some of its runs."""

    pairs: tuple[Pair, ...]
    """The first pairs that were compared, at most `MOST_PAIRS`."""
    values: Floats
    """Runs × measures × (all and groups) × queries, in [0, 1]; NaN without a relevant document in the group."""
    tilt: Floats
    """Runs × pairs × measures × queries: each query's part of Relative Δ, in points; + favours the first."""
    heads: Ints
    """Runs × pairs × queries × 3: wins of the first, losses, ties; of relevant twins, of all where none are judged."""

    @classmethod
    def of(cls, audit: Audit, runs: Sequence[str]) -> Numbers:
        """Take the numbers of some runs, by name."""
        pairs = audit.pairs[:MOST_PAIRS]
        values = audit.values[[audit.runs.index(name) for name in runs]]
        tilt = np.empty((len(runs), len(pairs), len(audit.measures), len(audit.queries)))
        for number, pair in enumerate(pairs):
            a, b = (audit.groups.index(name) for name in pair)
            tilt[:, number] = parts(values[:, :, a], values[:, :, b])
        return cls(pairs, values, tilt, _heads(audit, runs, pairs))

    def order(self, place: int = 0) -> Ints:
        """Queries by their share of some run's tilt of the first pair on the measure at a place, the most first."""
        heads = self.heads[:, :1]
        pulls = np.abs(
            np.nan_to_num(self.tilt[:, :1, place])
            if self.tilt.shape[2]
            else heads[..., 0] - heads[..., 1]
        )
        total = pulls.sum(axis=-1, keepdims=True)
        shares = np.divide(pulls, total, out=np.zeros(pulls.shape), where=total > 0)
        return np.argsort(-shares.max(axis=(0, 1), initial=0.0), kind="stable")


def _heads(audit: Audit, runs: Sequence[str], pairs: Sequence[Pair]) -> Ints:
    """Wins, losses and ties of every run, pair and query."""
    out = np.zeros((len(runs), len(pairs), len(audit.queries), 3), dtype=np.int64)
    counts = audit.pair_counts.filter(pl.col("relevant")) if audit.measures else audit.pair_counts
    query = codes(counts["query"], pl.Series(audit.queries, dtype=pl.String))
    run = codes(counts["run"], pl.Series(runs, dtype=pl.String))
    numbers = counts.select("wins", "losses", "ties").to_numpy()
    for number, (a, b) in enumerate(pairs):
        mine = ((counts["a"] == a) & (counts["b"] == b)).to_numpy() & (run >= 0) & (query >= 0)
        np.add.at(out[:, number], (run[mine], query[mine]), numbers[mine])
    return out
