"""Head-to-head: of twins, how often each stands above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranktilt.errors import counted
from ranktilt.measures.answered import Answered
from ranktilt.measures.ranking import Ints
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
    return PairCounts(*(total[:, 0] for total in totals)), PairCounts(*(total[:, 1] for total in totals))


@dataclass(frozen=True, repr=False)
class HeadToHeadTwins(TwinEstimand):
    """Share of twins that the first group wins minus the share that it loses, in [−1, 1]; printed in percent.

    Over (query, pair) with at least one side retrieved; an unretrieved twin stands below every retrieved document.
    """

    name = "HeadToHead"
    bounds = (-1.0, 1.0)
    scale = 100.0
    suffix = " %"
    paired_test = "sign test"
    term = "head-to-head"
    definition = (
        "Which of two twins stands higher? Pairs that the first side wins less those that it loses, in % of the pairs "
        "with at least one text found: +100 % if the first side always wins, −100 % if the second does."
    )
    pattern = r"[Hh]ead-to-head"

    @property
    def key(self) -> str:
        return "twins" if self.pairs == "all" else f"{self.pairs} twins"

    @property
    def title(self) -> str:
        return "head-to-head" if self.pairs == "all" else f"head-to-head, {self.pairs} twins"

    @property
    def question(self) -> str:  # type: ignore[override]
        return {
            "all": "which twin is above?",
            "relevant": "which twin of a right answer is above?",
            "other": "and which twin of all other documents?",
        }[self.pairs]

    def answers(self, lists: TwinLists) -> Answers:
        met, (relevant, other) = lists.meetings, pair_counts(lists)
        mine = {"relevant": ~met.other, "other": met.other, "all": np.ones(len(met.query), dtype=bool)}[self.pairs]
        every = PairCounts(*(a + b for a, b in zip(relevant, other, strict=True)))
        counts = {"relevant": relevant, "other": other, "all": every}[self.pairs]
        won = met.outcome[mine].astype(np.float64)
        clusters = Clusters(met.query[mine], met.doc[mine], won, np.ones(len(won)))
        sums = {name: float(numbers.sum()) for name, numbers in counts._asdict().items()}
        whole = {"whole_wins": sums["wins"] - sums["alone"], "whole": sums["both"]}
        whole["whole_losses"] = whole["whole"] - sums["ties"] - whole["whole_wins"]
        total = counts.wins + counts.losses + counts.ties
        parts = {"pairs": float(total.sum()), **{name: sums[name] for name in ("wins", "losses", "ties")}, **whole}
        return Answers((counts.wins - counts.losses).astype(np.float64), total.astype(np.float64), parts, clusters)

    def finding(self, effect: Answered, noun: str) -> str:
        pairs = effect.parts["pairs"] or np.nan
        a, b = (f"{100 * effect.parts[side] / pairs:.1f} %" for side in ("wins", "losses"))
        which = "" if self.pairs == "all" else f"{self.pairs} "
        return f"of {which}twins the {effect.a} one stands above in {a}, the {effect.b} one in {b}"

    def basis(self, effect: Answered) -> str:
        wins, losses, ties = (f"{int(effect.parts[k]):,}" for k in ("wins", "losses", "ties"))
        pairs = counted(int(effect.parts["pairs"]), "pair", "pairs")
        queries = counted(effect.queries, "query", "queries")
        return f"{pairs}: {effect.a} {wins}, {effect.b} {losses}, tied {ties}; {queries}{_both_retrieved(effect)}"


def _both_retrieved(effect: Answered) -> str:
    """Of pairs with both sides retrieved, where these are not all."""
    whole = effect.parts.get("whole", 0)
    if not whole or whole == effect.parts["pairs"]:
        return ""
    a, b = (100 * effect.parts[name] / whole for name in ("whole_wins", "whole_losses"))
    return f"; of {int(whole):,} with both sides retrieved: {effect.a} {a:.1f} %, {effect.b} {b:.1f} %"


HeadToHead = HeadToHeadTwins()
