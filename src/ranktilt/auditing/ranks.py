"""Who stands at which rank: groups down the list, and how soon their relevant documents are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.alignment import Aligned, Judgments
from ranktilt.auditing.groups import Groups, grouping
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.ranking import Ranking
from ranktilt.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RankShares:
    """Groups at each rank of one run, in expectation over ties.

    Parameters
    ----------
    run : str
        The run's name.
    groups : tuple of str
        Names of the groups.
    at : ndarray of float64, shape (n_groups, depth)
        Share of the documents at each rank that are of the group, in [0, 1]: the mean over the queries whose list is
        that long. A tied document stands at each rank of its block with equal chance. NaN below the longest list;
        the groups' shares add up to less than 1 where documents without a group stand.
    found : ndarray of float64, shape (n_groups, depth)
        Share of the group's relevant documents at this rank or above it, in [0, 1]: mean R@rank over the queries that
        have one, as the audit counts it. NaN where no query has one.
    level : ndarray of float64, shape (n_groups,)
        What random labels would show at every rank, in [0, 1]: each group's share among the documents that have a
        group, of what part of these lists they are.
    queries : ndarray of int64, shape (depth,)
        Queries whose list reaches each rank.
    """

    run: str
    groups: tuple[str, ...]
    at: Floats
    found: Floats
    level: Floats
    queries: Ints

    @property
    def depth(self) -> int:
        """Number of ranks."""
        return len(self.queries)


def rank_shares(collection: Collection, run: Run, audit: Audit, *, depth: int = 100) -> RankShares:
    """Count the groups at each rank of a run, and their relevant documents down to it.

    Parameters
    ----------
    collection : Collection
        The one that was audited.
    run : Run
        One of the audit's runs.
    audit : Audit
        Says what documents are grouped by, how ties are broken, and whether a query that the run lacks counts 0.
    depth : int, optional
        Ranks to look at.

    Returns
    -------
    RankShares
        Ties are averaged (MEASURES, sec. 2), or broken as trec_eval does where the audit asked for that.

    Raises
    ------
    UserError
        If `depth` is not at least 1.
    """
    if depth < 1:
        raise UserError(f"expected a depth of at least 1 rank, got {depth}")
    groups = grouping(collection, audit.spec.get("by"), audit.groups)
    aligned = Aligned.of(run, collection, Judgments.of(collection, groups))
    if audit.spec.get("ties") == "trec_eval":
        aligned = aligned.untied()
    ranking, keep = aligned.ranking.head(depth)
    spread = _Spread.of(ranking, aligned.judgments.known_query, depth)
    at, found = np.full((2, len(groups.names), depth), np.nan)
    row, judgment = aligned.row[keep], aligned.judgment[keep]
    held = (row >= 0) & (row < len(groups.code))
    group = np.where(held, groups.code[np.where(held, row, 0)], -1) if len(groups.code) else np.full(len(row), -1)
    reach = spread.reach
    for number, seen in enumerate(spread.shares(group, len(groups.names))):
        np.divide(seen, reach, out=at[number], where=reach > 0)
    counted = ~aligned.left_out(str(audit.spec.get("missing", "zero")))
    for number in range(len(groups.names)):
        found[number] = _found(aligned.judgments, number, judgment, spread, counted)
    return RankShares(run.name, groups.names, at, found, _level(groups, group[spread.counts[ranking.query]]), reach)


@dataclass(frozen=True)
class _Spread:
    """Every entry over the ranks that it may take."""

    ranking: Ranking
    block: Ints
    """Tie block of each entry."""
    rank: Ints
    """Ranks, from 0, that blocks reach: one entry a block and rank."""
    owner: Ints
    """The block of each."""
    counts: npt.NDArray[np.bool_]
    """Queries that count."""
    depth: int

    @classmethod
    def of(cls, ranking: Ranking, counts: npt.NDArray[np.bool_], depth: int) -> _Spread:
        block = np.repeat(np.arange(len(ranking.starts)), ranking.sizes)
        width = np.minimum(ranking.before + ranking.sizes, depth) - ranking.before
        owner = np.repeat(np.arange(len(width)), width)
        rank = ranking.before[owner] + np.arange(len(owner)) - (np.cumsum(width) - width)[owner]
        return cls(ranking, block, rank, owner, counts, depth)

    @property
    def reach(self) -> Ints:
        """Queries whose list reaches each rank."""
        return np.bincount(self.rank[self.counts[self.ranking.block_query[self.owner]]], minlength=self.depth)

    def shares(self, group: Ints, groups: int) -> Iterator[Floats]:
        """Give, for each group, the number of its documents at each rank."""
        for number in range(groups):
            yield self.sums(np.where(self.counts[self.ranking.query], group == number, False).astype(np.float64))

    def sums(self, weights: Floats) -> Floats:
        """Sum at each rank of the entries' weights, each spread evenly over the ranks of its block."""
        mean = np.bincount(self.block, weights=weights, minlength=len(self.ranking.sizes)) / self.ranking.sizes
        return np.bincount(self.rank, weights=mean[self.owner], minlength=self.depth).astype(np.float64)


def _found(judgments: Judgments, group: int, judgment: Ints, spread: _Spread, counted: npt.NDArray[np.bool_]) -> Floats:
    """Mean recall of a group's relevant documents down to each rank."""
    relevant = np.bincount(judgments.query[judgments.group == group], minlength=len(judgments.queries))
    counts = (relevant > 0) & counted
    if not counts.any():
        return np.full(spread.depth, np.nan)
    mine = np.zeros(len(judgment), dtype=bool)
    mine[judgment >= 0] = judgments.group[judgment[judgment >= 0]] == group
    query = spread.ranking.query
    weights = np.where(mine & counts[query], 1.0 / np.maximum(relevant, 1)[query], 0.0)
    found: Floats = np.cumsum(spread.sums(weights)) / counts.sum()
    return found


def _level(groups: Groups, listed: Ints) -> Floats:
    held = groups.code[groups.code >= 0]
    part = float((listed >= 0).mean()) if len(listed) else 1.0
    counts = np.bincount(held, minlength=len(groups.names)) * part / max(len(held), 1)
    return counts.astype(np.float64)
