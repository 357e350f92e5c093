"""A bench: the choice and what it costs, and every number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.gate.limit_checks import percent_factor
from ranktilt.auditing.gate.result import worst
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import join_words
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import points_words
from ranktilt.mitigation.bench_result import (
    Bench,
    Candidate,
    CandidateCheck,
    Choice,
    MitigationOutcome,
)
from ranktilt.reporting.document import (
    Audience,
    Cell,
    Code,
    Column,
    Document,
    Figure,
    PageBlocks,
    PageSections,
    Row,
    Section,
    Sentence,
    Table,
    name_column,
)
from ranktilt.reporting.figures.charts import Mark, Point, ScatterPoint, lines, scatter
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import (
    change_cell,
    decimal,
    estimate_cell,
    fixed,
    interval,
    percent,
    signed,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.effects import tilt_name, tilt_numbers
from ranktilt.reporting.sentences.mitigation.mitigate import (
    bench_headline,
    bench_meaning,
    bench_notes,
    chosen_by,
    detail_sentence,
)
from ranktilt.reporting.sentences.mitigation.next_commands import bench_next_commands
from ranktilt.reporting.sentences.mitigation.remedy import (
    remedy_lines,
    remedy_sentence,
    remedy_title,
)
from ranktilt.reporting.sentences.verdicts import mark, sides_named, starred
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.views.experiments.bench_chart import bench_chart

_LABEL = 24
"""Most characters of a label."""
_NO_TWINS = "Groups are not twins, so the neutral value is the median of random labels, not 0."
"""Note on groups that are not twins."""
_DODGE = 0.06
"""How far the points of different lines are moved apart along x."""
_MOST_PLANES = 4
"""Most figures of effectiveness against tilt, one for each pair of groups."""
_OUTCOME_TONES: dict[MitigationOutcome, Tone] = {
    "mitigated": "good",
    "level": "good",
    "inconclusive": "unsure",
    "cannot be mitigated within the budget": "bad",
}
"""Tone of an outcome."""
_SHOWN_TILT = "tilt shown"
"""In the column of tilts: a side is favoured, and whether by more than the margin is open."""
_COST_WORDS = {"level": "within", "tilted": "beyond"}
"""Words for the outcome of a cost."""


def view(bench: Bench) -> Document:
    """Return the document of a bench."""
    choice = bench.choose()
    notes = tuple(bench_notes(bench))
    table = Section(
        "choice",
        "Which candidate reaches level, and what it costs",
        blocks=(_table(bench, choice),),
        short_title="Candidates",
    )
    rest = PageSections(make=partial(_page_sections, bench, choice, notes))
    subject = join_words(bench.methods or [bench.baseline.name])
    return Document(
        kind=titled(f"Bench of {subject} on", bench.spec),
        headline=headline(bench),
        sections=(table, *_remedy_sections(bench, choice), rest),
        sentences=tuple(_sentences(choice)),
        meaning=bench_meaning(choice),
        next_steps=bench_next_commands(bench),
        first_figure=PageBlocks(make=partial(_first_figure, choice)),
        legend=tuple(legend(bench)),
        notes=notes,
    )


def _sentences(choice: Choice) -> Iterator[Sentence]:
    """Yield the answer, and its detail."""
    yield Sentence(bench_headline(choice), _OUTCOME_TONES[choice.outcome], "strong")
    detail = detail_sentence(choice)
    if detail:
        yield Sentence(detail)


def _first_figure(choice: Choice) -> Iterator[IntervalChart]:
    """Yield the chart, where there is one."""
    chart = bench_chart(choice)
    if chart is not None:
        yield chart


def _remedy_sections(bench: Bench, choice: Choice) -> Iterator[Section]:
    """Yield the steps to build a remedy into an engine, where a candidate is applied."""
    remedy = None if choice.applied is None else bench.remedy(choice.applied.name)
    if remedy is not None:
        title, lines = remedy_title(remedy), "\n".join(remedy_lines(remedy))
        sentence = remedy_sentence(remedy)
        label = f"{title}: {sentence}"
        yield Section(
            "remedy", title, lead=(sentence,), blocks=(Code(label=label, text=lines, audience=""),)
        )


def _page_sections(bench: Bench, choice: Choice, notes: Sequence[str]) -> Iterator[Section]:
    """Yield the sections of figures, and how the bench was made."""
    if bench.is_judged and _has_costs(bench):
        planes = [_plane(bench, choice, pair) for pair in bench.pairs[:_MOST_PLANES]]
        title, short = "Effectiveness against tilt", "Effectiveness"
        yield Section("plane", title, blocks=tuple(planes), collapsed=True, short_title=short)
    dialled = [method for method in bench.methods if len(bench.strengths(method)) > 2]
    for number, method in enumerate(dialled, start=1):
        cost = " and cost" if bench.document_sets else ""
        figures = tuple(_strength_figures(bench, method))
        title = f"Tilt{cost} by strength of {method}"
        short = f"Strength of {method}"
        yield Section(
            f"strength-{number}", title, blocks=figures, collapsed=True, short_title=short
        )
    yield provenance(bench.spec, notes)


def _table(bench: Bench, choice: Choice) -> Table:
    """Return a row for each candidate that may be chosen, and below it its difference."""
    measure = bench.effectiveness_measure
    columns = [name_column("candidate")]
    for pair in bench.pairs:
        several = f", {side_name(bench, pair)}" if len(bench.pairs) > 1 else ""
        columns.append(Column(primary(bench) + several))
    for documents in bench.document_sets:
        over = "all" if documents == ALL else f"{documents} alone"
        columns.append(Column(f"{measure}, {over}"))
    columns += _movement_columns(bench)
    columns.append(Column("tilt", number=False))
    if _has_costs(bench):
        columns.append(Column("cost", number=False, hint="against the budget"))
    rows = list[Row]()
    for candidate in _compared(bench):
        rows += _rows(bench, choice, candidate)
    numbers = len(bench.pairs) + len(bench.document_sets) + len(_movement_columns(bench))
    for refused in bench.refused:
        cells = (
            Cell(refused.method, note=refused.reason),
            *[Cell("")] * numbers,
            Cell("refused", None, "warning"),
            *[Cell("")] * _has_costs(bench),
        )
        rows.append(Row(cells, _group(bench, refused.method)))
    groups = ("method",) if _is_grouped(bench) else ()
    return Table(
        _table_title(bench),
        tuple(columns),
        tuple(rows),
        _units(bench),
        group_titles=groups,
        collapsed=True,
    )


def _table_title(bench: Bench) -> str:
    """Name what the columns show: the cost is effectiveness, or how far lists move."""
    if bench.is_judged:
        return "Tilt and effectiveness"
    return "Tilt and replaced results" if bench.movements else "Tilt"


def _movement_columns(bench: Bench) -> list[Column]:
    """Return the columns of how far lists move; the share alone where effectiveness is known."""
    if not bench.movements:
        return []
    hint = "share of the baseline's first ten documents that are not among the first ten"
    replaced = Column("first 10 replaced, %", hint=hint, drop_order=2 * bench.is_judged)
    if bench.is_judged:
        return [replaced]
    return [replaced, Column("RBO", hint="rank-biased overlap with the baseline's list, p = .9")]


def _movement_cells(bench: Bench, candidate: Candidate) -> list[Cell]:
    """Return how far a candidate's lists move, a cell a column; nothing of the baseline."""
    columns = _movement_columns(bench)
    moved = bench.movement(candidate.name)
    if moved is None:
        return [Cell("")] * len(columns)
    cells = [estimate_cell(moved.replaced, decimal), estimate_cell(moved.rbo, fixed)]
    return cells[: len(columns)]


def _compared(bench: Bench) -> tuple[Candidate, ...]:
    """Return the candidates that are compared, the baseline first."""
    return (bench.baseline, *bench.eligible)


def _has_costs(bench: Bench) -> bool:
    """Tell whether candidates may cost effectiveness or order."""
    return bool((bench.document_sets or bench.movements) and bench.methods)


def _is_grouped(bench: Bench) -> bool:
    """Tell whether there are several methods."""
    return len(bench.methods) + len(bench.refused) > 1


def _group(bench: Bench, method: str) -> tuple[str, ...]:
    """Return the group of a candidate's rows, where rows are grouped by method."""
    return (method or "baseline",) if _is_grouped(bench) else ()


def _rows(bench: Bench, choice: Choice, candidate: Candidate) -> Iterator[Row]:
    """Yield the row of a candidate."""
    is_baseline = candidate == bench.baseline
    values = _tilt_values([bench.tilt(candidate.name, pair) for pair in bench.pairs])
    values += [
        estimate_cell(bench.mean(candidate.name, documents), percent)
        for documents in bench.document_sets
    ]
    values += _movement_cells(bench, candidate)
    is_chosen = candidate == choice.chosen
    name = Cell(
        candidate.name,
        note=_mark(bench, choice, candidate),
        emphasis="strong" if is_chosen else "",
    )
    checks = choice.checks[candidate.name]
    outcomes = [_tilt_cell(choice, candidate, checks)]
    if _has_costs(bench):
        outcomes.append(_cost_cell(checks))
    group = _group(bench, candidate.method)
    blanks = [Cell("")] * (len(values) - len(bench.pairs))
    if is_baseline and _is_tested_on_part(bench):
        yield Row((name, *values, *[Cell("")] * len(outcomes)), group)
        queries = f"over all {bench.baseline_effects[0].queries:,} queries"
        over_all = _tilt_values(bench.baseline_effects)
        yield Row((Cell(queries, emphasis="quiet"), *over_all, *blanks, *outcomes), group)
    else:
        yield Row((name, *values, *outcomes), group)
    if not is_baseline:
        yield Row((*_changes(bench, candidate), *[Cell("")] * len(outcomes)), group)


def _tilt_values(tilts: Sequence[Effect]) -> list[Cell]:
    """Print the tilts of all pairs."""
    return [
        estimate_cell(
            tilt, tilt.estimand.amount, mark(tilt), emphasis="strong" if tilt.favours else ""
        )
        for tilt in tilts
    ]


def _is_tested_on_part(bench: Bench) -> bool:
    """Return whether candidates are tested on some of the baseline's queries alone."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0])
    return bench.baseline_effects[0].queries != tilt.queries


def _mark(bench: Bench, choice: Choice, candidate: Candidate) -> str:
    """Say below a candidate's name that it was chosen, or on which queries its tilt was tested."""
    if candidate == choice.chosen:
        return "chosen"
    if candidate == bench.baseline:
        queries = bench.tilt(candidate.name, bench.pairs[0]).queries
        return f"on the {queries:,} test queries" if _is_tested_on_part(bench) else ""
    return "selected" if candidate.name in bench.selected else ""


def _tilt_cell(choice: Choice, candidate: Candidate, checks: Sequence[CandidateCheck]) -> Cell:
    """Print the outcome of the tilts."""
    outcome = worst(["level", *(check.outcome for check in checks if not check.is_cost)])
    word: str = outcome
    if choice.is_overcorrected(candidate.name):
        word = "over-corrected"
    elif outcome == "inconclusive" and any(_is_shown_tilt(check) for check in checks):
        word = _SHOWN_TILT
    return Cell(word, tone=VERDICT_TONES[outcome])


def _is_shown_tilt(check: CandidateCheck) -> bool:
    """Return whether a check shows a favoured side, though not that it is favoured too much."""
    return not check.is_cost and isinstance(check.effect, Effect) and check.effect.is_shown


def _cost_cell(checks: Sequence[CandidateCheck]) -> Cell:
    """Print the outcome of the costs."""
    outcomes = [check.outcome for check in checks if check.is_cost]
    if not outcomes:
        return Cell("")
    outcome = worst(outcomes)
    return Cell(_COST_WORDS.get(outcome, outcome), tone=VERDICT_TONES[outcome])


def _changes(bench: Bench, candidate: Candidate) -> list[Cell]:
    """Return the cells of a candidate's differences from the baseline."""
    label = f"change from {bench.baseline.name}"  # a long name is not repeated
    cells = [Cell(label if len(label) <= _LABEL else "change", emphasis="quiet")]
    documents = [(documents, documents) for documents in bench.document_sets]
    for pair in (*bench.pairs, *documents):
        change = bench.change(candidate.name, pair)
        cells.append(Cell("") if change is None else change_cell(change, "quiet"))
    return [*cells, *[Cell("")] * len(_movement_columns(bench))]


def _units(bench: Bench) -> str:
    """Say in what units numbers are."""
    ratio = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand.neutral == 1
    units, of_difference = (
        ("Ratios, and effectiveness in %", "") if ratio else ("In %", " in points")
    )
    difference = ""
    if bench.methods:
        baseline = bench.baseline.name
        difference = f"; change: the difference from {baseline} on the same queries{of_difference}"
    return f"{units}{difference}. * corrected p < .05."


def legend(bench: Bench) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    question = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand
    above = "+" if question.neutral == 0 else "above 1"
    cost = ""
    if _has_costs(bench):
        loss = f"a loss of more than {points_words(bench.budget)} of {bench.effectiveness_measure}"
        if not bench.is_judged:
            loss = f"a replacement of more than {bench.budget:g} % of the first ten"
        cost = f" Cost: within where the interval excludes {loss}, beyond where it shows it."
    yield (
        f"{primary(bench)}: {above} favours {bench.spec.get('reference')}. Tilt: level where its "
        f"whole interval lies within ±{bench.margin:g} points, tilted where a side is favoured and "
        f"it lies wholly beyond, {_SHOWN_TILT} where a side is favoured, perhaps by less.{cost}"
    )
    if bench.selected:
        yield f"Selected: {chosen_by(bench)}, one per method; only these are judged."
    resamples = f"{bench.spec['resamples']:,} resamples"
    yield f"{starred(bench.spec)} Intervals: bootstrap over queries, {resamples}."


def _strength_figures(bench: Bench, method: str) -> Iterator[Figure]:
    """Yield the figures of one method by its strength."""
    for question in dict.fromkeys((*bench.questions, *bench.measures)):
        # A page draws what the choice rests on; a paper can have every question.
        if question in bench.questions:
            audience: Audience = "" if question == bench.primary else "paper"
            yield replace(_tilt_figure(bench, method, question), audience=audience)
        if question in bench.measures and bench.document_sets:
            audience = "" if question == bench.effectiveness_measure else "paper"
            yield replace(_cost_figure(bench, method, question), audience=audience)


def _tilt_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw a question over the strength of a method, a line for each pair of groups."""
    steps = bench.strengths(method)
    curves = dict[str, list[Point]]()
    tilts = list[Effect]()
    for pair in bench.pairs:
        curve = curves.setdefault(side_name(bench, pair), [])
        for step, candidate in enumerate(steps):
            tilt = bench.tilt(candidate.name, pair, measure)
            value, low, high = _in_percent(tilt)
            text = f"{candidate.name}: {tilt_numbers(tilt)}"
            curve.append(Point(x=float(step), value=value, low=low, high=high, label=text))
            tilts.append(tilt)
    band = _level_band(tilts, bench.margin)
    shaded = f"Shaded: ±{band:g} points, which count as level." if band else _NO_TWINS
    return Figure(
        f"{primary(bench, measure)} by strength of {method}",
        f"From {steps[0].name} to {steps[-1].name}. Bars: 95 % intervals. {shaded}",
        _over_strengths(curves, steps, y=_axis(bench, measure), band=band),
        half=True,
        layout="dai-fig10" if measure in bench.measures else "",
    )


def _cost_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw the change of effectiveness over the strength of a method."""
    steps = bench.strengths(method)
    curves = dict[str, list[Point]]()
    for documents in bench.document_sets:
        curve = curves.setdefault(documents_name(documents), [])
        curve.append(Point(x=0, value=0.0, low=0.0, high=0.0, label=steps[0].name))
        for step, candidate in enumerate(steps):
            change = bench.change(candidate.name, (documents, documents), measure)
            if change is None:
                continue
            ends = interval(change.low, change.high)
            text = f"{candidate.name}: {signed(change.value)} points {ends}"
            point = Point(
                x=float(step), value=change.value, low=change.low, high=change.high, label=text
            )
            curve.append(point)
    budget = bench.budget
    says = (
        f"From {steps[1].name} to {steps[-1].name}, in points. Bars: paired 95 % intervals. "
        f"Shaded: ±{budget:g}, whose lower end is the budget."
    )
    return Figure(
        f"What {method} costs: change of {measure}",
        says,
        _over_strengths(curves, steps, y=f"{measure} minus {steps[0].name}, points", band=budget),
        half=True,
        layout="dai-fig11" if bench.spec.get("reference") in bench.document_sets else "",
    )


def _over_strengths(
    curves: Mapping[str, Sequence[Point]], steps: Sequence[Candidate], *, y: str, band: float
) -> Drawing:
    """Draw lines over strengths in equal steps: they may span decades, and begin with 0."""
    ticks = {float(step): f"{candidate.strength:g}" for step, candidate in enumerate(steps)}
    x = f"{steps[-1].dial} ({steps[-1].method}), in steps"
    return lines(curves, x=x, y=y, band=band, dodge=_DODGE, names=ticks)


def primary(bench: Bench, measure: str | None = None) -> str:
    """Name the question that level is judged on, or another one."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0], measure)
    if isinstance(tilt.estimand, RelativeDelta):
        return f"{tilt_name(tilt)} {tilt.measure}"
    return tilt_name(tilt)


def side_name(bench: Bench, pair: Pair) -> str:
    """Name a pair of groups by the second one where the first is the reference of all."""
    return pair[1] if pair[0] == bench.spec.get("reference") else f"{pair[0]} | {pair[1]}"


def documents_name(documents: str) -> str:
    """Say on which documents effectiveness is measured."""
    return "all documents" if documents == ALL else f"{documents} documents alone"


def _level_band(tilts: Sequence[Effect], margin: float) -> float:
    """Return the margin to shade around 0; 0 where groups are not twins, as 0 is not level then."""
    return margin if all(tilt.twins for tilt in tilts) else 0.0


def _in_percent(tilt: Effect) -> tuple[float, float, float]:
    """Return value, low and high in percent, as figures draw them; a ratio minus 1."""
    scale, neutral = percent_factor(tilt), tilt.estimand.neutral
    return (
        scale * (tilt.value - neutral),
        scale * (tilt.low - neutral),
        scale * (tilt.high - neutral),
    )


def _axis(bench: Bench, measure: str | None = None) -> str:
    """Name the axis of a question."""
    question = bench.tilt(bench.baseline.name, bench.pairs[0], measure).estimand
    return f"{primary(bench, measure)}, {'% from 1' if question.neutral == 1 else '%'}"


def _plane(bench: Bench, choice: Choice, pair: Pair) -> Figure:
    """Draw effectiveness against tilt, with the Pareto front.

    Nothing on the front is beaten in both: more effective, and nearer to level.
    """
    measure = bench.effectiveness_measure
    candidates = _compared(bench)
    tilts = [bench.tilt(candidate.name, pair) for candidate in candidates]
    means = [bench.mean(candidate.name) for candidate in candidates]
    points = []
    for candidate, tilt, mean in zip(candidates, tilts, means, strict=True):
        hover = (
            candidate.name,
            f"{tilt_name(tilt)} {tilt_numbers(tilt)}",
            f"{measure} {percent(mean.value)} % [{percent(mean.low)}, {percent(mean.high)}]",
        )
        is_level = tilt.extent(choice.margin) == "within"
        tone = "level" if is_level else tilt.leans or "inconclusive"
        value, low, high = _in_percent(tilt)
        mark = Mark(
            label=candidate.name,
            value=value,
            low=low,
            high=high,
            tone=VERDICT_TONES[tone],
            hover=hover,
        )
        points.append(
            ScatterPoint(mark=mark, x=100 * mean.value, low=100 * mean.low, high=100 * mean.high)
        )
    distances = [abs(tilt.value - tilt.neutral) for tilt in tilts]
    front = pareto([(100 * mean.value, away) for mean, away in zip(means, distances, strict=True)])
    drawing = scatter(
        points,
        x=f"{measure} over all documents, %",
        y=_axis(bench),
        margin=_level_band(tilts, choice.margin),
        names={**sides_named(pair), "first": f"toward {pair[0]}", "second": f"toward {pair[1]}"},
        front=front,
    )
    names = join_words([candidates[number].name for number in front] or ["none"])
    return Figure(
        f"{measure} against the tilt between {pair[0]} and {pair[1]}",
        f"Pareto front: {names}; no other one has a higher mean and a tilt nearer to level. Lines: "
        "95 % intervals, of each ranker by itself and not of differences.",
        drawing,
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the numbers of the points that no other beats, by falling first value.

    The first value of a point is good, the second bad.
    """
    known = [
        number
        for number, (good, bad) in enumerate(points)
        if not (math.isnan(good) or math.isnan(bad))
    ]
    front, least = list[int](), math.inf
    for number in sorted(known, key=lambda number: (-points[number][0], points[number][1])):
        if points[number][1] < least:
            front.append(number)
            least = points[number][1]
    return front
