"""Figure 4 of Wang et al. (NAACL 2024): what a model chooses between two groups, before and after fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.result import EVEN, Share
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.papers import style
from ranktilt.reporting.papers.style import COLUMN, SMALL, PaperFigure

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


def choice_figures(comparison: Comparison) -> Iterator[PaperFigure]:
    """Draw both models' ratios of each kind of pairs; call it within `paper_style`."""
    found = choices_of(comparison)
    if not found:
        return
    (runs,) = comparison.runs
    figure = style.blank(COLUMN, 2.2)
    axes, handles = figure.subplots(), []
    style.level_band(axes, 1, 0)
    for number, values in enumerate(zip(*map(ratios, found.values()), strict=True)):
        known = [(place, one) for place, one in enumerate(values) if np.isfinite([one.low, one.value, one.high]).all()]
        drawn = [one.value for _, one in known]
        handles.append(
            axes.errorbar(
                [place + _DODGE * (2 * number - 1) for place, _ in known], drawn,
                yerr=style.error_bars(drawn, [one.low for _, one in known], [one.high for _, one in known]),
                color=style.colour(number), marker=style.mark(number), linestyle="", elinewidth=0.8, capsize=1.5,
            )
        )  # fmt: skip
    axes.set_xticks(range(len(found)), [f"{kind} pairs" for kind in found])
    axes.set_xlim(-0.5, len(found) - 0.5)
    protected, unprotected = comparison.spec["protected"], comparison.spec["unprotected"]
    axes.set_ylabel(f"{style.label(protected)} / {style.label(unprotected)}", fontsize=SMALL)
    style.legend(figure, handles, [f"before: {runs.old}", f"after: {runs.new}"])
    numbers = [
        f"{kind} pairs {decimal(before.value, 2)} before, {decimal(after.value, 2)} after"
        for kind, (before, after) in ((kind, ratios(change)) for kind, change in found.items())
    ]
    yield PaperFigure(
        "wang-figure-4",
        figure,
        f"Choices of {protected} over {unprotected} documents before and after",
        f"Ratio of both groups' shares; 1 is level. Bars: 95 % intervals over queries. {'; '.join(numbers)}.",
    )
