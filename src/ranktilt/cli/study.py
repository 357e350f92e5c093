"""``ranktilt study``: several sources, such as temperatures of one model, each against the human side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError


@options.verb
def study(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection with rewrites at several temperatures.")],
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    reference: Annotated[
        str, typer.Option("--reference", metavar="SOURCE", help="The human side, held against each of the others.")
    ] = "human",
    source: Annotated[
        list[str] | None, typer.Option("--source", metavar="SOURCE", help="Study only these (default: all others).")
    ] = None,
    source_temperature: Annotated[
        list[str] | None,
        typer.Option(
            "--source-temperature", metavar="SOURCE=T", help="A source's temperature, where no column tells it."
        ),
    ] = None,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    statistics: options.StatisticsOptions,
    search: options.SearchOptions,
    output: PageOutput,
) -> None:
    """Audit each source against the human side in a collection of the two, and ask whether temperature moves the tilt.

    All sources are compared over the documents that every one of them rewrote.
    """
    if not ranker:
        raise UserError("nothing to study: name a ranker, such as -r bm25")
    temperatures = read_temperatures(source_temperature or ())
    from ranktilt.auditing.study import study as run_study
    from ranktilt.datasets.load import load

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker)
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    found = run_study(
        collection, rankers, measure or None, reference=reference, sources=source, temperatures=temperatures,
        **statistics.keywords,
    )  # fmt: skip
    output.deliver(found)


def read_temperatures(texts: Sequence[str]) -> dict[str, float]:
    """Read temperatures of sources, ``SOURCE=T`` each."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UserError(
                f"--source-temperature expects a source and its temperature, such as llama=0.2; got {text!r}"
            )
        if name in found:
            raise UserError(f"--source-temperature names source {name!r} twice")
        found[name] = value
    return found
