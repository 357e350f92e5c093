"""What an audit's numbers are made of: groups at each rank of a run, and each query's part of Relative Δ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups, grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.run import Run


@dataclass(frozen=True, eq=False)
class RankShares:
    """Groups at each rank of one run, in expectation over ties."""

    run: str
    groups: tuple[str, ...]
    at: Floats
    """Share of the group at each rank, (n_groups, depth): the mean over the queries whose list is that long, NaN below
    the longest. A tied document stands at each rank of its block with equal chance."""
    found: Floats
    """Mean R@rank of each group over the queries that have a relevant document of it; NaN where none has one."""
    level: Floats
    """What random labels would show at every rank: each group's share among the documents that have a group, of what
    part of these lists they are."""
    queries: Ints
    """Queries whose list reaches each rank."""

    @property
    def depth(self) -> int:
        return len(self.queries)


def rank_shares(collection: Collection, run: Run, audit: Audit, *, depth: int = 100) -> RankShares:
    """Count the groups at each rank of a run, and their relevant documents down to it; ties as the audit has them."""
    if depth < 1:
        raise UserError(f"expected a depth of at least 1 rank, got {depth}")
    groups, aligned, spread, keep = _lists(collection, run, audit, depth)
    at, found = np.full((2, len(groups.names), depth), np.nan)
    group, judgment = aligned.group_codes(groups)[keep], aligned.judgment[keep]
    reach = spread.reach
    for number, seen in enumerate(spread.shares(group, len(groups.names))):
        np.divide(seen, reach, out=at[number], where=reach > 0)
    counted = ~aligned.left_out(str(audit.spec["missing"]))
    for number in range(len(groups.names)):
        found[number] = _found(aligned.judgments, number, judgment, spread, counted)
    level = _level(groups, group[spread.counts[spread.ranking.query]])
    return RankShares(run.name, groups.names, at, found, level, reach)


def _lists(
    collection: Collection, run: Run, audit: Audit, depth: int
) -> tuple[Groups, Aligned, _Spread, npt.NDArray[np.bool_]]:
    """Bring a run's first ranks to the groups of an audit, with the mask of the entries there."""
    groups = grouping(collection, audit.spec["by"], audit.groups)
    aligned = Aligned.of(run, collection, Judgments.of(collection, groups))
    if audit.spec["ties"] == "trec_eval":
        aligned = aligned.untied()
    ranking, keep = aligned.ranking.head(depth)
    return groups, aligned, _Spread.of(ranking, aligned.judgments.known_query, depth), keep


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


def contributions(audit: Audit, run: str, measure: str | Measure, a: str, b: str) -> Floats:
    """Split Relative Δ over the queries, in the order of ``audit.queries``: how many of its points each of them brings.

    ``200·(a_q − b_q) / Σ(a + b)``: what remains of Relative Δ ``200·(M_a − M_b) / (M_a + M_b)`` (Dai et al., KDD 2024,
    sec. 3.1) when its means are written as sums over the queries; the parts add up to Relative Δ without rounding. NaN
    for a query without a relevant document in both groups, and for every query where both means are 0.
    """
    measures, name = tuple(map(repr, audit.measures)), measure if isinstance(measure, str) else repr(measure)
    axes = (
        ("run", run, audit.runs),
        ("measure", name, measures),
        ("group", a, audit.groups),
        ("group", b, audit.groups),
    )
    for noun, value, names in axes:
        if value not in names:
            raise unknown(noun, value, names)
    values = audit.values[audit.runs.index(run), measures.index(name)]
    return parts(values[audit.groups.index(a)], values[audit.groups.index(b)])


def parts(a: Floats, b: Floats) -> Floats:
    """Split Relative Δ of two groups over the queries, the last axis, in points; see `contributions`."""
    counts = ~(np.isnan(a) | np.isnan(b))
    total = np.where(counts, a, 0.0).sum(axis=-1, keepdims=True) + np.where(counts, b, 0.0).sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(a - b, total, out=np.full(counts.shape, np.nan), where=counts & (total > 0))
    shares *= 200
    return shares
