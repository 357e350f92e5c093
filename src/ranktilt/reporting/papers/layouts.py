"""The papers' tables as presets: rows, columns, order, names and how numbers are printed, read from `layouts.toml`."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import msgspec
import numpy as np

from ranktilt.auditing.sources_apart import split_temperature
from ranktilt.errors import UserError
from ranktilt.models.catalogue import model
from ranktilt.rankers.spec import Stage, parse_stages

_FILE = tomllib.loads(
    resources.files("ranktilt.reporting.papers")
    .joinpath("layouts.toml")
    .read_text(encoding="utf-8")
)
_NAMES: dict[str, dict[str, str]] = _FILE.pop("names")
_DEFAULT = {"monot5": "base", "monobert": "large"}
_MEASURE = re.compile(r"(nDCG|AP|RR|R)(?=[@(]|$)")
_CONTEXT = {"generator": "LLM text by {}", "temperature": "temperature {}"}
_SAVED = re.compile(
    r'(?:replay:)?"?(?:[^>"]*[/\\\\])?([^/\\\\>"]+?)(?:\.(?:trec|run|txt|tsv))(?:\.gz)?"?'
)
"""A file of a saved run, which is called what the file is."""


def system_names(runs: Iterable[str]) -> dict[str, str]:
    """Name rankers as the papers do."""
    found = {run: _pipeline(run) for run in runs}
    shared = Counter(found.values())
    return {run: name if shared[name] == 1 else run for run, name in found.items()}


def is_reranked(run: str) -> bool:
    """Whether a ranker re-ranks what another one found."""
    return ">>" in run


def first_stage(run: str) -> str:
    """What a pipeline starts with, as the papers call it; a ranker of one stage is its own."""
    return _pipeline(run.partition(">>")[0].strip())


def _pipeline(text: str) -> str:
    if saved := _SAVED.fullmatch(text):
        return saved[1]
    try:
        names = [_stage(stage) for stage in parse_stages(text)]
    except UserError:  # a run of someone else's is called what its file says
        return text
    return "+".join(name for name in names if name) if all(names) else text


def _stage(stage: Stage) -> str:
    """The papers' name of one stage; empty where they have none."""
    if stage.options:
        return ""
    if str(replace(stage, k=None)) in _NAMES["rankers"]:
        return _NAMES["rankers"][str(replace(stage, k=None))]
    argument = stage.argument or _DEFAULT.get(stage.name)
    known = model(argument, stage.name) if argument else None
    return _NAMES["models"].get(known.spec, "") if known else ""


def measure_name(measure: str) -> str:
    """Name a measure as the papers do: ``nDCG@3`` is NDCG@3, ``AP@1`` is MAP@1, ``RR@10`` is MRR@10."""
    return _MEASURE.sub(lambda found: _NAMES["measures"][found[1]], measure, count=1)


def dataset_name(dataset: str) -> str:
    """Name a collection as the papers do; one that they do not have keeps its name."""
    return _NAMES["datasets"].get(dataset.casefold(), dataset)


def generator(source: str) -> tuple[str, str]:
    """Split the name of a source into its model and, where the name ends in one, its temperature."""
    model_name, degree = split_temperature(source)
    return model_name, "" if degree is None else temperature(degree)


def temperature(value: float) -> str:
    """Write a temperature as the papers do, with one decimal or as many as it needs; empty where it is unknown."""
    if value != value:
        return ""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:g}"


def of_gpt(model_name: str) -> bool:
    """Whether a text was written by a model of the GPT family, which the papers put into tables of its own."""
    return "gpt" in model_name.casefold()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One table of a paper, without its numbers."""

    name: str
    """Such as ``dai-3``."""
    title: str
    """The caption."""
    kind: str = ""
    """Of tables that are filled alike: ``mixed`` rankings, each source ``alone``, ``groups``, ``whole`` collections,
    ``domains``, or ``texts``."""
    reranked: bool = False
    """Whether it is about re-rankers, and what they start from."""
    title_of_groups: str = ""
    """The caption where the groups are not human and LLM; the same by default."""
    rows: tuple[str, ...] = ("system", "target")
    """Keys of a cell, the slowest first."""
    columns: tuple[str, ...] = ("dataset", "measure")
    """One key or two."""
    panels: tuple[str, ...] = ()
    """Keys of the blocks below each other; every key that is nowhere else and has several values joins them."""
    measures: tuple[str, ...] = ()
    """Those of the paper, in its order; others follow."""
    digits: int = 1
    """Decimals."""
    digits_of: Mapping[str, int] = field(default_factory=dict)
    """Decimals of single measures."""
    leading_zero: bool = True
    """Whether 0.5 is printed so, or .5."""
    scale: float = 1.0
    """What a value of 0 to 1 is multiplied by for the print: 100 for percent."""
    derived: str = ""
    """Which cells follow from others: ``relative_delta`` from two means, or a ``ratio`` from two shares."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of keys, where they are not the usual ones."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How values are printed, where it is not the usual way."""
    shows: str = ""
    """What a result must hold for this table."""
    command: str = ""
    """What makes such a result."""
    mark: str = ""
    """What stands behind a number that is significantly better than others, such as ``†``."""
    mark_note: str = ""
    """What the mark says."""
    curve: bool = False
    """Whether its rows are the places of a curve, of which print shows a few and CSV all."""

    @property
    def paper(self) -> str:
        """Which table or figure of which paper it is."""
        paper, _, number = self.name.rpartition("-")
        kind = "Figure" if number.startswith("fig") else "Table"
        return f"{kind} {number.removeprefix('fig')} of {_NAMES['papers'][paper]}"

    def title_of(self, key: str) -> str:
        return self.titles.get(key, _NAMES["keys"][key])

    def label(self, key: str, value: str) -> str:
        if value in self.labels:
            return self.labels[value]
        if key == "measure":
            return measure_name(value)
        if key == "dataset":
            return dataset_name(value)
        return _NAMES["targets"].get(value, value) if key == "target" else value

    def said(self, key: str, value: str) -> str:
        """Return a key's value as it stands in a caption; nothing where there is none."""
        if not value:
            return ""
        return _CONTEXT.get(key, "{}").format(self.label(key, value))

    def printed(self, value: float, measure: str) -> str:
        """Print a number as the paper does; ``–`` where it is undefined."""
        if value != value:
            return "–"
        digits = self.digits_of.get(measure, self.digits)
        text = f"{np.round(value, digits) + 0.0:.{digits}f}"  # halves to even; −0 becomes 0
        return (
            text
            if self.leading_zero
            else text.replace("0.", ".", 1)
            if text.lstrip("-")[0] == "0"
            else text
        )

    def unit(self, measure: str) -> float:
        """Return half of the last printed digit's worth: how far a print may lie from its number."""
        return float(0.5 * 10.0 ** -self.digits_of.get(measure, self.digits))


def _read(name: str) -> dict[str, Any]:
    """What the file says of a layout, and what it takes from another one."""
    given = dict(_FILE[name])
    base = _read(given.pop("like")) if "like" in given else {}
    return {**base, **given, "name": name}


LAYOUTS = {name: msgspec.convert(_read(name), Layout) for name in _FILE}
"""Every preset by its name."""
KINDS = {
    kind: tuple(name for name, one in LAYOUTS.items() if one.kind == kind)
    for kind in dict.fromkeys(one.kind for one in LAYOUTS.values())
}
"""Layouts of each kind."""
FIGURES = tuple(name for name in LAYOUTS if "-fig" in name)
"""Layouts of figures, which are drawn too."""
PAPER = "paper"
"""The layout of every table that the results hold."""
