"""Repeats: several rankings of the same queries by one engine that does not always rank alike.

A `Run` is the first repeat and holds the others in `Run.repeats`. An audit averages repeats within
each query. `Run.from_repeats` makes such a run of several runs, and `each_repeat` makes a run of
each repeat again. The *spec* of a run says how it was made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ranktilt.data.runs.run import Run


def join_namesakes(runs: Iterable[Run]) -> list[Run]:
    """Join the runs to which the user gave the same name, as repeats of one engine.

    Returns all runs in their order; each group of repeats is one of them.
    """
    runs_by_name: dict[str, list[Run]] = {}
    for number, run in enumerate(runs):
        # Only names that the user chose count (``alias``). Those of files or rankers may be the
        # same by accident.
        key = f"alias {run.spec['alias']}" if "alias" in run.spec else f"run {number}"
        runs_by_name.setdefault(key, []).append(run)
    return [
        namesakes[0] if len(namesakes) == 1 else Run.from_repeats(namesakes)
        for namesakes in runs_by_name.values()
    ]


def each_repeat(run: Run) -> list[Run]:
    """Return each repeat of a run, the first included, as a run of its own with the same name."""
    if not run.repeats:
        return [run]
    return [
        replace(repeat, spec={**repeat.spec, "alias": run.name}, repeats=())
        for repeat in (run, *run.repeats)
    ]


def spec_with_repeats(run: Run) -> dict[str, Any]:
    """Return the spec of a run, with the specs of its further repeats under ``repeats``."""
    spec = dict(run.spec)
    if run.repeats:
        spec["repeats"] = [dict(repeat.spec) for repeat in run.repeats]
    return spec


def name_of_repeat(name: str, number: int) -> str:
    """Return the name of one repeat of the run `name`, for notes about this repeat."""
    return f"{name} (repeat {number})"
