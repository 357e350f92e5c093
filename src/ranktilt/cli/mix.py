"""``ranktilt mix``: unite collections into one, or write one in another layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, say


def command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Collections; a single one is only rewritten.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the new collection goes.")],
    *,
    layout: options.Layout = options.Layouts.beir,
    split: Annotated[
        str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test).")
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Unite collections: sources side by side, twins sharing judgments."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.load import load
        from ranktilt.datasets.mix import mix
        from ranktilt.datasets.save import save

        parts = [load(folder, split=split) for folder in folders]
        mixed = mix(*parts) if len(parts) > 1 else parts[0]
        save(mixed, output, layout=layout)
        say(f"{output}: {mixed!r}", quiet=quiet)
