"""How the texts of ``-r`` become rankers and runs, with their names and the options of a preset."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ranktilt.cli.notes import note_once
from ranktilt.cli.options import option_text
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.presets import Preset as PresetOfPaper
    from ranktilt.rankers.base import Ranker
    from ranktilt.spec import Stage

_NAMED_TEXT = re.compile(r"(?P<name>[^:(@>=/\\]+)=(?P<text>.+)", re.DOTALL)
"""A name and its text; the options of a text begin with a parenthesis or a colon."""


@dataclass(frozen=True, kw_only=True)
class NamedText:
    """Text of a ranker or file of a run, and the name that its user gave it."""

    text: str
    """Text of the ranker, or path of the run."""
    name: str | None = None
    """The name; None where none was given."""

    @classmethod
    def from_text(cls, text: str | Path) -> Self:
        """Read ``NAME=SPEC`` or ``NAME=FILE``; a file of the whole name is that file."""
        match = None if os.path.exists(text) else _NAMED_TEXT.fullmatch(str(text))
        if match is None:
            return cls(text=str(text))
        return cls(text=match["text"], name=match["name"].strip())


def read_rankers(specs: Sequence[str], preset: str | None = None, **defaults: Any) -> list[Ranker]:
    """Read rankers, each with the options of the command line that it has and does not set itself.

    The options of a preset come after those, and its recipe replaces the ranker's name. A verb that
    prints names of its user takes them off (`NamedText`) before; any other refuses them here.
    """
    for spec in specs:
        typed = NamedText.from_text(spec)
        if typed.name is not None:
            raise UserError(
                f"this command gives rankers no names of your own: type {typed.text!r} instead of "
                f"{spec!r} (audit and mitigate read names)"
            )
    from ranktilt.presets import Preset as Presets
    from ranktilt.presets import preset as preset_named
    from ranktilt.registry import ranker_of_stages, ranker_stages
    from ranktilt.spec import parse_stages

    defaults.setdefault("device", settings().machine.device)
    stage_defaults = _StageDefaults(
        typed={name: option_text(value) for name, value in defaults.items() if value is not None},
        preset=Presets(source="") if preset is None else preset_named(preset),
        preset_name=preset or "",
    )
    rankers = []
    for spec in specs:
        stages = ranker_stages(spec)
        for typed_stage, stage in zip(parse_stages(spec), stages, strict=True):
            if typed_stage.name == stage.argument:
                note_once(f"{typed_stage.name}: taken as {stage.name}:{stage.argument}")
        rankers.append(ranker_of_stages([stage_defaults.equip(stage) for stage in stages]))
    return rankers


@dataclass(frozen=True, kw_only=True)
class _StageDefaults:
    """Options for the stages of rankers that do not set them."""

    typed: Mapping[str, str]
    """Options of the command line."""
    preset: PresetOfPaper
    """Settings of a paper."""
    preset_name: str
    """Name of these settings."""

    def equip(self, stage: Stage) -> Stage:
        """Return a stage with the options that its ranker has, and with the preset's recipe."""
        from ranktilt.registry import ranker_class

        names = {field.name for field in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        preset_options = self.preset.options.get(stage.name, {})
        for option in preset_options:
            if option not in names:
                kind = f"option of {stage.name} in preset {self.preset_name!r}"
                raise unknown(kind, option, sorted(names))
        text = {} if self.preset.text is None else {"text": self.preset.text}
        usual = {**text, **preset_options, **self.typed}
        options = {name: value for name, value in usual.items() if name in names}
        name, argument = stage.name, stage.argument
        if argument is None and name in self.preset.recipes:
            name, _, recipe = self.preset.recipes[name].partition(":")
            argument = recipe or None
        return replace(stage, name=name, argument=argument, options={**options, **stage.options})


def rank_with(
    rankers: Sequence[Ranker],
    collection: Collection,
    names: Sequence[str | None] = (),
    *,
    repeats: bool = False,
) -> list[Run]:
    """Rank with each ranker, once all are known to be able to; `names` are the users' for runs.

    With `repeats`, a ranker may rank several times; see `Run.repeats`.
    """
    from ranktilt.data.runs.run import named_apart
    from ranktilt.rankers.candidates import check_reranked

    for ranker in rankers:
        ranker.check()
    ranked = []
    for ranker in rankers:
        run = ranker.rank_repeats(collection) if repeats else ranker.rank(collection)
        ranked.append(check_reranked(run, None, ranker))
    runs = named_apart(ranked)
    return with_names(runs, names) if names else runs


def with_names(runs: Sequence[Run], names: Sequence[str | None]) -> list[Run]:
    """Give runs the names of their user; None keeps a run's name."""
    renamed_runs = []
    for run, name in zip(runs, names, strict=True):
        renamed_runs.append(run if name is None else replace(run, spec={**run.spec, "alias": name}))
    return renamed_runs


def require_answers(specs: Iterable[Any], max_failures: float | None) -> None:
    """Refuse runs with a greater share of unreadable answers of language models than allowed.

    Runs are given by their specs; None allows every share.
    """
    from ranktilt.data.runs.run import stage_facts

    if max_failures is None:
        return
    for spec in specs:
        for stage, answers in stage_facts(spec, "llm_answers"):
            from ranktilt.rankers.llm.answers import require_answers as require

            require(stage, answers, max_failures, "--max-failures")


def any_has_option(option: str, specs: Sequence[str]) -> bool:
    """Tell whether a stage of these rankers has an option."""
    from ranktilt.registry import ranker_class, ranker_stages

    for spec in specs:
        for stage in ranker_stages(spec):
            kind = ranker_class(stage.name)
            if option in {field.name for field in fields(kind)}:  # type: ignore[arg-type]
                return True
    return False
