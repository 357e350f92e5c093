"""Rows of the figure on a page's first screen: effects, verdicts and differences as readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.effects import Change, Effect
from ranktilt.errors import join_words
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import Margin, half_width, margin_words
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.sentences.effects import tilt_numbers, undefined_words
from ranktilt.reporting.sentences.verdicts import verdict_tone
from ranktilt.reporting.tones import Tone

_LINE = "Line: 95 % interval."
"""What lines of a figure are."""
_MOST_NAMED = 2
"""Groups that an axis names; of more it gives the number."""


def effect_mark(effect: Effect) -> IntervalMark:
    """Return an effect in the numbers that are printed of it."""
    scale = effect.estimand.scale
    return IntervalMark(
        value=scale * effect.value, low=scale * effect.low, high=scale * effect.high
    )


def effect_reading(effect: Effect, margin: Margin, tone: Tone = "") -> IntervalReading:
    """Return an effect with the band around its neutral value that counts as level."""
    scale = effect.estimand.scale
    neutral, half = scale * effect.neutral, scale * half_width(effect.estimand, margin)
    band = (neutral - half, neutral + half) if half > 0 and math.isfinite(neutral) else None
    if not effect.estimand.sided:
        band = (scale * effect.null_low, scale * effect.null_high)
        neutral = math.nan
    return IntervalReading(
        mark=effect_mark(effect),
        text=tilt_numbers(effect) if math.isfinite(effect.value) else undefined_words(effect),
        tone=tone,
        neutral=neutral,
        band=band,
    )


def change_reading(change: Change, tone: Tone = "") -> IntervalReading:
    """Return a difference, which is printed with its sign; of a mean in points."""
    ends = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    value = change.amount(change.value, sign=True)
    return IntervalReading(
        mark=effect_mark(change),
        text=f"{value}{change.unit}{ends}" if math.isfinite(change.value) else "undefined",
        tone=tone,
        neutral=change.estimand.scale * change.neutral,
    )


def scale_title(effect: Effect) -> str:
    """Name what an effect is one of, with its unit: ``Relative Δ of nDCG@10, %``."""
    estimand = effect.estimand
    name = effect.name
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    unit = estimand.suffix.strip()
    return f"{name}, {unit}" if unit else name


def side_names(effects: Sequence[Effect]) -> tuple[str, str]:
    """Name the groups to the left and to the right of neutral.

    Where pairs of groups share neither side, a row says its own.
    """
    firsts = list(dict.fromkeys(effect.a for effect in effects))
    seconds = list(dict.fromkeys(effect.b for effect in effects))
    if len(firsts) > 1 and len(seconds) > 1:
        return ("the second of each pair", "the first of each pair")
    return (_any_of(seconds), _any_of(firsts))


def _any_of(names: Sequence[str]) -> str:
    return join_words(names, "or") if len(names) <= _MOST_NAMED else f"one of {len(names)} groups"


def _side_words(effect: Effect, effects: Sequence[Effect]) -> str:
    """Say toward which group one of several effects points, where the axis cannot name it."""
    firsts = {drawn.a for drawn in effects}
    seconds = {drawn.b for drawn in effects}
    if len(firsts) == 1 or len(seconds) == 1 or not effect.leans:
        return ""
    return f"toward {effect.side(effect.leans)}"


def verdict_chart(
    verdicts: Sequence[Verdict],
    label: Callable[[Verdict], str],
    *,
    title: str,
    sides: tuple[str, str] | None = None,
) -> IntervalChart | None:
    """Return the chart of the first verdicts, by their answers to one question.

    `sides` are the groups to the left and to the right; None for those of the effects.
    """
    if not verdicts:
        return None
    first = verdicts[0]
    alike = [verdict for verdict in verdicts if _unit(verdict.effect) == _unit(first.effect)]
    if len(alike) > MOST_ROWS:
        alike = sorted(alike, key=_p_for_sorting)
    drawn = alike[:MOST_ROWS]
    effects = [verdict.effect for verdict in drawn]
    rows = []
    for verdict in drawn:
        tone = verdict_tone(verdict, verdict.a)
        reading = effect_reading(verdict.effect, verdict.margin, tone)
        note = ""
        if sides is None and verdict.side is not None:
            note = _side_words(verdict.effect, effects)
        rows.append(IntervalRow(label=label(verdict), readings=(reading,), note=note))
    left, right = sides or side_names(effects)
    is_sided = first.effect.estimand.sided
    return interval_chart(
        title,
        _says(verdicts, len(rows)),
        rows,
        scales=[scale_title(first.effect)],
        sides=(f"◀ {left}", f"{right} ▶") if is_sided else ("", ""),
    )


def _p_for_sorting(verdict: Verdict) -> float:
    """Return the p of a verdict's effect; one that is not tested comes last."""
    return math.inf if math.isnan(verdict.effect.p) else verdict.effect.p


def _unit(effect: Effect) -> tuple[str, str]:
    """Return what must be the same of two effects on one scale."""
    return effect.estimand.name, effect.estimand.suffix


def _says(verdicts: Sequence[Verdict], drawn: int) -> str:
    """Say how a chart of verdicts is read."""
    first = verdicts[0]
    says = _LINE
    if not first.effect.estimand.sided:
        says += " Shaded: what random rankings give."
    elif half_width(first.effect.estimand, first.margin) > 0:  # NaN in another unit
        says += f" Shaded: {margin_words(first.margin)} around neutral, which count as level."
    if drawn < len(verdicts):
        says += f" Drawn: {drawn} of {len(verdicts)} comparisons, the clearest."
    return says


def change_chart(
    changes: Sequence[Change],
    label: Callable[[Change], str],
    *,
    title: str,
    sides: tuple[str, str] | None = None,
) -> IntervalChart | None:
    """Return the chart of the first differences that are counted as the first of all is.

    `sides` are what lies to the left and to the right; None for the groups that they are about.
    """
    if not changes:
        return None
    first = changes[0]
    alike = [change for change in changes if _change_unit(change) == _change_unit(first)]
    if sides is None:
        sides = moved_sides(alike[:MOST_ROWS])
    rows = [
        IntervalRow(label=label(change), readings=(change_reading(change, change_tone(change)),))
        for change in alike[:MOST_ROWS]
    ]
    scale = f"difference, {first.unit.strip()}".removesuffix(", ")
    drawn = drawn_words(len(rows), len(changes))
    says = f"{_LINE} Black: no difference.{drawn}"
    return interval_chart(title, says, rows, scales=[scale], sides=sides)


def moved_sides(changes: Sequence[Change]) -> tuple[str, str]:
    """Name what a difference to the left and to the right moves toward; empty without groups."""
    if not all(change.a != change.b and change.estimand.sided for change in changes):
        return ("", "")
    left, right = side_names(changes)
    return (f"◀ toward {left}", f"toward {right} ▶")


def drawn_words(drawn: int, total: int) -> str:
    """Say how many differences are drawn, where that is not all of them."""
    return f" Drawn: {drawn} of {total} differences." if drawn < total else ""


def tilt_change_chart(
    tilts: Sequence[Change],
    effectiveness: Mapping[tuple[str, str], Change],
    label: Callable[[Change], str],
    *,
    title: str,
) -> IntervalChart:
    """Return the chart of the first differences of tilts, with that of effectiveness beside each.

    The tilts answer one question. `effectiveness` holds that of each new and old run.
    """
    rows = []
    drawn_tilts = tilts[:MOST_ROWS]
    for tilt in drawn_tilts:
        answer = tilt.estimand.answer
        tilt_reading = change_reading(tilt, change_tone(tilt))
        readings: list[IntervalReading | None] = [tilt_reading]
        if effectiveness:
            mean = effectiveness.get((tilt.run, tilt.old_run))
            readings.append(None if mean is None else change_reading(mean, _quality_tone(mean)))
        side = _side_words(tilt, drawn_tilts) if tilt.is_shown else ""
        note = ", ".join(filter(None, (f"tilt {answer(tilt.old)} → {answer(tilt.new)}", side)))
        rows.append(IntervalRow(label=label(tilt), readings=tuple(readings), note=note))
    scales = [_tilt_scale(tilts[0])]
    scales += [f"change of {mean.measure}, points" for mean in [*effectiveness.values()][:1]]
    drawn = drawn_words(len(rows), len(tilts))
    return interval_chart(
        title,
        f"{_LINE} Black: no change. Below each name: the tilt before and after.{drawn}",
        rows,
        scales=scales,
        sides=moved_sides(drawn_tilts),
        second_sides=("◀ worse", "better ▶"),
    )


def _tilt_scale(tilt: Change) -> str:
    """Name the scale of a difference of tilts with its unit."""
    estimand = tilt.estimand
    name = tilt.name
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    return f"change of tilt ({name}), {tilt.unit.strip()}".removesuffix(", ")


def _quality_tone(change: Change) -> Tone:
    """Return the tone of a difference of effectiveness."""
    if not change.is_shown:
        return "unsure"
    return "good" if change.value > 0 else "bad"


def _change_unit(change: Change) -> str:
    """Return what must be the same of two differences on one scale: points, or the estimand."""
    return change.unit if change.unit.strip() else change.name


def change_tone(change: Change) -> Tone:
    """Return the tone of a difference: its side's, or else by whether it is shown."""
    if not change.is_shown:
        return "unsure"
    if change.a == change.b or not change.estimand.sided:
        return ""
    return "first" if change.leans == "a" else "second"
