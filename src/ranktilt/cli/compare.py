"""``ranktilt compare``: whether the new ranker tilts more than the old one."""

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
from ranktilt.cli.places import check_places
from ranktilt.errors import unknown

if TYPE_CHECKING:
    from ranktilt.auditing.compare import Comparison


def command(
    new: Annotated[Path, typer.Argument(metavar="NEW.json", help="The new audit (ranktilt audit --json).")],
    old: Annotated[Path, typer.Argument(metavar="OLD.json", help="The old audit, over the same queries.")],
    *,
    correction: Annotated[
        str, typer.Option("--correction", help="holm or bonferroni, over every p of the comparison.")
    ] = "holm",
    resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples and exchanges.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    format: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table, markdown or csv.")] = "table",
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the whole comparison; - for stdout.")
    ] = None,
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
        from ranktilt.reporting.comparison import FORMATS

        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        check_places({"--json": json}, stdout=["--json"], inputs=[new, old])
        audits = Audit.load(new), Audit.load(old)
        found = compare(*audits, correction=correction, resamples=resamples, seed=seed)
        found = replace(found, spec={**found.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        deliver(_text(found, format, quiet) if json != "-" else found.to_json().decode(), {json: found.to_json})


def _text(found: Comparison, format: str, quiet: bool) -> str:
    from ranktilt.reporting.comparison import comparison_table, show_comparison

    if format != "table":
        return comparison_table(found, format)
    buffer = io.StringIO()
    show_comparison(found, buffer, notes=not quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
    return buffer.getvalue()
