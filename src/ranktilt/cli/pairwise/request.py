"""The pairs that a language model is asked about: their price, and its choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.cli.output import print_lines
from ranktilt.errors import counted

if TYPE_CHECKING:
    from ranktilt.auditing.pairwise.decisions import Decisions
    from ranktilt.auditing.pairwise.pairs import DrawnPairs
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.llm.pairwise import Pairwise


@dataclass(frozen=True, kw_only=True)
class PairRequest:
    """Pairs of documents, and the model that chooses one of each."""

    collection: Collection
    """The collection."""
    drawn: DrawnPairs
    """Pairs that were drawn."""
    asker: Pairwise
    """Ranker that asks the model."""

    def show_estimate(self, price: tuple[float, float] | None) -> None:
        """Show what the requests would cost."""
        from ranktilt.auditing.pairwise.ask import ask_pairs
        from ranktilt.llm.estimate import Rehearsal

        rehearsal = Rehearsal(self.asker.model())
        ask_pairs(self.collection, self.drawn, self.asker, asker=rehearsal)
        print_lines(rehearsal.lines(price))

    def ask(self) -> Decisions:
        """Ask the model about every pair in both orders, once it is said how many these are."""
        from ranktilt.auditing.pairwise.ask import ask_pairs

        frame = self.drawn.frame
        pairs = counted(frame.height, "pair", "pairs")
        queries = counted(frame["query"].n_unique(), "query", "queries")
        note(f"{pairs} of {queries}: {2 * frame.height:,} prompts")
        return ask_pairs(self.collection, self.drawn, self.asker)
