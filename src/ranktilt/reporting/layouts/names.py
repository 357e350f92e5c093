"""What papers call rankers, measures, collections and the models that wrote texts."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources

from ranktilt.auditing.sources_apart import split_temperature
from ranktilt.errors import UserError
from ranktilt.models.catalogue import model
from ranktilt.spec import Stage, parse_stages

NAMES: dict[str, dict[str, str]] = tomllib.loads(
    resources.files("ranktilt.reporting.layouts").joinpath("names.toml").read_text(encoding="utf-8")
)
"""The papers' names by kind: of keys, stages, measures and more."""
_DEFAULT = {"monot5": "base", "monobert": "large"}
"""Checkpoint that is meant where a ranker is named without one."""
_MEASURE = re.compile(r"^(nDCG|AP|RR|R)(?=[@(]|$)")
"""Measures that the papers call otherwise."""
_SAVED = re.compile(
    r'(?:replay:)?"?(?:[^>"]*[/\\\\])?([^/\\\\>"]+?)(?:\.(?:trec|run|txt|tsv))(?:\.gz)?"?'
)
"""A file of a saved run, which is called what the file is."""


def system_names(runs: Iterable[str]) -> dict[str, str]:
    """Name rankers as the papers do."""
    names = {run: _pipeline(run) for run in runs}
    name_counts = Counter(names.values())
    return {run: name if name_counts[name] == 1 else run for run, name in names.items()}


def is_reranked(run: str) -> bool:
    """Tell whether a ranker re-ranks the results of another."""
    return ">>" in run


def first_stage(run: str) -> str:
    """Name the first stage of a pipeline as the papers do; a single stage is its own."""
    return _pipeline(run.partition(">>")[0].strip())


def _pipeline(text: str) -> str:
    """Name a pipeline by its stages; as it is typed where a stage has no name."""
    if saved := _SAVED.fullmatch(text):
        return saved[1]
    try:
        names = [_stage(stage) for stage in parse_stages(text)]
    except UserError:  # a run of someone else's is called what its file says
        return text
    return "+".join(name for name in names if name) if all(names) else text


def _stage(stage: Stage) -> str:
    """Return the papers' name of one stage; empty where they have none."""
    if stage.options:
        return ""
    if str(replace(stage, k=None)) in NAMES["rankers"]:
        return NAMES["rankers"][str(replace(stage, k=None))]
    argument = stage.argument or _DEFAULT.get(stage.name)
    known = model(argument, stage.name) if argument else None
    return NAMES["models"].get(known.spec, "") if known else ""


def measure_name(measure: str) -> str:
    """Name a measure as the papers do: ``AP@1`` is MAP@1, ``RR@10`` is MRR@10."""
    return _MEASURE.sub(lambda match: NAMES["measures"][match[1]], measure, count=1)


def dataset_name(dataset: str) -> str:
    """Name a collection as the papers do; one that they do not have keeps its name."""
    return NAMES["datasets"].get(dataset.casefold(), dataset)


def generator(source: str) -> tuple[str, str]:
    """Split the name of a source into its model and its temperature, empty where it has none."""
    model_name, degree = split_temperature(source)
    return model_name, "" if degree is None else temperature(degree)


def temperature(value: float) -> str:
    """Write a temperature as the papers do, with one decimal or as many as it needs.

    Empty where it is unknown.
    """
    if math.isnan(value):
        return ""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:g}"
