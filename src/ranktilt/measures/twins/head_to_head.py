"""Head-to-head: of twins, how often each stands above the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from ranktilt.measures.ranking import Floats, Ints
from ranktilt.measures.twins.base import Answers, TwinEstimand, TwinLists
from ranktilt.statistics.two_way import Clusters


class PairCounts(NamedTuple):
    """Per query, over pairs of twins with at least one side retrieved; arrays of shape (n_queries,)."""

    wins: Ints
    """The first side stands higher, or is retrieved alone."""
    losses: Ints
    """The second side stands higher, or is retrieved alone."""
    ties: Ints
    """Both retrieved with the same score."""
    both: Ints
    """Both retrieved."""
    alone: Ints
    """Of the wins, those of a first side that is retrieved alone."""


def pair_counts(lists: TwinLists) -> tuple[PairCounts, PairCounts]:
    """Count wins, losses and ties of twins in a run: of the relevant pairs, and of all others.

    An unretrieved twin stands below every retrieved document.
    """
    met = lists.meetings
    cell, won = 2 * met.query + met.other, met.outcome > 0
    chosen = (won, met.outcome < 0, met.outcome == 0, met.both, won & ~met.both)
    totals = [np.bincount(cell[one], minlength=2 * lists.queries).reshape(-1, 2) for one in chosen]
    return PairCounts(*(total[:, 0] for total in totals)), PairCounts(
        *(total[:, 1] for total in totals)
    )


@dataclass(frozen=True, repr=False)
class HeadToHeadTwins(TwinEstimand):
    """Share of twins that the first group wins minus the share that it loses, in [−1, 1].

    Counted over (query, pair) with at least one side retrieved; an unretrieved twin stands below
    every retrieved document. Printed in percent.
    """

    over: str = field(default="queries", kw_only=True)
    """``queries``: the mean of each query's share, so that one long list does not decide; ``pairs``:
    the share of all pairs together."""

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
        "Which of two twins stands higher? Pairs that the first side wins less those that it loses, "
        "in % of the pairs with at least one text found, averaged over the queries: +100 % if the "
        "first side always wins, −100 % if the second does."
    )
    pattern = r"[Hh]ead-to-head"

    @property
    def key(self) -> str:
        twins = "twins" if self.pairs == "all" else f"{self.pairs} twins"
        return twins if self.over == "queries" else f"{twins}, pooled"

    @property
    def title(self) -> str:
        twins = "" if self.pairs == "all" else f", {self.pairs} twins"
        return f"head-to-head{twins}{'' if self.over == 'queries' else ', pooled pairs'}"

    @property
    def question(self) -> str:  # type: ignore[override]
        question = {
            "all": "which twin is above?",
            "relevant": "which twin of a right answer is above?",
            "other": "and which twin of all other documents?",
        }[self.pairs]
        return question if self.over == "queries" else f"{question[:-1]}, all pairs together?"

    def answers(self, lists: TwinLists) -> Answers:
        meetings, (relevant, other) = lists.meetings, pair_counts(lists)
        mine = {
            "relevant": ~meetings.other,
            "other": meetings.other,
            "all": np.ones(len(meetings.query), dtype=bool),
        }[self.pairs]
        every = PairCounts(*(a + b for a, b in zip(relevant, other, strict=True)))
        counts = {"relevant": relevant, "other": other, "all": every}[self.pairs]
        query, outcome = meetings.query[mine], meetings.outcome[mine].astype(np.float64)
        pairs = (counts.wins + counts.losses + counts.ties).astype(np.float64)
        lead = (counts.wins - counts.losses).astype(np.float64)
        is_met = pairs > 0
        weight = np.ones(len(outcome))
        if self.over == "queries":
            size = np.where(is_met, pairs, 1.0)
            lead, weight, outcome = lead / size, 1 / size[query], outcome / size[query]
        return Answers(
            lead,
            is_met.astype(np.float64) if self.over == "queries" else pairs,
            _counts(counts, pairs),
            Clusters(query, meetings.doc[mine], outcome, weight),
        )


def _counts(counts: PairCounts, pairs: Floats) -> dict[str, float]:
    """Return what is told beside the answer: counts of pairs and queries, and mean shares."""
    is_met = pairs > 0
    numbers = {name: float(column.sum()) for name, column in counts._asdict().items()}
    whole_wins = numbers["wins"] - numbers["alone"]
    parts = {
        "pairs": float(pairs.sum()),
        "wins": numbers["wins"],
        "losses": numbers["losses"],
        "ties": numbers["ties"],
        "query_wins": float((counts.wins > counts.losses).sum()),
        "query_losses": float((counts.wins < counts.losses).sum()),
        "whole_wins": whole_wins,
        "whole": numbers["both"],
        "whole_losses": numbers["both"] - numbers["ties"] - whole_wins,
    }
    if is_met.any():
        parts["mean_wins"] = float(np.mean(counts.wins[is_met] / pairs[is_met]))
        parts["mean_losses"] = float(np.mean(counts.losses[is_met] / pairs[is_met]))
        parts["share_wins"] = parts["wins"] / parts["pairs"]
        parts["share_losses"] = parts["losses"] / parts["pairs"]
    return parts


HeadToHead = HeadToHeadTwins()
