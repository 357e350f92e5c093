"""``ranktilt tools spiral``: rewrites enter the collection round by round, and what is left of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option


@dataclass(frozen=True)
class _Growing(options.OptionGroup):
    """How the collection grows, and what is looked at."""

    panel = "Question"

    rounds: Annotated[int, Option("Rounds in which rewrites enter.", "N", min=1)] = 5
    ranks: Annotated[int, Option("Results per page.", "K", flag="--page", min=1)] = 10
    entry_rule: Annotated[
        Literal["retrieved", "random"],
        Option("Which rewrites enter: those of documents just retrieved, or random ones."),
    ] = "retrieved"
    share: Annotated[
        float | None,
        Option(
            "Maximum share of documents whose rewrites enter per round (default: 1/rounds).", "X", flag="--round-share"
        ),
    ] = None
    reference: Annotated[str, Option("The human source, whose share is followed.", "SOURCE")] = "human"
    source: Annotated[str | None, Option("Sources of the rewrites that enter (default: all others).", "SOURCE")] = None
    resamples: options.Resamples = 10_000
    seed: options.Seed = 0


@options.verb("tools spiral DIR -r bm25", "tools spiral DIR -r bm25 --rounds 10 --entry-rule random")
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
    how = dict(vars(growing))
    output.deliver(run_spiral(collection, rankers, page=how.pop("ranks"), **how))
