"""Figures of an audit: tilts with their intervals, controls, the card, and effectiveness.

A *tilt* is a ranker's Relative Δ, the difference of two groups' means in percent of their average.
It counts as level within a *margin* of the neutral value, and it is *detectable* from the size on
that these queries would find four times in five. Where groups are not twins (versions of the same
documents), the neutral value is not 0 but what random labels of groups give; the *band* is the
range of those values. The *card* has further questions about each ranker, and *controls* compute
the tilt without a possible other cause. A tilt and an answer of the card are both an *effect*, the
value of a measure (*estimand*) with its interval.
"""

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
from ranktilt.measures.margin import Margin
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, forest, scatter
from ranktilt.reporting.figures.drawing import is_size_known
from ranktilt.reporting.numbers import decimal, interval, signed
from ranktilt.reporting.sentences.effects import corrected_p_words
from ranktilt.reporting.sentences.verdicts import tone_legend
from ranktilt.reporting.tones import VERDICT_TONES

MOST_ROWS = 42
"""Most intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Most pairs of groups that have figures."""
_UNDETECTABLE = "these queries would find a tilt as small as this less than four times in five"
"""Explanation of the grey range: values that are too small for the number of queries."""
_LARGEST_TILT = 200
"""Largest Relative Δ that there can be, in %: one mean is 0, and the other twice their average."""
_RANDOM_BAND = " Hatched: what random labels give; their median is neutral, not 0."
"""Explanation of the hatched range, as a sentence that follows others."""


def drawn_pairs(audit: Audit) -> tuple[Pair, ...]:
    """Return the pairs of groups to draw: all of a few, else those that tilt most clearly.

    A pair tilts as clearly as its clearest ranker on the primary measure: by the distance of the
    tilt from neutral in standard errors.
    """
    pairs = audit.tilted_pairs
    if len(pairs) <= MOST_PAIRS:
        return pairs
    clearness = dict.fromkeys(pairs, -1.0)  # less than that of any pair with a tilt
    for tilt in audit.tilts:
        distance = abs(tilt.value - tilt.neutral)
        if tilt.measure == repr(audit.primary_measure) and distance > 0:
            pair = tilt.a, tilt.b
            standard_errors = distance / tilt.error if tilt.error else np.inf
            clearness[pair] = max(clearness[pair], standard_errors if tilt.has_interval else 0.0)
    clearest = set(sorted(pairs, key=lambda pair: -clearness[pair])[:MOST_PAIRS])
    return tuple(pair for pair in pairs if pair in clearest)


def tilt_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ of every ranker between two groups, on every measure or the primary one."""
    rows_with_headings = len(audit.runs) * (len(audit.measures) + 1)
    measures = audit.measures if rows_with_headings <= MOST_ROWS else [audit.primary_measure]
    measure_names = [repr(measure) for measure in measures]
    title = f"Relative Δ of {measure_names[0]}" if len(measure_names) == 1 else "Relative Δ"
    marks = {}
    for run in audit.runs:
        tilts = [tilt for tilt in _tilts(audit, run, pair) if tilt.measure in measure_names]
        marks[run] = [tilt_mark(tilt, audit.margin_points) for tilt in tilts]
    return _interval_figure(
        audit, pair, title, marks, x="Relative Δ, %", margin=audit.margin_points
    )


def control_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ on the primary measure raw and under each control."""
    marks = defaultdict[str, list[Mark]](list)
    for controlled in audit.controls:
        if (controlled.a, controlled.b) == pair and controlled.tilts:
            tilt = controlled.tilts[audit.primary_index]
            mark = tilt_mark(tilt, audit.margin_points, controlled.control)
            marks[controlled.run].append(mark)
    name = f"Relative Δ of {audit.primary_measure!r}"
    title = f"{name}, raw and controlled"
    return _interval_figure(audit, pair, title, marks, x=f"{name}, %", margin=audit.margin_points)


def card_figure(audit: Audit, pair: Pair, answers: Sequence[Effect]) -> Figure:
    """Draw answers of the card that verdicts rest on, such as which of two twins ranks higher."""
    estimand = answers[0].estimand
    name = answers[0].name
    unit = estimand.suffix.strip() or ("points" if estimand.scale == 100 else "value")
    marks = {effect.run: [_answer_mark(effect, audit.margin)] for effect in answers}
    return _interval_figure(audit, pair, name, marks, x=f"{name}, {unit}", margin=0.0)


def _interval_figure(
    audit: Audit,
    pair: Pair,
    title: str,
    marks: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    margin: float,
) -> Figure:
    """Draw values with their intervals below each other, and say how to read them.

    `marks` are those of each ranker, and `x` is the title of the axis. The band of ±`margin` points
    counts as level; it is not drawn where marks have the band of random labels instead.
    """
    all_marks = list(chain.from_iterable(marks.values()))
    center, random_band = "0", ""
    if any(mark.band != (0.0, 0.0) for mark in all_marks):
        margin, center, random_band = 0.0, "the hatched band", _RANDOM_BAND
    has_grey = any(is_size_known(mark.detectable) and not mark.is_detected for mark in all_marks)
    grey = f" Grey: {_UNDETECTABLE}." if has_grey else ""
    dotted = f" Dotted: ±{margin:g} points, which count as level." if margin else ""
    description = (
        f"Right of {center}: {pair[0]}; left: {pair[1]}. Line: 95 % interval."
        f"{grey}{dotted}{random_band}"
    )
    drawing = forest(marks, x=x, sides=pair, margin=margin, tone_names=tone_legend(pair))
    return Figure(f"{title}, {pair[0]} against {pair[1]}", description, drawing)


def tilt_mark(tilt: Effect, margin: float, label: str = "") -> Mark:
    """Return the mark of a Relative Δ, labelled by its measure unless another label is given.

    `margin` is the largest Relative Δ that counts as level, in points.
    """
    return Mark(
        label=label or tilt.measure,
        value=tilt.value,
        low=tilt.low,
        high=tilt.high,
        tone=VERDICT_TONES[tilt.verdict(margin)],
        detectable=tilt.detectable,
        neutral=tilt.neutral,
        band=(0.0, 0.0) if tilt.twins else (tilt.null_low, tilt.null_high),
        hover=tuple(_tilt_hover(tilt, label)),
    )


def _tilt_hover(tilt: Effect, label: str) -> Iterator[str]:
    """Yield the lines shown at a tilt: name, value, interval, p, and smallest detectable tilt."""
    yield ", ".join(filter(None, (tilt.run, label, tilt.measure)))
    if isnan(tilt.value):
        yield "Relative Δ undefined"
    else:
        interval_text = f" {interval(tilt.low, tilt.high)}" if tilt.has_interval else ""
        yield f"Relative Δ {signed(tilt.value)} %{interval_text}"
        queries = counted(tilt.queries, "query", "queries")
        yield ", ".join(filter(None, (corrected_p_words(tilt), queries)))
        # Not known where all queries have the same value; of no interest where a tilt is shown.
        if is_size_known(tilt.detectable) and not tilt.favours:
            yield _detectable_words(tilt.detectable)
    if not tilt.twins:
        yield f"random labels {interval(tilt.null_low, tilt.null_high)}"


def _detectable_words(detectable: float) -> str:
    """Say how small a tilt the queries would detect four times in five."""
    if detectable > _LARGEST_TILT:
        return "could not detect any tilt"
    return f"would find {detectable:.0f} % four times in five"


def _answer_mark(effect: Effect, margin: Margin) -> Mark:
    """Return the mark of an answer of the card, in the unit that is printed, such as percent.

    `margin` is how far from neutral counts as level.
    """
    estimand, scale = effect.estimand, effect.estimand.scale
    interval_text = ""
    if effect.has_interval:
        interval_text = f" [{estimand.amount(effect.low)}, {estimand.amount(effect.high)}]"
    answer = f"{effect.name} {estimand.answer(effect.value)}{interval_text}"
    lines = [line for line in (effect.run, answer, corrected_p_words(effect)) if line]
    band = (0.0, 0.0)
    if effect.has_random_band:
        band = (scale * effect.null_low, scale * effect.null_high)
    return Mark(
        label=effect.name,
        value=scale * effect.value,
        low=scale * effect.low,
        high=scale * effect.high,
        tone=VERDICT_TONES[effect.verdict(margin)],
        detectable=scale * effect.detectable,
        neutral=scale * effect.neutral,
        band=band,
        hover=tuple(lines),
    )


def effectiveness_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw each ranker as a point: its Relative Δ against its effectiveness.

    Effectiveness is the mean of the primary measure over all documents.
    """
    name, (a, b) = repr(audit.primary_measure), pair
    means = audit.by_group().filter(group=ALL, measure=name)
    tilts = {run: _tilts(audit, run, pair)[audit.primary_index] for run in audit.runs}
    points = []
    for run, mean in means.select("run", 100 * pl.col("mean")).iter_rows():
        _, *lines = _tilt_hover(tilts[run], run)  # the first line, the name, is written below
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
    vertical = (
        f"the higher, the more for {a}. Neutral is what random labels give (see the table), not 0."
    )
    if are_twins:
        vertical = f"above 0, relevant {a} ranks higher; below 0, {b}."
    undefined = [point.mark.label for point in points if isnan(point.x) or isnan(point.mark.value)]
    left_out = ""
    if undefined:
        left_out = f" Not drawn because a value is undefined: {', '.join(undefined)}."
    return Figure(
        f"{name} over all documents, and how far it tilts between {a} and {b}",
        f"The farther right, the higher the mean; {vertical} Lines: 95 % intervals.{left_out}",
        scatter(
            points,
            x=f"{name} over all documents, %",
            y=f"Relative Δ of {name}, %",
            margin=audit.margin_points if are_twins else 0.0,
            tone_names=tone_legend(pair),
        ),
        collapsed=True,
    )


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    """Return Relative Δ of one ranker between two groups, on each measure."""
    return [tilt for tilt in audit.tilts if tilt.run == run and (tilt.a, tilt.b) == pair]
