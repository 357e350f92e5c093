"""``ranktilt tools plan``: what an audit of a larger collection would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.option import Option


@dataclass(frozen=True)
class _Planned(options.OptionGroup):
    """What is planned for, and how it is measured."""

    panel = "Question"

    target_documents: Annotated[int | None, Option("Documents to plan for (default: those of DIR).", min=1)] = None
    target_queries: Annotated[int | None, Option("Queries to plan for (default: those of DIR).", min=1)] = None
    seconds: Annotated[float, Option("Seconds to measure, about.", "N", min=1)] = 60.0
    seed: options.Seed = 0


@options.verb(
    "tools plan DIR --target-documents 8800000 --target-queries 7000",
    "tools plan DIR -r bm25 -r dense:minilm --target-documents 8800000 --target-queries 7000",
)
def plan(
    folder: options.AnyCollection,
    *,
    ranker: options.Rankers = None,
    planned: _Planned,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    search: options.SearchOptions,
    output: PageOutput,
) -> None:
    """Say what an audit of a larger collection would cost: measured on a sample of this one, and extrapolated."""
    from ranktilt.datasets.load import load
    from ranktilt.planning.plan import plan as run_plan

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker or ["bm25"])
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    size = {"documents": planned.target_documents, "queries": planned.target_queries}
    output.deliver(run_plan(collection, rankers, **size, seconds=planned.seconds, seed=planned.seed))
