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
    """Pairs of documents, and the language model that chooses one document of each."""

    collection: Collection
    """Queries and documents."""
    drawn: DrawnPairs
    """Pairs of documents, each with its query."""
    ranker: Pairwise
    """The ranker that asks the model."""

    def show_estimate(self, price: tuple[float, float] | None) -> None:
        """Show what the requests would cost.

        `price` holds the prices of a million input tokens and of a million output tokens.
        """
        from ranktilt.auditing.pairwise.ask import ask_pairs
        from ranktilt.llm.estimate import Rehearsal

        # A rehearsal counts the requests in place of sending them.
        rehearsal = Rehearsal(self.ranker.model())
        ask_pairs(self.collection, self.drawn, self.ranker, asker=rehearsal)
        print_lines(rehearsal.lines(price))

    def ask(self) -> Decisions:
        """Say how many prompts there are, and ask the model about every pair in both orders."""
        from ranktilt.auditing.pairwise.ask import ask_pairs

        frame = self.drawn.frame
        pairs = counted(frame.height, "pair", "pairs")
        queries = counted(frame["query"].n_unique(), "query", "queries")
        note(f"{pairs} of {queries}: {2 * frame.height:,} prompts")
        return ask_pairs(self.collection, self.drawn, self.ranker)
