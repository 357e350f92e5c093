"""Figure 4 of Wang et al. (NAACL 2024): what a model chooses between two groups, before and after fine-tuning."""

from __future__ import annotations

import numpy as np

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.result import EVEN, Share
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines

BEFORE_AND_AFTER = ("before", "after")
_DODGE = 0.12


def choices_of(comparison: Comparison) -> dict[str, Change]:
    """Changes of preference by their kind of pairs; none in a comparison of audits."""
    return {c.estimand.pairs: c for c in comparison.estimates if isinstance(c.estimand, PreferenceOfPairs)}


def ratios(change: Change) -> tuple[Share, Share]:
    """Protected over unprotected share of the old and of the new model, with their intervals; 1 is level."""
    ends = ((change.old, "old"), (change.new, "new"))
    shares = (Share(EVEN + x, EVEN + change.parts[f"{n}_low"], EVEN + change.parts[f"{n}_high"]) for x, n in ends)
    before, after = (one.odds for one in shares)
    return before, after


def choice_figure(comparison: Comparison) -> Figure | None:
    """Draw both models' ratios of each kind of pairs; None of a comparison of audits."""
    found = choices_of(comparison)
    if not found:
        return None
    (runs,) = comparison.runs
    both = list(zip(*map(ratios, found.values()), strict=True))
    points = {
        f"{when}: {model}": [Point(place, one.value, one.low, one.high) for place, one in enumerate(values)]
        for when, model, values in zip(BEFORE_AND_AFTER, (runs.old, runs.new), both, strict=True)
    }
    ends = [v for values in both for one in values for v in (one.value, one.low, one.high) if np.isfinite(v)]
    protected, unprotected = comparison.spec["protected"], comparison.spec["unprotected"]
    drawing = lines(
        points, x="", y=f"{protected} / {unprotected}", dodge=_DODGE, domain=(0.0, max([*ends, 1.0]) * 1.1),
        names={float(place): f"{kind} pairs" for place, kind in enumerate(found)},
    )  # fmt: skip
    title = f"Choices of {protected} over {unprotected} documents before and after"
    return Figure(title, "Ratio of both groups' shares; 1 is level. Bars: 95 % intervals over queries.", drawing)
