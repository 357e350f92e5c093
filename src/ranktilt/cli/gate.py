"""``ranktilt gate``: whether an audit passes, as an exit code."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import deliver, reporting
from ranktilt.cli.places import check_places

if TYPE_CHECKING:
    from ranktilt.auditing.gate import Gate


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
        str, typer.Option("--inconclusive", metavar="fail|pass", help="Exit 3 or 0 where nothing is decided.")
    ] = "fail",
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, help="Of the growth since the baseline.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write JUnit XML.")] = None,
    markdown: Annotated[
        str | None,
        typer.Option("--markdown", metavar="FILE.md", help="Write a summary for a pull request; - for stdout."),
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the whole outcome; - for stdout.")
    ] = None,
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

        places = {"--junit": junit, "--markdown": markdown, "--json": json}
        inputs = [audit] if baseline is None else [audit, baseline]
        check_places(places, stdout=("--markdown", "--json"), inputs=inputs)
        found = gate(
            Audit.load(audit), max_tilt=max_tilt, measures=measure or None, runs=run or None, pairs=pairs,
            baseline=None if baseline is None else Audit.load(baseline), min_effect=min_effect,
            inconclusive=inconclusive, resamples=resamples, seed=seed,
        )  # fmt: skip
        found = replace(found, spec={**found.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})
        _deliver(found, {option: str(place) for option, place in places.items() if place is not None}, quiet)
    raise typer.Exit(found.exit_code)


def _deliver(found: Gate, places: dict[str, str], quiet: bool) -> None:
    """Print the outcome, then write all files."""
    from ranktilt.reporting.gates import gate_junit, gate_markdown, show_gate

    writers: dict[str, Callable[[Gate], bytes]] = {
        "--junit": gate_junit,
        "--markdown": lambda one: gate_markdown(one).encode(),
        "--json": lambda one: one.to_json(),
    }
    streamed = [option for option, place in places.items() if place == "-"]
    buffer = io.StringIO()
    if streamed:
        buffer.write(writers[streamed[0]](found).decode())
    else:
        show_gate(found, buffer, notes=not quiet, terminal=sys.stdout if sys.stdout.isatty() else None)
    deliver(buffer.getvalue(), {place: partial(writers[option], found) for option, place in places.items()})
