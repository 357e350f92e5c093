"""``ranktilt study``: several sources, such as temperatures of one model, each against the human side."""

from __future__ import annotations

import io
import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import deliver, reporting
from ranktilt.cli.places import check_places, collection_files
from ranktilt.errors import UserError, unknown

if TYPE_CHECKING:
    from ranktilt.auditing.study import Study


def command(
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
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="SOURCE=T", help="A source's temperature, where no column tells it."),
    ] = None,
    split: options.Split = None,
    text: options.Text = None,
    exclude_self: options.ExcludeSelf = None,
    ignore_unknown: options.IgnoreUnknown = False,
    ties: options.Ties = "expected",
    test: options.Test = "permutation",
    correction: options.Correction = "holm",
    level: options.Level = 5.0,
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    device: options.Device = None,
    memory: options.Memory = None,
    threads: options.Threads = None,
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table, markdown or csv.")] = "table",
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the whole study; - for stdout.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="Write a page with the figure.")
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Audit each source against the human side in a collection of the two, and ask whether temperature moves the tilt.

    All sources are compared over the documents that every one of them rewrote.
    """
    if not ranker:
        raise UserError("nothing to study: name a ranker, such as -r bm25")
    temperatures = read_temperatures(at or ())
    with reporting(quiet=quiet), options.within(memory):
        from ranktilt.auditing.options import check_choices
        from ranktilt.auditing.study import study
        from ranktilt.datasets.load import load
        from ranktilt.reporting.study import FORMATS
        from ranktilt.reporting.study_page import study_page

        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        places = {"--json": json, "--output": output}
        check_places(places, stdout=["--json"], inputs=collection_files(folder))
        check_choices(ties=ties, test=test, correction=correction)
        rankers = options.rankers(ranker, text=text, exclude_self=exclude_self, device=device)
        collection = load(folder, split=split, ignore_unknown=ignore_unknown)
        found = study(
            collection, rankers, measure or None, reference=reference, sources=source, temperatures=temperatures,
            ties=ties, test=test, correction=correction, level=level, resamples=resamples, seed=seed,
        )  # fmt: skip
        found = replace(found, spec={**found.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        shown = found.to_json().decode() if json == "-" else _text(found, format, quiet=quiet)
        deliver(shown, {json: found.to_json, output: lambda: study_page(found).encode()})


def read_temperatures(texts: Sequence[str]) -> dict[str, float]:
    """Read temperatures of sources, ``SOURCE=T`` each.

    Parameters
    ----------
    texts : sequence of str
        As typed; a source's name may hold an equals sign.

    Returns
    -------
    dict of str to float
        Temperature of each source.

    Raises
    ------
    UserError
        If one has another form, is no number of 0 or more, or names a source again.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UserError(f"--at expects a source and its temperature, such as --at llama=0.2; got {text!r}")
        if name in found:
            raise UserError(f"--at names source {name!r} twice")
        found[name] = value
    return found


def _text(found: Study, format: str, *, quiet: bool) -> str:
    from ranktilt.reporting.study import show_study, study_table

    if format != "table":
        return study_table(found, format, notes=not quiet)
    buffer = io.StringIO()
    show_study(found, buffer, notes=not quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()
