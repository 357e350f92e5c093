"""The parts of an audit's numbers: groups at each rank, and each query's part of Relative Δ.

Relative Δ is the difference of two groups' means of a measure, in percent of their mean. Reports
show these parts; no verdict depends on them.
"""

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
from ranktilt.errors import UserError, unknown_name
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
    """Share of each group at every rank if documents had random groups: the same at all ranks.

    It is the group's share of the collection's documents that have a group, times the share of such
    documents in the lists.
    """
    queries: Ints
    """Number of queries whose list reaches each rank."""

    @property
    def depth(self) -> int:
        """Number of ranks."""
        return len(self.queries)


def rank_shares(collection: Collection, run: Run, audit: Audit, *, depth: int = 100) -> RankShares:
    """Return the share of each group at each rank of a run, and its recall down to that rank.

    Groups, ties and missing queries count as in `audit`. `depth` is the number of ranks.
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

    def sums_at_ranks(weights: Floats) -> Floats:
        """Sum the entries' weights at each rank, each spread evenly over its tie block."""
        spread = np.repeat(per_block(ranking, weights) / ranking.sizes, ranking.sizes)
        sums = np.bincount(rank[is_within], weights=spread[is_within], minlength=depth)
        return sums.astype(np.float64)

    at, recall = np.full((2, len(groups.names), depth), np.nan)
    group, judgment = judged_run.group_codes(groups)[keep], judged_run.judgment[keep]
    list_counts = np.bincount(rank[is_within & is_known], minlength=depth)
    is_counted = ~judged_run.left_out(str(audit.spec["missing"]))
    for index in range(len(groups.names)):
        group_sums = sums_at_ranks(1.0 * (is_known & (group == index)))
        np.divide(group_sums, list_counts, out=at[index], where=list_counts > 0)
        is_member = judgments.group == index
        relevant = np.bincount(judgments.query[is_member], minlength=len(judgments.queries))
        has_relevant = (relevant > 0) & is_counted
        if has_relevant.any():
            # An entry that is not relevant has the judgment −1, and NumPy reads index −1 as the
            # last element: there must be one.
            is_member_or_none = np.append(is_member, False)
            is_hit = (judgment >= 0) & is_member_or_none[judgment] & has_relevant[query]
            hit_shares = sums_at_ranks(is_hit / np.maximum(relevant, 1)[query])
            recall[index] = np.cumsum(hit_shares) / has_relevant.sum()
    return RankShares(
        run=run.name,
        groups=groups.names,
        at=at,
        recall=recall,
        neutral=_neutral_shares(groups, group[is_known]),
        queries=list_counts,
    )


def _neutral_shares(groups: Groups, entry_groups: Ints) -> Floats:
    """Return the share of each group at every rank if documents had random groups.

    `entry_groups` has the index of the group of each entry of the lists, −1 for none.
    """
    labelled = groups.code[groups.code >= 0]
    labelled_share = float((entry_groups >= 0).mean()) if len(entry_groups) else 1.0
    counts = np.bincount(labelled, minlength=len(groups.names))
    shares = counts * labelled_share / max(len(labelled), 1)
    return shares.astype(np.float64)


def contributions(audit: Audit, run: str, measure: str | Measure, a: str, b: str) -> Floats:
    """Split Relative Δ into a part of each query, in points and in the order of ``audit.queries``.

    The part of a query is ``200·(a_q − b_q) / Σ(a + b)``, with ``a_q`` and ``b_q`` its values for
    both groups. The parts add up exactly to Relative Δ, ``200·(M_a − M_b) / (M_a + M_b)`` (Dai et
    al., KDD 2024, sec. 3.1), because the means M_a and M_b are sums over queries. The part is NaN
    for a query without a relevant document in both groups, and for every query if both means are 0.
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
            raise unknown_name(noun, value, names)
    values = audit.values[audit.runs.index(run), measures.index(name)]
    return query_parts(values[audit.groups.index(a)], values[audit.groups.index(b)])


def query_parts(a: Floats, b: Floats) -> Floats:
    """Return each query's part of Relative Δ, in points.

    `a` and `b` are the values of both groups, with the queries on the last axis. A query counts if
    both its values are defined; else its part is NaN.
    """
    is_counted = ~(np.isnan(a) | np.isnan(b))
    total_a = np.where(is_counted, a, 0.0).sum(axis=-1, keepdims=True)
    total_b = np.where(is_counted, b, 0.0).sum(axis=-1, keepdims=True)
    total = total_a + total_b
    parts: Floats = np.divide(
        a - b, total, out=np.full(is_counted.shape, np.nan), where=is_counted & (total > 0)
    )
    parts *= 200
    return parts
