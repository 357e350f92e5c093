"""The names that papers on source bias print for rankers, measures, collections and models.

Tables in a paper's layout use them: ``bm25>>monot5`` becomes ``BM25+monoT5``. A ranker is a
*pipeline* of *stages*, such as ``bm25@100>>monot5:base``. Its first stage retrieves documents, and
the others re-rank them. A *source* is who wrote a text, such as a language model. A name here that
says *run* is that of a ranker: its pipeline, or the file that its results were saved in.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources

from ranktilt.auditing.sources.sources_apart import split_temperature
from ranktilt.errors import UserError
from ranktilt.models.catalogue import model
from ranktilt.spec import Stage, parse_stages

NAMES: dict[str, dict[str, str]] = tomllib.loads(
    resources.files("ranktilt.reporting.layouts").joinpath("names.toml").read_text(encoding="utf-8")
)
"""The sections of ``names.toml``, such as ``rankers`` and ``measures``.

Each has the papers' names by our names.
"""
_DEFAULT_CHECKPOINTS = {"monot5": "base", "monobert": "large"}
"""Checkpoint of a ranker that is named without one."""
_RENAMED_MEASURE = re.compile(r"^(nDCG|AP|RR|R)(?=[@(]|$)")
"""The beginning of a measure that has another name in the papers.

A cutoff (``nDCG@10``) or parameters (``AP(rel=2)``) may follow it.
"""
_SAVED_RUN = re.compile(
    r"""
    (?:replay:)?"?                             # the ranker that returns a saved run, or no ranker
    (?:[^>"]*[/\\])?                           # folders
    ([^/\\>"]+?)                               # the file's name without its endings
    (?:\.(?:trec|run|txt|tsv))(?:\.gz)?"?
    """,
    re.VERBOSE,
)
"""The path of a file with a saved run; its group is the file's name without endings."""


def system_names(runs: Iterable[str]) -> dict[str, str]:
    """Return the papers' names of runs; runs that would share a name keep their own."""
    names = {run: _pipeline_name(run) for run in runs}
    name_counts = Counter(names.values())
    return {run: name if name_counts[name] == 1 else run for run, name in names.items()}


def is_reranked(run: str) -> bool:
    """Tell whether a ranker re-ranks the results of another."""
    return ">>" in run


def first_stage(run: str) -> str:
    """Return the papers' name of a pipeline's first stage, which may be its only one."""
    return _pipeline_name(run.partition(">>")[0].strip())


def _pipeline_name(run: str) -> str:
    """Return the papers' names of a pipeline's stages, joined by ``+``.

    A saved run has the name of its file; a pipeline with a stage that no paper names keeps its own.
    """
    if saved_run := _SAVED_RUN.fullmatch(run):
        return saved_run[1]
    try:
        names = [_stage_name(stage) for stage in parse_stages(run)]
    except UserError:  # a file gives the run a name that is no pipeline, such as ``my best run``
        return run
    return "+".join(names) if all(names) else run


def _stage_name(stage: Stage) -> str:
    """Return the papers' name of one stage; empty where they have none."""
    # The papers' names stand for rankers with their default options.
    if stage.options:
        return ""
    without_depth = str(replace(stage, k=None))
    if without_depth in NAMES["rankers"]:
        return NAMES["rankers"][without_depth]
    checkpoint = stage.argument or _DEFAULT_CHECKPOINTS.get(stage.name)
    catalogue_model = model(checkpoint, stage.name) if checkpoint else None
    # A model's `spec` is its stage as users type it, such as ``dense:ance``.
    return NAMES["models"].get(catalogue_model.spec, "") if catalogue_model else ""


def measure_name(measure: str) -> str:
    """Return the papers' name of a measure: ``AP@1`` is MAP@1, ``RR@10`` is MRR@10."""
    return _RENAMED_MEASURE.sub(lambda match: NAMES["measures"][match[1]], measure, count=1)


def dataset_name(dataset: str) -> str:
    """Return the papers' name of a collection; its own where they have none."""
    return NAMES["datasets"].get(dataset.casefold(), dataset)


def generator(source: str) -> tuple[str, str]:
    """Split the name of a source into its model and the temperature that it sampled at.

    ``llama-tmp0.2`` gives ``llama`` and ``0.2``. The temperature is empty if the name has none.
    """
    model_name, sampling_temperature = split_temperature(source)
    if sampling_temperature is None:
        return model_name, ""
    return model_name, temperature(sampling_temperature)


def temperature(value: float) -> str:
    """Print a temperature with one decimal, or as many as it needs; empty where it is unknown."""
    if math.isnan(value):
        return ""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:g}"
