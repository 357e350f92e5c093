"""An audit's numbers query by query, and the order of queries by what they contribute to a tilt.

A *tilt* is how far a ranker favours one of a *pair* of groups of documents. Relative Δ is such a
tilt: the difference of the groups' means of a measure, in percent of their average. The *part* of a
query in it is what the query contributes; the parts of all queries add up to Relative Δ. *Head to
head*: which of two twins (versions of one document in two groups) ranks higher.
"""

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
"""Array of whole numbers."""
Floats = npt.NDArray[np.float64]
"""Array of floating-point numbers."""
MOST_PAIRS = 6
"""Most pairs of groups that an explorer holds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """An audit's numbers, query by query, for some of its runs."""

    pairs: tuple[Pair, ...]
    """The first pairs of groups that were compared, at most `MOST_PAIRS`."""
    values: Floats
    """Values of measures, of shape (runs, measures, all documents and groups, queries).

    From 0 to 1; NaN for a query without a relevant document in the group.
    """
    tilt: Floats
    """Parts of Relative Δ in points, of shape (runs, pairs, measures, queries).

    Positive favours the first group.
    """
    heads: Ints
    """Numbers of twins of which the first group's ranks higher, lower, and tied.

    Of shape (runs, pairs, queries, 3). These are the relevant twins, or all twins where nothing is
    judged.
    """

    @classmethod
    def from_audit(cls, audit: Audit, runs: Sequence[str]) -> Numbers:
        """Take the numbers of some runs, given by their names, from an audit."""
        pairs = audit.pairs[:MOST_PAIRS]
        values = audit.values[[audit.runs.index(run) for run in runs]]
        tilt = np.empty((len(runs), len(pairs), len(audit.measures), len(audit.queries)))
        for index, (group_a, group_b) in enumerate(pairs):
            a, b = audit.groups.index(group_a), audit.groups.index(group_b)
            tilt[:, index] = query_parts(values[:, :, a], values[:, :, b])
        heads = _head_to_head(audit, runs, pairs)
        return cls(pairs=pairs, values=values, tilt=tilt, heads=heads)

    def order(self, measure_index: int = 0) -> Ints:
        """Return the indices of queries, those that contribute most to some run's tilt first.

        A query counts by the largest share of any run's tilt on the first pair that it makes up.
        The tilt is Relative Δ on one measure or, without measures, wins minus losses of twins.
        """
        heads = self.heads[:, :1]
        sizes: Floats = np.abs(heads[..., 0] - heads[..., 1]).astype(np.float64)
        if self.tilt.shape[2]:
            sizes = np.abs(np.nan_to_num(self.tilt[:, :1, measure_index]))
        total = sizes.sum(axis=-1, keepdims=True)
        shares = np.divide(sizes, total, out=np.zeros(sizes.shape), where=total > 0)
        return np.argsort(-shares.max(axis=(0, 1), initial=0.0), kind="stable")


def _head_to_head(audit: Audit, runs: Sequence[str], pairs: Sequence[Pair]) -> Ints:
    """Return wins, losses and ties of twins, of shape (runs, pairs, queries, 3)."""
    heads = np.zeros((len(runs), len(pairs), len(audit.queries), 3), dtype=np.int64)
    counts = audit.pair_counts.filter(pl.col("relevant")) if audit.measures else audit.pair_counts
    # Codes are indices of queries and runs; −1 for one that is not here.
    query = codes(counts["query"], pl.Series(audit.queries, dtype=pl.String))
    run = codes(counts["run"], pl.Series(runs, dtype=pl.String))
    wins_losses_ties = counts.select("wins", "losses", "ties").to_numpy()
    for index, (a, b) in enumerate(pairs):
        is_of_pair = ((counts["a"] == a) & (counts["b"] == b)).to_numpy()
        is_counted = is_of_pair & (run >= 0) & (query >= 0)
        positions = (run[is_counted], query[is_counted])
        np.add.at(heads[:, index], positions, wins_losses_ties[is_counted])
    return heads
