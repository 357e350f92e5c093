"""The figure of a bench: the tilt before and after each method, and its cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.limit_checks import loss_outcome, percent_factor
from ranktilt.auditing.gate.result import worst
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
    interval_chart,
)
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.sentences.effects import tilt_numbers
from ranktilt.reporting.sentences.mitigation.mitigate import cost_words
from ranktilt.reporting.tones import VERDICT_TONES


def bench_chart(choice: Choice) -> IntervalChart | None:
    """Return a row for each method: its best candidate, before and after, and the cost.

    Where nothing was tried, the baseline's tilts alone.
    """
    bench = choice.bench
    rows = list(_rows(choice))[:MOST_ROWS]
    if not rows:
        return None
    has_costs = bool(bench.methods)
    question = _question(bench)
    says = f"Line: 95 % interval. Shaded: {margin_words(choice.margin)} of level"
    scales = [question]
    if bench.methods:
        says = f"{says}; pale: before, dark: after"
    if has_costs:
        if bench.is_judged:
            says += f"; of the cost, a loss of at most {points_words(choice.budget)}"
            scales.append(f"change of {bench.effectiveness_measure}, points")
        else:
            says += f"; of the cost, at most {choice.budget:g} % replaced"
            scales.append("first ten replaced, %")
    first, second = bench.pairs[0]
    sides = (f"◀ {second}", f"{first} ▶") if len(bench.pairs) == 1 else ("", "")
    title = "The tilt, and what a correction changes"
    if bench.methods:
        title = "The tilt before and after each correction" + (", and its cost" * has_costs)
    return interval_chart(title, f"{says}.", rows, scale_titles=scales, sides=sides)


def _question(bench: Bench) -> str:
    """Name the question."""
    estimand = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand
    name = bench.primary
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    return f"{name}, {'% from 1' if estimand.neutral == 1 else '%'}"


def _rows(choice: Choice) -> Iterator[IntervalRow]:
    """Yield the best candidate of each method, before and after."""
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
    """Return the candidate of a method that is chosen, selected, or else nearest to level."""
    bench = choice.bench
    candidates = bench.strengths(method)[1:]
    for candidate in candidates:
        if candidate == choice.chosen or candidate.name in bench.selected:
            return candidate
    return min(candidates, key=lambda candidate: bench.distance(candidate.name))


def _tilt_reading(choice: Choice, candidate: Candidate, pair: Pair) -> IntervalReading:
    """Return a candidate's tilt, as the chart draws it."""
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
        mark=_mark(tilt),
        text=text,
        tone=VERDICT_TONES[worst(outcomes)] if outcomes else "",
        before=_mark(before) if is_changed else None,
        neutral=neutral,
        band=(neutral - choice.margin, neutral + choice.margin),
    )


def _mark(tilt: Effect) -> IntervalMark:
    """Return a tilt in percent; a ratio by how far it is from 1."""
    scale, level = percent_factor(tilt), tilt.estimand.neutral
    return IntervalMark(
        value=scale * (tilt.value - level),
        low=scale * (tilt.low - level),
        high=scale * (tilt.high - level),
    )


def _lowest(change: Change) -> float:
    """Return the lower end of a change; the change itself without an interval."""
    return change.low if change.has_interval else change.value


def _cost_reading(choice: Choice, candidate: Candidate) -> IntervalReading | None:
    """Return the cost of a candidate that could be the largest, and the budget."""
    costs = choice.bench.costs(candidate.name)
    known = [change for change in costs if math.isfinite(change.value)]
    if not known:
        return None
    change = min(known, key=_lowest)
    return IntervalReading(
        mark=IntervalMark(value=change.value, low=change.low, high=change.high),
        text=cost_words(change, choice.budget),
        tone=VERDICT_TONES[loss_outcome(change, choice.budget)],
        band=(-choice.budget, math.inf),
    )


def _movement_reading(choice: Choice, candidate: Candidate) -> IntervalReading | None:
    """Return how many of the first ten documents a candidate replaces, and the budget."""
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
