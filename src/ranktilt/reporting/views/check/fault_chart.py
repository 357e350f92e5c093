"""The first figure of a check: how often each fault was found, and what is allowed.

A *fault* makes a comparison of two sides unfair, such as empty texts; its *share* is how many texts
have it. The *test of the instrument* audits sources that were drawn by coin, and counts how often a
side is favoured all the same. The *reference* is the side that others are compared with, such as
human text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ranktilt.auditing.checks.instrument import CHANCE, InstrumentRow
from ranktilt.data.faults.check_limits import CheckLimits
from ranktilt.data.faults.faults import LENGTH, FaultRow, Verdict
from ranktilt.explaining.check_result import CheckResult
from ranktilt.measures.printing import digits_apart
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
"""Tone of each verdict on a fault; ``void`` voids the comparison."""
_WORST_FIRST: tuple[Verdict, ...] = ("void", "warning", "ok")
"""Verdicts in the order of the chart."""


def fault_chart(check: CheckResult) -> Iterator[IntervalChart]:
    """Yield the chart of the test of the instrument and of faults, the worst first.

    Nothing where no two sides are compared.
    """
    if not check.is_compared:
        return
    defined = [fault for fault in check.faults if not math.isnan(fault.value)]
    faults = sorted(defined, key=lambda fault: _sort_key(fault, check.limits))
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


def _sort_key(fault: FaultRow, limits: CheckLimits) -> tuple[int, float]:
    """Return a key that sorts faults by their verdict, then by how much of the limit they reach."""
    share, limit = _share(fault), _limit(fault, limits)
    share_of_limit = share / limit if limit else share / 100
    return (_WORST_FIRST.index(fault.verdict), -share_of_limit)


def _share(fault: FaultRow) -> float:
    """Return the share of texts with a fault, in percent, on the side that has more of them.

    For the ratio of lengths, it is by how many percent lengths differ.
    """
    if fault.name == LENGTH:
        return 100 * abs(fault.value - 1)
    # The verdict, which gives the colour, is on the worse side, so the mark must be there too.
    return fault.reference if _is_worse_in_reference(fault) else fault.value


def _is_worse_in_reference(fault: FaultRow) -> bool:
    """Tell whether a fault is more frequent in the reference than in the source."""
    return fault.reference > fault.value


def _limit(fault: FaultRow, limits: CheckLimits) -> float:
    """Return the largest share that is allowed, in percent; NaN where there is no limit."""
    if fault.name == LENGTH:
        bound = limits.min_length_ratio if fault.value < 1 else limits.max_length_ratio
        return 100 * abs(bound - 1)
    # A result holds limits as they are printed: "≤ 5 %", or words where a fault cannot void.
    number = fault.limit.removeprefix("≤ ").removesuffix(" %")
    return float(number) if number.replace(".", "").isdecimal() else math.nan


def _fault_row(check: CheckResult, fault: FaultRow) -> IntervalRow:
    """Return the row of a fault: its share, with what is allowed as band."""
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
    """Return the row of how often audits of one ranker favour a side although a coin drew them."""
    share, low, high = 100 * row.sides_named / row.tosses, 100 * row.low, 100 * row.high
    digits = digits_apart([low, high], [100 * CHANCE])
    ends = f"[{low:.{digits}f}, {high:.{digits}f}]"
    reading = IntervalReading(
        mark=IntervalMark(value=share, low=low, high=high),
        text=f"{share:.1f} % {ends}, {row.sides_named} of {row.tosses}",
        tone="good" if row.is_calibrated else "bad",
        neutral=math.nan,
        band=(0.0, 100 * CHANCE),
    )
    return IntervalRow(label="sides named by a coin", readings=(reading,), note=row.ranker)
