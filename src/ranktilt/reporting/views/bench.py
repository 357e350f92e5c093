"""A bench: the choice and what it costs, every number, and effectiveness against tilt as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import polars as pl

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.gate import Outcome, check_tilt, points, worst
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import counted, join_words
from ranktilt.mitigation.result import Bench, Choice, Intervention
from ranktilt.reporting.document import (
    ELSEWHERE,
    TEXT,
    Cell,
    Column,
    Document,
    Emphasis,
    Figure,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.figures.drawing import DIM, numbers
from ranktilt.reporting.figures.tilts import Mark, ScatterPoint, Side, scatter
from ranktilt.reporting.numbers import ends, interval, percent, signed
from ranktilt.reporting.verdicts import mark, side_of, sides_named
from ranktilt.reporting.views.audit_legend import twin_test
from ranktilt.reporting.views.provenance import folder, provenance

_TONES: dict[Outcome, Tone] = {"level": "good", "tilted": "bad", "inconclusive": "unsure"}
_NO_TWINS = "Groups are not twins: level is the middle of what random labels give, not 0."
_LABEL, _DODGE, _MOST_PLANES = 24, 0.06, 4


def view(bench: Bench) -> Document:
    """Return what is said of a bench."""
    name = folder(bench.spec)
    title = f"Bench of {join_words(bench.methods)}" + (f" on {name}" if name else "")
    choice = bench.choose()
    tone = _TONES[choice.outcome]
    return Document(
        title=title,
        kind=title,
        headline=f"{choice.headline}.",
        sections=(
            Section("choice", "Which intervention reaches level, and what it costs", (), (_table(bench, choice),)),
            *_by_strength(bench, choice),
            Section("plane", "Effectiveness against tilt", (), tuple(_planes(bench, choice))),
            Section("numbers", "Every number", (), (_numbers(bench),)),
            provenance(bench.spec, bench.notes),
        ),
        sentences=(Sentence(choice.headline, tone, "strong", only=TEXT), *map(Sentence, choice.sentences)),
        legend=tuple(legend(bench)),
        notes=bench.notes,
        data=_data(bench),
    )


def side_name(bench: Bench, pair: Pair) -> str:
    """Name a pair of groups by the second one where the first is the reference of all."""
    return pair[1] if pair[0] == bench.spec.get("reference") else f"{pair[0]} | {pair[1]}"


def over_name(over: str) -> str:
    """Say what effectiveness is measured over."""
    return "all documents" if over == ALL else f"{over} documents alone"


def _table(bench: Bench, choice: Choice) -> Table:
    """One row an intervention, and below it how it differs from the baseline."""
    measure, valued = bench.measures[0], bench.valued
    front = [
        f"Relative Δ {measure}" + (f", {side_name(bench, p)}" if len(bench.pairs) > 1 else "") for p in bench.pairs
    ]
    columns = (
        Column("intervention", number=False, header=True, width=_LABEL),
        *(Column(title, spread=True) for title in front),
        *(Column(f"{valued}, {'all' if over == ALL else f'{over} alone'}", spread=True) for over in bench.over),
        Column("tilt", number=False),
        Column("cost", number=False, hint="against the budget"),
    )
    groups = ("method",) if len(bench.methods) > 1 else ()
    rows = [row for one in bench.interventions for row in _choice_rows(bench, choice, one)]
    return Table("Effectiveness against tilt", columns, tuple(rows), _changed(bench), intervals="row", groups=groups)


def _choice_rows(bench: Bench, choice: Choice, one: Intervention) -> Iterator[Row]:
    tilts = [bench.tilt(one.name, pair) for pair in bench.pairs]
    means = [bench.mean(one.name, over) for over in bench.over]
    group = (one.method or "baseline",) if len(bench.methods) > 1 else ()
    chosen = one == choice.chosen
    rows = choice.rows[one.name]
    costs = rows[len(tilts) :]
    tilt, cost = (worst(["level", *(row.outcome for row in some)]) for some in (rows[: len(tilts)], costs))
    said = "over-corrected" if choice.overcorrected(one.name) else tilt
    yield Row(
        (
            Cell(one.name, note="chosen" if chosen else "", emphasis="strong" if chosen else ""),
            *map(_tilt_cell, tilts),
            *map(_mean_cell, means),
            Cell(said, None, _TONES[tilt]),
            *(
                [Cell(next(row.word for row in costs if row.outcome == cost), None, _TONES[cost])]
                if costs
                else [Cell("")]
            ),
        ),
        group,
    )
    if costs:
        groups = [*bench.pairs, *((over, over) for over in bench.over)]
        changes = (_change_cell(bench, one, pair) for pair in groups)
        yield Row((Cell(f"less {bench.baseline.name}", emphasis="quiet"), *changes, Cell(""), Cell("")), group)


def _tilt_cell(tilt: Effect) -> Cell:
    emphasis: Emphasis = "strong" if tilt.favours else ""
    return Cell(
        signed(tilt.value) + mark(tilt), tilt.value, ends=ends(tilt.low, tilt.high), emphasis=emphasis, signed=True
    )


def _mean_cell(mean: Effect) -> Cell:
    return Cell(percent(mean.value), mean.value, ends=(percent(mean.low), percent(mean.high)))


def _change_cell(bench: Bench, one: Intervention, pair: Pair, measure: str | None = None) -> Cell:
    change = bench.change(one.name, pair, measure)
    if change is None:
        return Cell("")
    mark = "*" if change.p_corrected < ALPHA else ""
    bold: Emphasis = "strong" if change.shown else "quiet"
    return Cell(signed(change.value) + mark, change.value, ends=ends(change.low, change.high), emphasis=bold)


def _numbers(bench: Bench) -> Table:
    """Every measure: Relative Δ of each pair of groups, then effectiveness."""
    columns = (
        Column("intervention", number=False, header=True, width=_LABEL),
        *(Column(measure, spread=True) for measure in bench.measures),
    )
    rows = list[Row]()
    for pair in (*bench.pairs, *((over, over) for over in bench.over)):
        tilted = pair[0] != pair[1]
        title = f"Relative Δ, {pair[0]} | {pair[1]}" if tilted else f"Effectiveness, {over_name(pair[0])}"
        for one in bench.interventions:
            found = (
                _tilt_cell(bench.tilt(one.name, pair, m)) if tilted else _mean_cell(bench.mean(one.name, pair[0], m))
                for m in bench.measures
            )
            rows.append(Row((Cell(one.name), *found), (title,)))
            if one != bench.baseline:
                changes = (_change_cell(bench, one, pair, m) for m in bench.measures)
                rows.append(Row((Cell(f"less {bench.baseline.name}", emphasis="quiet"), *changes), (title,)))
    return Table(
        "Every measure", columns, tuple(rows), _changed(bench), groups=("quantity",), intervals="row", only=ELSEWHERE,
    )  # fmt: skip


def _changed(bench: Bench) -> str:
    return f"In %; less {bench.baseline.name}: the paired difference in points. * corrected p < .05."


def _lead(bench: Bench) -> tuple[str, ...]:
    reference = bench.spec.get("reference")
    return (
        f"Above 0 the ranker puts {reference} documents higher. An interval that crosses 0 does not show a tilt, and "
        "one that reaches beyond the shaded band does not show that it is level.",
    )


def _by_strength(bench: Bench, choice: Choice) -> Iterator[Section]:
    """A section a method: its tilt and its cost, side by side."""
    for number, method in enumerate(bench.methods, start=1):
        figures = (_tilt_figure(bench, method, choice.level), _cost_figure(bench, method, choice.budget))
        yield Section(f"strength-{number}", f"Tilt and cost by strength of {method}", _lead(bench), figures)


def _planes(bench: Bench, choice: Choice) -> Iterator[Figure]:
    return (_plane(bench, choice, pair) for pair in bench.pairs[:_MOST_PLANES])


def _tilt_figure(bench: Bench, method: str, level: float) -> Figure:
    """Relative Δ over the strength of a method, a line a pair of groups."""
    steps = bench.strengths(method)
    found = {side_name(bench, pair): [bench.tilt(one.name, pair) for one in steps] for pair in bench.pairs}
    said = "; ".join(f"{name} {', '.join(_percents(tilts))}" for name, tilts in found.items())
    band = _level_band([tilt for tilts in found.values() for tilt in tilts], level)
    shaded = f"Shaded: ±{band:g} points, which count as level." if band else _NO_TWINS
    return Figure(
        f"Relative Δ of {bench.measures[0]} by strength of {method}",
        f"From {steps[0].name} to {steps[-1].name}: {said}. Bars: 95 % intervals. {shaded}",
        lines(
            {name: [_point(x, t, steps[x].name, " %") for x, t in enumerate(ts)] for name, ts in found.items()},
            x=f"{steps[-1].dial} ({method}), in steps", y=f"Relative Δ {bench.measures[0]}, %", band=band,
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


def _percents(tilts: Sequence[Effect]) -> list[str]:
    return [f"{signed(tilt.value)} %" for tilt in tilts]


def _plane(bench: Bench, choice: Choice, pair: Pair) -> Figure:
    """Effectiveness against tilt, with the Pareto front: nothing is both more effective and nearer to level."""
    points = []
    for one in bench.interventions:
        tilt, mean = bench.tilt(one.name, pair), bench.mean(one.name)
        hover = (
            one.name,
            f"Relative Δ {signed(tilt.value)} % {interval(tilt.low, tilt.high)}",
            f"{bench.valued} {percent(mean.value)} % [{percent(mean.low)}, {percent(mean.high)}]",
        )
        marked = Mark(one.name, tilt.value, tilt.low, tilt.high, _side(tilt, choice.level), hover=hover)
        points.append(ScatterPoint(marked, 100 * mean.value, 100 * mean.low, 100 * mean.high))
    tilts = [bench.tilt(one.name, pair) for one in bench.interventions]
    front = pareto([(point.x, abs(tilt.value - tilt.level)) for point, tilt in zip(points, tilts, strict=True)])
    drawing = scatter(
        points, x=f"{bench.valued} over all documents, %", y=f"Relative Δ of {bench.measures[0]}, %",
        margin=_level_band(tilts, choice.level),
        names={**sides_named(pair), "first": f"toward {pair[0]}", "second": f"toward {pair[1]}"},
    )  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines", "name": "Pareto front", "x": numbers([points[n].x for n in front]),
        "y": numbers([points[n].mark.value for n in front]), "line": {"color": DIM, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
    }  # fmt: skip
    drawing["data"].insert(0, line)
    names = join_words([bench.interventions[n].name for n in front] or ["none"])
    return Figure(
        f"{bench.valued} against the tilt between {pair[0]} and {pair[1]}",
        f"Pareto front: {names}; no other intervention has a higher mean and a tilt nearer to level. Lines: 95 % "
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


def _side(tilt: Effect, level: float) -> Side:
    if check_tilt(tilt, level).outcome == "level":
        return "level"
    return side_of(tilt.leans or "inconclusive")


def legend(bench: Bench) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec = bench.spec
    reference = spec.get("reference")
    yield (
        f"Relative Δ in %: + favours {reference}. Tilt: level where its whole interval lies within ±{bench.level:g} "
        "points, tilted where it lies wholly beyond. Cost: within where a loss of more than "
        f"{points(bench.budget)} of {bench.valued} is excluded by the paired interval, beyond where it is shown."
    )
    tests = counted(int(spec["tests"]), "test", "tests")
    yield (
        f"Less {bench.baseline.name}: paired differences in points; * corrected p < .05 "
        f"({str(spec['correction']).capitalize()} over {tests}; permutation tests: rankers exchanged query by query "
        f"for Relative Δ, sign flips for effectiveness). * of a Relative Δ: as in an audit ({twin_test(spec['test'])})."
    )
    yield f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples."


def _data(bench: Bench) -> pl.DataFrame:
    """One row an intervention, quantity and measure; everything in percent and points."""
    known = {one.name: one for one in bench.interventions}
    records = []
    for effect, scale in ((e, 1.0 if e.a != e.b else 100.0) for e in (*bench.tilts, *bench.effectiveness)):
        one = known[effect.run]
        change = bench.change(effect.run, (effect.a, effect.b), effect.measure)
        moved = {
            "change": change.value, "change_low": change.low, "change_high": change.high, "change_p": change.p,
            "change_p_corrected": change.p_corrected,
        } if change is not None else {}  # fmt: skip
        records.append(
            {
                "intervention": one.name, "method": one.method, "strength": one.strength, "ranker": one.ranker,
                "quantity": "relative_delta" if effect.a != effect.b else "effectiveness", "a": effect.a,
                "b": effect.b, "measure": effect.measure, "value": scale * effect.value, "low": scale * effect.low,
                "high": scale * effect.high, "p_corrected": effect.p_corrected, "queries": effect.queries, **moved,
            }
        )  # fmt: skip
    frame = pl.DataFrame(records, infer_schema_length=None)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))
