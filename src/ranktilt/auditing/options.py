"""The options of an audit as its spec holds them: what they may be, and which files were read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ranktilt.datasets.label_file import LabelFile
from ranktilt.errors import UserError, shorten, unknown
from ranktilt.measures.base import Estimand
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.measures.margin import read_margin
from ranktilt.statistics.correction import CORRECTIONS

CHOICES = {
    "missing": ("zero", "exclude"), "ties": ("expected", "trec_eval"), "rounding": ROUNDINGS,
    "test": ("permutation", "t"), "correction": CORRECTIONS,
}  # fmt: skip
FEWEST_RESAMPLES = 100
_DEEPEST = 20
"""Mixes of mixes."""
_TEXTS = ("path", "split", "labels", "qrels", "revision", "layout", "docs", "by")


def usual_primary(asked: Sequence[Estimand], by: str | None = "source") -> Estimand | None:
    """Choose the question that verdicts answer, before any data are seen: the deepest nDCG, or else the first asked.

    Of groups that are no sources ExposureRatio leads where it is asked. None where nothing is asked but descriptions.
    """
    tested = [one for one in asked if not one.descriptive]
    exposure = [one for one in tested if one.name == "ExposureRatio" and by != "source"]
    gains = [one for one in tested if one.name == "nDCG"]
    deepest = max(gains, key=lambda one: math.inf if one.cutoff is None else one.cutoff, default=None)
    return next(iter((*exposure, *([deepest] if deepest else []), *tested)), None)


def check_choices(**given: str) -> None:
    """Refuse unknown values of the options in `CHOICES`, before any work is done."""
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise unknown(name, value, CHOICES[name])


def check_resamples(resamples: int) -> None:
    """Refuse too few of them."""
    if resamples < FEWEST_RESAMPLES:
        raise UserError(f"expected at least {FEWEST_RESAMPLES} resamples, got {resamples}")


def files_of_runs(specs: Iterable[Any]) -> list[str]:
    """List the files that runs were read from, those of their candidates too, each once; from the specs of the runs."""
    found = dict[str, None]()
    for spec in specs:
        while isinstance(spec, Mapping):
            if "file" in spec:
                found[str(spec["file"])] = None
            spec = spec.get("candidates")
    return list(found)


def require_spec(spec: Mapping[str, Any]) -> None:
    """Refuse the spec of a file that no audit could have written: `KeyError`, or msgspec's `ValidationError`."""
    _typed(spec, dict[str, Any], "spec")
    _typed(spec["by"], str | None, "by")
    for name, valid in CHOICES.items():
        if spec[name] not in valid:
            raise ValueError(f"{name}: expected one of {', '.join(valid)}; got {shorten(spec[name])}")
    for name, least in (("resamples", FEWEST_RESAMPLES), ("seed", 0)):
        _typed(spec[name], int, name)
        if spec[name] < least:
            raise ValueError(f"{name}: expected at least {least}, got {spec[name]}")
    read_margin(_typed(spec.get("level", 0.0), float | str, "level"))
    _require_collection(spec.get("collection", {}))
    for run in _typed(spec.get("runs", []), list[dict[str, Any]], "runs"):
        for name in ("ranker", "name", "file", "score_order"):
            _typed(run.get(name, ""), str, name)
    for entry in _typed(spec.get("inputs", []), list[dict[str, Any]], "inputs"):
        for name in ("path", "sha256"):
            _typed(entry[name], str, name)


def _require_collection(spec: Any, depth: int = 0) -> None:
    found = _typed(spec, dict[str, Any], "collection")
    if depth > _DEEPEST:
        raise ValueError(f"collection: expected mixes at most {_DEEPEST} deep")
    for name in _TEXTS:
        _typed(found.get(name), str | None, name)
    _typed(found.get("label_file"), LabelFile | None, "label_file")
    for part in _typed(found.get("mix", []), list[Any], "mix"):
        _require_collection(part, depth + 1)


def _typed(found: Any, kind: Any, name: str) -> Any:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise TypeError(f"{name}: {error}") from error
