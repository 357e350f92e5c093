"""``ranktilt calibrate``: the instrument is tested before its readings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, with_command
from ranktilt.cli.places import collection_files

if TYPE_CHECKING:
    pass

FAILED = 1


def command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A collection: BEIR, Cocktail or the papers' layout (default: bundled)."),
    ] = None,
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    depth: Annotated[
        list[int] | None,
        typer.Option("--depth", metavar="K", help="A depth of the rankings; several may be given."),
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", help="Most pairs of documents, at least 2; half as many queries.")
    ] = 500,
    draws: Annotated[
        int,
        typer.Option(
            "--draws", metavar="N", help="Simulated collections, at least 100, for the coverage of intervals."
        ),
    ] = 500,
    labellings: Annotated[
        int, typer.Option("--labellings", metavar="N", help="Draws of random labels, at least 20, for each ranker.")
    ] = 25,
    split: Annotated[
        str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test, or the only one).")
    ] = None,
    text: options.Text = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    device: options.Device = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Test the instrument where the right answer is known: exit 0 if all is as expected, 1 if not."""
    with reporting(quiet=quiet):
        from ranktilt.auditing.calibration.calibrate import DEPTHS, calibrate

        out = Output(format, json, quiet)
        out.check(inputs=collection_files(folder))
        rankers = options.rankers(ranker or ["tfidf", "bm25"], text=text, device=device)
        if folder is None:
            from ranktilt.datasets.bundled.reader import bundled

            collection = bundled()
        else:
            from ranktilt.datasets.load import load

            collection = load(folder, split=split, ignore_unknown=True)
        result = calibrate(
            collection, rankers, measure or None, depths=depth or DEPTHS, sample=sample, draws=draws,
            labellings=labellings, seed=seed,
        )  # fmt: skip
        out.deliver(with_command(result))
    if not result.passed:
        raise typer.Exit(FAILED)
