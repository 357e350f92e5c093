"""Repeats: several rankings of the same queries by one engine whose answers are random.

A `Run` is the first of them and holds the others in `Run.repeats`. An audit averages repeats within
each query. `join_repeats` makes such a run of several, `each_repeat` takes it apart again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ranktilt.data.run import Run
from ranktilt.errors import UserError


def join_repeats(runs: Sequence[Run], name: str | None = None) -> Run:
    """Return one run of several rankings by the same engine; see `Run.from_repeats`."""
    if not runs:
        raise UserError("repeats need at least one run")
    flat: list[Run] = []
    for run in runs:
        flat += [run] if not run.repeats else each_repeat(run)
    shared_name = runs[0].name if name is None else name
    first, *further = (
        replace(run, spec={**run.spec, "alias": shared_name}, repeats=()) for run in flat
    )
    for number, repeat in enumerate(further, start=2):
        _require_same_queries(shared_name, first, repeat, number)
    return replace(first, repeats=tuple(further))


def join_namesakes(runs: Iterable[Run]) -> list[Run]:
    """Join runs to which their user gave the same name: they are repeats of one engine."""
    runs_of: dict[str, list[Run]] = {}
    for number, run in enumerate(runs):
        # A name from a file or a ranker's text may be shared by accident, so it joins nothing.
        key = f"alias {run.spec['alias']}" if "alias" in run.spec else f"run {number}"
        runs_of.setdefault(key, []).append(run)
    return [
        namesakes[0] if len(namesakes) == 1 else join_repeats(namesakes)
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


def _require_same_queries(name: str, first: Run, repeat: Run, number: int) -> None:
    """Refuse a repeat that answers other queries than the first."""
    if first.queries and repeat.queries and set(first.queries).isdisjoint(repeat.queries):
        raise UserError(
            f"run {name!r}: repeats must answer the same queries, and repeat {number} "
            f"({_origin(repeat)}) has none of those of repeat 1 ({_origin(first)}); if they are "
            "different runs, give them different names"
        )


def _origin(run: Run) -> str:
    """Name the file of a run, or its ranker."""
    return str(run.spec.get("file", run.spec.get("ranker", run.name)))
