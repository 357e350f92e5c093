"""A bench: the choice and what it costs, and every number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from ranktilt.auditing.answer.gate import in_percent, worst
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import join_words
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.mitigation.bench_result import Bench, Choice, Intervention
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Figure,
    Row,
    Section,
    Sentence,
    Table,
    named,
)
from ranktilt.reporting.figures.charts import Mark, Point, ScatterPoint, lines, scatter
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.headline import headline
from ranktilt.reporting.numbers import estimate, interval, moved, percent, signed
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.gate import row_word, tilt_name, tilt_numbers
from ranktilt.reporting.sentences.mitigate import (
    bench_headline,
    chosen_by,
    nearest_sentences,
    points,
)
from ranktilt.reporting.sentences.verdicts import mark, sides_named, starred
from ranktilt.reporting.tones import VERDICT_TONES

_LABEL = 24
_NO_TWINS = "Groups are not twins: level is the median of what random labels give, not 0."
_DODGE, _MOST_PLANES = 0.06, 4


def view(bench: Bench) -> Document:
    """Return what is said of a bench."""
    choice = bench.choose()
    planes = (
        _plane(bench, choice, pair) for pair in bench.pairs[: _MOST_PLANES * bool(bench.over)]
    )
    sections = (
        Section(
            "choice",
            "Which intervention reaches level, and what it costs",
            (),
            (_table(bench, choice),),
        ),
        Section("plane", "Effectiveness against tilt", (), tuple(planes)),
        *_by_strength(bench),
        provenance(bench.spec, bench.notes),
    )
    return Document(
        kind=titled(f"Bench of {join_words(bench.methods)} on", bench.spec),
        headline=headline(bench),
        sections=tuple(section for section in sections if section.blocks),
        sentences=(
            Sentence(bench_headline(choice), VERDICT_TONES[choice.outcome], "strong"),
            *map(Sentence, nearest_sentences(choice)),
        ),
        legend=tuple(legend(bench)),
        notes=bench.notes,
    )


def _table(bench: Bench, choice: Choice) -> Table:
    """One row an intervention that is judged, and below it how it differs from the baseline."""
    valued = bench.valued
    front = [
        primary(bench) + (f", {side_name(bench, p)}" if len(bench.pairs) > 1 else "")
        for p in bench.pairs
    ]
    columns = (
        named("intervention"),
        *(Column(title) for title in front),
        *(Column(f"{valued}, {'all' if over == ALL else f'{over} alone'}") for over in bench.over),
        Column("tilt", number=False),
        *([Column("cost", number=False, hint="against the budget")] if bench.over else []),
    )
    groups = ("method",) if len(bench.methods) + len(bench.refused) > 1 else ()
    rows = [row for one in bench.judged for row in _choice_rows(bench, choice, one)]
    numbers, costs = (
        [Cell("") for _ in some] for some in ((*bench.pairs, *bench.over), bench.over[:1])
    )
    for method, reason in bench.refused:
        cells = (Cell(method, note=reason), *numbers, Cell("refused", None, "warning"), *costs)
        rows.append(Row(cells, groups and (method,)))
    return Table("Effectiveness against tilt", columns, tuple(rows), _changed(bench), groups=groups)


def _choice_rows(bench: Bench, choice: Choice, one: Intervention) -> Iterator[Row]:
    baseline = one == bench.baseline
    tilts = bench.before if baseline else tuple(bench.tilt(one.name, pair) for pair in bench.pairs)
    group = (one.method or "baseline",) if len(bench.methods) + len(bench.refused) > 1 else ()
    chosen = "chosen" if one == choice.chosen else "selected" if one.name in bench.selected else ""
    if baseline and tilts[0].queries != bench.tilt(one.name, bench.pairs[0]).queries:
        chosen = "tilt: over all queries"
    rows = choice.rows[one.name]
    costs = rows[len(tilts) :]
    tilt, cost = (
        worst(["level", *(row.outcome for row in some)]) for some in (rows[: len(tilts)], costs)
    )
    said = "over-corrected" if choice.overcorrected(one.name) else tilt
    ends = [Cell(said, tone=VERDICT_TONES[tilt])]
    if bench.over:
        word = next((row_word(row) for row in costs if row.outcome == cost), "")
        ends.append(Cell(word, tone=VERDICT_TONES[cost] if costs else ""))
    name = Cell(one.name, note=chosen, emphasis="strong" if chosen == "chosen" else "")
    values = [
        estimate(t, t.estimand.amount, mark(t), emphasis="strong" if t.favours else "")
        for t in tilts
    ]
    values += [estimate(bench.mean(one.name, over), percent) for over in bench.over]
    yield Row((name, *values, *ends), group)
    if not baseline:
        pairs = (*bench.pairs, *((over, over) for over in bench.over))
        changes = (bench.change(one.name, pair) for pair in pairs)
        less = f"less {bench.baseline.name}"  # a baseline with a long name is not named again
        head = Cell(less if len(less) <= _LABEL else "less the baseline", emphasis="quiet")
        moves = (Cell("") if change is None else moved(change, "quiet") for change in changes)
        yield Row((head, *moves, *[Cell("")] * len(ends)), group)


def _changed(bench: Bench) -> str:
    ratio = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand.level == 1
    units = ("Ratios, and effectiveness in %", "") if ratio else ("In %", " in points")
    return f"{units[0]}; less {bench.baseline.name}: the paired difference{units[1]}. * corrected p < .05."


def legend(bench: Bench) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    asked = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand
    above = "+" if asked.level == 0 else "above 1"
    cost = (
        (
            f" Cost: within where a loss of more than {points(bench.budget)} of {bench.valued} is "
            "excluded by the paired interval, beyond where it is shown."
        )
        if bench.over
        else ""
    )
    yield (
        f"{primary(bench)}: {above} favours {bench.spec.get('reference')}. Tilt: level where its whole interval lies "
        f"within ±{bench.level:g} points, tilted where a side is favoured and it lies wholly beyond.{cost}"
    )
    if bench.selected:
        yield f"Selected: {chosen_by(bench)}, one a method; only these are judged."
    yield f"{starred(bench.spec)} Intervals: bootstrap over queries, {bench.spec['resamples']:,} resamples."


def _by_strength(bench: Bench) -> Iterator[Section]:
    """A section a method of several strengths: its tilt and its cost, side by side."""
    dialled = [
        method for method in bench.methods if len(bench.strengths(method)) > 2
    ]  # the baseline is one
    for number, method in enumerate(dialled, start=1):
        figures = list[Figure]()
        for question in dict.fromkeys((*bench.questions, *bench.measures)):
            figures += (
                [_tilt_figure(bench, method, question)] if question in bench.questions else []
            )
            figures += (
                [_cost_figure(bench, method, question)]
                if question in bench.measures and bench.over
                else []
            )
        title = f"Tilt{' and cost' if bench.over else ''} by strength of {method}"
        yield Section(f"strength-{number}", title, (), tuple(figures))


def _tilt_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw a question over the strength of a method, a line a pair of groups."""
    steps = bench.strengths(method)
    found = {
        side_name(bench, pair): [bench.tilt(one.name, pair, measure) for one in steps]
        for pair in bench.pairs
    }
    drawn = {
        name: [
            Point(float(x), *_drawn(t), f"{steps[x].name}: {tilt_numbers(t)}")
            for x, t in enumerate(tilts)
        ]
        for name, tilts in found.items()
    }
    band = _level_band([tilt for tilts in found.values() for tilt in tilts], bench.level)
    shaded = f"Shaded: ±{band:g} points, which count as level." if band else _NO_TWINS
    drawing = _over_strengths(drawn, steps, y=_axis(bench, measure), band=band)
    says = f"From {steps[0].name} to {steps[-1].name}. Bars: 95 % intervals. {shaded}"
    layout = "dai-fig10" if measure in bench.measures else ""
    return Figure(
        f"{primary(bench, measure)} by strength of {method}",
        says,
        drawing,
        half=True,
        layout=layout,
    )


def _cost_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw the change of effectiveness over the strength of a method, a line for all documents and for those alone."""
    steps = bench.strengths(method)
    drawn = dict[str, list[Point]]()
    for over in bench.over:
        drawn[over_name(over)] = [Point(0, 0.0, 0.0, 0.0, steps[0].name)]
        for x, one in enumerate(steps):
            if (change := bench.change(one.name, (over, over), measure)) is not None:
                said = (
                    f"{one.name}: {signed(change.value)} points {interval(change.low, change.high)}"
                )
                drawn[over_name(over)].append(
                    Point(float(x), change.value, change.low, change.high, said)
                )
    budget = 100 * bench.budget
    drawing = _over_strengths(
        drawn, steps, y=f"{measure} less {steps[0].name}, points", band=budget
    )
    says = (
        f"From {steps[1].name} to {steps[-1].name}, in points. Bars: paired 95 % intervals. Shaded: ±{budget:g}, whose "
        "lower end is the budget."
    )
    layout = "dai-fig11" if bench.spec.get("reference") in bench.over else ""
    return Figure(
        f"What {method} costs: change of {measure}", says, drawing, half=True, layout=layout
    )


def _over_strengths(
    drawn: Mapping[str, Sequence[Point]], steps: Sequence[Intervention], *, y: str, band: float
) -> Drawing:
    """Lines over strengths in equal steps: they may span decades, and begin with 0."""
    ticks = {float(x): f"{one.strength:g}" for x, one in enumerate(steps)}
    x = f"{steps[-1].dial} ({steps[-1].method}), in steps"
    return lines(drawn, x=x, y=y, band=band, dodge=_DODGE, names=ticks)


def primary(bench: Bench, measure: str | None = None) -> str:
    """Name what level is judged on, or another question."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0], measure)
    return (
        f"{tilt_name(tilt)} {tilt.measure}"
        if isinstance(tilt.estimand, RelativeDelta)
        else tilt_name(tilt)
    )


def side_name(bench: Bench, pair: Pair) -> str:
    """Name a pair of groups by the second one where the first is the reference of all."""
    return pair[1] if pair[0] == bench.spec.get("reference") else f"{pair[0]} | {pair[1]}"


def over_name(over: str) -> str:
    """Say what effectiveness is measured over."""
    return "all documents" if over == ALL else f"{over} documents alone"


def _level_band(tilts: Sequence[Effect], level: float) -> float:
    """What is shaded around 0: nothing where groups are not twins, for 0 is not level then."""
    return level if all(tilt.twins for tilt in tilts) else 0.0


def _drawn(tilt: Effect) -> tuple[float, float, float]:
    """Value and interval as figures draw them: in percent, a ratio by how far it is from 1."""
    scale, level = in_percent(tilt), tilt.estimand.level
    return scale * (tilt.value - level), scale * (tilt.low - level), scale * (tilt.high - level)


def _axis(bench: Bench, measure: str | None = None) -> str:
    above = (
        "% from 1"
        if bench.tilt(bench.baseline.name, bench.pairs[0], measure).estimand.level == 1
        else "%"
    )
    return f"{primary(bench, measure)}, {above}"


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
        tone = "level" if tilt.extent(choice.level) == "within" else tilt.leans or "inconclusive"
        marked = Mark(one.name, *_drawn(tilt), VERDICT_TONES[tone], hover=hover)
        points.append(ScatterPoint(marked, 100 * mean.value, 100 * mean.low, 100 * mean.high))
    tilts = [bench.tilt(one.name, pair) for one in shown]
    front = pareto(
        [(point.x, abs(tilt.value - tilt.level)) for point, tilt in zip(points, tilts, strict=True)]
    )
    drawing = scatter(
        points,
        x=f"{bench.valued} over all documents, %",
        y=_axis(bench),
        margin=_level_band(tilts, choice.level),
        names={**sides_named(pair), "first": f"toward {pair[0]}", "second": f"toward {pair[1]}"},
        front=front,
    )
    names = join_words([shown[n].name for n in front] or ["none"])
    return Figure(
        f"{bench.valued} against the tilt between {pair[0]} and {pair[1]}",
        f"Pareto front: {names}; no other one has a higher mean and a tilt nearer to level. Lines: 95 % "
        "intervals, of each ranker by itself and not of differences.",
        drawing,
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of the points that no other beats (first number good, second bad), by falling first number."""
    known = [n for n, (good, bad) in enumerate(points) if good == good and bad == bad]
    ordered = sorted(known, key=lambda n: (-points[n][0], points[n][1]))
    least = accumulate((points[n][1] for n in ordered), min, initial=float("inf"))
    return [n for n, best in zip(ordered, least, strict=False) if points[n][1] < best]
