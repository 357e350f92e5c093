"""The first figure of a page about a gap: the gap, its parts, and what remains.

A *gap* is the difference in scores or ranks between two groups of documents (sides). A *part* is
what goes with one property of texts; what remains goes with no property.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import signed

ALL = "the gap"
"""Label of the whole gap."""
REMAINS = "what remains"
"""Label of the part of a gap that no property goes with."""


@dataclass(frozen=True, kw_only=True)
class GapMark:
    """The gap, a part of it, or what remains: its value and 95 % interval."""

    label: str
    """`ALL`, the name of a property, or `REMAINS`."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    is_shown: bool
    """Whether it is shown not to be 0."""
    note: str = ""
    """A few words below the label."""

    def swapped(self) -> GapMark:
        """Return the same with the two sides exchanged, so that every sign turns."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)


@dataclass(frozen=True, kw_only=True)
class GapScale:
    """The run, sides and unit of a gap."""

    run: str
    """Name of the run."""
    higher_above_0: str
    """The side that ranks higher where the gap is above 0."""
    higher_below_0: str
    """The side that ranks higher where the gap is below 0."""
    unit: str
    """Unit of the gap."""
    digits: int
    """Number of decimals that are printed."""

    def swapped(self) -> GapScale:
        """Return the same with the two sides exchanged."""
        return replace(self, higher_above_0=self.higher_below_0, higher_below_0=self.higher_above_0)


def gap_chart(scale: GapScale, gap: GapMark, parts: Sequence[GapMark]) -> IntervalChart:
    """Return the chart of a gap, of its parts in the order given, and of what remains.

    The last of `parts` is what remains; empty for a chart of the gap alone. The side that ranks
    higher is on the right, so that the gap is above 0 as in the headline.
    """
    if gap.value < 0:
        scale, gap, parts = scale.swapped(), gap.swapped(), [part.swapped() for part in parts]
    title = f"{scale.run}, {scale.higher_above_0} against {scale.higher_below_0}"
    description = "Line: 95 % interval."
    marks = [gap]
    if parts:
        *properties, remains = parts
        drawn_properties = properties[: MOST_ROWS - 2]  # the gap and what remains are rows too
        marks = [gap, *drawn_properties, remains]
        title += ": what goes with the gap"
        description += " The parts and what remains add up to the gap. Grey: not shown."
        if len(drawn_properties) < len(properties):
            drawn_count = f"{len(drawn_properties)} of {len(properties)}"
            description += f" Drawn: {drawn_count} properties, the largest."
    return interval_chart(
        title,
        description,
        [_chart_row(mark, scale) for mark in marks],
        scale_titles=[scale.unit],
        sides=(f"◀ {scale.higher_below_0} higher", f"{scale.higher_above_0} higher ▶"),
        last_rows_on_phone=1,
    )


def _chart_row(mark: GapMark, scale: GapScale) -> IntervalRow:
    """Return the row of a gap, of a part of it, or of what remains."""
    value, low, high = (signed(end, scale.digits) for end in (mark.value, mark.low, mark.high))
    reading = IntervalReading(
        mark=IntervalMark(value=mark.value, low=mark.low, high=mark.high),
        text=f"{value} {scale.unit} [{low}, {high}]",
        tone="" if mark.is_shown else "unsure",
    )
    return IntervalRow(label=mark.label, readings=(reading,), note=mark.note)
