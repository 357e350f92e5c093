"""What a ranker was asked for: one model with three prompts is one row of Table 1, and with four windows of Table 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from ranktilt.errors import UserError
from ranktilt.reporting.layouts.names import system_names
from ranktilt.spec import Stage, parse_stages

_PROMPT = ("attribute", "prompt", "query_template")
"""Options of a stage that say what it is asked for: conditions of one system."""
_LISTWISE, _WINDOWS = "listwise", ("window", "step")


def by_condition(rows: pl.DataFrame, *, windows: bool) -> pl.DataFrame:
    """Replace the ``system`` of each row by the bare ranker, and add the ``condition``; null where it has none."""
    if not rows.height:
        return rows
    conditions = {run: _condition(run, windows=windows) for run in rows["run"].unique()}
    systems = system_names(
        dict.fromkeys(conditions[run][0] for run in rows["run"] if conditions[run][1])
    )
    told = [conditions[run] for run in rows["run"]]
    return rows.with_columns(
        system=pl.Series([systems.get(bare) for bare, _ in told], dtype=pl.String),
        condition=pl.Series([condition or None for _, condition in told], dtype=pl.String),
    )


def _condition(run: str, *, windows: bool) -> tuple[str, str]:
    """Split a ranker's text into the ranker and what it is asked for; empty where a table is not about it.

    Candidates that all rankers order alike are no part of one's name.
    """
    try:
        stages = parse_stages(run)
    except UserError:  # a run of someone else's is called what its file says
        stages = []
    attributes = [stage.options["attribute"] for stage in stages if "attribute" in stage.options]
    condition = attributes[0] if attributes else "neutral"
    dropped = set(_PROMPT)
    if windows:
        listwise = [stage for stage in stages if stage.name == _LISTWISE]
        condition = " ".join([condition, *_window(listwise[-1])]) if listwise else ""
        dropped |= set(_WINDOWS)
    kept = [_without(stage, dropped) for stage in stages]
    if len(kept) > 1 and kept[0].name == "replay":
        kept = kept[1:]
    return ">>".join(map(str, kept)) or run, condition


def _without(stage: Stage, dropped: set[str]) -> Stage:
    options = {name: value for name, value in stage.options.items() if name not in dropped}
    return replace(stage, options=options)


def _window(stage: Stage) -> Iterator[str]:
    """Window and step of a listwise ranker, such as ``window=20``, the defaults where its text names none."""
    from ranktilt.rankers.llm.listwise import Listwise

    for name in _WINDOWS:
        yield f"{name}={stage.options.get(name, Listwise.__dataclass_fields__[name].default)}"
