"""How the texts of ``-r`` become rankers and runs, with their names and the options of a preset.

A text such as ``bm25(k1=0.9)@100>>monot5:base`` names *stages*, with ``>>`` between them: the first
retrieves documents, and each later one re-ranks what it gets. A stage is a name, an argument behind
a colon (often a model), options in parentheses, and the number of documents to return.

A *preset* has the settings of a paper; its *recipe* for a ranker is the ranker and the model that
the paper used under this name. The *spec* of a run is a dictionary that records how it was made.
"""

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
from ranktilt.errors import UserError, unknown_name

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
        """Read ``NAME=SPEC`` or ``NAME=FILE``; the whole text may be the name of a file instead."""
        match = None if os.path.exists(text) else _NAMED_TEXT.fullmatch(str(text))
        if match is None:
            return cls(text=str(text))
        return cls(text=match["text"], name=match["name"].strip())


def read_rankers(specs: Sequence[str], preset: str | None = None, **defaults: Any) -> list[Ranker]:
    """Read the texts of rankers.

    Parameters
    ----------
    specs : sequence of str
        The texts, without names of the user (`NamedText`), which are refused here.
    preset : str, optional
        Name of a paper's settings.
    **defaults
        Options of the command line. Each ranker that has an option of this name takes the value,
        unless its text sets another. They win over the options of the preset.
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
            # The short name of a model, such as minilm, is completed to dense:minilm.
            if typed_stage.name == stage.argument:
                note_once(f"{typed_stage.name}: taken as {stage.name}:{stage.argument}")
        rankers.append(ranker_of_stages([stage_defaults.fill(stage) for stage in stages]))
    return rankers


@dataclass(frozen=True, kw_only=True)
class _StageDefaults:
    """Options that a stage gets where its text does not set them."""

    typed: Mapping[str, str]
    """Options of the command line."""
    preset: PresetOfPaper
    """Settings of a paper."""
    preset_name: str
    """Name of these settings."""

    def fill(self, stage: Stage) -> Stage:
        """Return a stage with the default options that its ranker has.

        A ranker without a model gets that of the preset's recipe.
        """
        from ranktilt.registry import ranker_class

        names = {field.name for field in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        preset_options = self.preset.options.get(stage.name, {})
        for option in preset_options:
            if option not in names:
                kind = f"option of {stage.name} in preset {self.preset_name!r}"
                raise unknown_name(kind, option, sorted(names))
        text = {} if self.preset.text is None else {"text": self.preset.text}
        defaults = {**text, **preset_options, **self.typed}  # later ones win
        options = {name: value for name, value in defaults.items() if name in names}
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
    """Rank with each ranker, after a check that all can rank.

    Parameters
    ----------
    rankers : sequence of Ranker
        The rankers.
    collection : Collection
        The queries and documents.
    names : sequence of (str or None)
        Names that the user gives the runs, one for each ranker; None keeps a run's own name.
    repeats : bool
        Whether a ranker may rank each query several times; the run then has the further rankings
        as its `Run.repeats`.
    """
    from ranktilt.data.runs.run import named_apart
    from ranktilt.rankers.candidates import check_reranked

    for ranker in rankers:
        ranker.check()
    runs = []
    for ranker in rankers:
        run = ranker.rank_repeats(collection) if repeats else ranker.rank(collection)
        # A ranker of another package may return something that is no run.
        runs.append(check_reranked(run, None, ranker))
    runs = named_apart(runs)
    return with_names(runs, names) if names else runs


def with_names(runs: Sequence[Run], names: Sequence[str | None]) -> list[Run]:
    """Return runs with the names of the user; None keeps a run's own name."""
    renamed_runs = []
    for run, name in zip(runs, names, strict=True):
        renamed_runs.append(run if name is None else replace(run, spec={**run.spec, "alias": name}))
    return renamed_runs


def require_answers(specs: Iterable[Any], max_failures: float | None) -> None:
    """Refuse runs whose language models gave too many unreadable answers.

    Parameters
    ----------
    specs : iterable of mapping
        The specs of the runs, which count the answers.
    max_failures : float or None
        Largest share of unreadable answers, in percent; None allows every share.
    """
    from ranktilt.data.runs.run import stage_facts

    if max_failures is None:
        return
    for spec in specs:
        for stage, answers in stage_facts(spec, "llm_answers"):
            from ranktilt.rankers.llm.answers import require_answers as require

            require(stage, answers, max_failures, "--max-failures")


def require_reader_of_text(text: str | None, specs: Sequence[str]) -> None:
    """Refuse a typed part of a document (``--text``) that no stage of the rankers would read."""
    if text is not None and not any_has_option("text", specs):
        raise UserError("--text needs a ranker that reads texts: name one with -r")


def any_has_option(option: str, specs: Sequence[str]) -> bool:
    """Tell whether a stage of the rankers with these texts has an option."""
    from ranktilt.registry import ranker_class, ranker_stages

    for spec in specs:
        for stage in ranker_stages(spec):
            kind = ranker_class(stage.name)
            if option in {field.name for field in fields(kind)}:  # type: ignore[arg-type]
                return True
    return False
