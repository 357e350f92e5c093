"""``ranktilt explain``: what differs between the texts of two sources, by probes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, with_command
from ranktilt.cli.places import collection_files, without_judgments


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")],
    *,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            "--probe",
            metavar="NAME",
            help="statistics, overlap, similarity or an installed one (default: all that can run).",
        ),
    ] = None,
    ranker: Annotated[
        str | None, typer.Option("--ranker", "-r", metavar="SPEC", help="Whose vectors are read, such as dense:minilm.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="SOURCE", help="Held against it (default: human).")
    ] = None,
    split: options.Split = None,
    text: options.Text = None,
    device: options.Device = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Look at the texts of a collection with probes: what differs between twins, and by how much."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.load import NO_QRELS, load
        from ranktilt.probes.explain import explain

        out = Output(format, json, quiet)
        out.check(inputs=collection_files(folder))
        view = options.rankers([ranker], text=text, device=device)[0] if ranker else None
        none = NO_QRELS if without_judgments(folder, split) else None
        collection = load(folder, split=split, qrels=none, ignore_unknown=True)
        out.deliver(with_command(explain(collection, probe, view, reference=reference)))
