"""The options of an audit, and their valid values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.auditing.groups import Pair
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.measures.margin import Margin
from ranktilt.statistics.correction import CORRECTIONS

CHOICES = {
    "missing": ("zero", "exclude"),
    "ties": ("expected", "trec_eval"),
    "rounding": ROUNDINGS,
    "test": ("interval", "t"),
    "correction": CORRECTIONS,
}
"""Valid values of the options that are words."""
FEWEST_RESAMPLES = 100
"""Fewest bootstrap resamples that are accepted."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options for grouping, measuring and inference; `ranktilt.audit` explains each field."""

    by: str | None
    pairs: tuple[Pair, ...] | None
    primary: str | Estimand | None
    card: bool
    depth: int
    confounds: bool
    missing: str
    ties: str
    margin: Margin
    keep_top: int
    inference: InferenceOptions
    label_errors: LabelErrors | None = None
    by_query: str | None = None

    def check(self) -> None:
        """Refuse values that no audit takes, before any work is done."""
        check_choices(
            missing=self.missing,
            ties=self.ties,
            rounding=self.inference.rounding,
            test=self.inference.test,
            correction=self.inference.correction,
        )
        check_resamples(self.inference.resamples)
        if self.depth < 1:
            raise UserError(f"expected a depth of at least 1 rank, got {self.depth}")


def usual_primary(estimands: Sequence[Estimand], by: str | None = "source") -> Estimand | None:
    """Choose the primary question if none was named.

    For groups that are no sources it is ExposureRatio, if that is asked; then the deepest nDCG,
    then the first question.
    """
    tested = [estimand for estimand in estimands if not estimand.descriptive]
    if by != "source":
        for estimand in tested:
            if estimand.name == "ExposureRatio":
                return estimand
    gains = [estimand for estimand in tested if estimand.name == "nDCG"]
    if gains:
        return max(gains, key=_depth)
    return tested[0] if tested else None


def _depth(estimand: Estimand) -> float:
    """Return the cutoff of an estimand; infinity without one."""
    return math.inf if estimand.cutoff is None else estimand.cutoff


def check_choices(**options: str) -> None:
    """Refuse unknown values of the options in `CHOICES`."""
    for name, value in options.items():
        if value not in CHOICES[name]:
            raise unknown(name, value, CHOICES[name])


def check_resamples(resamples: int) -> None:
    """Refuse fewer resamples than an interval takes."""
    if resamples < FEWEST_RESAMPLES:
        raise UserError(f"expected at least {FEWEST_RESAMPLES} resamples, got {resamples}")
