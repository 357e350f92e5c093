"""Conditions of a ranker, which are columns of a table.

In Table 1 of the paper, a model with three prompts is one row, and the prompts are its
*conditions*. In Table 2, conditions are sizes of the window, which is the part of a list that the
model reads at a time. A ranker without its conditions is called a *system*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from ranktilt.errors import UserError
from ranktilt.reporting.layouts.names import system_names
from ranktilt.spec import Stage, parse_stages

_PROMPT = ("attribute", "prompt", "query_template")
"""Options of a ranker about its prompt."""
_LISTWISE, _WINDOWS = "listwise", ("window", "step")
"""Name of the ranker that reads windows of a list, and its options about them."""


def by_condition(rows: pl.DataFrame, *, windows: bool) -> pl.DataFrame:
    """Replace each row's ``system`` by its ranker without conditions, and add the ``condition``.

    With `windows`, the condition includes window and step, and only listwise rankers have one. If a
    ranker has no condition, both columns are null, so that a table leaves it out.
    """
    if not rows.height:
        return rows
    # Many rows are of the same run, whose name is parsed only once.
    by_run = {run: _conditioned_ranker(run, windows=windows) for run in rows["run"].unique()}
    rankers = [by_run[run] for run in rows["run"]]
    systems = system_names(
        dict.fromkeys(ranker.system for ranker in rankers if ranker.condition is not None)
    )
    return rows.with_columns(
        system=pl.Series([systems.get(ranker.system) for ranker in rankers], dtype=pl.String),
        condition=pl.Series([ranker.condition for ranker in rankers], dtype=pl.String),
    )


@dataclass(frozen=True, kw_only=True)
class _ConditionedRanker:
    """A ranker and its condition, such as ``female`` or ``neutral window=20 step=10``."""

    system: str
    """Text of the ranker without its conditions."""
    condition: str | None
    """The condition; None if the table is not about this ranker."""


def _conditioned_ranker(run: str, *, windows: bool) -> _ConditionedRanker:
    """Split a ranker's text into the ranker and its condition.

    The condition is the attribute that the prompt names, such as ``female``, or else ``neutral``. A
    first stage that replays candidates from a file is no part of the system, because all rankers
    order the same candidates.
    """
    try:
        stages = parse_stages(run)
    except UserError:  # a run from elsewhere may have any name
        stages = []
    attributes = [stage.options["attribute"] for stage in stages if "attribute" in stage.options]
    condition = attributes[0] if attributes else "neutral"
    condition_options = set(_PROMPT)
    if windows:
        listwise = [stage for stage in stages if stage.name == _LISTWISE]
        condition = " ".join([condition, *_window(listwise[-1])]) if listwise else ""
        condition_options |= set(_WINDOWS)
    plain_stages = [_without(stage, condition_options) for stage in stages]
    if len(plain_stages) > 1 and plain_stages[0].name == "replay":
        plain_stages = plain_stages[1:]
    return _ConditionedRanker(
        system=">>".join(map(str, plain_stages)) or run, condition=condition or None
    )


def _without(stage: Stage, names: set[str]) -> Stage:
    """Return a stage without some options."""
    options = {name: value for name, value in stage.options.items() if name not in names}
    return replace(stage, options=options)


def _window(stage: Stage) -> Iterator[str]:
    """Yield window and step of a listwise ranker, such as ``window=20``; or their defaults."""
    from ranktilt.rankers.llm.listwise import Listwise

    for name in _WINDOWS:
        default = Listwise.__dataclass_fields__[name].default
        yield f"{name}={stage.options.get(name, default)}"
