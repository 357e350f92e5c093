"""``ranktilt study``: several sources, such as temperatures of one model, each against the human side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, with_command
from ranktilt.cli.places import collection_files
from ranktilt.errors import UserError

if TYPE_CHECKING:
    pass


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
    ties: options.Ties = options.TieRule.expected,
    test: options.Test = options.TiltTest.permutation,
    correction: options.Correction = options.Corrections.holm,
    level: options.Level = 5.0,
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    device: options.Device = None,
    memory: options.Memory = None,
    threads: options.Threads = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
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

        out = Output(format, json, quiet, output)
        out.check(inputs=collection_files(folder))
        check_choices(ties=ties, test=test, correction=correction)
        rankers = options.rankers(ranker, text=text, exclude_self=exclude_self, device=device)
        collection = load(folder, split=split, ignore_unknown=ignore_unknown)
        found = study(
            collection, rankers, measure or None, reference=reference, sources=source, temperatures=temperatures,
            ties=ties, test=test, correction=correction, level=level, resamples=resamples, seed=seed,
        )  # fmt: skip
        out.deliver(with_command(found))


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
            raise UserError(f"--at expects a source and its temperature, such as --at llama=0.2; got {text!r}")
        if name in found:
            raise UserError(f"--at names source {name!r} twice")
        found[name] = value
    return found
