"""The first figure of a bench: the tilt before and after each method of correction, and its cost.

A *tilt* is how far a ranker favours one of two groups of documents; *neutral* is the value that
favours neither, and values within a *margin* of it are *level*. The *baseline* is the ranker
without a correction. A *candidate* is a method at one strength. Its *cost* is the loss of
effectiveness or, without judgments, the share of the first ten documents that it replaces (its
*movement*); the *budget* is the largest cost that is allowed. A *change* is a candidate's
difference from the baseline, and a *reading* is how a chart shows a value on one scale. The
*estimand* is the question that tilts answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import loss_outcome, percent_factor, worst
from ranktilt.auditing.groups import Pair
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import margin_words, points_words
from ranktilt.mitigation.bench_result import Bench, Candidate, Choice
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    drawn_words,
    interval_chart,
)
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.effects import tilt_numbers
from ranktilt.reporting.sentences.mitigation.mitigate import cost_words
from ranktilt.reporting.tones import VERDICT_TONES


def bench_chart(choice: Choice) -> IntervalChart | None:
    """Return a chart with a row for each method and pair of groups; None where there is no row.

    A row has the tilt before and after the method's best candidate, and the candidate's cost. Where
    no method was tried, the rows have the tilts of the baseline alone.
    """
    bench = choice.bench
    all_rows = list(_rows(choice))
    rows = all_rows[:MOST_ROWS]
    if not rows:
        return None
    title = "The tilt, and what a correction changes"
    description = f"Line: 95 % interval. Shaded: {margin_words(choice.margin)} of level"
    scale_titles = [_tilt_scale_title(bench)]
    if bench.methods:
        title = "The tilt before and after each correction, and its cost"
        description += "; pale: before, dark: after"
        if bench.is_judged:
            description += f"; of the cost, a loss of at most {points_words(choice.budget)}"
            scale_titles.append(f"change of {bench.effectiveness_measure}, points")
        else:
            description += f"; of the cost, at most {choice.budget:g} % replaced"
            scale_titles.append("first ten replaced, %")
    first, second = bench.pairs[0]
    sides = (f"◀ {second}", f"{first} ▶") if len(bench.pairs) == 1 else ("", "")
    description = f"{description}.{drawn_words(len(rows), len(all_rows), 'rows')}"
    return interval_chart(title, description, rows, scale_titles=scale_titles, sides=sides)


def _tilt_scale_title(bench: Bench) -> str:
    """Name the measure of the tilts with its unit; a ratio is drawn in percent from 1."""
    estimand = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand
    name = bench.primary
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    return f"{name}, {'% from 1' if estimand.neutral == 1 else '%'}"


def _rows(choice: Choice) -> Iterator[IntervalRow]:
    """Yield a row for the best candidate of each method on each pair of groups."""
    bench = choice.bench
    candidates = [_best_candidate(choice, method) for method in bench.methods] or [bench.baseline]
    for candidate, pair in product(candidates, bench.pairs):
        readings: list[IntervalReading | None] = [_tilt_reading(choice, candidate, pair)]
        if bench.methods:
            reading = _cost_reading if bench.is_judged else _movement_reading
            readings.append(reading(choice, candidate))
        notes = []
        if len(bench.pairs) > 1:
            notes.append(f"{pair[0]} | {pair[1]}")
        if candidate == choice.chosen:
            notes.append("chosen")
        yield IntervalRow(label=candidate.name, readings=tuple(readings), note=", ".join(notes))


def _best_candidate(choice: Choice, method: str) -> Candidate:
    """Return the candidate of a method that is chosen or selected, or else nearest to level."""
    bench = choice.bench
    _, *candidates = bench.strengths(method)  # without the baseline, which is strength 0
    for candidate in candidates:
        if candidate == choice.chosen or candidate.name in bench.selected:
            return candidate
    return min(candidates, key=lambda candidate: bench.distance(candidate.name))


def _tilt_reading(choice: Choice, candidate: Candidate, pair: Pair) -> IntervalReading:
    """Return a candidate's tilt on a pair of groups, with the baseline's as the value before."""
    bench = choice.bench
    tilt, before = bench.tilt(candidate.name, pair), bench.tilt(bench.baseline.name, pair)
    outcomes = [
        check.outcome
        for check in choice.checks[candidate.name]
        if isinstance(check.effect, Effect)
        and not check.is_cost
        and (check.effect.a, check.effect.b) == pair
    ]
    is_changed = candidate != bench.baseline
    neutral = percent_factor(tilt) * (tilt.neutral - tilt.estimand.neutral)
    text = tilt_numbers(tilt) if math.isfinite(tilt.value) else "undefined"
    if is_changed:
        text = f"{before.estimand.answer(before.value)} → {text}"
    return IntervalReading(
        mark=_tilt_mark(tilt),
        text=text,
        tone=VERDICT_TONES[worst(outcomes)] if outcomes else "",
        before=_tilt_mark(before) if is_changed else None,
        neutral=neutral,
        band=(neutral - choice.margin, neutral + choice.margin),
    )


def _tilt_mark(tilt: Effect) -> IntervalMark:
    """Return the mark of a tilt in percent from 0; a ratio's from 1."""
    scale, neutral = percent_factor(tilt), tilt.estimand.neutral
    return IntervalMark(
        value=scale * (tilt.value - neutral),
        low=scale * (tilt.low - neutral),
        high=scale * (tilt.high - neutral),
    )


def _lower_end(change: Change) -> float:
    """Return the lower end of a change's interval; its value where it has no interval."""
    return change.low if change.has_interval else change.value


def _cost_reading(choice: Choice, candidate: Candidate) -> IntervalReading | None:
    """Return the largest loss of effectiveness that a candidate may cost, and the budget as band.

    None where no change of effectiveness is defined.
    """
    changes = [
        change for change in choice.bench.costs(candidate.name) if math.isfinite(change.value)
    ]
    if not changes:
        return None
    change = min(changes, key=_lower_end)
    return IntervalReading(
        mark=IntervalMark(value=change.value, low=change.low, high=change.high),
        text=cost_words(change, choice.budget),
        tone=VERDICT_TONES[loss_outcome(change, choice.budget)],
        band=(-choice.budget, math.inf),
    )


def _movement_reading(choice: Choice, candidate: Candidate) -> IntervalReading | None:
    """Return the share of the first ten documents that a candidate replaces, and the budget."""
    movement = choice.bench.movement(candidate.name)
    if movement is None or not math.isfinite(movement.replaced.value):
        return None
    replaced = movement.replaced
    return IntervalReading(
        mark=IntervalMark(value=replaced.value, low=replaced.low, high=replaced.high),
        text=f"{decimal(replaced.value)} % of the first ten replaced",
        tone=VERDICT_TONES[movement.outcome(choice.budget)],
        band=(-math.inf, choice.budget),
    )
