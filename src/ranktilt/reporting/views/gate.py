"""A gate: its checks, the reason of each comparison, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, worst_first
from ranktilt.errors import join_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Document,
    PageBlocks,
    Section,
    Sentence,
    name_column,
    tabulated,
    text_column,
)
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import DASH, ends, number, signed
from ranktilt.reporting.provenance import MOST_NAMED
from ranktilt.reporting.sentences.gate import (
    gate_headline,
    gate_meaning,
    gate_next_commands,
    outcome_word,
    row_reason,
    row_word,
)
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.readings import side_names

_FINE = ("tau", "agreement", "shift", "gap growth")
"""Checks of coefficients and grades, which are printed with two decimals."""


@dataclass(frozen=True, kw_only=True)
class _TableRow:
    """A check of a gate, and the comparison that it is of."""

    row: GateRow
    """The comparison."""
    check: LimitCheck
    """The check."""

    @property
    def interval(self) -> str:
        """Both ends of the interval; a dash where there is none."""
        return _interval(self.row, self.check)

    @property
    def allowed(self) -> str:
        """The limits of the value."""
        return _allowed(self.check)

    @property
    def outcome(self) -> Cell:
        """The outcome in a word."""
        return Cell(outcome_word(self.check), tone=VERDICT_TONES[self.check.outcome])

    @property
    def queries(self) -> Cell:
        """Queries on which the check rests."""
        queries = self.row.queries if self.check.queries is None else self.check.queries
        return number(queries, str)

    @property
    def value(self) -> Cell:
        """The checked value, with as many decimals as its comparison has."""
        return number(self.check.value, partial(signed, digits=_digits(self.row)))


_COLUMNS: tuple[ColumnOf, ...] = (
    (name_column("measure"), attrgetter("row.measure")),
    (text_column("groups"), attrgetter("row.groups")),
    (text_column("check"), attrgetter("check.name")),
    ("value", attrgetter("value")),
    ("95 % interval", attrgetter("interval")),
    (Column("allowed", drop_order=1), attrgetter("allowed")),
    (Column("queries", drop_order=1), attrgetter("queries")),
    (text_column("outcome"), attrgetter("outcome")),
)
"""Columns of the table."""


def view(gate: Gate) -> Document:
    """Return the document of a gate."""
    rows = []
    for row in gate.rows:
        rows += [_TableRow(row=row, check=check) for check in row.checks]
    table = tabulated(
        "Checks",
        rows,
        _COLUMNS,
        group=lambda table_row: (table_row.row.run,),
        groups=("ranker",),
        collapsed=True,
    )
    sentences = [_sentence(row) for row in worst_first(gate.rows)]
    section = Section("result", "Every check", blocks=(table,), short_title="Checks")
    names = [row.run for row in gate.rows]
    commands = [str(gate.spec[key]) for key in ("audit", "command") if gate.spec.get(key)]
    return Document(
        kind=_kind(gate),
        headline=gate_headline(gate),
        sections=(section,),
        sentences=tuple(sentences),
        meaning=gate_meaning(gate),
        first_figure=PageBlocks(make=partial(_first_figure, gate)),
        next_steps=gate_next_commands(gate),
        names=tuple(names),
        notes=note_sentences(gate.notes),
        outcome=VERDICT_TONES[gate.outcome],
        commands=tuple(commands),
    )


def _first_figure(gate: Gate) -> Iterator[IntervalChart]:
    """Draw the check that decided each comparison and its limits, the worst first."""
    decisions = [(row, row.deciding_checks[0]) for row in worst_first(gate.rows)]
    known = [(row, check) for row, check in decisions if math.isfinite(check.value)]
    if not known:
        return
    is_order = known[0][1].name == "tau"
    alike = [(row, check) for row, check in known if (check.name == "tau") == is_order]
    drawn = alike[:MOST_ROWS]
    has_several_pairs = len({row.groups for row, _ in drawn}) > 1
    left_out = f" Drawn: {len(drawn)} of {len(known)} checks." if len(drawn) < len(known) else ""
    first = known[0][0]
    measured = "τ-b" if is_order else f"{first.measure}, {first.groups}"
    yield interval_chart(
        f"{measured}: measured and allowed",
        f"Line: 95 % interval. Shaded: what is allowed.{left_out}",
        [_first_figure_row(row, check, row.groups * has_several_pairs) for row, check in drawn],
        scales=["τ-b" if is_order else f"{known[0][0].measure}, as gated"],
        sides=_tilt_sides([check for _, check in drawn]),
    )


def _tilt_sides(checks: Sequence[LimitCheck]) -> tuple[str, str]:
    """Name what lies left and right of neutral, where all checks are of a tilt to one side."""
    tilts = [check.checked_tilt for check in checks if check.checked_tilt is not None]
    if len(tilts) < len(checks) or not all(tilt.estimand.sided for tilt in tilts):
        return ("", "")
    left, right = side_names(tilts)
    return (f"◀ {left}", f"{right} ▶")


def _kind(gate: Gate) -> str:
    """Name the gated runs."""
    runs = list(dict.fromkeys(row.run for row in gate.rows))
    if not runs or len(runs) > MOST_NAMED:
        return f"Gate on {len(runs)} runs" if runs else "Gate on an audit"
    return f"Gate on {join_words(runs)}"


def _first_figure_row(row: GateRow, check: LimitCheck, note: str) -> IntervalRow:
    """Return a check, as a row of the chart."""
    limits = (check.floor, check.ceiling)
    neutral = sum(limits) / 2 if all(map(math.isfinite, limits)) else math.nan
    value = signed(check.value, _digits(row))
    interval = _interval(row, check).replace(" … ", ", ")
    reading = IntervalReading(
        mark=IntervalMark(value=check.value, low=check.low, high=check.high),
        text=f"{value} [{interval}]" if interval != DASH else value,
        tone=VERDICT_TONES[check.outcome],
        neutral=neutral,
        band=limits,
    )
    label = row.run if check.name == "tilt" else f"{row.run}, {check.name}"
    return IntervalRow(label=label, readings=(reading,), note=note)


def _sentence(row: GateRow) -> Sentence:
    """Return the sentence on a comparison."""
    return Sentence(
        f"{row.run}, {row.measure}, {row.groups}: {row_word(row)}: {row_reason(row)}",
        VERDICT_TONES[row.outcome],
    )


def _interval(row: GateRow, check: LimitCheck) -> str:
    """Print both ends of a check's interval; a dash where it has none."""
    if math.isnan(check.low) or math.isnan(check.high):
        return DASH
    return " … ".join(ends(check.low, check.high, _digits(row)))


def _digits(row: GateRow) -> int:
    """Return one decimal for points, two for coefficients and grades, which lie around 1."""
    fine = row.measure.startswith("GradeGap") or any(check.name in _FINE for check in row.checks)
    return 2 if fine else 1


def _allowed(check: LimitCheck) -> str:
    """Write what a limit allows."""
    if not math.isfinite(check.floor):  # a file holds no infinity
        return f"≤ {check.ceiling:g}"
    if not math.isfinite(check.ceiling):
        return f"≥ {check.floor:g}"
    return f"{signed(check.floor)} … {signed(check.ceiling)}"
