"""The first figure of a check: how often each fault was found, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ranktilt.auditing.instrument import CHANCE, InstrumentRow
from ranktilt.data.faults.check_limits import CheckLimits
from ranktilt.data.faults.faults import LENGTH, FaultRow, Verdict
from ranktilt.explaining.check_result import CheckResult
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import percent
from ranktilt.reporting.tones import Tone

_TONES: dict[Verdict, Tone] = {"void": "bad", "warning": "warning", "ok": "good"}
"""Tone of a verdict."""
_ORDER: tuple[Verdict, ...] = ("void", "warning", "ok")
"""Verdicts, the worst first."""


def fault_chart(check: CheckResult) -> Iterator[IntervalChart]:
    """Yield the chart of the faults that weigh most; nothing where nothing is compared."""
    if not check.is_compared:
        return
    counted = [fault for fault in check.faults if not math.isnan(fault.value)]
    faults = sorted(counted, key=lambda fault: _weight(fault, check.limits))
    rows = [_instrument_row(row) for row in check.instrument]
    rows += [_fault_row(check, fault) for fault in faults]
    drawn = rows[:MOST_ROWS]
    left_out = f" Drawn: {len(drawn)} of {len(rows)} checks." if len(drawn) < len(rows) else ""
    yield interval_chart(
        "How often each fault was found, and what is allowed",
        "Shaded: up to the limit beyond which the comparison is void; ! inside it is a warning."
        f"{left_out}",
        drawn,
        scale_titles=["share, %"],
    )


def _weight(fault: FaultRow, limits: CheckLimits) -> tuple[int, float]:
    """Return a fault's place: by its verdict, and by how much of its limit it takes."""
    value, limit = _share(fault), _limit(fault, limits)
    share_of_limit = value / limit if limit else value / 100
    return (_ORDER.index(fault.verdict), -share_of_limit)


def _share(fault: FaultRow) -> float:
    """Return a fault in percent, on the side that has more of it.

    Of a length ratio, by how much lengths differ.
    """
    if fault.name == LENGTH:
        return 100 * abs(fault.value - 1)
    # The verdict is on the worse side, and the mark must lie where its colour comes from.
    return fault.reference if _is_worse_in_reference(fault) else fault.value


def _is_worse_in_reference(fault: FaultRow) -> bool:
    return fault.reference > fault.value


def _limit(fault: FaultRow, limits: CheckLimits) -> float:
    """Return the largest share that is allowed, in percent; NaN where none is too large."""
    if fault.name == LENGTH:
        bound = limits.min_length_ratio if fault.value < 1 else limits.max_length_ratio
        return 100 * abs(bound - 1)
    number = fault.limit.removeprefix("≤ ").removesuffix(" %")
    return float(number) if number.replace(".", "").isdecimal() else math.nan


def _fault_row(check: CheckResult, fault: FaultRow) -> IntervalRow:
    """Return a fault, as a row of the chart."""
    share, limit = _share(fault), _limit(fault, check.limits)
    text = f"{fault.shown_value}, {fault.count:,} of {fault.total:,}"
    if _is_worse_in_reference(fault):
        text = f"{fault.reference:.1f} %"
    if fault.name == LENGTH:
        direction = "longer" if fault.value > 1 else "shorter"
        text = f"{percent(share / 100)} % {direction} (median × {fault.shown_value})"
    reading = IntervalReading(
        mark=IntervalMark(value=share, low=math.nan, high=math.nan),
        text=text,
        tone=_TONES[fault.verdict],
        neutral=math.nan,
        band=None if math.isnan(limit) else (0.0, limit),
    )
    notes = [fault.source] if len(check.sources) > 1 else []
    notes += [f"in {check.reference}"] if _is_worse_in_reference(fault) else []
    return IntervalRow(label=fault.name, readings=(reading,), note=", ".join(notes))


def _instrument_row(row: InstrumentRow) -> IntervalRow:
    """Return how often audits of one ranker name a side by chance."""
    share, low, high = (100 * part for part in (row.sides_named / row.tosses, row.low, row.high))
    reading = IntervalReading(
        mark=IntervalMark(value=share, low=low, high=high),
        text=f"{share:.1f} % [{low:.1f}, {high:.1f}], {row.sides_named} of {row.tosses}",
        tone="good" if row.is_calibrated else "bad",
        neutral=math.nan,
        band=(0.0, 100 * CHANCE),
    )
    return IntervalRow(label="sides named by a coin", readings=(reading,), note=row.ranker)
