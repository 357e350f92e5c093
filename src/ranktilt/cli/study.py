"""``ranktilt study``: sources such as temperatures of one model, each against the human side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option


@options.verb("study DIR -r bm25 -r dense:minilm", "study DIR -r bm25 --json study.json")
def study(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection with rewrites.")],
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    reference: Annotated[
        str, Option("The human source, compared with each of the others.", "SOURCE")
    ] = "human",
    source: Annotated[
        list[str] | None, Option("Sources to study (default: all others).", "SOURCE")
    ] = None,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    statistics: options.StatisticsOptions,
    search: options.EngineOptions,
    output: PageOutput,
) -> None:
    """Audit each source against the human side, and ask whether temperature moves the tilt."""
    if not ranker:
        raise UserError("nothing to study: name a ranker, such as -r bm25")
    from ranktilt.auditing.study import study as run_study
    from ranktilt.datasets.load import load

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker)
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    found = run_study(
        collection,
        rankers,
        measure or None,
        reference=reference,
        sources=source,
        **statistics.keywords,
    )
    output.deliver(found)
