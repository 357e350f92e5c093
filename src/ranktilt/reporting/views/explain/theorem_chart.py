"""The first figure of a page about theorem 4.1: whether its conclusion and conditions hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranktilt.explaining.base import ProbeResult
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import percent, signed
from ranktilt.reporting.sentences.explaining.theorem import CONCLUSION, CONDITION_WORDS, EVERYWHERE
from ranktilt.reporting.tones import Tone

_TONES: dict[str, Tone] = {"yes": "good", "no": "bad", "undecided": "unsure"}
_DIGITS = 3


def theorem_chart(result: ProbeResult) -> Iterator[IntervalChart]:
    """Yield the chart of one source's conclusion and conditions, or of each one's conclusion."""
    drawn = [row for row in result.rows if row["condition"] in CONDITION_WORDS]
    sources = list(dict.fromkeys(row["source"] for row in drawn))
    if len(sources) > 1:
        yield _sources_chart(drawn, len(sources))
        return
    drawn.sort(key=lambda row: row["condition"] != CONCLUSION)
    yield interval_chart(
        "What theorem 4.1 concludes, and the conditions that it needs, in nats per token",
        "Line: 95 % interval. Right of 0, a condition holds; divergence must hold everywhere.",
        [_row(row, CONDITION_WORDS[row["condition"]]) for row in drawn],
        scale_titles=["nats per token"],
        sides=("◀ does not hold", "holds ▶"),
    )


def _sources_chart(drawn: Sequence[Mapping[str, Any]], source_count: int) -> IntervalChart:
    """Draw how much easier each source's texts are to predict than their originals."""
    conclusions = [row for row in drawn if row["condition"] == CONCLUSION]
    says = "Line: 95 % interval."
    if source_count > MOST_ROWS:
        says += f" Drawn: {MOST_ROWS} of {source_count} sources; the table has all."
    return interval_chart(
        "How much easier rewrites are to predict than originals, in nats per token",
        says,
        [_row(row, row["source"]) for row in conclusions[:MOST_ROWS]],
        scale_titles=["nats per token"],
        sides=("◀ harder", "easier ▶"),
    )


def _row(row: Mapping[str, Any], label: str) -> IntervalRow:
    """Return a condition, turned so that it holds above 0."""
    value, low, high = (float(row[name]) for name in ("value", "low", "high"))
    name = str(row["condition"])
    if name == CONCLUSION:
        value, low, high = -value, -high, -low
    text = f"{signed(value, _DIGITS)} [{signed(low, _DIGITS)}, {signed(high, _DIGITS)}]"
    if name == EVERYWHERE:
        text = f"at {percent(value)} % of positions"
        value = low = high = math.nan
    reading = IntervalReading(
        mark=IntervalMark(value=value, low=low, high=high),
        text=text,
        tone=_TONES[str(row["holds"])],
    )
    return IntervalRow(label=label, readings=(reading,))
