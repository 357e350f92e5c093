"""The figures of an audit's page: how far each ranker tilts, what that is beside its effectiveness, and controls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ranktilt.auditing.answer.verdict import probability
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.figures.drawing import known_size
from ranktilt.reporting.numbers import DASH, decimal, signed
from ranktilt.reporting.numbers import interval as interval_text
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.verdicts import sides_named

MOST_ROWS = 42
"""Intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Pairs of groups that are drawn."""
_UNSEEN = "tilts too small for these queries to detect"
_BAND = " Hatched: what random labels give; their median is level, not 0."


def drawn_pairs(audit: Audit) -> tuple[Pair, ...]:
    """Choose the pairs of groups that are drawn: all where they are few, else those that tilt most clearly."""
    pairs = audit.tilted_pairs
    if len(pairs) <= MOST_PAIRS:
        return pairs
    clear = dict.fromkeys(pairs, -1.0)
    for tilt in audit.tilts:
        size = abs(tilt.value - tilt.level)
        if tilt.measure == repr(audit.primary_measure) and size > 0:
            pair = tilt.a, tilt.b
            clear[pair] = max(clear[pair], size / tilt.error if tilt.error else np.inf)
    chosen = set(sorted(pairs, key=lambda pair: -clear[pair])[:MOST_PAIRS])
    return tuple(pair for pair in pairs if pair in chosen)


def tilt_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ of every ranker and measure between two groups."""
    every = len(audit.runs) * (len(audit.measures) + 1) <= MOST_ROWS
    measures = [repr(one) for one in (audit.measures if every else [audit.primary_measure])]
    found = {run: [t for t in _tilts(audit, run, pair) if t.measure in measures] for run in audit.runs}
    name = f"Relative Δ of {measures[0]}" if len(measures) == 1 else "Relative Δ"
    marks = {run: [tilt_mark(t, audit.level) for t in some] for run, some in found.items()}
    return _intervals(audit, pair, name, marks, x="Relative Δ, %")


def control_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ on the primary measure raw and under each control."""
    marks = defaultdict[str, list[Mark]](list)
    for one in audit.controls:
        if (one.a, one.b) == pair and one.tilts:
            marks[one.run].append(tilt_mark(one.tilts[audit.place], audit.level, one.control))
    name = f"Relative Δ of {audit.primary_measure!r}"
    return _intervals(audit, pair, f"{name}, raw and controlled", marks, x=f"{name}, %")


def card_figure(audit: Audit, pair: Pair) -> Figure | None:
    """Draw what verdicts rest on where nothing is judged: the twins head to head, or who fills the page."""
    rows = [e for e in audit.estimates if (e.a, e.b) == pair and e.estimand == audit.primary]
    if not rows or not audit.primary or not audit.primary.sided:
        return None
    name, unit = rows[0].name, audit.primary.suffix.strip() or "points"
    return _intervals(audit, pair, name, {e.run: [_answer_mark(e)] for e in rows}, x=f"{name}, {unit}", level=0.0)


def _intervals(
    audit: Audit, pair: Pair, title: str, marks: Mapping[str, Sequence[Mark]], *, x: str, level: float | None = None
) -> Figure:  # fmt: skip
    """Draw values with their intervals, and say how to read them."""
    banded = any(mark.band != (0.0, 0.0) for some in marks.values() for mark in some)
    margin = 0.0 if banded else audit.level if level is None else level
    middle, rest = ("the hatched band", _BAND) if banded else ("0", "")
    shaded = f" Dotted: ±{margin:g} points, which count as level." if margin else ""
    says = f"Right of {middle}: {pair[0]}; left: {pair[1]}. Line: 95 % interval. Grey: {_UNSEEN}.{shaded}{rest}"
    drawing = forest(marks, x=x, sides=pair, margin=margin, names=sides_named(pair))
    return Figure(f"{title}, {pair[0]} against {pair[1]}", says, drawing)


def tilt_mark(tilt: Effect, level: float, label: str = "") -> Mark:
    """Turn a Relative Δ into a mark of a figure."""
    known = tilt.value == tilt.value
    said = f"{signed(tilt.value)} % {interval_text(tilt.low, tilt.high)}" if known else "undefined"
    lines = [f"{tilt.run}, {label + ', ' if label else ''}{tilt.measure}", f"Relative Δ {said}"]
    if known:
        lines.append(f"corrected p {probability(tilt.p_corrected)}, {counted(tilt.queries, 'query', 'queries')}")
        if known_size(tilt.detectable):  # nothing where the queries do not spread at all
            some = f"could detect {tilt.detectable:.0f} % or more"
            lines.append("could not detect any tilt" if tilt.detectable > 200 else some)
    band = (tilt.band_low, tilt.band_high) if not tilt.twins else (0.0, 0.0)
    if not tilt.twins:
        lines.append(f"random labels {interval_text(*band)}")
    return Mark(
        label or tilt.measure, tilt.value, tilt.low, tilt.high, VERDICT_TONES[tilt.verdict(level)],
        detectable=tilt.detectable, level=tilt.level, band=band, hover=tuple(lines),
    )  # fmt: skip


def _answer_mark(e: Effect) -> Mark:
    value, low, high, detectable, level = (100 * v for v in (e.value, e.low, e.high, e.detectable, e.level))
    said = DASH if e.low != e.low else f"[{e.estimand.amount(e.low)}, {e.estimand.amount(e.high)}]"
    hover = (e.run, f"{e.name} {e.estimand.answer(e.value)} {said}", f"corrected p {probability(e.p_corrected)}")
    band = (100 * e.band_low, 100 * e.band_high) if e.banded else (0.0, 0.0)
    return Mark(
        e.name, value, low, high, VERDICT_TONES[e.favours or "inconclusive"], detectable=detectable, level=level,
        band=band, hover=hover,
    )  # fmt: skip


def effectiveness_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ beside effectiveness, both on the primary measure."""
    name, (a, b) = repr(audit.primary_measure), pair
    means = audit.by_group().filter(group=ALL, measure=name)
    tilts = {run: _tilts(audit, run, pair)[audit.place] for run in audit.runs}
    points = []
    for run, mean in means.select("run", 100 * pl.col("mean")).iter_rows():
        mark = tilt_mark(tilts[run], audit.level, run)
        hover = (run, f"{name} {decimal(mean)} %", *mark.hover[1:])
        points.append(ScatterPoint(Mark(run, mark.value, mark.low, mark.high, mark.tone, hover=hover), mean))
    twins = all(tilt.twins for tilt in tilts.values())
    heights = (
        f"above 0 relevant {a} stands higher, below 0 {b}." if twins
        else f"the higher, the more for {a}. Level is what random labels give (see the table), not 0."
    )  # fmt: skip
    left = [point.mark.label for point in points if point.x != point.x or point.mark.value != point.mark.value]
    undrawn = f" Not drawn, because a value is undefined: {', '.join(left)}." if left else ""
    return Figure(
        f"{name} over all documents, and how far it tilts between {a} and {b}",
        f"The farther right, the higher the mean; {heights} Lines: 95 % intervals.{undrawn}",
        scatter(
            points, x=f"{name} over all documents, %", y=f"Relative Δ of {name}, %",
            margin=audit.level if twins else 0.0, names=sides_named(pair),
        ),
    )  # fmt: skip


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    return [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
