"""``ranktilt gate``: whether an audit passes, as an exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, reporting, text_of, with_command
from ranktilt.cli.places import check_places


def command(
    audit: Annotated[Path, typer.Argument(metavar="AUDIT.json", help="An audit (ranktilt audit --json).")],
    *,
    max_tilt: Annotated[
        float | None,
        typer.Option(
            "--max-tilt", min=0, metavar="X",
            help="Most Relative Δ in %, either way (default: 15, or no limit where a baseline is given).",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="OLD.json", help="An audit over the same queries; the tilt may not grow."),
    ] = None,
    min_effect: Annotated[
        float, typer.Option("--min-effect", min=0, metavar="X", help="Points by which it may grow all the same.")
    ] = 0.0,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", metavar="MEASURE", help="Of the audit; default: its first one."),
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", metavar="NAME", help="A run of the audit; default: all.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", metavar="A,B", help="Groups of the audit; default: all pairs.")
    ] = None,
    inconclusive: Annotated[
        options.OnInconclusive, typer.Option("--inconclusive", help="Exit 3 or 0 where nothing is decided.")
    ] = options.OnInconclusive.fail_,
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, help="Of the growth since the baseline.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write JUnit XML.")] = None,
    markdown: Annotated[
        str | None,
        typer.Option("--markdown", metavar="FILE.md", help="Write a summary for a pull request; - for stdout."),
    ] = None,
    format: options.Format = options.Formats.table,
    json: options.Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Pass or fail an audit: exit 0 level, 1 tilted, 3 inconclusive (2 is an error).

    Level: the 95 % interval lies inside the limit. Tilted: it lies wholly beyond. Inconclusive: anything else. With
    --baseline, of the growth of the tilt on the same queries: tilted if its interval lies above --min-effect, level if
    no part of it does. The worst of all comparisons counts, 1 before 3 before 0.
    """
    pairs = options.pairs(pair)
    with reporting(quiet=quiet):
        from ranktilt.auditing.gate import gate
        from ranktilt.auditing.result import Audit
        from ranktilt.reporting.render.junit import junit as junit_xml

        out = Output(format, json, quiet)
        inputs = [audit] if baseline is None else [audit, baseline]
        places = {"--junit": junit, "--markdown": markdown, "--json": json}
        check_places(places, stdout=("--markdown", "--json"), inputs=inputs)
        found = gate(
            Audit.load(audit), max_tilt=max_tilt, measures=measure or None, runs=run or None, pairs=pairs,
            baseline=None if baseline is None else Audit.load(baseline), min_effect=min_effect,
            inconclusive=inconclusive, resamples=resamples, seed=seed,
        )  # fmt: skip
        found = with_command(found)
        out = replace(out, format=options.Formats.markdown) if markdown == "-" else out
        files = {junit: lambda: junit_xml(found), markdown: lambda: text_of(found, "markdown").encode()}
        out.deliver(found, files)
    raise typer.Exit(found.exit_code)
