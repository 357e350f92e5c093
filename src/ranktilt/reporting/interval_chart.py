"""The figure on a page's first screen: rows of values with intervals, drawn without scripts.

A chart is a block of a document. Its rows share one or two scales. The position of a mark is a
share of the scale's length, so that the same chart fits a telephone, a wide window and paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ranktilt.measures.printing import rounded
from ranktilt.reporting.tones import Tone

MOST_ROWS = 8
"""Rows that the first screen has room for."""
MOST_ROWS_OF_PHONE = 5
"""Rows that the first screen of a telephone has room for; the others are collapsed."""
_WIDEST_LABEL = 26
"""Characters of the widest label."""
_STEPS = (1.0, 2.0, 5.0, 10.0)
"""Steps between ticks, times a power of ten."""
_FEWEST_TICKS = 3
"""Fewest ticks of a scale."""
_ROOM = 0.05
"""Share of a scale that stays free beyond its outermost mark."""


@dataclass(frozen=True, kw_only=True)
class IntervalMark:
    """A value with its interval on a scale."""

    value: float
    """The value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

    @property
    def is_known(self) -> bool:
        """Whether there is a value to draw."""
        return math.isfinite(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def ends(self) -> tuple[float, ...]:
        """Everything of it that has a place on a scale."""
        return tuple(end for end in (self.value, self.low, self.high) if math.isfinite(end))


@dataclass(frozen=True, kw_only=True)
class IntervalReading:
    """What a row has on one scale."""

    mark: IntervalMark
    """The value with its interval."""
    text: str
    """Its numbers, as they are printed."""
    tone: Tone = ""
    """Tone of the mark."""
    before: IntervalMark | None = None
    """What it was before a change; drawn above it, and joined with it."""
    neutral: float = 0.0
    """The value that favours nobody."""
    band: tuple[float, float] | None = None
    """What counts as level, or what random labels give."""


@dataclass(frozen=True, kw_only=True)
class IntervalRow:
    """A row: what it is about, and a reading on each scale, or None where it has none there."""

    label: str
    """What the row is about."""
    readings: tuple[IntervalReading | None, ...]
    """A reading on each scale; None where there is none."""
    note: str = ""
    """A few words below the label."""


@dataclass(frozen=True, kw_only=True)
class IntervalScale:
    """A scale, which is as long as the marks on it need."""

    title: str
    """What is measured, with its unit."""
    low: float
    """Value at the left end."""
    high: float
    """Value at the right end."""
    ticks: tuple[float, ...]
    """Values that are labelled."""
    left: str = ""
    """What lies to the left of neutral."""
    right: str = ""
    """What values to the right mean; empty for nothing."""

    def share(self, value: float) -> float:
        """Return where a value stands on the scale, in percent of its length."""
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 1)

    @property
    def first_tick(self) -> float:
        """Where the first tick stands, in percent of the scale's length."""
        return self.share(self.ticks[0]) if self.ticks else 100.0

    @property
    def tick_step(self) -> float:
        """How far ticks are apart, in percent of what is right of the first one."""
        if len(self.ticks) < 2:
            return 100.0
        return round(100 * (self.ticks[1] - self.ticks[0]) / (self.high - self.ticks[0]), 3)

    def tick_text(self, tick: float) -> str:
        """Print a tick with the decimals that tell it from its neighbours."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        return rounded(tick, digits, ",").replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class IntervalChart:
    """Rows of intervals over one or two scales."""

    kind: ClassVar[str] = "intervals"
    title: str
    """Heading of the chart."""
    description: str
    """How to read it."""
    scales: tuple[IntervalScale, ...]
    """One or two scales."""
    rows: tuple[IntervalRow, ...]
    """The rows, from the top."""
    last_rows_on_phone: int = 0
    """Number of the last rows that a telephone shows too."""

    @property
    def rows_hidden_on_phone(self) -> frozenset[int]:
        """Indices of the rows that a telephone hides; none where that would save a row or two."""
        count = len(self.rows)
        if count <= MOST_ROWS_OF_PHONE + 1:
            return frozenset()
        ends = self.last_rows_on_phone
        return frozenset(range(MOST_ROWS_OF_PHONE - ends, count - ends))

    @property
    def label_width(self) -> int:
        """Letters that the labels take beside the scales; longer ones wrap."""
        widths = [max(len(row.label), len(row.note)) for row in self.rows]
        return min(max(widths, default=0) + 2, _WIDEST_LABEL)


def interval_scale(
    title: str, readings: Iterable[IntervalReading | None], *, left: str = "", right: str = ""
) -> IntervalScale:
    """Return a scale that holds each interval, what is neutral and what is level, and no more."""
    ends: list[float] = []
    for reading in readings:
        if reading is not None:
            ends += _ends(reading)
    low, high = min(ends, default=-1.0), max(ends, default=1.0)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room
    return IntervalScale(
        title=title, low=low, high=high, ticks=_ticks(low, high), left=left, right=right
    )


def _ends(reading: IntervalReading) -> list[float]:
    """Return all values that a reading's scale must reach."""
    ends = list(reading.mark.ends)
    if reading.before is not None:
        ends += reading.before.ends
    ends += [end for end in (reading.neutral, *(reading.band or ())) if math.isfinite(end)]
    return ends


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers within a range, some three to six, in equal steps."""
    power = 10.0 ** math.floor(math.log10((high - low) / _FEWEST_TICKS))
    step = next(
        power * factor
        for factor in reversed(_STEPS)
        if (high - low) / (power * factor) >= _FEWEST_TICKS or factor == _STEPS[0]
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(step * number for number in range(first, last + 1))


def interval_chart(
    title: str,
    description: str,
    rows: Sequence[IntervalRow],
    *,
    scales: Sequence[str],
    sides: tuple[str, str] = ("", ""),
    second_sides: tuple[str, str] = ("", ""),
    last_rows_on_phone: int = 0,
) -> IntervalChart:
    """Return a chart of rows over scales with these titles.

    `sides` are what lies to the left and to the right of neutral on the first scale,
    `second_sides` on the second; a telephone folds some rows, but none of the last
    `last_rows_on_phone`.
    """
    chart_scales = []
    for index, scale_title in enumerate(scales):
        readings = [row.readings[index] for row in rows]
        left, right = sides if index == 0 else second_sides
        chart_scales.append(interval_scale(scale_title, readings, left=left, right=right))
    return IntervalChart(
        title=title,
        description=description,
        scales=tuple(chart_scales),
        rows=tuple(rows),
        last_rows_on_phone=last_rows_on_phone,
    )
