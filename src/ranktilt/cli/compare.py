"""``ranktilt compare``: whether the new ranker tilts more than the old one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, with_command

if TYPE_CHECKING:
    pass


def command(
    new: Annotated[Path, typer.Argument(metavar="NEW.json", help="The new audit (ranktilt audit --json).")],
    old: Annotated[Path, typer.Argument(metavar="OLD.json", help="The old audit, over the same queries.")],
    *,
    correction: options.Correction = options.Corrections.holm,
    resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples and exchanges.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Say whether the new ranker tilts more than the old one, from two audits over the same queries.

    Differences are new - old, in points, with paired intervals and tests. One run on each side are compared whatever
    they are called, otherwise runs of one name.
    """
    with reporting(quiet=quiet):
        from ranktilt.auditing.compare import compare
        from ranktilt.auditing.result import Audit

        out = Output(format, json, quiet)
        out.check(inputs=[new, old])
        audits = Audit.load(new), Audit.load(old)
        out.deliver(with_command(compare(*audits, correction=correction, resamples=resamples, seed=seed)))
