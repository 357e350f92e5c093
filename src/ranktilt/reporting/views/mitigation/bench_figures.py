"""Figures of a bench: tilt and cost by strength, and effectiveness against tilt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ranktilt.auditing.answer.gate import in_percent, tilt_name, tilt_numbers
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import join_words
from ranktilt.experiments.tradeoff_result import Bench, Choice, Intervention
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.reporting.document import Figure, Section
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.figures.drawing import DIM, numbers
from ranktilt.reporting.figures.tilts import Mark, ScatterPoint, scatter
from ranktilt.reporting.numbers import interval, percent, signed
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.verdicts import sides_named

_NO_TWINS = "Groups are not twins: level is the median of what random labels give, not 0."
_DODGE, _MOST_PLANES = 0.06, 4


def by_strength(bench: Bench, choice: Choice) -> Iterator[Section]:
    """A section a method: its tilt and its cost, side by side."""
    for number, method in enumerate(bench.methods, start=1):
        cost = [_cost_figure(bench, method, choice.budget)] if bench.over else []
        figures = (_tilt_figure(bench, method, choice.level), *cost)
        title = f"Tilt{' and cost' if cost else ''} by strength of {method}"
        yield Section(f"strength-{number}", title, _lead(bench) if number == 1 else (), figures)


def planes(bench: Bench, choice: Choice) -> Iterator[Figure]:
    """Return a figure of effectiveness against tilt for each pair of groups."""
    return (_plane(bench, choice, pair) for pair in bench.pairs[:_MOST_PLANES])


def primary(bench: Bench) -> str:
    """Name what level is judged on."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0])
    return f"{tilt_name(tilt)} {tilt.measure}" if isinstance(tilt.estimand, RelativeDelta) else tilt_name(tilt)


def side_name(bench: Bench, pair: Pair) -> str:
    """Name a pair of groups by the second one where the first is the reference of all."""
    return pair[1] if pair[0] == bench.spec.get("reference") else f"{pair[0]} | {pair[1]}"


def over_name(over: str) -> str:
    """Say what effectiveness is measured over."""
    return "all documents" if over == ALL else f"{over} documents alone"


def _lead(bench: Bench) -> tuple[str, ...]:
    reference = bench.spec.get("reference")
    return (
        f"Above 0 the ranker puts {reference} documents higher. An interval that crosses 0 does not show a tilt, and "
        "one that reaches beyond the shaded band does not show that it is level.",
    )


def _tilt_figure(bench: Bench, method: str, level: float) -> Figure:
    """The primary question over the strength of a method, a line a pair of groups."""
    steps = bench.strengths(method)
    found = {side_name(bench, pair): [bench.tilt(one.name, pair) for one in steps] for pair in bench.pairs}
    said = "; ".join(f"{name} {', '.join(_answers(tilts))}" for name, tilts in found.items())
    band = _level_band([tilt for tilts in found.values() for tilt in tilts], level)
    shaded = f"Shaded: ±{band:g} points, which count as level." if band else _NO_TWINS
    return Figure(
        f"{primary(bench)} by strength of {method}",
        f"From {steps[0].name} to {steps[-1].name}: {said}. Bars: 95 % intervals. {shaded}",
        lines(
            {name: [_tilt_point(x, t, steps[x].name) for x, t in enumerate(ts)] for name, ts in found.items()},
            x=f"{steps[-1].dial} ({method}), in steps", y=_axis(bench), band=band,
            dodge=_DODGE, names=_ticks(steps),
        ),
        half=True,
    )  # fmt: skip


def _level_band(tilts: Sequence[Effect], level: float) -> float:
    """What is shaded around 0: nothing where groups are not twins, for 0 is not level then."""
    return level if all(tilt.twins for tilt in tilts) else 0.0


def _cost_figure(bench: Bench, method: str, budget: float) -> Figure:
    """Change of effectiveness over the strength of a method, a line for all documents and for those alone."""
    steps = bench.strengths(method)
    drawn, said = dict[str, list[Point]](), list[str]()
    for over in bench.over:
        changes = [change for one in steps if (change := bench.change(one.name, (over, over))) is not None]
        zero = Point(0, 0.0, 0.0, 0.0, f"{steps[0].name}: {percent(bench.mean(steps[0].name, over).value)} %")
        points = (_point(x, change, steps[x].name, " points") for x, change in enumerate(changes, start=1))
        drawn[over_name(over)] = [zero, *points]
        before = percent(bench.mean(steps[0].name, over).value)
        said.append(f"{over_name(over)} ({before} % before) {', '.join(signed(c.value) for c in changes)}")
    return Figure(
        f"What {method} costs: change of {bench.valued}",
        f"From {steps[1].name} to {steps[-1].name}, in points: {'; '.join(said)}. Bars: paired 95 % intervals. Shaded: "
        f"±{100 * budget:g}, whose lower end is the budget.",
        lines(
            drawn, x=f"{steps[-1].dial} ({method}), in steps", y=f"{bench.valued} less {steps[0].name}, points",
            band=100 * budget, dodge=_DODGE, names=_ticks(steps),
        ),
        half=True,
    )  # fmt: skip


def _ticks(steps: Sequence[Intervention]) -> dict[float, str]:
    """Strengths in equal steps: they may span decades, and begin with 0."""
    return {float(x): f"{one.strength:g}" for x, one in enumerate(steps)}


def _point(x: int, found: Effect, name: str, unit: str) -> Point:
    said = f"{name}: {signed(found.value)}{unit} {interval(found.low, found.high)}"
    return Point(float(x), found.value, found.low, found.high, said)


def _tilt_point(x: int, tilt: Effect, name: str) -> Point:
    return Point(float(x), *_drawn(tilt), f"{name}: {tilt_numbers(tilt)}")


def _drawn(tilt: Effect) -> tuple[float, float, float]:
    """Value and interval as figures draw them: in percent, a ratio by how far it is from 1."""
    scale, level = in_percent(tilt), tilt.estimand.level
    return scale * (tilt.value - level), scale * (tilt.low - level), scale * (tilt.high - level)


def _axis(bench: Bench) -> str:
    above = "% from 1" if bench.tilt(bench.baseline.name, bench.pairs[0]).estimand.level == 1 else "%"
    return f"{primary(bench)}, {above}"


def _answers(tilts: Sequence[Effect]) -> list[str]:
    return [tilt.estimand.answer(tilt.value) for tilt in tilts]


def _plane(bench: Bench, choice: Choice, pair: Pair) -> Figure:
    """Effectiveness against tilt, with the Pareto front: nothing is both more effective and nearer to level."""
    points, shown = [], bench.judged
    for one in shown:
        tilt, mean = bench.tilt(one.name, pair), bench.mean(one.name)
        hover = (
            one.name,
            f"{tilt_name(tilt)} {tilt_numbers(tilt)}",
            f"{bench.valued} {percent(mean.value)} % [{percent(mean.low)}, {percent(mean.high)}]",
        )
        marked = Mark(one.name, *_drawn(tilt), _tone(tilt, choice.level), hover=hover)
        points.append(ScatterPoint(marked, 100 * mean.value, 100 * mean.low, 100 * mean.high))
    tilts = [bench.tilt(one.name, pair) for one in shown]
    front = pareto([(point.x, abs(tilt.value - tilt.level)) for point, tilt in zip(points, tilts, strict=True)])
    drawing = scatter(
        points, x=f"{bench.valued} over all documents, %", y=_axis(bench),
        margin=_level_band(tilts, choice.level),
        names={**sides_named(pair), "first": f"toward {pair[0]}", "second": f"toward {pair[1]}"},
    )  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines", "name": "Pareto front", "x": numbers([points[n].x for n in front]),
        "y": numbers([points[n].mark.value for n in front]), "line": {"color": DIM, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
    }  # fmt: skip
    drawing["data"].insert(0, line)
    names = join_words([shown[n].name for n in front] or ["none"])
    return Figure(
        f"{bench.valued} against the tilt between {pair[0]} and {pair[1]}",
        f"Pareto front: {names}; no other one has a higher mean and a tilt nearer to level. Lines: 95 % "
        "intervals, of each ranker by itself and not of differences.",
        drawing,
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of the points that no other one beats, by falling first number: it is good, the second is bad.

    Points with a number that is undefined are left out; of equal points the first stays.
    """
    known = [n for n, (good, bad) in enumerate(points) if good == good and bad == bad]
    ordered = sorted(known, key=lambda n: (-points[n][0], points[n][1]))
    least = accumulate((points[n][1] for n in ordered), min, initial=float("inf"))
    return [n for n, best in zip(ordered, least, strict=False) if points[n][1] < best]


def _tone(tilt: Effect, level: float) -> Tone:
    return VERDICT_TONES["level" if tilt.extent(level) == "within" else tilt.leans or "inconclusive"]
