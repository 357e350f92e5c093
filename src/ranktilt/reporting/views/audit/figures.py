"""Figures of an audit: tilts with their intervals, controls, the card, and effectiveness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isnan

import numpy as np
import polars as pl

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Figure,
)
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.figures.drawing import known_size
from ranktilt.reporting.numbers import decimal, interval, signed
from ranktilt.reporting.sentences.effects import corrected_p
from ranktilt.reporting.sentences.verdicts import sides_named
from ranktilt.reporting.tones import VERDICT_TONES

MOST_ROWS = 42
"""Intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Pairs of groups that are drawn."""
_UNSEEN = "these queries would find a tilt as small as this less than four times in five"
"""Ending of a sentence on tilts that the queries are too few to show."""
_LARGEST_TILT = 200
"""Largest Relative Δ that there can be, in %."""
_BAND = " Hatched: what random labels give; their median is neutral, not 0."
"""Sentence on the band of random labels."""


def drawn_pairs(audit: Audit) -> tuple[Pair, ...]:
    """Choose the pairs of groups to draw: all of a few, else those that tilt most clearly."""
    pairs = audit.tilted_pairs
    if len(pairs) <= MOST_PAIRS:
        return pairs
    clearness = dict.fromkeys(pairs, -1.0)
    for tilt in audit.tilts:
        size = abs(tilt.value - tilt.neutral)
        if tilt.measure == repr(audit.primary_measure) and size > 0:
            pair = tilt.a, tilt.b
            distance = size / tilt.error if tilt.error else np.inf
            clearness[pair] = max(clearness[pair], distance if tilt.has_interval else 0.0)
    clearest = set(sorted(pairs, key=lambda pair: -clearness[pair])[:MOST_PAIRS])
    return tuple(pair for pair in pairs if pair in clearest)


def tilt_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ of every ranker and measure between two groups."""
    has_room = len(audit.runs) * (len(audit.measures) + 1) <= MOST_ROWS
    drawn = audit.measures if has_room else [audit.primary_measure]
    measures = [repr(measure) for measure in drawn]
    name = f"Relative Δ of {measures[0]}" if len(measures) == 1 else "Relative Δ"
    marks = {}
    for run in audit.runs:
        tilts = [tilt for tilt in _tilts(audit, run, pair) if tilt.measure in measures]
        marks[run] = [tilt_mark(tilt, audit.margin_points) for tilt in tilts]
    return _intervals(audit, pair, name, marks, x="Relative Δ, %")


def control_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ on the primary measure raw and under each control."""
    marks = defaultdict[str, list[Mark]](list)
    for controlled in audit.controls:
        if (controlled.a, controlled.b) == pair and controlled.tilts:
            tilt = controlled.tilts[audit.primary_index]
            mark = tilt_mark(tilt, audit.margin_points, controlled.control)
            marks[controlled.run].append(mark)
    name = f"Relative Δ of {audit.primary_measure!r}"
    return _intervals(audit, pair, f"{name}, raw and controlled", marks, x=f"{name}, %")


def card_figure(audit: Audit, pair: Pair, answers: Sequence[Effect]) -> Figure:
    """Draw what verdicts rest on where nothing is judged, such as twins head to head."""
    name, unit = answers[0].name, answers[0].estimand.suffix.strip() or "points"
    marks = {effect.run: [_answer_mark(effect)] for effect in answers}
    return _intervals(audit, pair, name, marks, x=f"{name}, {unit}", level=0.0)


def _intervals(
    audit: Audit,
    pair: Pair,
    title: str,
    marks: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    level: float | None = None,
) -> Figure:
    """Draw values with their intervals, and say how to read them."""
    drawn = list(chain.from_iterable(marks.values()))
    has_bands = any(mark.band != (0.0, 0.0) for mark in drawn)
    has_grey = any(known_size(mark.detectable) and not mark.is_detected for mark in drawn)
    grey = f" Grey: {_UNSEEN}." if has_grey else ""
    margin = audit.margin_points if level is None else level
    middle, rest = "0", ""
    if has_bands:
        margin, middle, rest = 0.0, "the hatched band", _BAND
    shaded = f" Dotted: ±{margin:g} points, which count as level." if margin else ""
    says = (
        f"Right of {middle}: {pair[0]}; left: {pair[1]}. Line: 95 % interval.{grey}{shaded}{rest}"
    )
    drawing = forest(marks, x=x, sides=pair, margin=margin, names=sides_named(pair))
    return Figure(f"{title}, {pair[0]} against {pair[1]}", says, drawing)


def tilt_mark(tilt: Effect, level: float, label: str = "") -> Mark:
    """Turn a Relative Δ into a mark of a figure."""
    return Mark(
        label=label or tilt.measure,
        value=tilt.value,
        low=tilt.low,
        high=tilt.high,
        tone=VERDICT_TONES[tilt.verdict(level)],
        detectable=tilt.detectable,
        neutral=tilt.neutral,
        band=(0.0, 0.0) if tilt.twins else (tilt.null_low, tilt.null_high),
        hover=tuple(_tilt_hover(tilt, label)),
    )


def _tilt_hover(tilt: Effect, label: str) -> Iterator[str]:
    """Say a Relative Δ in lines: value, interval, test, and what could have been detected."""
    yield ", ".join(word for word in (tilt.run, label, tilt.measure) if word)
    if isnan(tilt.value):
        yield "Relative Δ undefined"
    else:
        ends = f" {interval(tilt.low, tilt.high)}" if tilt.has_interval else ""
        yield f"Relative Δ {signed(tilt.value)} %{ends}"
        queries = counted(tilt.queries, "query", "queries")
        yield ", ".join(word for word in (corrected_p(tilt), queries) if word)
        # Nothing where the queries do not spread at all, or where a tilt was detected.
        if known_size(tilt.detectable) and not tilt.favours:
            yield _detectable_words(tilt.detectable)
    if not tilt.twins:
        yield f"random labels {interval(tilt.null_low, tilt.null_high)}"


def _detectable_words(detectable: float) -> str:
    """Say how small a tilt the queries would find."""
    if detectable > _LARGEST_TILT:
        return "could not detect any tilt"
    return f"would find {detectable:.0f} % four times in five"


def _answer_mark(effect: Effect) -> Mark:
    """Turn an answer of the card into a mark, in percent."""
    estimand = effect.estimand
    ends = ""
    if effect.has_interval:
        ends = f" [{estimand.amount(effect.low)}, {estimand.amount(effect.high)}]"
    answer = f"{effect.name} {estimand.answer(effect.value)}{ends}"
    lines = [line for line in (effect.run, answer, corrected_p(effect)) if line]
    band = (0.0, 0.0)
    if effect.has_random_band:
        band = (100 * effect.null_low, 100 * effect.null_high)
    return Mark(
        label=effect.name,
        value=100 * effect.value,
        low=100 * effect.low,
        high=100 * effect.high,
        tone=VERDICT_TONES[effect.favours or "inconclusive"],
        detectable=100 * effect.detectable,
        neutral=100 * effect.neutral,
        band=band,
        hover=tuple(lines),
    )


def effectiveness_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ against effectiveness, both on the primary measure."""
    name, (a, b) = repr(audit.primary_measure), pair
    means = audit.by_group().filter(group=ALL, measure=name)
    tilts = {run: _tilts(audit, run, pair)[audit.primary_index] for run in audit.runs}
    points = []
    for run, mean in means.select("run", 100 * pl.col("mean")).iter_rows():
        _, *lines = _tilt_hover(tilts[run], run)
        mark = Mark(
            label=run,
            value=tilts[run].value,
            low=tilts[run].low,
            high=tilts[run].high,
            tone=VERDICT_TONES[tilts[run].verdict(audit.margin_points)],
            hover=(run, f"{name} {decimal(mean)} %", *lines),
        )
        points.append(ScatterPoint(mark=mark, x=mean))
    are_twins = all(tilt.twins for tilt in tilts.values())
    heights = (
        f"the higher, the more for {a}. Neutral is what random labels give (see the table), not 0."
    )
    if are_twins:
        heights = f"above 0, relevant {a} ranks higher; below 0, {b}."
    undefined = [point.mark.label for point in points if isnan(point.x) or isnan(point.mark.value)]
    undrawn = ""
    if undefined:
        undrawn = f" Not drawn because a value is undefined: {', '.join(undefined)}."
    return Figure(
        f"{name} over all documents, and how far it tilts between {a} and {b}",
        f"The farther right, the higher the mean; {heights} Lines: 95 % intervals.{undrawn}",
        scatter(
            points,
            x=f"{name} over all documents, %",
            y=f"Relative Δ of {name}, %",
            margin=audit.margin_points if are_twins else 0.0,
            names=sides_named(pair),
        ),
        collapsed=True,
    )


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    """Return Relative Δ of one ranker and pair, on each measure."""
    return [tilt for tilt in audit.tilts if tilt.run == run and (tilt.a, tilt.b) == pair]
