"""The options of an audit: what they may be, and which files its runs were read from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.statistics.correction import CORRECTIONS

CHOICES = {
    "missing": ("zero", "exclude"),
    "ties": ("expected", "trec_eval"),
    "rounding": ROUNDINGS,
    "test": ("interval", "t"),
    "correction": CORRECTIONS,
}
FEWEST_RESAMPLES = 100


def usual_primary(asked: Sequence[Estimand], by: str | None = "source") -> Estimand | None:
    """Choose the question of the verdicts: of no sources ExposureRatio, else the deepest nDCG, else the first asked."""
    tested = [one for one in asked if not one.descriptive]
    exposure = [one for one in tested if one.name == "ExposureRatio" and by != "source"]
    gains = [one for one in tested if one.name == "nDCG"]
    deepest = max(
        gains, key=lambda one: math.inf if one.cutoff is None else one.cutoff, default=None
    )
    return next(iter((*exposure, *([deepest] if deepest else []), *tested)), None)


def check_choices(**given: str) -> None:
    """Refuse unknown values of the options in `CHOICES`, before any work is done."""
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise unknown(name, value, CHOICES[name])


def check_resamples(resamples: int) -> None:
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
