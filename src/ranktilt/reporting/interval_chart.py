"""The figure on a page's first screen: rows of values with intervals, drawn without scripts.

A chart is a block of a document. Its rows share one or two scales, and each row has a *reading* on
each scale: a value, its interval and how both are shown. The position of a mark is a percentage of
the scale's length, so that the same chart fits a telephone, a wide window and paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ranktilt.measures.printing import rounded
from ranktilt.reporting.tones import Tone

MOST_ROWS = 8
"""Rows that the first screen of a page has room for."""
MOST_ROWS_OF_PHONE = 5
"""Rows that the first screen of a telephone has room for; the others are collapsed."""
_WIDEST_LABEL = 26
"""Most characters that a label may have in a line."""
_STEPS = (1.0, 2.0, 5.0, 10.0)
"""Steps between ticks that give round numbers; each may be multiplied by a power of ten."""
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
    def drawn_values(self) -> tuple[float, ...]:
        """The value and the ends of the interval, without those that are not finite."""
        values = (self.value, self.low, self.high)
        return tuple(value for value in values if math.isfinite(value))


@dataclass(frozen=True, kw_only=True)
class IntervalReading:
    """A row's value on one scale, and how it is shown."""

    mark: IntervalMark
    """The value with its interval."""
    text: str
    """The value and its interval, as they are printed."""
    tone: Tone = ""
    """Colour of the mark, by its meaning."""
    before: IntervalMark | None = None
    """The value before a change, drawn above `mark` with a line between the two; None for none."""
    neutral: float = 0.0
    """The value that favours nobody; NaN where there is none."""
    band: tuple[float, float] | None = None
    """Range that is shaded: what counts as level, or what random labels give; None for none."""


@dataclass(frozen=True, kw_only=True)
class IntervalRow:
    """A row of a chart: its label, and its values on the scales."""

    label: str
    """What the row is about, such as a ranker."""
    readings: tuple[IntervalReading | None, ...]
    """The reading on each scale; None on a scale where the row has no value."""
    note: str = ""
    """A few words below the label."""


@dataclass(frozen=True, kw_only=True)
class IntervalScale:
    """A horizontal axis, from the lowest to the highest mark on it, with some room."""

    title: str
    """What is measured, with its unit."""
    low: float
    """Value at the left end."""
    high: float
    """Value at the right end."""
    ticks: tuple[float, ...]
    """Values that are labelled."""
    left: str = ""
    """What values to the left of neutral mean, such as a favoured side; empty for nothing."""
    right: str = ""
    """What values to the right of neutral mean; empty for nothing."""

    def share(self, value: float) -> float:
        """Return the position of a value, in percent of the scale's length from the left."""
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 1)

    @property
    def first_tick(self) -> float:
        """Position of the first tick, in percent of the scale's length."""
        return self.share(self.ticks[0]) if self.ticks else 100.0

    @property
    def tick_step(self) -> float:
        """Distance between ticks, in percent of the length from the first tick to the right end."""
        if len(self.ticks) < 2:
            return 100.0
        return round(100 * (self.ticks[1] - self.ticks[0]) / (self.high - self.ticks[0]), 3)

    def tick_text(self, tick: float) -> str:
        """Print a tick with the decimals that tell it from its neighbours."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        # The logarithm of 0.1 may come out slightly below −1, which would add a decimal.
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
    """Number of rows at the bottom that a telephone never hides."""

    @property
    def rows_hidden_on_phone(self) -> frozenset[int]:
        """Indices of the rows that a telephone hides; none where that would save a single row."""
        row_count = len(self.rows)
        if row_count <= MOST_ROWS_OF_PHONE + 1:
            return frozenset()
        last = self.last_rows_on_phone
        return frozenset(range(MOST_ROWS_OF_PHONE - last, row_count - last))

    @property
    def label_width(self) -> int:
        """Width of the column of labels in characters; longer labels wrap."""
        widths = [max(len(row.label), len(row.note)) for row in self.rows]
        return min(max(widths, default=0) + 2, _WIDEST_LABEL)


def interval_scale(
    title: str, readings: Iterable[IntervalReading | None], *, left: str = "", right: str = ""
) -> IntervalScale:
    """Return a scale from the lowest to the highest value that the readings draw.

    `title` says what is measured; `left` and `right` are what values on either side of neutral
    mean.
    """
    values: list[float] = []
    for reading in readings:
        if reading is not None:
            values += _drawn_values(reading)
    low, high = min(values, default=-1.0), max(values, default=1.0)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room, high + room
    return IntervalScale(
        title=title, low=low, high=high, ticks=_ticks(low, high), left=left, right=right
    )


def _drawn_values(reading: IntervalReading) -> list[float]:
    """Return every value of a reading that is drawn: intervals, the neutral value, the band."""
    values = list(reading.mark.drawn_values)
    if reading.before is not None:
        values += reading.before.drawn_values
    limits = (reading.neutral, *(reading.band or ()))
    return values + [limit for limit in limits if math.isfinite(limit)]


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return some three to six round numbers from `low` to `high`, in equal steps."""
    # The power of ten below the step that would give exactly the fewest ticks.
    power = 10.0 ** math.floor(math.log10((high - low) / _FEWEST_TICKS))
    # The largest step that still gives enough ticks; the power itself always does.
    step = next(
        power * factor
        for factor in reversed(_STEPS)
        if (high - low) / (power * factor) >= _FEWEST_TICKS or factor == _STEPS[0]
    )
    # 1e-9 keeps a tick at an end of the range, which rounding may put just outside.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(step * multiple for multiple in range(first, last + 1))


def interval_chart(
    title: str,
    description: str,
    rows: Sequence[IntervalRow],
    *,
    scale_titles: Sequence[str],
    sides: tuple[str, str] = ("", ""),
    second_sides: tuple[str, str] = ("", ""),
    last_rows_on_phone: int = 0,
) -> IntervalChart:
    """Return a chart with one scale for each of the `scale_titles`.

    `sides` are what values to the left and to the right of neutral mean on the first scale,
    `second_sides` on the second. A telephone hides some rows, but never the last
    `last_rows_on_phone`.
    """
    scales = []
    for index, scale_title in enumerate(scale_titles):
        readings = [row.readings[index] for row in rows]
        left, right = sides if index == 0 else second_sides
        scales.append(interval_scale(scale_title, readings, left=left, right=right))
    return IntervalChart(
        title=title,
        description=description,
        scales=tuple(scales),
        rows=tuple(rows),
        last_rows_on_phone=last_rows_on_phone,
    )


def drawn_words(drawn: int, total: int, noun: str = "differences") -> str:
    """Return a sentence on how many differences, or others, are drawn; empty where all are.

    The sentence follows another, so it begins with a blank.
    """
    return f" Drawn: {drawn} of {total} {noun}." if drawn < total else ""
