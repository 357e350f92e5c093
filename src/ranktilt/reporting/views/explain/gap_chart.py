"""The figure on the first screen of a page about a gap: the gap, its parts, and what remains."""

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
    """What the value is."""
    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    is_shown: bool
    """Whether it surely is not 0."""
    note: str = ""
    """A few words below the label."""

    @property
    def turned(self) -> GapMark:
        """The same, seen from the other side."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)


@dataclass(frozen=True, kw_only=True)
class GapScale:
    """What a gap is between and in."""

    run: str
    """Name of the run."""
    higher_above_0: str
    """The side that stands higher where the gap is above 0."""
    higher_below_0: str
    """Group that stands higher where the gap is below 0."""
    unit: str
    """Unit of the gap."""
    digits: int
    """Decimals."""

    @property
    def turned(self) -> GapScale:
        """The same, seen from the other side."""
        return replace(self, higher_above_0=self.higher_below_0, higher_below_0=self.higher_above_0)


def gap_chart(scale: GapScale, gap: GapMark, parts: Sequence[GapMark]) -> IntervalChart:
    """Return the chart of a gap, its parts in this order, and what remains.

    The side that stands higher is on the right, so that the gap is above 0 as in the headline.
    Without parts, which a caller leaves out where they say nothing, it holds the gap alone.
    """
    if gap.value < 0:
        scale, gap, parts = scale.turned, gap.turned, [part.turned for part in parts]
    *properties, remains = parts or [gap]
    drawn = properties[: MOST_ROWS - 2]
    marks = [gap, *drawn, remains] if parts else [gap]
    says = "Line: 95 % interval."
    if parts:
        says += " The parts and what remains add up to the gap. Grey: not shown."
    if len(drawn) < len(properties):
        says += f" Drawn: {len(drawn)} of {len(properties)} properties, the largest."
    between = f"{scale.higher_above_0} against {scale.higher_below_0}"
    return interval_chart(
        f"{scale.run}, {between}{': what goes with the gap' if parts else ''}",
        says,
        [_row(mark, scale) for mark in marks],
        scale_titles=[scale.unit],
        sides=(f"◀ {scale.higher_below_0} higher", f"{scale.higher_above_0} higher ▶"),
        last_rows_on_phone=1,
    )


def _row(mark: GapMark, scale: GapScale) -> IntervalRow:
    """Return a row of the chart."""
    value, low, high = (signed(end, scale.digits) for end in (mark.value, mark.low, mark.high))
    reading = IntervalReading(
        mark=IntervalMark(value=mark.value, low=mark.low, high=mark.high),
        text=f"{value} {scale.unit} [{low}, {high}]",
        tone="" if mark.is_shown else "unsure",
    )
    return IntervalRow(label=mark.label, readings=(reading,), note=mark.note)
