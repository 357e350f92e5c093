"""Head-to-head: how often each of two twins is ranked above the other.

*Twins* are two versions of one document, one in each of two groups; a *pair* is two twins. A
*meeting* is a pair of which a query retrieved at least one document (`Meetings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from ranktilt.measures.ranking import Bools, Floats, Ints
from ranktilt.measures.twins.base import Meetings, TwinAnswers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters


class PairCounts(NamedTuple):
    """Numbers of pairs of twins for each query, of pairs with at least one side retrieved.

    The first side of a pair is in the first of the two compared groups. All counts have the shape
    (n_queries,). This is a NamedTuple, so that counts can be added field by field.
    """

    wins: Ints
    """Pairs whose first side is ranked higher, or retrieved alone."""
    losses: Ints
    """Pairs whose second side is ranked higher, or retrieved alone."""
    ties: Ints
    """Pairs whose sides are both retrieved, with the same score."""
    both: Ints
    """Pairs whose sides are both retrieved."""
    alone: Ints
    """Pairs whose first side is retrieved alone; they are among the wins."""


def pair_counts(lists: TwinLists) -> tuple[PairCounts, PairCounts]:
    """Count wins, losses and ties of twins in a run: first of relevant pairs, then of all others.

    A twin that was not retrieved is below every retrieved document.
    """
    meetings = lists.meetings
    is_win = meetings.outcome > 0
    # Two cells for each query: relevant pairs in the first, others in the second.
    cell = 2 * meetings.query + meetings.is_irrelevant

    def count(mask: Bools) -> Ints:
        """Count the meetings of a mask, shape (n_queries, 2): relevant ones, then others."""
        return np.bincount(cell[mask], minlength=2 * lists.queries).reshape(-1, 2)

    wins, losses, ties = count(is_win), count(meetings.outcome < 0), count(meetings.outcome == 0)
    both = count(meetings.both_retrieved)
    alone = count(is_win & ~meetings.both_retrieved)
    relevant, others = (
        PairCounts(
            wins=wins[:, column],
            losses=losses[:, column],
            ties=ties[:, column],
            both=both[:, column],
            alone=alone[:, column],
        )
        for column in (0, 1)
    )
    return relevant, others


@dataclass(frozen=True, repr=False)
class HeadToHeadTwins(TwinEstimand):
    """Share of twins that the first group wins minus the share that it loses, in [−1, 1].

    Every pair counts in each query that retrieved at least one of its two documents. A document
    that was not retrieved is below every retrieved one. The value is printed in percent.
    """

    over: str = field(default="queries", kw_only=True)
    """``queries``: the mean of each query's share, so that one long list does not decide;
    ``pairs``: the share of all pairs together."""

    name = "HeadToHead"
    bounds = (-1.0, 1.0)
    scale = 100.0
    suffix = " %"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **TwinEstimand.choices,
        "over": ("queries", "pairs"),
    }
    term = "head-to-head"
    definition = (
        "Which of two twins ranks higher? Pairs that the first side wins minus those it loses, in "
        "% of the pairs with at least one text found, averaged over the queries: +100 % "
        "if the first side always wins, −100 % if the second does."
    )
    pattern = r"[Hh]ead-to-head"

    @property
    def key(self) -> str:
        twins = "twins" if self.pairs == "all" else f"{self.pairs} twins"
        return twins if self.over == "queries" else f"{twins}, pooled"

    @property
    def title(self) -> str:
        twins = "" if self.pairs == "all" else f", {self.pairs} twins"
        pooled = "" if self.over == "queries" else ", pooled pairs"
        return f"head-to-head{twins}{pooled}"

    @property
    def question(self) -> str:  # type: ignore[override]
        question = {
            "all": "which twin is above?",
            "relevant": "which twin of a right answer is above?",
            "other": "and which twin of all other documents?",
        }[self.pairs]
        return question if self.over == "queries" else f"{question[:-1]}, all pairs together?"

    def answers(self, lists: TwinLists) -> TwinAnswers:
        meetings = lists.meetings
        is_counted = self._counts_meetings(meetings)
        counts = self._pair_counts(lists)
        query, doc = meetings.query[is_counted], meetings.doc[is_counted]
        outcome = meetings.outcome[is_counted].astype(np.float64)
        pairs = (counts.wins + counts.losses + counts.ties).astype(np.float64)
        lead = (counts.wins - counts.losses).astype(np.float64)  # of the first side
        details = _details(counts, pairs)
        if self.over == "pairs":
            weight = np.ones(len(outcome))
            clusters = Clusters(query=query, origin=doc, total=outcome, weight=weight)
            return TwinAnswers(total=lead, weight=pairs, details=details, clusters=clusters)
        is_met = pairs > 0
        size = np.where(is_met, pairs, 1.0)  # 1 where there are no pairs, so that nothing is / 0
        clusters = Clusters(
            query=query, origin=doc, total=outcome / size[query], weight=1 / size[query]
        )
        return TwinAnswers(
            total=lead / size, weight=is_met.astype(np.float64), details=details, clusters=clusters
        )

    def _counts_meetings(self, meetings: Meetings) -> Bools:
        """Tell which meetings are of pairs that count, by the option `pairs`."""
        if self.pairs == "all":
            return np.ones(len(meetings.query), dtype=bool)
        return meetings.is_irrelevant if self.pairs == "other" else ~meetings.is_irrelevant

    def _pair_counts(self, lists: TwinLists) -> PairCounts:
        """Return the numbers of the pairs that count, by the option `pairs`."""
        relevant, others = pair_counts(lists)
        if self.pairs == "all":
            return PairCounts(*(a + b for a, b in zip(relevant, others, strict=True)))
        return others if self.pairs == "other" else relevant


def _details(counts: PairCounts, pairs: Floats) -> dict[str, float]:
    """Return the counts and shares that are printed with the value.

    ``both_…`` counts pairs of which both sides were retrieved, and ``query_…`` queries that one
    side wins. ``mean_…`` are means of the queries' shares, and ``share_…`` shares of all pairs.
    `pairs` is the number of pairs of each query.
    """
    is_met = pairs > 0
    wins, losses, ties, both, alone = (float(column.sum()) for column in counts)
    both_wins = wins - alone
    query_wins = (counts.wins > counts.losses).sum()
    query_losses = (counts.wins < counts.losses).sum()
    details = {
        "pairs": float(pairs.sum()),
        "wins": wins,
        "losses": losses,
        "ties": ties,
        "query_wins": float(query_wins),
        "query_losses": float(query_losses),
        "both_wins": both_wins,
        "both": both,
        "both_losses": both - ties - both_wins,
    }
    if is_met.any():
        details["mean_wins"] = float(np.mean(counts.wins[is_met] / pairs[is_met]))
        details["mean_losses"] = float(np.mean(counts.losses[is_met] / pairs[is_met]))
        details["share_wins"] = details["wins"] / details["pairs"]
        details["share_losses"] = details["losses"] / details["pairs"]
    return details


HeadToHead = HeadToHeadTwins()
