"""Charts for a page's first screen: effects, verdicts and differences as rows with intervals.

An *effect* is the value of a measure for one ranker and one pair of groups, with its interval. Its
measure (*estimand*) is *sided* where a value favours either of two groups; an unsided one covers
all groups together. *Neutral* is the value that favours nobody, and values within the *margin*
around it count as level. A *verdict* says which group an effect is shown to favour, if any. A
*change* is the difference of two effects or of two means. A *reading* is how a chart shows such a
value on one scale. A *tilt* is an effect that says how far a ranker favours one of the two groups
(the *sides*).
"""

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
    drawn_words,
    interval_chart,
)
from ranktilt.reporting.sentences.effects import tilt_numbers, undefined_words
from ranktilt.reporting.sentences.verdicts import verdict_tone
from ranktilt.reporting.tones import Tone

_LINE = "Line: 95 % interval."
"""Explanation of the lines of a chart."""
_MOST_NAMED = 2
"""Most groups that an axis names; of more it gives the number."""


def effect_mark(effect: Effect) -> IntervalMark:
    """Return an effect's value and interval in the unit that is printed, such as percent."""
    scale = effect.estimand.scale
    return IntervalMark(
        value=scale * effect.value, low=scale * effect.low, high=scale * effect.high
    )


def effect_reading(effect: Effect, margin: Margin, tone: Tone = "") -> IntervalReading:
    """Return an effect with a shaded band: the values around neutral that count as level.

    An unsided effect has no neutral value; its band is what random labels give.
    """
    scale = effect.estimand.scale
    if effect.estimand.sided:
        neutral, half = scale * effect.neutral, scale * half_width(effect.estimand, margin)
        has_band = half > 0 and math.isfinite(neutral)
        band = (neutral - half, neutral + half) if has_band else None
    else:
        neutral = math.nan
        band = (scale * effect.null_low, scale * effect.null_high)
    return IntervalReading(
        mark=effect_mark(effect),
        text=tilt_numbers(effect) if math.isfinite(effect.value) else undefined_words(effect),
        tone=tone,
        neutral=neutral,
        band=band,
    )


def change_reading(change: Change, tone: Tone = "") -> IntervalReading:
    """Return a difference, printed with its sign and unit: a difference of means in points."""
    interval = f" [{', '.join(change.ends)}]" if change.has_interval else ""
    value = change.amount(change.value, sign=True)
    return IntervalReading(
        mark=effect_mark(change),
        text=f"{value}{change.unit}{interval}" if math.isfinite(change.value) else "undefined",
        tone=tone,
        neutral=change.estimand.scale * change.neutral,
    )


def scale_title(effect: Effect) -> str:
    """Name the measure of an effect with its unit: ``Relative Δ of nDCG@10, %``."""
    estimand = effect.estimand
    name = effect.name
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    unit = estimand.suffix.strip()
    return f"{name}, {unit}" if unit else name


def side_names(effects: Sequence[Effect]) -> tuple[str, str]:
    """Name the groups that values to the left and to the right of neutral favour.

    Where the effects have several first and several second groups, an axis cannot name them, and
    each row of the chart does.
    """
    firsts = list(dict.fromkeys(effect.a for effect in effects))
    seconds = list(dict.fromkeys(effect.b for effect in effects))
    if len(firsts) > 1 and len(seconds) > 1:
        return ("the second of each pair", "the first of each pair")
    return (_any_of(seconds), _any_of(firsts))


def _any_of(groups: Sequence[str]) -> str:
    """Join the names of groups by "or"; give the number of many."""
    if len(groups) <= _MOST_NAMED:
        return join_words(groups, "or")
    return f"one of {len(groups)} groups"


def _side_words(effect: Effect, effects: Sequence[Effect]) -> str:
    """Say toward which group an effect points; empty where the axis of `effects` says it."""
    firsts = {drawn_effect.a for drawn_effect in effects}
    seconds = {drawn_effect.b for drawn_effect in effects}
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
    """Return a chart with a row for each verdict; None where there is no verdict.

    A chart has one scale, so it draws only the verdicts that have the measure and unit of the
    first; of many, those with the smallest p. `label` names a row; `sides` are the groups that
    values to the left and to the right of neutral favour, None for the groups of the effects.
    """
    if not verdicts:
        return None
    first = verdicts[0]
    comparable = [verdict for verdict in verdicts if _scale_of(verdict) == _scale_of(first)]
    if len(comparable) > MOST_ROWS:
        comparable = sorted(comparable, key=_p_for_sorting)
    drawn_verdicts = comparable[:MOST_ROWS]
    effects = [verdict.effect for verdict in drawn_verdicts]
    rows = []
    for verdict in drawn_verdicts:
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
        _verdict_chart_description(verdicts, len(rows)),
        rows,
        scale_titles=[scale_title(first.effect)],
        sides=(f"◀ {left}", f"{right} ▶") if is_sided else ("", ""),
    )


def _p_for_sorting(verdict: Verdict) -> float:
    """Return the p of a verdict's effect; an effect that was not tested comes last."""
    return math.inf if math.isnan(verdict.effect.p) else verdict.effect.p


def _scale_of(verdict: Verdict) -> tuple[str, str]:
    """Return the measure and the unit of a verdict, which are the same for all rows of a chart."""
    estimand = verdict.effect.estimand
    return estimand.name, estimand.suffix


def _verdict_chart_description(verdicts: Sequence[Verdict], row_count: int) -> str:
    """Say how a chart of verdicts is read, and how many of them it draws."""
    first = verdicts[0]
    description = _LINE
    if not first.effect.estimand.sided:
        description += " Shaded: what random rankings give."
    elif half_width(first.effect.estimand, first.margin) > 0:  # NaN for a margin in another unit
        margin = margin_words(first.margin)
        description += f" Shaded: {margin} around neutral, which count as level."
    if row_count < len(verdicts):
        description += f" Drawn: {row_count} of {len(verdicts)} comparisons, the clearest."
    return description


def change_chart(
    changes: Sequence[Change],
    label: Callable[[Change], str],
    *,
    title: str,
    sides: tuple[str, str] | None = None,
) -> IntervalChart | None:
    """Return a chart with a row for each difference; None where there is no difference.

    It draws the first differences that have the unit of the first. `label` names a row; `sides`
    are what values to the left and to the right mean, None for the groups of the differences.
    """
    if not changes:
        return None
    first = changes[0]
    comparable = [change for change in changes if _change_unit(change) == _change_unit(first)]
    drawn_changes = comparable[:MOST_ROWS]
    if sides is None:
        sides = change_sides(drawn_changes)
    rows = [
        IntervalRow(label=label(change), readings=(change_reading(change, change_tone(change)),))
        for change in drawn_changes
    ]
    scale_title = f"difference, {first.unit.strip()}".removesuffix(", ")
    description = f"{_LINE} Black: no difference.{drawn_words(len(rows), len(changes))}"
    return interval_chart(title, description, rows, scale_titles=[scale_title], sides=sides)


def change_sides(changes: Sequence[Change]) -> tuple[str, str]:
    """Name the groups toward which differences to the left and to the right move.

    Empty where a difference is not about two groups.
    """
    # A mean over all documents has the same group on both sides.
    if not all(change.a != change.b and change.estimand.sided for change in changes):
        return ("", "")
    left, right = side_names(changes)
    return (f"◀ toward {left}", f"toward {right} ▶")


def tilt_change_chart(
    tilts: Sequence[Change],
    effectiveness: Mapping[tuple[str, str], Change],
    label: Callable[[Change], str],
    *,
    title: str,
) -> IntervalChart:
    """Return a chart of differences of tilts, with the differences of effectiveness next to them.

    Only the first tilts are drawn; all have the same measure. `effectiveness` holds the difference
    in effectiveness between a new and an old run, by the names of the two; empty for a chart
    without that scale. `label` names a row.
    """
    rows = []
    drawn_tilts = tilts[:MOST_ROWS]
    for tilt in drawn_tilts:
        tilt_reading = change_reading(tilt, change_tone(tilt))
        readings: list[IntervalReading | None] = [tilt_reading]
        if effectiveness:
            mean = effectiveness.get((tilt.run, tilt.old_run))
            readings.append(None if mean is None else change_reading(mean, _quality_tone(mean)))
        print_tilt = tilt.estimand.answer
        before_and_after = f"tilt {print_tilt(tilt.old)} → {print_tilt(tilt.new)}"
        side = _side_words(tilt, drawn_tilts) if tilt.is_shown else ""
        note = ", ".join(filter(None, (before_and_after, side)))
        rows.append(IntervalRow(label=label(tilt), readings=tuple(readings), note=note))
    scale_titles = [_tilt_scale_title(tilts[0])]
    if effectiveness:
        mean = next(iter(effectiveness.values()))
        scale_titles.append(f"change of {mean.measure}, points")
    drawn = drawn_words(len(rows), len(tilts))
    return interval_chart(
        title,
        f"{_LINE} Black: no change. Below each name: the tilt before and after.{drawn}",
        rows,
        scale_titles=scale_titles,
        sides=change_sides(drawn_tilts),
        second_sides=("◀ worse", "better ▶"),
    )


def _tilt_scale_title(tilt: Change) -> str:
    """Name the measure of a difference of tilts with its unit."""
    estimand = tilt.estimand
    name = tilt.name
    if isinstance(estimand, RelativeDelta):
        name = f"{estimand.term} of {estimand.measure}"
    return f"change of tilt ({name}), {tilt.unit.strip()}".removesuffix(", ")


def _quality_tone(change: Change) -> Tone:
    """Return the tone of a difference of effectiveness: good where it is shown to have grown."""
    if not change.is_shown:
        return "unsure"
    return "good" if change.value > 0 else "bad"


def _change_unit(change: Change) -> str:
    """Return the unit of a difference, such as points; without a unit, its measure.

    Differences are drawn on one scale where this is the same.
    """
    return change.unit if change.unit.strip() else change.name


def change_tone(change: Change) -> Tone:
    """Return the tone of a difference: the side toward which it moves, if it is shown to move."""
    if not change.is_shown:
        return "unsure"
    if change.a == change.b or not change.estimand.sided:
        return ""
    return "first" if change.leans == "a" else "second"
