"""The options of an audit, their valid values, and the primary question if nobody chose one.

The *primary question* is the one that verdicts answer; it is chosen before the data are seen. The
*card* holds all questions that are not about judgments, such as which group fills the first ranks.
The *neutral value* of an answer favours neither of two groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.auditing.groups import Pair
from ranktilt.auditing.significance import InferenceOptions
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.errors import unknown_name
from ranktilt.field_checks import require_seed, require_whole_number
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
"""Fewest bootstrap resamples that are accepted.

A 95 % interval leaves out 2.5 % of the resamples at either end: of 100, no more than two.
"""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options for grouping, measuring and inference; those of `ranktilt.audit`."""

    by: str | None
    """Column of documents to group by; None for no groups."""
    pairs: tuple[Pair, ...] | None
    """Pairs of groups to compare; None for all pairs."""
    primary: str | Estimand | None
    """The question that verdicts answer; None for the usual one."""
    card: bool
    """Whether to ask all questions of the card."""
    depth: int
    """Number of first ranks that ΔNDSR counts, a question of the card."""
    confounds: bool
    """Whether to compare the texts of the sources."""
    missing: str
    """Whether a judged query that a run lacks counts 0 (``zero``), or not at all (``exclude``)."""
    ties: str
    """``expected`` value over all orders of tied documents, or the order of ``trec_eval``."""
    margin: Margin
    """Largest distance from the neutral value that a verdict calls level."""
    keep_top: int
    """Number of first ranks of every list that the result saves."""
    inference: InferenceOptions
    """Options of intervals and tests."""
    label_errors: LabelErrors | None = None
    """How often labels are wrong; None if they are taken as true."""
    by_query: str | None = None
    """Column of queries to group by; None for no groups of queries."""

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
        require_seed(self.inference.seed)
        require_whole_number(self.depth, "a depth of at least 1 rank", least=1)
        require_whole_number(self.keep_top, "to keep the top 0 ranks or more", least=0)


def usual_primary(estimands: Sequence[Estimand], by: str | None = "source") -> Estimand | None:
    """Return the primary question if the user named none.

    For groups that are no sources it is ExposureRatio, if that is among the questions. Else it is
    the nDCG with the largest cutoff, or the first question if there is no nDCG. None if no question
    can have a verdict, because all of them only describe.
    """
    candidates = [estimand for estimand in estimands if not estimand.descriptive]
    if by != "source":
        for estimand in candidates:
            if estimand.name == "ExposureRatio":
                return estimand
    ndcgs = [estimand for estimand in candidates if estimand.name == "nDCG"]
    if ndcgs:
        return max(ndcgs, key=_depth)
    return candidates[0] if candidates else None


def _depth(estimand: Estimand) -> float:
    """Return the number of ranks that an estimand counts: its cutoff, or infinity without one."""
    return math.inf if estimand.cutoff is None else estimand.cutoff


def check_choices(**options: str) -> None:
    """Refuse unknown values of the options in `CHOICES`."""
    for name, value in options.items():
        if value not in CHOICES[name]:
            raise unknown_name(name, value, CHOICES[name])


def check_resamples(resamples: int) -> None:
    """Refuse fewer bootstrap resamples than an interval needs."""
    expected = f"at least {FEWEST_RESAMPLES} resamples"
    require_whole_number(resamples, expected, least=FEWEST_RESAMPLES)
