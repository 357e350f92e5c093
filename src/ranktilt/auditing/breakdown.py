"""The parts of an audit's numbers: groups at each rank, and each query's part of Relative Δ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats, Ints, per_block


@dataclass(frozen=True, eq=False, kw_only=True)
class RankShares:
    """Shares of the groups at each rank of one run, in expectation over ties."""

    run: str
    """Name of the run."""
    groups: tuple[str, ...]
    """Names of the groups."""
    at: Floats
    """Share of each group at each rank, of shape (n_groups, depth).

    It is the mean over the queries whose list reaches the rank; NaN beyond the longest list. A tied
    document is at each rank of its block with the same probability.
    """
    recall: Floats
    """Mean R@rank of each group, of the same shape.

    The mean is over queries with a relevant document in the group; NaN without any.
    """
    neutral: Floats
    """Share of each group at every rank if labels were random.

    It is the group's share of the documents that have a group, times the share of such documents in
    the lists.
    """
    queries: Ints
    """Number of queries whose list reaches each rank."""

    @property
    def depth(self) -> int:
        """Number of ranks."""
        return len(self.queries)


def rank_shares(collection: Collection, run: Run, audit: Audit, *, depth: int = 100) -> RankShares:
    """Count the groups at each rank of a run, and their relevant documents down to it.

    Ties are broken as in the audit.
    """
    if depth < 1:
        raise UserError(f"expected a depth of at least 1 rank, got {depth}")
    groups = grouping(collection, audit.spec["by"], audit.groups, fewest=1)
    judged_run = JudgedRun.from_run(run, collection, Judgments.from_collection(collection, groups))
    if audit.spec["ties"] == "trec_eval":
        judged_run = judged_run.untied()
    ranking, keep = judged_run.ranking.head(depth)
    judgments, query = judged_run.judgments, ranking.query
    rank = np.arange(len(query)) - ranking.offsets[:-1][query]  # from 0
    is_within, is_known = rank < depth, judgments.known_query[query]

    def at_ranks(weights: Floats) -> Floats:
        """Sum the entries' weights at each rank, each spread evenly over its tie block."""
        spread = np.repeat(per_block(ranking, weights) / ranking.sizes, ranking.sizes)
        sums = np.bincount(rank[is_within], weights=spread[is_within], minlength=depth)
        return sums.astype(np.float64)

    at, recall = np.full((2, len(groups.names), depth), np.nan)
    group, judgment = judged_run.group_codes(groups)[keep], judged_run.judgment[keep]
    reach = np.bincount(rank[is_within & is_known], minlength=depth)
    is_counted = ~judged_run.left_out(str(audit.spec["missing"]))
    for number in range(len(groups.names)):
        group_sums = at_ranks(1.0 * (is_known & (group == number)))
        np.divide(group_sums, reach, out=at[number], where=reach > 0)
        is_member = judgments.group == number
        relevant = np.bincount(judgments.query[is_member], minlength=len(judgments.queries))
        has_relevant = (relevant > 0) & is_counted
        if has_relevant.any():
            hits = (judgment >= 0) & np.append(is_member, False)[judgment] & has_relevant[query]
            hit_shares = at_ranks(hits / np.maximum(relevant, 1)[query])
            recall[number] = np.cumsum(hit_shares) / has_relevant.sum()
    return RankShares(
        run=run.name,
        groups=groups.names,
        at=at,
        recall=recall,
        neutral=_neutral_shares(groups, group[is_known]),
        queries=reach,
    )


def _neutral_shares(groups: Groups, listed: Ints) -> Floats:
    """Return the share of each group at every rank under random labels."""
    labelled = groups.code[groups.code >= 0]
    labelled_share = float((listed >= 0).mean()) if len(listed) else 1.0
    counts = np.bincount(labelled, minlength=len(groups.names))
    shares = counts * labelled_share / max(len(labelled), 1)
    return shares.astype(np.float64)


def contributions(audit: Audit, run: str, measure: str | Measure, a: str, b: str) -> Floats:
    """Split Relative Δ into a part of each query, in points and in the order of ``audit.queries``.

    ``200·(a_q − b_q) / Σ(a + b)``: these parts add up to Relative Δ ``200·(M_a − M_b) / (M_a +
    M_b)`` (Dai et al., KDD 2024, sec. 3.1) without rounding, because its means are sums over
    queries. NaN for a query without a relevant document in both groups, and for every query if both
    means are 0.
    """
    measures = tuple(map(repr, audit.measures))
    name = measure if isinstance(measure, str) else repr(measure)
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
    """Split Relative Δ over the queries, which are the last axis; see `contributions`."""
    counts = ~(np.isnan(a) | np.isnan(b))
    total_a = np.where(counts, a, 0.0).sum(axis=-1, keepdims=True)
    total_b = np.where(counts, b, 0.0).sum(axis=-1, keepdims=True)
    total = total_a + total_b
    shares: Floats = np.divide(
        a - b, total, out=np.full(counts.shape, np.nan), where=counts & (total > 0)
    )
    shares *= 200
    return shares
