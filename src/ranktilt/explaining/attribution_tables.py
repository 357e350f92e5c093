"""Tables and figures of attributed gaps: one of each for every run and source.

A *gap* is how much higher a ranker scores the reference's documents than their twins by another
source. A regression divides it into *parts* that go with properties of the texts, and *what
remains* between twins that do not differ in any property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ranktilt.data.notes.probes import GapAttributed, GapPartsShown
from ranktilt.errors import counted
from ranktilt.explaining.base import ProbeFigure, ProbeTable

REMAINS = "what remains"
"""Name of the row for the part of the gap that goes with no property."""
_PART = "part of the gap, sd"
"""Column of a property's part of the gap, in standard deviations of a query's scores."""
_COEFFICIENT = "coefficient"
"""Column of a property's coefficient."""
_DECIMALS = {_PART: 3, _COEFFICIENT: 3, "% of R²": 1, "R² without": 4, "inflation": 2}
"""Decimals of each column."""

Row = Mapping[str, Any]
"""Numbers of one property, or of what remains; a run and source begin with what remains."""


@dataclass(frozen=True, kw_only=True)
class ScoreGap:
    """The numbers of one run's score gap, and the properties without numbers."""

    rows: Sequence[Row]
    """Rows of the gap: what remains, then each property."""
    unvarying: tuple[str, ...]
    """Properties in which all twins differ by the same amount, so that they explain nothing."""


def tables_and_figures(
    score_gaps: Sequence[ScoreGap], reference: str
) -> Iterator[tuple[ProbeTable, ProbeFigure]]:
    """Yield a table and a figure of the score gap of each run, for one source.

    All have the same order of properties, the largest parts first, and the same scale.
    """
    rows = list(chain.from_iterable(score_gap.rows for score_gap in score_gaps))
    largest = dict.fromkeys((row["property"] for row in rows), 0.0)
    for row in rows:
        largest[row["property"]] = max(abs(row["contribution"]), largest[row["property"]])
    largest[REMAINS] = np.inf
    lows = [row["contribution low"] for row in rows]
    highs = [row["contribution high"] for row in rows]
    axis_values = (min(lows), min(highs), max(lows), max(highs))
    for score_gap in score_gaps:
        ordered = sorted(score_gap.rows, key=lambda row: -largest[row["property"]])
        attributed = _gap_attributed(ordered, reference, score_gap.unvarying)
        yield _table(ordered, attributed), _figure(ordered, axis_values)


def _table(rows: Sequence[Row], attributed: GapAttributed) -> ProbeTable:
    """Return the table of one run and source."""
    remains = rows[0]
    return ProbeTable(
        title=f"{_subject(remains)}: mean score gap {_mean_gap(remains)}, R² {remains['R²']:.4f}",
        rows=(_table_row(remains, is_property=False), *map(_table_row, rows[1:])),
        decimals=_DECIMALS,
        findings=(attributed,),
    )


def _table_row(row: Row, is_property: bool = True) -> Row:
    """Return the cells of a property, or of what remains."""
    coefficient = (row["coefficient"], row["low"], row["high"]) if is_property else None
    percent = None
    if is_property and row["R²"]:
        percent = 100 * row["share of R²"] / row["R²"]
    inflation = row["inflation"]
    return {
        "property": row["property"],
        _PART: _part(row),
        _COEFFICIENT: coefficient,
        "% of R²": percent,
        "R² without": row["R² without"],
        "inflation": "∞" if inflation == np.inf else inflation,
    }


def _figure(rows: Sequence[Row], axis_values: tuple[float, ...]) -> ProbeFigure:
    """Return the figure of one run and source; its axis reaches all `axis_values`."""
    remains = rows[0]
    parts_shown = GapPartsShown(
        gap=remains["mean gap"], is_of_retrieved=remains["selection"] == "retrieved"
    )
    return ProbeFigure(
        kind="forest",
        title=f"{_subject(remains)}: what goes with the mean score gap",
        axis=_PART,
        edges=axis_values,
        series={row["property"]: _part(row) for row in rows},
        findings=(parts_shown,),
    )


def _subject(row: Row) -> str:
    """Name the run and source."""
    return f"{row['ranker']}, {row['source']}"


def _part(row: Row) -> tuple[float, float, float]:
    """Return a property's part of the gap, with its interval."""
    return row["contribution"], row["contribution low"], row["contribution high"]


def _mean_gap(row: Row) -> str:
    """Write the mean gap with its interval, and the pairs that it is over."""
    pairs = counted(row["twins"], "pair of twins", "pairs of twins")
    if row["selection"] != "all":
        pairs = pairs.replace(" ", f" {row['selection']} ", 1)
    interval = f"[{row['gap low']:+.3f}, {row['gap high']:+.3f}]"
    return f"{_sd(row['mean gap'])} {interval} over {pairs}".replace("-", "−")


def _gap_attributed(
    rows: Sequence[Row], reference: str, unvarying: tuple[str, ...]
) -> GapAttributed:
    """Note which side a ranker scores higher, and which properties have a part in it.

    A part is shown if its interval excludes 0. It goes with the gap if it has the same sign, and
    otherwise against the gap.
    """
    remains, *properties = rows
    gap = remains["mean gap"]
    shown_rows = [
        row for row in properties if not row["contribution low"] <= 0 <= row["contribution high"]
    ]
    with_gap = tuple(row["property"] for row in shown_rows if row["contribution"] * gap > 0)
    against_gap = tuple(row["property"] for row in shown_rows if row["contribution"] * gap <= 0)
    return GapAttributed(
        run=remains["ranker"],
        source=remains["source"],
        reference=reference,
        gap=gap,
        low=remains["gap low"],
        high=remains["gap high"],
        is_of_retrieved=remains["selection"] == "retrieved",
        with_gap=with_gap,
        against_gap=against_gap,
        unvarying=unvarying,
    )


def _sd(value: float) -> str:
    """Write a number of standard deviations, with its sign."""
    return f"{value:+.3f} sd".replace("-", "−")
