"""The tables of an audit: the papers' table, the estimand card, controls, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ranktilt.auditing.confounds import SIDED, Confound
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit, Controlled
from ranktilt.errors import counted
from ranktilt.reporting.document import Cell, Column, Emphasis, Row, Table
from ranktilt.reporting.numbers import DASH, ends, interval, p_value, percent, signed
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.verdicts import mark, named, tone_of
from ranktilt.reporting.views.audit_legend import card_legend, control_legend, table_legend, whole_groups

_TIED = "Relevant twins with one score, of those with a side retrieved."
_MOST_OPEN = 14
"""Rows of a table below a figure that shows its first column, before it is folded away."""
_CONFOUNDS = {
    "words": "words a document",
    "query words": "query words in relevant text",
    "cut-off endings": "documents that break off",
    "boilerplate openings": "documents that begin with boilerplate",
    "identical": "the same text",
    "near-identical": "nearly the same text (Jaccard ≥ .95)",
    "same title": "the same title",
}


def group_table(audit: Audit) -> Table:
    """Lay an audit out as the papers do: per ranker the means of all documents and of each group, and Relative Δ."""
    tied = any(t.twins for t in audit.tilts)
    columns = (
        named("group"),
        *(Column(repr(measure)) for measure in audit.measures),
        Column("queries", hint="Queries with a relevant document in the group; for Relative Δ in both groups."),
        *([Column("tied twins", hint=_TIED)] if tied else []),
    )
    rows: list[Row] = []
    means = audit.by_group()
    for run in audit.runs:
        for group in audit.groups:
            side = means.filter((pl.col("run") == run) & (pl.col("group") == group))
            rows.append(_mean_row(run, group, side["mean"].to_list(), side["queries"][0], tied=tied))
        for pair in audit.tilted_pairs:
            rows += _tilt_rows(audit, run, pair, tied=tied)
    caption = "Means and Relative Δ, in %" if audit.tilts else "Means, in %"
    note = " ".join(table_legend(audit))
    return Table(caption, columns, tuple(rows), note, groups=("ranker",))


def _mean_row(run: str, group: str, means: list[float], queries: int, *, tied: bool) -> Row:
    emphasis: Emphasis = "quiet" if group == ALL else ""
    cells = (Cell(percent(mean), mean, emphasis=emphasis) for mean in means)
    end = (Cell(str(queries), queries, emphasis=emphasis), *[Cell("")] * tied)
    return Row((Cell(group, emphasis=emphasis), *cells, *end), (run,))


def _tilt_rows(audit: Audit, run: str, pair: Pair, *, tied: bool) -> Iterator[Row]:
    found = [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
    which = "" if len(audit.pairs) == 1 else f" {pair[0]} | {pair[1]}"
    share = audit.tied_share(run, *pair)
    last = [Cell("" if share != share else f"{100 * share:.1f} %", share)] * tied
    deltas = (_delta(t, audit.level) for t in found)
    queries = Cell(str(found[0].queries), found[0].queries)
    yield Row((Cell(f"Relative Δ{which}", emphasis="strong"), *deltas, queries, *last), (run,))
    if not found[0].twins:
        bands = (Cell("", ends=ends(t.band_low, t.band_high), emphasis="quiet") for t in found)
        yield Row((Cell("random band", emphasis="quiet"), *bands, Cell(""), *[Cell("")] * tied), (run,))


def _delta(tilt: Effect, level: float) -> Cell:
    text = signed(tilt.value) + mark(tilt)
    return Cell(text, tilt.value, tone_of(tilt, level), ends=ends(tilt.low, tilt.high))


def card_overview(audit: Audit) -> Table:
    """Lay the cards of all rankers out below each other: a row a ranker and pair, a column a question."""
    asked = tuple(dict.fromkeys(e.estimand for e in audit.estimates))
    rows = []
    before = None
    for run in audit.runs:
        for pair in audit.pairs:
            found = {e.estimand: e for e in audit.estimates_of(run, *pair)}
            which = f"{pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else ""
            answers = (_answer(found[one], noted=True) if one in found else Cell(DASH) for one in asked)
            rows.append(Row((Cell(run, note=which), *answers), rule=bool(which) and run != before))
            before = run
    columns = tuple(Column(one.heading or one.title, hint=f"{one.title}: {one.question}") for one in asked)
    described = "".join(f"; the {one.title} only describes" for one in asked if one.descriptive)
    note = "Below each answer its 95 % interval."
    if any(one.sided for one in asked):
        note += f" Without ▲ or ▼ the answer is not significant{described}."
    note = " ".join([note, *whole_groups(audit)])
    return Table("Every ranker's answers", (named("ranker"), *columns), tuple(rows), note, only="page")


def _answer(e: Effect, *, noted: bool = False) -> Cell:
    tone: Tone = VERDICT_TONES[e.favours] if e.favours else ""
    note = _interval(e).replace(" random", "\nrandom") if noted else ""
    return Cell(e.estimand.answer(e.value), e.value, tone, note)


def _interval(e: Effect) -> str:
    if e.low != e.low or e.high != e.high:
        return DASH
    amount = e.estimand.amount
    text = f"[{amount(e.low)}, {amount(e.high)}]"
    return f"{text} random [{amount(e.band_low)}, {amount(e.band_high)}]" if e.banded else text


def card_table(audit: Audit) -> Table:
    """Lay the whole card out: per ranker and pair a row a question."""
    columns = (
        named("question"), Column("answer"), Column("95 % interval"), Column("corrected p"),
        Column("favours", number=False, spare=2), Column("from", number=False, spare=1),
    )  # fmt: skip
    rows = tuple(
        _question(audit, e, pair) for run in audit.runs for pair in audit.pairs for e in audit.estimates_of(run, *pair)
    )
    note = (
        f"{' '.join(card_legend(audit))} So a p here can differ from the one of the verdict above, which is corrected "
        "over the table's tests."
    )
    return Table("The estimand card, every number", columns, rows, note, groups=("ranker",), folded=True)


def _question(audit: Audit, e: Effect, pair: Pair) -> Row:
    cells = (
        Cell(e.name, note=e.estimand.question), _answer(e), Cell(_interval(e), emphasis="quiet"),
        Cell(p_value(e.p_corrected), e.p_corrected), Cell(e.side(e.favours) or DASH), Cell(e.estimand.basis(e)),
    )  # fmt: skip
    return Row(cells, _group(audit, e.run, pair))


def _group(audit: Audit, run: str, pair: Pair) -> tuple[str]:
    """The ranker, and the pair where there are several."""
    return (f"{run}, {pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else run,)


def control_table(audit: Audit) -> Table:
    """Lay raw and controlled values out below each other: per ranker and pair a row raw and one a control."""
    measures = [repr(measure) for measure in audit.measures]
    columns = (
        named("control"), *map(Column, measures), Column(f"moved on {measures[audit.place]}"),
        Column("changed", number=False),
    )  # fmt: skip
    rows = tuple(
        _control_row(audit, one, pair)
        for run in audit.runs
        for pair in audit.tilted_pairs
        # Controls that were not applied name only the first pair.
        for one in audit.controls
        if one.run == run and ((one.a, one.b) == pair or not one.tilts)
    )
    note = " ".join(control_legend(audit))
    return Table(
        "Relative Δ in %, raw and controlled", columns, rows, note, groups=("ranker",), folded=len(rows) > _MOST_OPEN,
    )  # fmt: skip


def _control_row(audit: Audit, one: Controlled, pair: Pair) -> Row:
    cells = [_delta(t, audit.level) for t in one.tilts] or [Cell("")] * len(audit.measures)
    moved = Cell("")
    first = one.moves[audit.place] if one.moves else None
    if first is not None and first.value == first.value:
        moved = Cell(f"{signed(first.value)} {interval(first.low, first.high)}", first.value, emphasis="quiet")
    row = (Cell(one.control), *cells, moved, Cell(one.changed))
    return Row(row, _group(audit, one.run, pair))


def confound_tables(audit: Audit, pair: Pair) -> list[Table]:
    """Lay out in what else two groups' texts differ, and how alike their twins are; at most two tables."""
    found = [one for one in audit.confounds if (one.a, one.b) == pair]
    sided = [one for one in found if one.name in SIDED]
    paired = [one for one in found if one.name not in SIDED]
    tables = []
    if sided:
        columns = (named("what differs"), Column(pair[0]), Column(pair[1]), Column("documents"))
        rows = tuple(
            Row((Cell(_name(one)), _amount(one, one.value_a), _amount(one, one.value_b), _of(one))) for one in sided
        )
        note = "Documents: of both sides together; for query words the relevant ones, once for each query."
        tables.append(Table(f"The texts of {pair[0]} and {pair[1]}", columns, rows, note, only="page"))
    if paired:
        titles = (named("pairs with"), Column("share of pairs"), Column("pairs"))
        alike = tuple(Row((Cell(_name(one)), _amount(one, one.value_a), _of(one))) for one in paired)
        tables.append(Table(f"Twins of {pair[0]} and {pair[1]} that are alike", titles, alike, only="page"))
    return tables


def _name(one: Confound) -> str:
    if one.name == "truncated":
        return f"documents that {one.run} cuts at {counted(one.limit, 'token', 'tokens')}"
    return _CONFOUNDS[one.name]


def _amount(one: Confound, value: float) -> Cell:
    if value != value:
        return Cell("–", value)
    return Cell(f"{value:.1f}" if one.name == "words" else f"{100 * value:.1f} %", value)


def _of(one: Confound) -> Cell:
    return Cell(f"{one.number:,}", one.number)
