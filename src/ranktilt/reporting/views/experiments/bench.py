"""The document of a bench: which correction makes a ranker level, and what it costs.

A ranker *tilts* if it favours one of two groups of documents; *neutral* is the value that favours
neither. A bench compares *candidates*: the baseline, which is the ranker as it is, and each
*method* of correction at several *strengths*. A candidate is *level* where its tilt lies within a
margin of neutral. Its *cost* is the loss of effectiveness or, without judgments, how far it *moves*
lists (its *movement*); the *budget* is the largest cost that is allowed. The *choice* is the
candidate to apply, if there is one, and the *remedy* is its correction as a formula for a search
engine. A *change* is a candidate's difference from the baseline. The outcome of a bench is whether
a candidate was chosen, and why not. A band is a shaded range of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.gate.result import percent_factor, worst
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
    detail_sentence,
    selection_words,
)
from ranktilt.reporting.sentences.mitigation.next_commands import bench_next_commands
from ranktilt.reporting.sentences.mitigation.remedy import (
    remedy_lines,
    remedy_sentence,
    remedy_title,
)
from ranktilt.reporting.sentences.verdicts import significance_star, star_legend, tone_legend
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.views.experiments.bench_chart import bench_chart

_LONGEST_LABEL = 24
"""Most characters of the label of a candidate's differences; a longer one widens the table."""
_NO_TWINS = "Groups are not twins, so the neutral value is the median of random labels, not 0."
"""Note on groups that are not twins."""
_DODGE = 0.06
"""Distance along the horizontal axis between points of two lines, which none may hide."""
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
"""Word in the column of tilts where a side is favoured, but perhaps by less than the margin."""
_COST_WORDS = {"level": "within", "tilted": "beyond"}
"""Words for the outcome of a cost: within the budget or beyond it."""


def view(bench: Bench) -> Document:
    """Return the document of a bench."""
    choice = bench.choose()
    notes = tuple(bench_notes(bench))
    table = Section(
        "choice",
        "Which candidate reaches level, and what it costs",
        blocks=(_candidate_table(bench, choice),),
        short_title="Candidates",
    )
    page_sections = PageSections(make=partial(_page_sections, bench, choice, notes))
    subject = join_words(bench.methods or [bench.baseline.name])
    return Document(
        kind=titled(f"Bench of {subject} on", bench.spec),
        headline=headline(bench),
        sections=(table, *_remedy_sections(bench, choice), page_sections),
        sentences=tuple(_sentences(choice)),
        meaning=bench_meaning(choice),
        next_steps=bench_next_commands(bench),
        first_figure=PageBlocks(make=partial(_first_figure, choice)),
        legend=tuple(legend(bench)),
        notes=notes,
    )


def _sentences(choice: Choice) -> Iterator[Sentence]:
    """Yield the choice, and what is to say about its tilt and cost."""
    yield Sentence(bench_headline(choice), _OUTCOME_TONES[choice.outcome], "strong")
    detail = detail_sentence(choice)
    if detail:
        yield Sentence(detail)


def _first_figure(choice: Choice) -> Iterator[IntervalChart]:
    """Yield the chart of the tilts before and after; nothing where no tilt is defined."""
    chart = bench_chart(choice)
    if chart is not None:
        yield chart


def _remedy_sections(bench: Bench, choice: Choice) -> Iterator[Section]:
    """Yield the section on the remedy: the formula that a search engine needs for the choice.

    Nothing where no candidate is applied, or it has no such formula.
    """
    remedy = None if choice.applied is None else bench.remedy(choice.applied.name)
    if remedy is not None:
        title, sentence = remedy_title(remedy), remedy_sentence(remedy)
        formula = "\n".join(remedy_lines(remedy))
        code = Code(label=f"{title}: {sentence}", text=formula, audience="")
        yield Section("remedy", title, lead=(sentence,), blocks=(code,))


def _page_sections(bench: Bench, choice: Choice, notes: Sequence[str]) -> Iterator[Section]:
    """Yield the sections of figures, and how the bench was made."""
    if bench.is_judged and _has_costs(bench):
        planes = [_plane_figure(bench, choice, pair) for pair in bench.pairs[:_MOST_PLANES]]
        yield Section(
            "plane",
            "Effectiveness against tilt",
            blocks=tuple(planes),
            collapsed=True,
            short_title="Effectiveness",
        )
    # The strengths of a method begin with the baseline, so two make no line.
    drawn_methods = [method for method in bench.methods if len(bench.strengths(method)) > 2]
    for index, method in enumerate(drawn_methods, start=1):
        cost = " and cost" if bench.document_sets else ""
        yield Section(
            f"strength-{index}",
            f"Tilt{cost} by strength of {method}",
            blocks=tuple(_strength_figures(bench, method)),
            collapsed=True,
            short_title=f"Strength of {method}",
        )
    yield provenance(bench.spec, notes)


def _candidate_table(bench: Bench, choice: Choice) -> Table:
    """Return the table of candidates, with two rows for each: its values, and what it changes."""
    columns = _candidate_columns(bench)
    rows = list[Row]()
    for candidate in _compared(bench):
        rows += _candidate_rows(bench, choice, candidate)
    # The name comes before the numbers, the outcomes of tilt and cost after them.
    number_count = len(columns) - 1 - _outcome_count(bench)
    for refused in bench.refused:
        cells = (
            Cell(refused.method, note=refused.reason),
            *_blanks(number_count),
            Cell("refused", tone="warning"),
            *_blanks(_outcome_count(bench) - 1),
        )
        rows.append(Row(cells, _method_group(bench, refused.method)))
    return Table(
        _table_title(bench),
        tuple(columns),
        tuple(rows),
        _units_note(bench),
        group_titles=("method",) if _is_grouped(bench) else (),
        collapsed=True,
    )


def _candidate_columns(bench: Bench) -> list[Column]:
    """Return the columns of candidates: name, tilts, effectiveness, movement, and outcomes."""
    columns = [name_column("candidate")]
    for pair in bench.pairs:
        groups = f", {side_name(bench, pair)}" if len(bench.pairs) > 1 else ""
        columns.append(Column(primary(bench) + groups))
    for documents in bench.document_sets:
        judged = "all" if documents == ALL else f"{documents} alone"
        columns.append(Column(f"{bench.effectiveness_measure}, {judged}"))
    columns += _movement_columns(bench)
    columns.append(Column("tilt", number=False))
    if _has_costs(bench):
        columns.append(Column("cost", number=False, hint="against the budget"))
    return columns


def _outcome_count(bench: Bench) -> int:
    """Return the number of columns of outcomes: of the tilt, and of the cost if there is any."""
    return 2 if _has_costs(bench) else 1


def _blanks(count: int) -> list[Cell]:
    """Return empty cells."""
    return [Cell("")] * count


def _table_title(bench: Bench) -> str:
    """Name what the columns show: tilt, and as cost either effectiveness or replaced results."""
    if bench.is_judged:
        return "Tilt and effectiveness"
    return "Tilt and replaced results" if bench.movements else "Tilt"


def _movement_columns(bench: Bench) -> list[Column]:
    """Return the columns of how far lists move from the baseline's; one where judgments exist."""
    if not bench.movements:
        return []
    hint = "share of the baseline's first ten documents that are not among the first ten"
    # Next to effectiveness it matters less, so a narrow terminal may leave it out.
    drop_order = 2 if bench.is_judged else 0
    replaced = Column("first 10 replaced, %", hint=hint, drop_order=drop_order)
    if bench.is_judged:
        return [replaced]
    return [replaced, Column("RBO", hint="rank-biased overlap with the baseline's list, p = .9")]


def _movement_cells(bench: Bench, candidate: Candidate) -> list[Cell]:
    """Return a cell for each of the `_movement_columns`; empty ones for the baseline."""
    columns = _movement_columns(bench)
    movement = bench.movement(candidate.name)
    if movement is None:
        return _blanks(len(columns))
    cells = [estimate_cell(movement.replaced, decimal), estimate_cell(movement.rbo, fixed)]
    return cells[: len(columns)]


def _compared(bench: Bench) -> tuple[Candidate, ...]:
    """Return the baseline, and then the candidates that may be chosen."""
    return (bench.baseline, *bench.eligible)


def _has_costs(bench: Bench) -> bool:
    """Tell whether the cost of candidates is known: in effectiveness, or in moved lists."""
    return bool((bench.document_sets or bench.movements) and bench.methods)


def _is_grouped(bench: Bench) -> bool:
    """Tell whether the rows of the table are grouped by method, as there are several."""
    return len(bench.methods) + len(bench.refused) > 1


def _method_group(bench: Bench, method: str) -> tuple[str, ...]:
    """Return the group of a method's rows; empty where rows are not grouped by method."""
    return (method or "baseline",) if _is_grouped(bench) else ()


def _candidate_rows(bench: Bench, choice: Choice, candidate: Candidate) -> Iterator[Row]:
    """Yield the row of a candidate's values, and that of its differences from the baseline.

    Where candidates were tested on some of the queries, the second row of the baseline has its
    tilts over all of them.
    """
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
        note=_name_note(bench, choice, candidate),
        emphasis="strong" if is_chosen else "",
    )
    checks = choice.checks[candidate.name]
    outcomes = [_tilt_cell(choice, candidate, checks)]
    if _has_costs(bench):
        outcomes.append(_cost_cell(checks))
    group = _method_group(bench, candidate.method)
    no_outcomes = _blanks(len(outcomes))
    if is_baseline and _has_test_queries(bench):
        yield Row((name, *values, *no_outcomes), group)
        title = Cell(f"over all {bench.baseline_effects[0].queries:,} queries", emphasis="quiet")
        tilts_over_all = _tilt_values(bench.baseline_effects)
        no_costs = _blanks(len(values) - len(bench.pairs))
        yield Row((title, *tilts_over_all, *no_costs, *outcomes), group)
    else:
        yield Row((name, *values, *outcomes), group)
    if not is_baseline:
        yield Row((*_change_cells(bench, candidate), *no_outcomes), group)


def _tilt_values(tilts: Sequence[Effect]) -> list[Cell]:
    """Return a cell for each tilt with its interval, strong where a side is favoured."""
    return [
        estimate_cell(
            tilt,
            tilt.estimand.amount,
            significance_star(tilt),
            neutral=tilt.neutral,
            emphasis="strong" if tilt.favours else "",
        )
        for tilt in tilts
    ]


def _has_test_queries(bench: Bench) -> bool:
    """Tell whether only some of the queries are test queries; the methods used the others."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0])
    return bench.baseline_effects[0].queries != tilt.queries


def _name_note(bench: Bench, choice: Choice, candidate: Candidate) -> str:
    """Return the line below a candidate's name: that it was chosen, or its test queries."""
    if candidate == choice.chosen:
        return "chosen"
    if candidate == bench.baseline:
        queries = bench.tilt(candidate.name, bench.pairs[0]).queries
        return f"on the {queries:,} test queries" if _has_test_queries(bench) else ""
    return "selected" if candidate.name in bench.selected else ""


def _tilt_cell(choice: Choice, candidate: Candidate, checks: Sequence[CandidateCheck]) -> Cell:
    """Return the cell of the outcome of a candidate's tilts, the worst of all pairs."""
    outcome = worst(["level", *(check.outcome for check in checks if not check.is_cost)])
    word: str = outcome
    if choice.is_overcorrected(candidate.name):
        word = "over-corrected"
    elif outcome == "inconclusive" and any(_is_shown_tilt(check) for check in checks):
        word = _SHOWN_TILT
    return Cell(word, tone=VERDICT_TONES[outcome])


def _is_shown_tilt(check: CandidateCheck) -> bool:
    """Tell whether a check of a tilt shows that a side is favoured, by however little."""
    return not check.is_cost and isinstance(check.effect, Effect) and check.effect.is_shown


def _cost_cell(checks: Sequence[CandidateCheck]) -> Cell:
    """Return the cell of the outcome of a candidate's costs, the worst of all."""
    outcomes = [check.outcome for check in checks if check.is_cost]
    if not outcomes:
        return Cell("")
    outcome = worst(outcomes)
    return Cell(_COST_WORDS.get(outcome, outcome), tone=VERDICT_TONES[outcome])


def _change_cells(bench: Bench, candidate: Candidate) -> list[Cell]:
    """Return the cells of a candidate's differences from the baseline: tilts, effectiveness."""
    label = f"change from {bench.baseline.name}"
    cells = [Cell(label if len(label) <= _LONGEST_LABEL else "change", emphasis="quiet")]
    # Effectiveness is stored as an effect whose two groups are the same set of documents.
    document_pairs = [(documents, documents) for documents in bench.document_sets]
    for pair in (*bench.pairs, *document_pairs):
        change = bench.change(candidate.name, pair)
        cells.append(Cell("") if change is None else change_cell(change, "quiet"))
    return [*cells, *_blanks(len(_movement_columns(bench)))]


def _is_ratio(bench: Bench) -> bool:
    """Tell whether tilts are ratios, which are neutral at 1; all others are neutral at 0."""
    return bench.tilt(bench.baseline.name, bench.pairs[0]).estimand.neutral == 1


def _units_note(bench: Bench) -> str:
    """Say in what units the numbers of the table are."""
    units, unit_of_change = "In %", " in points"
    if _is_ratio(bench):
        units, unit_of_change = "Ratios, and effectiveness in %", ""
    change = ""
    if bench.methods:
        baseline = bench.baseline.name
        change = f"; change: the difference from {baseline} on the same queries{unit_of_change}"
    return f"{units}{change}. * corrected p < .05."


def legend(bench: Bench) -> Iterator[str]:
    """Say how tilts and costs are judged, and how they were tested."""
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
        yield f"Selected: {selection_words(bench)}, one per method; only these are judged."
    resamples = f"{bench.spec['resamples']:,} resamples"
    yield f"{star_legend(bench.spec)} Intervals: bootstrap over queries, {resamples}."


def _strength_figures(bench: Bench, method: str) -> Iterator[Figure]:
    """Yield the figures of one method's tilt and cost by its strength, for each question.

    A measure may be a question and a measure of effectiveness, and then has both figures.
    """
    for question in dict.fromkeys((*bench.questions, *bench.measures)):
        # A page draws only the questions that the choice rests on; a paper may need any of them.
        if question in bench.questions:
            audience: Audience = "" if question == bench.primary else "paper"
            yield replace(_tilt_figure(bench, method, question), audience=audience)
        if question in bench.measures and bench.document_sets:
            audience = "" if question == bench.effectiveness_measure else "paper"
            yield replace(_cost_figure(bench, method, question), audience=audience)


def _tilt_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw the tilt on one measure by the strength of a method, a line for each pair of groups."""
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
        _strength_drawing(curves, steps, y=_axis_title(bench, measure), band=band),
        half=True,
        layout="dai-fig10" if measure in bench.measures else "",
    )


def _cost_figure(bench: Bench, method: str, measure: str) -> Figure:
    """Draw how effectiveness changes by strength of a method, a line for each set of documents."""
    steps = bench.strengths(method)
    curves = dict[str, list[Point]]()
    for documents in bench.document_sets:
        curve = curves.setdefault(documents_name(documents), [])
        # The baseline, from which changes are measured, is the first step.
        curve.append(Point(x=0, value=0.0, low=0.0, high=0.0, label=steps[0].name))
        for step, candidate in enumerate(steps):
            change = bench.change(candidate.name, (documents, documents), measure)
            if change is None:
                continue
            interval_text = interval(change.low, change.high)
            text = f"{candidate.name}: {signed(change.value)} points {interval_text}"
            point = Point(
                x=float(step), value=change.value, low=change.low, high=change.high, label=text
            )
            curve.append(point)
    budget = bench.budget
    description = (
        f"From {steps[1].name} to {steps[-1].name}, in points. Bars: paired 95 % intervals. "
        f"Shaded: ±{budget:g}, whose lower end is the budget."
    )
    return Figure(
        f"What {method} costs: change of {measure}",
        description,
        _strength_drawing(curves, steps, y=f"{measure} minus {steps[0].name}, points", band=budget),
        half=True,
        layout="dai-fig11" if bench.spec.get("reference") in bench.document_sets else "",
    )


def _strength_drawing(
    curves: Mapping[str, Sequence[Point]], steps: Sequence[Candidate], *, y: str, band: float
) -> Drawing:
    """Draw lines over the strengths of a method, with the shaded band ±`band` around 0.

    Strengths are drawn in equal steps: they begin with 0 and may span powers of ten.
    """
    ticks = {float(step): f"{candidate.strength:g}" for step, candidate in enumerate(steps)}
    x = f"{steps[-1].dial} ({steps[-1].method}), in steps"
    return lines(curves, x=x, y=y, band=band, dodge=_DODGE, tick_names=ticks)


def primary(bench: Bench, measure: str | None = None) -> str:
    """Name the measure of the tilt that level is judged on, or another `measure`."""
    tilt = bench.tilt(bench.baseline.name, bench.pairs[0], measure)
    if isinstance(tilt.estimand, RelativeDelta):
        return f"{tilt_name(tilt)} {tilt.measure}"
    return tilt_name(tilt)


def side_name(bench: Bench, pair: Pair) -> str:
    """Name a pair of groups: by its second group alone if the first is the bench's reference."""
    return pair[1] if pair[0] == bench.spec.get("reference") else f"{pair[0]} | {pair[1]}"


def documents_name(documents: str) -> str:
    """Say on which documents effectiveness is measured."""
    return "all documents" if documents == ALL else f"{documents} documents alone"


def _level_band(tilts: Sequence[Effect], margin: float) -> float:
    """Return the margin to shade around 0; 0 for no band where groups are not twins.

    The neutral value of groups that are not twins is not 0.
    """
    return margin if all(tilt.twins for tilt in tilts) else 0.0


def _in_percent(tilt: Effect) -> tuple[float, float, float]:
    """Return a tilt's value and both ends of its interval, in percent from 0; a ratio's from 1."""
    scale, neutral = percent_factor(tilt), tilt.estimand.neutral
    return (
        scale * (tilt.value - neutral),
        scale * (tilt.low - neutral),
        scale * (tilt.high - neutral),
    )


def _axis_title(bench: Bench, measure: str | None = None) -> str:
    """Return the title of the axis of a tilt, with its unit."""
    question = bench.tilt(bench.baseline.name, bench.pairs[0], measure).estimand
    return f"{primary(bench, measure)}, {'% from 1' if question.neutral == 1 else '%'}"


def _plane_figure(bench: Bench, choice: Choice, pair: Pair) -> Figure:
    """Draw each candidate as a point in the plane of effectiveness and tilt.

    A line joins the Pareto front: the candidates that no other candidate surpasses in both.
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
        point_mark = Mark(
            label=candidate.name,
            value=value,
            low=low,
            high=high,
            tone=VERDICT_TONES[tone],
            hover=hover,
        )
        points.append(
            ScatterPoint(
                mark=point_mark, x=100 * mean.value, low=100 * mean.low, high=100 * mean.high
            )
        )
    distances = [abs(tilt.value - tilt.neutral) for tilt in tilts]
    effectiveness = [100 * mean.value for mean in means]
    front = pareto(list(zip(effectiveness, distances, strict=True)))
    drawing = scatter(
        points,
        x=f"{measure} over all documents, %",
        y=_axis_title(bench),
        margin=_level_band(tilts, choice.margin),
        tone_names={
            **tone_legend(pair),
            "first": f"toward {pair[0]}",
            "second": f"toward {pair[1]}",
        },
        front=front,
    )
    names = join_words([candidates[index].name for index in front] or ["none"])
    return Figure(
        f"{measure} against the tilt between {pair[0]} and {pair[1]}",
        f"Pareto front: {names}; no other one has a higher mean and a tilt nearer to level. Lines: "
        "95 % intervals, of each ranker by itself and not of differences.",
        drawing,
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the points on the Pareto front, by falling gain.

    A point is a gain, which should be high, and a loss, which should be low. It is on the front
    unless another point has at least the gain and at most the loss. Points with NaN are left out.
    """
    indices = [
        index
        for index, (gain, loss) in enumerate(points)
        if not (math.isnan(gain) or math.isnan(loss))
    ]
    front, least_loss = list[int](), math.inf
    for index in sorted(indices, key=lambda index: (-points[index][0], points[index][1])):
        _, loss = points[index]
        if loss < least_loss:
            front.append(index)
            least_loss = loss
    return front
