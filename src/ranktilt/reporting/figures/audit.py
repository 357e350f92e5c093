"""The figures of an audit's page: how far each ranker tilts, what that is beside its effectiveness, and controls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ranktilt.auditing.answer.verdict import probability
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.numbers import DASH, decimal, signed
from ranktilt.reporting.numbers import interval as interval_text
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.verdicts import could_detect, sides_named
from ranktilt.statistics.bootstrap import RESAMPLES, Interval, interval, resampled_means, together

MOST_ROWS = 42
"""Intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Pairs of groups that are drawn."""
_UNSEEN = "tilts too small for these queries to detect"
_BAND = " Hatched: what random labels give; their median is level, not 0."
_MOST = 100_000
"""Resamples of an interval that is only drawn."""


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
        lines += could_detect(tilt)
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


def effectiveness(audit: Audit) -> dict[str, tuple[float, Interval]]:
    """Give each ranker's mean on the primary measure over all documents, with its interval."""
    found = {run: audit.values[place, audit.place, audit.groups.index(ALL)] for place, run in enumerate(audit.runs)}
    families: dict[bytes, list[str]] = defaultdict(list)
    for run, values in found.items():
        distinct = audit.distinct(run)
        families[(~np.isnan(values)).tobytes() + (b"" if distinct is None else distinct.tobytes())].append(run)
    out = {}
    resamples, seed = min(int(audit.spec.get("resamples", RESAMPLES)), _MOST), int(audit.spec.get("seed", 0))
    for members in families.values():
        mask, distinct = ~np.isnan(found[members[0]]), audit.distinct(members[0])
        distinct = None if distinct is None else distinct[mask]
        columns = [100 * found[run][mask] for run in members]
        rows = [together(column, distinct) for column in (*columns, np.ones(int(mask.sum())))]
        *sums, sizes = resampled_means(rows, resamples=resamples, seed=seed)
        for run, column, one in zip(members, columns, sums, strict=True):
            out[run] = (float(column.mean()) if len(column) else np.nan, interval(one / sizes))
    return {run: out[run] for run in audit.runs}


def effectiveness_figure(audit: Audit, pair: Pair, found: dict[str, tuple[float, Interval]]) -> Figure:
    """Draw Relative Δ beside effectiveness, both on the primary measure."""
    name = repr(audit.primary_measure)
    tilt = {run: _tilts(audit, run, pair)[audit.place] for run in audit.runs}
    points = []
    for run, (mean, spread) in found.items():
        shown = tilt_mark(tilt[run], audit.level, run)
        lines = (
            run,
            f"{name} {decimal(mean)} % [{decimal(spread.low)}, {decimal(spread.high)}]",
            *shown.hover[1:],
        )
        marked = Mark(run, shown.value, shown.low, shown.high, shown.tone, hover=lines)
        points.append(ScatterPoint(marked, mean, spread.low, spread.high))
    twins = all(t.twins for t in tilt.values())
    return Figure(
        f"{name} over all documents, and how far it tilts between {pair[0]} and {pair[1]}",
        "The farther right, the higher the mean; "
        f"{_heights(pair, twins=twins)} Lines: 95 % intervals; no test compares the rankers "
        f"here.{_undrawn(points)}".strip(),
        scatter(
            points,
            x=f"{name} over all documents, %",
            y=f"Relative Δ of {name}, %",
            margin=audit.level if twins else 0.0,
            names=sides_named(pair),
        ),
    )


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    return [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]


def _undrawn(points: Sequence[ScatterPoint]) -> str:
    """Name the rankers that have no place in the plane."""
    left = [point.mark.label for point in points if point.x != point.x or point.mark.value != point.mark.value]
    return f" Not drawn, because a value is undefined: {', '.join(left)}." if left else ""


def _heights(pair: Pair, *, twins: bool) -> str:
    """Say how to read the height of a mark beside effectiveness."""
    if twins:
        return f"above 0 relevant {pair[0]} stands higher, below 0 {pair[1]}."
    return f"the higher, the more for {pair[0]}. Level is what random labels give (see the table), not 0."
