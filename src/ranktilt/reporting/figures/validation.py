"""The figures of a validation: what twins share, where their texts lie, and effectiveness on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.probes.base import Distribution
from ranktilt.probes.similarity import Map
from ranktilt.probes.validation import ALPHA, Validation
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Mark, clouds, forest, histogram
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.tones import Tone

_BINS = 40
OUTCOMES: dict[Outcome, Tone] = {
    "equivalent": "good",
    "different within the margin": "good",
    "different": "bad",
    "inconclusive": "unsure",
    "not tested": "unsure",
}
"""How each outcome of the test of equivalence is to be taken, in the order in which they are named."""


def distribution_figure(title: str, found: Mapping[str, Distribution], axis: str) -> Figure:
    """Draw distributions over the same bins."""
    return Figure(title, "Shares of pairs; the table holds means and quartiles.", _histogram(found, axis), half=True)


def _histogram(found: Mapping[str, Distribution], axis: str) -> Drawing:
    """Bars over the range that holds anything."""
    low, high = min(one.range[0] for one in found.values()), max(one.range[1] for one in found.values())
    edges = np.linspace(low, high, round(_BINS * (high - low)) + 1)
    counts = {name: np.histogram(one.defined, edges)[0] for name, one in found.items()}
    held = np.flatnonzero(sum(counts.values()))
    first, last = (int(held[0]), int(held[-1]) + 1) if len(held) and low != 0 else (0, len(edges) - 1)
    shares = {name: 100 * count[first:last] / max(found[name].count, 1) for name, count in counts.items()}
    return histogram(shares, edges[first : last + 1], x=axis)


def map_figure(drawn: Map, source: str, reference: str) -> Figure:
    """Draw the texts of both sides in the plane, with twins joined."""
    points = np.column_stack([drawn.x, drawn.y])
    groups = {}
    for name in (reference, source):
        mine = [place for place, of in enumerate(drawn.sources) if of == name]
        groups[name] = (points[mine], [drawn.ids[place] for place in mine])
    sample = "all pairs" if drawn.pairs == drawn.of else f"{drawn.pairs:,} of {drawn.of:,} pairs, drawn by chance"
    return Figure(
        f"Figure 4. A map of the texts: {reference} and {source}",
        f"By t-SNE; {sample}. Near points are texts of like meaning; far distances and the axes mean nothing. Sides "
        "that mingle speak of the same things in a like way. A thin line joins twins. Point at a text to see its id; "
        "drag to move, hold Shift and scroll to zoom.",
        clouds(groups, joined=True),
    )


def forest_figure(rows: Sequence[Equivalence], validation: Validation) -> Figure:
    """Draw the differences of one source and measure, with the margin around 0."""
    intervals = [
        Mark(
            f"{row.run}: {row.outcome}", row.value, row.low, row.high,
            inner=row.smallest - abs(row.value), tone=OUTCOMES[row.outcome],
        )
        for row in rows
    ]  # fmt: skip
    reference, first = validation.reference, rows[0]
    level = f"{100 * (1 - 2 * alpha_of(validation)):g} %"
    return Figure(
        f"Difference in {first.measure}, {reference} − {first.source}",
        f"Shaded: the margin of ±{first.margin:g}. Thin: 95 % interval; thick: {level} interval, "
        f"which must lie in the shade for equivalence. Right of 0: {reference} is searched better; left: "
        f"{first.source}.",
        forest({"": intervals}, x=f"difference in {first.measure}", margin=first.margin),
    )


def alpha_of(validation: Validation) -> float:
    """Return the level of the tests of equivalence."""
    return float(validation.spec.get("alpha", ALPHA))
