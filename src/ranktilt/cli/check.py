"""``ranktilt check``: whether a collection makes a fair comparison, before anything is ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting
from ranktilt.cli.places import collection_files, without_judgments

UNFAIR = 1


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID.")],
    *,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="SOURCE", help="Held against it (default: human).")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test, or the only one).")
    ] = None,
    max_missing: Annotated[float, typer.Option(help="Most pairs that may miss a side, in %.")] = 10,
    max_identical: Annotated[float, typer.Option(help="Most pairs with the same text twice, in %.")] = 5,
    max_boilerplate: Annotated[float, typer.Option(help="Most texts with a boilerplate opening, in %.")] = 10,
    max_refusals: Annotated[float, typer.Option(help="Most texts that are a refusal, in %.")] = 10,
    max_cut_off: Annotated[float, typer.Option(help="Most texts that end in the middle, in %.")] = 10,
    min_length_ratio: Annotated[float, typer.Option(help="Least median of words, rewrite over reference.")] = 0.67,
    max_length_ratio: Annotated[float, typer.Option(help="Largest median of the same.")] = 1.5,
    max_one_sided: Annotated[
        float, typer.Option(help="Most relevant judgments that hold for one twin only, in %.")
    ] = 5,
    near_identical: Annotated[
        float, typer.Option(help="Jaccard similarity of terms from which twins are near-identical.")
    ] = 0.95,
    notice: Annotated[float, typer.Option(help="Share from which other faults are a warning, in %.")] = 1,
    examples: Annotated[int, typer.Option("--examples", min=0, help="Ids to name in a row.")] = 3,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Check whether a collection makes a fair comparison: exit 0 if so, 1 if a fault voids it."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.check import check
        from ranktilt.datasets.check_result import CheckLimits
        from ranktilt.datasets.load import NO_QRELS, load

        out = Output(format, json, quiet)
        out.check(inputs=collection_files(folder))
        limits = CheckLimits(
            missing=max_missing, identical=max_identical, boilerplate=max_boilerplate, refusals=max_refusals,
            cut_off=max_cut_off, one_sided=max_one_sided, shortest=min_length_ratio, longest=max_length_ratio,
            near_identical=near_identical, notice=notice,
        )  # fmt: skip
        none = NO_QRELS if without_judgments(folder, split) else None
        collection = load(folder, split=split, qrels=none, ignore_unknown=True)
        result = check(collection, reference=reference, limits=limits, examples=examples)
        out.deliver(result)
    if not result.fair:
        raise typer.Exit(UNFAIR)
