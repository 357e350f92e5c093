"""Repeats: several rankings of the same queries by one engine whose answers are random.

A `Run` is the first of them and holds the others in `Run.repeats`. An audit averages repeats within
each query. `Run.from_repeats` makes such a run of several, `each_repeat` takes it apart again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ranktilt.data.runs.run import Run


def join_namesakes(runs: Iterable[Run]) -> list[Run]:
    """Join runs to which their user gave the same name: they are repeats of one engine."""
    runs_of: dict[str, list[Run]] = {}
    for number, run in enumerate(runs):
        # A name from a file or a ranker's text may be shared by accident, so it joins nothing.
        key = f"alias {run.spec['alias']}" if "alias" in run.spec else f"run {number}"
        runs_of.setdefault(key, []).append(run)
    return [
        namesakes[0] if len(namesakes) == 1 else Run.from_repeats(namesakes)
        for namesakes in runs_of.values()
    ]


def each_repeat(run: Run) -> list[Run]:
    """Return all repeats of a run, the first included; all have its name."""
    if not run.repeats:
        return [run]
    return [
        replace(repeat, spec={**repeat.spec, "alias": run.name}, repeats=())
        for repeat in (run, *run.repeats)
    ]


def spec_with_repeats(run: Run) -> dict[str, Any]:
    """Return the spec of a run, with those of its other repeats under ``repeats``."""
    spec = dict(run.spec)
    if run.repeats:
        spec["repeats"] = [dict(repeat.spec) for repeat in run.repeats]
    return spec


def name_of_repeat(name: str, number: int) -> str:
    """Return the name of one repeat, in notes about it alone."""
    return f"{name} (repeat {number})"
