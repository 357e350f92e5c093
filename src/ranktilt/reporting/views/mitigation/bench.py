"""A bench: the choice and what it costs, every number, and what it does to other groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from ranktilt.auditing.answer.gate import points, worst
from ranktilt.auditing.effects import ALPHA, Change, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.errors import counted, join_words
from ranktilt.experiments.tradeoff_result import Bench, Choice, Intervention, OtherGroups
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.reporting.document import (
    ELSEWHERE,
    TEXT,
    Cell,
    Column,
    Document,
    Emphasis,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.numbers import ends, percent, signed
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.verdicts import mark
from ranktilt.reporting.views.audit_legend import twin_test
from ranktilt.reporting.views.mitigation.bench_figures import by_strength, over_name, planes, primary, side_name
from ranktilt.reporting.views.provenance import folder, provenance

_LABEL = 24


def view(bench: Bench) -> Document:
    """Return what is said of a bench."""
    name = folder(bench.spec)
    title = f"Bench of {join_words(bench.methods)}" + (f" on {name}" if name else "")
    choice = bench.choose()
    tone = VERDICT_TONES[choice.outcome]
    return Document(
        title=title,
        kind=title,
        headline=f"{choice.headline}.",
        sections=(
            Section("choice", "Which intervention reaches level, and what it costs", (), (_table(bench, choice),)),
            *_plane_section(bench, choice),
            *by_strength(bench, choice),
            *_beside(bench),
            Section("numbers", "Every number", (), tuple(_number_tables(bench, choice))),
            provenance(bench.spec, bench.notes),
        ),
        sentences=(Sentence(choice.headline, tone, "strong", only=TEXT), *map(Sentence, choice.sentences)),
        legend=tuple(legend(bench)),
        notes=bench.notes,
        data=_data(bench),
    )


def _plane_section(bench: Bench, choice: Choice) -> Iterator[Section]:
    """Effectiveness against tilt, where effectiveness is known."""
    if bench.over:
        yield Section("plane", "Effectiveness against tilt", (), tuple(planes(bench, choice)))


def _number_tables(bench: Bench, choice: Choice) -> Iterator[Table]:
    """Every intervention, where the first table shows those alone that were selected; and every question."""
    if bench.selected:
        title = "Every strength: effectiveness against tilt"
        yield replace(_table(bench, choice, bench.interventions), caption=title, folded=True, only=ELSEWHERE)
    yield _numbers(bench)


def _table(bench: Bench, choice: Choice, shown: Sequence[Intervention] | None = None) -> Table:
    """One row an intervention that is judged, or is to be shown, and below it how it differs from the baseline."""
    valued = bench.valued
    front = [primary(bench) + (f", {side_name(bench, p)}" if len(bench.pairs) > 1 else "") for p in bench.pairs]
    columns = (
        Column("intervention", number=False, header=True, width=_LABEL),
        *(Column(title, spread=True) for title in front),
        *(Column(f"{valued}, {'all' if over == ALL else f'{over} alone'}", spread=True) for over in bench.over),
        Column("tilt", number=False),
        *([Column("cost", number=False, hint="against the budget")] if bench.over else []),
    )
    groups = ("method",) if len(bench.methods) + len(bench.refused) > 1 else ()
    rows = [row for one in shown or bench.judged for row in _choice_rows(bench, choice, one)]
    numbers, costs = ([Cell("") for _ in some] for some in ((*bench.pairs, *bench.over), bench.over[:1]))
    for method, reason in bench.refused:
        cells = (Cell(method, note=reason), *numbers, Cell("refused", None, "warning"), *costs)
        rows.append(Row(cells, groups and (method,)))
    return Table("Effectiveness against tilt", columns, tuple(rows), _changed(bench), intervals="row", groups=groups)


def _choice_rows(bench: Bench, choice: Choice, one: Intervention) -> Iterator[Row]:
    baseline = one == bench.baseline
    tilts = bench.before if baseline else tuple(bench.tilt(one.name, pair) for pair in bench.pairs)
    means = [bench.mean(one.name, over) for over in bench.over]
    group = (one.method or "baseline",) if len(bench.methods) + len(bench.refused) > 1 else ()
    chosen = "chosen" if one == choice.chosen else "selected" if one.name in bench.selected else ""
    if baseline and tilts[0].queries != bench.tilt(one.name, bench.pairs[0]).queries:
        chosen = "tilt: over all queries"
    rows = choice.rows[one.name]
    costs = rows[len(tilts) :]
    tilt, cost = (worst(["level", *(row.outcome for row in some)]) for some in (rows[: len(tilts)], costs))
    said = "over-corrected" if choice.overcorrected(one.name) else tilt
    yield Row(
        (
            Cell(one.name, note=chosen, emphasis="strong" if chosen == "chosen" else ""),
            *map(_tilt_cell, tilts),
            *map(_mean_cell, means),
            Cell(said, None, VERDICT_TONES[tilt]),
            *(
                [Cell(next(row.word for row in costs if row.outcome == cost), None, VERDICT_TONES[cost])]
                if costs
                else [Cell("") for _ in bench.over[:1]]
            ),
        ),
        group,
    )
    if one != bench.baseline:
        groups = [*bench.pairs, *((over, over) for over in bench.over)]
        changes = (_change_cell(bench, one, pair) for pair in groups)
        blank = [Cell("") for _ in ("tilt", *bench.over[:1])]
        yield Row((Cell(_less(bench), emphasis="quiet"), *changes, *blank), group)


def _less(bench: Bench) -> str:
    """Head a row of differences; a baseline with a long name is not named again."""
    named = f"less {bench.baseline.name}"
    return named if len(named) <= _LABEL else "less the baseline"


def _tilt_cell(tilt: Effect) -> Cell:
    emphasis: Emphasis = "strong" if tilt.favours else ""
    of = tilt.estimand
    found = (of.amount(tilt.low), of.amount(tilt.high))
    return Cell(of.amount(tilt.value) + mark(tilt), tilt.value, ends=found, emphasis=emphasis, signed=of.signed)


def _mean_cell(mean: Effect) -> Cell:
    return Cell(percent(mean.value), mean.value, ends=(percent(mean.low), percent(mean.high)))


def _change_cell(bench: Bench, one: Intervention, pair: Pair, measure: str | None = None) -> Cell:
    return _moved_cell(bench.change(one.name, pair, measure))


def _moved_cell(change: Change | None) -> Cell:
    if change is None:
        return Cell("")
    mark = "*" if change.p_corrected < ALPHA else ""
    bold: Emphasis = "strong" if change.shown else "quiet"
    if isinstance(change.estimand, RelativeDelta) or change.estimand.kind == "relevance":
        return Cell(signed(change.value) + mark, change.value, ends=ends(change.low, change.high), emphasis=bold)
    return Cell(change.amount(change.value, sign=True) + mark, change.value, ends=change.ends, emphasis=bold)


def _numbers(bench: Bench) -> Table:
    """Every question: each pair of groups, then effectiveness."""
    asked = tuple(dict.fromkeys((*bench.questions, *bench.measures)))
    columns = (
        Column("intervention", number=False, header=True, width=_LABEL),
        *(Column(name, spread=True) for name in asked),
    )
    rows = list[Row]()
    for pair in (*bench.pairs, *((over, over) for over in bench.over)):
        tilted = pair[0] != pair[1]
        title = f"Tilt, {pair[0]} | {pair[1]}" if tilted else f"Effectiveness, {over_name(pair[0])}"
        held = bench.questions if tilted else bench.measures
        for one in bench.interventions:
            found = (
                Cell("") if m not in held else _tilt_cell(bench.tilt(one.name, pair, m)) if tilted
                else _mean_cell(bench.mean(one.name, pair[0], m)) for m in asked
            )  # fmt: skip
            rows.append(Row((Cell(one.name), *found), (title,)))
            if one != bench.baseline:
                changes = (_change_cell(bench, one, pair, m) if m in held else Cell("") for m in asked)
                rows.append(Row((Cell(_less(bench), emphasis="quiet"), *changes), (title,)))
    return Table(
        "Every question", columns, tuple(rows), _changed(bench), groups=("quantity",), intervals="row",
        folded=bool(bench.selected), only=ELSEWHERE,
    )  # fmt: skip


def _beside(bench: Bench) -> Iterator[Section]:
    """A section of what became of the groups of other columns."""
    if bench.others:
        tables = tuple(_others_table(bench, other) for other in bench.others)
        yield Section("others", "What it does to other groups", (), tables)


def _others_table(bench: Bench, other: OtherGroups) -> Table:
    """One row an intervention and pair of another column's groups, with the change below it."""
    asked = tuple(dict.fromkeys(tilt.measure for tilt in other.tilts))
    known = {(tilt.run, tilt.a, tilt.b, tilt.measure): tilt for tilt in other.tilts}
    moved = {(change.run, change.a, change.b, change.measure): change for change in other.changes}
    columns = (
        Column("intervention", number=False, header=True, width=_LABEL), *(Column(name, spread=True) for name in asked),
    )  # fmt: skip
    rows = list[Row]()
    for run, a, b in dict.fromkeys((tilt.run, tilt.a, tilt.b) for tilt in other.tilts):
        found = [known.get((run, a, b, name)) for name in asked]
        group = (f"{a} | {b}",)
        rows.append(Row((Cell(run), *(Cell("") if one is None else _tilt_cell(one) for one in found)), group))
        if run != bench.baseline.name:
            changes = (_moved_cell(moved.get((run, a, b, name))) for name in asked)
            rows.append(Row((Cell(_less(bench), emphasis="quiet"), *changes), group))
    rows.sort(key=lambda row: row.group)
    caption = f"+ favours the group named first. {_changed(bench)}"
    return Table(
        f"Groups by {other.by}", columns, tuple(rows), caption, groups=("groups",), intervals="row", only=ELSEWHERE,
    )  # fmt: skip


def _changed(bench: Bench) -> str:
    ratio = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand.level == 1
    units = ("Ratios, and effectiveness in %", "") if ratio else ("In %", " in points")
    return f"{units[0]}; less {bench.baseline.name}: the paired difference{units[1]}. * corrected p < .05."


def legend(bench: Bench) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec = bench.spec
    reference = spec.get("reference")
    asked = bench.tilt(bench.baseline.name, bench.pairs[0]).estimand
    above = "+" if asked.level == 0 else "above 1"
    unit = ", in %" if isinstance(asked, RelativeDelta) else ""
    cost = (
        f" Cost: within where a loss of more than {points(bench.budget)} of {bench.valued} is excluded by the paired "
        "interval, beyond where it is shown."
    ) if bench.over else ""  # fmt: skip
    yield (
        f"{primary(bench)}{unit}: {above} favours {reference}. Tilt: level where its whole interval lies within "
        f"±{bench.level:g} points (within, where a side is favoured all the same), tilted where one is and it lies "
        f"wholly beyond.{cost}"
    )
    if bench.selected:
        many = dict(bench.spec.get("queries") or {}).get("select")
        on = counted(int(many), "other query", "other queries") if many else "other queries"
        yield f"Selected: chosen on {on}, one a method; only these are judged."
    tests = counted(int(spec["tests"]), "test", "tests")
    yield (
        f"Less {bench.baseline.name}: paired differences in points; * corrected p < .05 "
        f"({str(spec['correction']).capitalize()} over {tests}; permutation tests: rankers exchanged query by query "
        f"for Relative Δ, sign flips for effectiveness). * of a Relative Δ: as in an audit ({twin_test(spec['test'])})."
    )
    yield f"Intervals: bootstrap over queries, {spec['resamples']:,} resamples."


def _data(bench: Bench) -> pl.DataFrame:
    """One row an intervention, quantity and measure.

    Relative Δ and effectiveness are in percent and points; shares are 0 to 1, ratios and counts are numbers.
    """
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
                "quantity": _quantity(effect), "a": effect.a,
                "b": effect.b, "measure": effect.measure, "value": scale * effect.value, "low": scale * effect.low,
                "high": scale * effect.high, "p_corrected": effect.p_corrected, "queries": effect.queries, **moved,
            }
        )  # fmt: skip
    records += [{"method": method, "quantity": "refused", "reason": reason} for method, reason in bench.refused]
    frame = pl.DataFrame(records, infer_schema_length=None)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _quantity(effect: Effect) -> str:
    if effect.a == effect.b:
        return "effectiveness"
    return "relative_delta" if isinstance(effect.estimand, RelativeDelta) else effect.kind
