"""``ranktilt explain``: what differs between the texts of two sources, by probes."""

from __future__ import annotations

import io
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import deliver, reporting
from ranktilt.cli.places import check_places, collection_files, without_judgments
from ranktilt.errors import unknown

if TYPE_CHECKING:
    from ranktilt.probes.explain import Explanation


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
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table or markdown.")] = "table",
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the whole explanation; - for stdout.")
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Look at the texts of a collection with probes: what differs between twins, and by how much."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.load import NO_QRELS, load
        from ranktilt.probes.explain import explain
        from ranktilt.reporting.explanation import FORMATS

        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        check_places({"--json": json}, stdout=("--json",), inputs=collection_files(folder))
        view = options.rankers([ranker], text=text, device=device)[0] if ranker else None
        none = NO_QRELS if without_judgments(folder, split) else None
        collection = load(folder, split=split, qrels=none, ignore_unknown=True)
        found = explain(collection, probe, view, reference=reference)
        found = replace(found, spec={**found.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        shown = found.to_json().decode() if json == "-" else _text(found, format, quiet=quiet)
        deliver(shown, {json: found.to_json})


def _text(found: Explanation, format: str, *, quiet: bool) -> str:
    from ranktilt.reporting.explanation import explanation_text, show_explanation

    if format != "table":
        return explanation_text(found, format, notes=not quiet)
    buffer = io.StringIO()
    show_explanation(found, buffer, notes=not quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()
