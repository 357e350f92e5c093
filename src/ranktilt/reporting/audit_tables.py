"""The tables of an audit's page: the papers' table, the estimand card, controls, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktilt.auditing.confounds import SIDED, Confound
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.audit_cells import TONES, ends, named, side_of, tone_of
from ranktilt.reporting.card import Line, card_legend, lines
from ranktilt.reporting.controls import control_legend, control_rows, control_titles
from ranktilt.reporting.layout import legend, mark, percent, signed_or_dash
from ranktilt.reporting.page import Cell, Column, Table, Tone

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
    """Lay an audit out as the papers do: per ranker the means of all documents and of each group, and Relative Δ.

    Parameters
    ----------
    audit : Audit
        With measures.

    Returns
    -------
    Table
        The same cells as in the terminal, each with the number it was rounded from; under Relative Δ its interval.
    """
    means = {(run, name, group): (mean, queries) for run, name, group, mean, queries, _ in audit.by_group().iter_rows()}
    rows: list[tuple[Cell, ...]] = []
    tied = any(t.twins for t in audit.tilts)
    for run in audit.runs:
        for group in audit.groups:
            found = [means[run, repr(measure), group] for measure in audit.measures]
            first = group == audit.groups[0]
            front = Cell(run if first else group, group=first, note="all documents" if group == ALL else "")
            cells = (Cell(percent(mean), mean) for mean, _ in found)
            rows.append((front, *cells, Cell(f"{found[0][1]:,}", found[0][1]), *([Cell("")] if tied else [])))
        for pair in audit.tilted_pairs:
            rows += (row if tied else row[:-1] for row in _deltas(audit, run, pair))
    columns = (
        named("ranker and group"),
        *(Column(repr(measure)) for measure in audit.measures),
        Column("queries", hint="Queries with a relevant document in the group; for Relative Δ in both groups."),
        *(
            [Column("tied twins", hint="Relevant twins with one score, of those with a side retrieved.")]
            if tied
            else []
        ),
    )
    caption = "Means and Relative Δ, in %" if audit.tilts else "Means, in %"
    return Table(caption, columns, tuple(rows), " ".join([*_signs(audit), *table_legend(audit)]))


def _deltas(audit: Audit, run: str, pair: Pair) -> Iterator[tuple[Cell, ...]]:
    found = [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
    which = f" {pair[0]} | {pair[1]}" if len(audit.tilted_pairs) > 1 else ""
    tied = audit.tied_share(run, *pair)
    share = Cell("" if tied != tied else f"{100 * tied:.1f} %", None if tied != tied else tied)
    queries = Cell(f"{found[0].queries:,}", found[0].queries)
    yield (Cell(f"Relative Δ{which}", note="95 % interval"), *(_delta(t, audit.level) for t in found), queries, share)
    if not found[0].twins:
        bands = (Cell(ends(t.band_low, t.band_high)) for t in found)
        yield (Cell(f"random band{which}"), *bands, Cell(""), Cell(""))


def _delta(tilt: Effect, level: float) -> Cell:
    text = signed_or_dash(tilt.value) + mark(tilt)
    return Cell(text, tilt.value, tone_of(tilt, level), note=ends(tilt.low, tilt.high))


def _signs(audit: Audit) -> list[str]:
    """What the coloured signs mean."""
    if not audit.tilted_pairs:
        return []
    a, b = audit.tilted_pairs[0] if len(audit.tilted_pairs) == 1 else ("the first group of a pair", "the second")
    return [f"▲ favours {a}, ▼ favours {b}; without a sign no side is shown to be favoured."]


def table_legend(audit: Audit) -> list[str]:
    """Say what the numbers of the main table are, as the terminal does below it.

    Parameters
    ----------
    audit : Audit
        What was found.

    Returns
    -------
    list of str
        The terminal's lines but those about confounds, card and controls, which stand with their own tables.
    """
    others = {*card_legend(audit), *control_legend(audit)}
    return [line for line in legend(audit) if line not in others and not line.startswith("Beside who wrote it")]


def card_overview(audit: Audit) -> Table:
    """Lay the cards of all rankers out below each other: a row a ranker and pair, a column a question.

    Parameters
    ----------
    audit : Audit
        With a card.

    Returns
    -------
    Table
        Answers with their intervals, coloured where one favours a side.
    """
    found = {(run, pair): lines(audit, run, pair) for run in audit.runs for pair in audit.pairs}
    asked = tuple(dict.fromkeys(line.estimate.estimand for some in found.values() for line in some))
    rows = []
    before = None
    for (run, pair), some in found.items():
        answers = {line.estimate.estimand: line for line in some}
        which = f"{pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else ""
        front = Cell(run, group=bool(which) and run != before, note=which)
        rows.append((front, *(_answer(answers[one]) if one in answers else Cell("–") for one in asked)))
        before = run
    columns = tuple(Column(one.heading or one.title, hint=f"{one.title}: {one.question}") for one in asked)
    first, second = audit.pairs[0] if len(audit.pairs) == 1 else ("the first group of a pair", "the second")
    note = (
        f"+ and ▲ favour {first}, − and ▼ {second}; below each answer its 95 % interval. Without ▲ or ▼ the answer is "
        f"not significant{''.join(f'; the {one.title} only describes' for one in asked if one.descriptive)}."
    )
    return Table("Every ranker's answers", (named("ranker"), *columns), tuple(rows), note)


def _answer(line: Line) -> Cell:
    return Cell(line.answer, line.estimate.value, _leaning(line), note=line.interval.replace(" random", "\nrandom"))


def _leaning(line: Line) -> Tone:
    favours = line.estimate.favours
    return TONES[side_of(favours)] if favours else ""


def card_table(audit: Audit) -> Table:
    """Lay the whole card out: per ranker and pair a row a question, as in the terminal.

    Parameters
    ----------
    audit : Audit
        With a card.

    Returns
    -------
    Table
        Question, answer, interval, corrected p, the side it favours, and what it rests on.
    """
    columns = (
        named("question"),
        Column("answer"),
        Column("corrected p"),
        Column("favours", number=False, room=7),
        Column("from", number=False, room=20),
    )
    rows: list[tuple[Cell, ...]] = []
    for run in audit.runs:
        for pair in audit.pairs:
            rows.append(_heading(audit, run, pair, len(columns)))
            for line in lines(audit, run, pair):
                rows.append(
                    (
                        Cell(f"{line.estimate.name}: {line.question}"),
                        _answer(line),
                        Cell(line.p, line.estimate.p_corrected),
                        Cell(line.favours),
                        Cell(line.basis),
                    )
                )
    note = (
        f"Below each answer its 95 % interval. {' '.join(card_legend(audit))} So a p here can differ from the one of "
        "the verdict above, which is corrected over the table's tests."
    )
    return Table("The estimand card, every number", columns, tuple(rows), note, folded=True)


def _heading(audit: Audit, run: str, pair: Pair, width: int) -> tuple[Cell, ...]:
    """A row that names a ranker, and the pair where there are several."""
    which = f"{pair[0]} | {pair[1]}" if len(audit.pairs) > 1 else ""
    return (Cell(run, group=True, note=which), *[Cell("")] * (width - 1))


def control_table(audit: Audit) -> Table:
    """Lay raw and controlled values out below each other, as in the terminal.

    Parameters
    ----------
    audit : Audit
        With controls.

    Returns
    -------
    Table
        Per ranker and pair a row raw and one a control: Relative Δ on each measure, how far it moved, what changed.
    """
    *numbers, moved, _ = control_titles(audit)
    columns = (named("control"), *map(Column, numbers), Column(moved))
    rows: list[tuple[Cell, ...]] = []
    for run in audit.runs:
        for pair in audit.tilted_pairs:
            rows.append(_heading(audit, run, pair, len(columns)))
            made = [one for one in audit.controls if one.run == run and ((one.a, one.b) == pair or not one.tilts)]
            for row, one in zip(control_rows(audit, run, pair), made, strict=True):
                tilts: Sequence[Effect | None] = one.tilts or [None] * len(audit.measures)
                values = (_controlled(text, t, audit.level) for text, t in zip(row.cells, tilts, strict=True))
                by, _, interval = row.moved.partition(" ")
                rows.append(
                    (
                        Cell(row.label, note=row.changed),
                        *values,
                        Cell(by, one.moves[0].value if by else None, note=interval),
                    )
                )
    note = " ".join([*control_legend(audit), *_signs(audit)])
    return Table("Relative Δ in %, raw and controlled", columns, tuple(rows), note, folded=len(rows) > _MOST_OPEN)


def _controlled(text: str, tilt: Effect | None, level: float) -> Cell:
    if tilt is None:
        return Cell("")
    return Cell(text, tilt.value, tone_of(tilt, level), note=ends(tilt.low, tilt.high))


def confound_tables(audit: Audit, pair: Pair) -> list[Table]:
    """Lay out in what else two groups' texts differ, and how alike their twins are.

    Parameters
    ----------
    audit : Audit
        With confounds.
    pair : (str, str)
        Two groups.

    Returns
    -------
    list of Table
        Of the two sides, and of twins; what was not compared is left out.
    """
    found = [one for one in audit.confounds if (one.a, one.b) == pair]
    sided = [one for one in found if one.name in SIDED]
    paired = [one for one in found if one.name not in SIDED]
    tables = []
    if sided:
        columns = (named("what differs"), Column(pair[0]), Column(pair[1]), Column("documents"))
        rows = tuple(
            (Cell(_name(one)), _amount(one, one.value_a), _amount(one, one.value_b), _of(one)) for one in sided
        )
        note = "Documents: of both sides together; for query words the relevant ones, once for each query."
        tables.append(Table(f"The texts of {pair[0]} and {pair[1]}", columns, rows, note))
    if paired:
        titles = (named("pairs with"), Column("share of pairs"), Column("pairs"))
        alike = tuple((Cell(_name(one)), _amount(one, one.value_a), _of(one)) for one in paired)
        tables.append(Table(f"Twins of {pair[0]} and {pair[1]} that are alike", titles, alike))
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
