"""``ranktilt spiral``: rewrites enter the collection round by round, and what is left of the page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError

Entering = StrEnum("Entering", ["retrieved", "random"])


@dataclass(frozen=True)
class _Growing(options.OptionGroup):
    """How the collection grows, and what is looked at."""

    rounds: Annotated[int, typer.Option("--rounds", min=1, metavar="N", help="How often rewrites enter.")] = 5
    ranks: Annotated[int, typer.Option("--page", min=1, metavar="K", help="Ranks of a page.")] = 10
    entry_rule: Annotated[
        Entering, typer.Option("--entry-rule", help="Rewrites of what the last pages showed enter, or any by --seed.")
    ] = Entering.retrieved
    share: Annotated[
        float | None,
        typer.Option(
            "--share", metavar="X", help="Most documents whose rewrites enter in a round, a share (default: 1/rounds)."
        ),
    ] = None
    reference: Annotated[
        str, typer.Option("--reference", metavar="SOURCE", help="The human side, whose share is followed.")
    ] = "human"
    source: Annotated[
        str | None, typer.Option("--source", metavar="SOURCE", help="The rewrites that enter (default: all others).")
    ] = None
    resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples and sign flips.")] = 10_000
    seed: options.Seed = 0

    @property
    def keywords(self) -> dict[str, Any]:
        """As the function takes them."""
        return {
            "rounds": self.rounds, "page": self.ranks, "entry_rule": str(self.entry_rule), "share": self.share,
            "reference": self.reference, "source": self.source, "resamples": self.resamples, "seed": self.seed,
        }  # fmt: skip


@options.verb
def spiral(
    folder: options.AnyCollection,
    *,
    ranker: options.Rankers = None,
    growing: _Growing,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    search: options.SearchOptions,
    output: PageOutput,
) -> None:
    """Let rewrites enter the collection round by round, and follow what is left of the page for the human side."""
    if not ranker:
        raise UserError("nothing to rank with: name a ranker, such as -r bm25")
    from ranktilt.datasets.load import load
    from ranktilt.experiments.spiral import spiral as run_spiral

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker)
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    output.deliver(run_spiral(collection, rankers, **growing.keywords))
