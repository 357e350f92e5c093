"""The first figure of a page about theorem 4.1 (Dai et al., KDD 2024): its conclusion, conditions.

The theorem concludes that rewrites are easier to predict for a language model than their originals,
from conditions on the model's distributions; all are differences in nats per token.
"""

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
"""Tone by whether a condition holds."""
_DIGITS = 3
"""Number of decimals of nats."""


def theorem_chart(result: ProbeResult) -> Iterator[IntervalChart]:
    """Yield the chart of the conclusion and the conditions, the conclusion first.

    Of several sources the chart has the conclusion alone, for each of them.
    """
    rows = [row for row in result.rows if row["condition"] in CONDITION_WORDS]
    sources = list(dict.fromkeys(row["source"] for row in rows))
    if len(sources) > 1:
        yield _conclusion_chart(rows, len(sources))
        return
    rows.sort(key=lambda row: row["condition"] != CONCLUSION)
    yield interval_chart(
        "What theorem 4.1 concludes, and the conditions that it needs, in nats per token",
        "Line: 95 % interval. Right of 0, a condition holds; divergence must hold everywhere.",
        [_condition_row(row, CONDITION_WORDS[row["condition"]]) for row in rows],
        scale_titles=["nats per token"],
        sides=("◀ does not hold", "holds ▶"),
    )


def _conclusion_chart(rows: Sequence[Mapping[str, Any]], source_count: int) -> IntervalChart:
    """Draw how much easier each source's texts are to predict than their originals."""
    conclusions = [row for row in rows if row["condition"] == CONCLUSION]
    description = "Line: 95 % interval."
    if source_count > MOST_ROWS:
        description += f" Drawn: {MOST_ROWS} of {source_count} sources; the table has all."
    return interval_chart(
        "How much easier rewrites are to predict than originals, in nats per token",
        description,
        [_condition_row(row, row["source"]) for row in conclusions[:MOST_ROWS]],
        scale_titles=["nats per token"],
        sides=("◀ harder", "easier ▶"),
    )


def _condition_row(row: Mapping[str, Any], label: str) -> IntervalRow:
    """Return the row of a condition, with such a sign that the condition holds above 0.

    That divergence holds everywhere is a share of positions, which has no place on the scale.
    """
    value, low, high = (float(row[field]) for field in ("value", "low", "high"))
    condition = str(row["condition"])
    if condition == CONCLUSION:  # rewrite − original, which the theorem says is below 0
        value, low, high = -value, -high, -low
    text = f"{signed(value, _DIGITS)} [{signed(low, _DIGITS)}, {signed(high, _DIGITS)}]"
    if condition == EVERYWHERE:
        text = f"at {percent(value)} % of positions"
        value = low = high = math.nan
    reading = IntervalReading(
        mark=IntervalMark(value=value, low=low, high=high),
        text=text,
        tone=_TONES[str(row["holds"])],
    )
    return IntervalRow(label=label, readings=(reading,))
