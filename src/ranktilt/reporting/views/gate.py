"""The document of a gate: a test of whether runs stay within limits, with the reason for each run.

A gate has a row for each *comparison* (a run, a measure and a pair of groups), and each row has
*checks*: values that are compared with a limit, such as the *tilt* (how far a run favours one of
two groups of documents) or the loss of effectiveness. The *outcome* of a check is ``level``,
``within`` the limit, ``tilted`` (beyond it) or ``inconclusive``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, worst_first
from ranktilt.errors import join_words
from ranktilt.measures.printing import digits_apart, rounded
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnSpec,
    Document,
    PageBlocks,
    Section,
    Sentence,
    make_table,
    name_column,
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
from ranktilt.reporting.numbers import DASH, ends, number_cell, signed
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

_TWO_DECIMAL_CHECKS = ("tau", "agreement", "shift", "gap growth")
"""Checks of coefficients and grades, which lie around 1 and are printed with two decimals."""
_MOST_LIMIT_DIGITS = 3
"""Most decimals of a limit; one with more was not asked for in this unit, and is rounded."""


@dataclass(frozen=True, kw_only=True)
class _TableRow:
    """A check of a gate, with the texts that the table prints of it."""

    row: GateRow
    """The comparison that the check belongs to."""
    check: LimitCheck
    """The check."""

    @property
    def interval(self) -> str:
        """Both ends of the interval; a dash where there is none."""
        return _interval_text(self.row, self.check)

    @property
    def allowed(self) -> str:
        """The values that the limit allows."""
        return _allowed_text(self.check)

    @property
    def outcome(self) -> Cell:
        """The outcome in a word."""
        return Cell(outcome_word(self.check), tone=VERDICT_TONES[self.check.outcome])

    @property
    def queries(self) -> Cell:
        """Number of queries that the check was computed from."""
        queries = self.row.queries if self.check.queries is None else self.check.queries
        return number_cell(queries, str)

    @property
    def value(self) -> Cell:
        """The checked value, with the same number of decimals in all checks of a comparison."""
        return number_cell(self.check.value, partial(signed, digits=_digits(self.row)))


_COLUMNS: tuple[ColumnSpec, ...] = (
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
    table = make_table(
        "Checks",
        rows,
        _COLUMNS,
        group_of=lambda table_row: (table_row.row.run,),
        group_titles=("ranker",),
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
    """Draw the check that decided each comparison, with its limits, the worst first.

    Kendall's τ-b has its own scale, so a chart holds either checks of τ-b or none of them.
    """
    decisions = [(row, row.deciding_checks[0]) for row in worst_first(gate.rows)]
    decisions = [(row, check) for row, check in decisions if math.isfinite(check.value)]
    if not decisions:
        return
    worst_row, worst_check = decisions[0]
    is_tau = worst_check.name == "tau"
    on_one_scale = [(row, check) for row, check in decisions if (check.name == "tau") == is_tau]
    drawn = on_one_scale[:MOST_ROWS]
    left_out = ""
    if len(drawn) < len(decisions):
        left_out = f" Drawn: {len(drawn)} of {len(decisions)} checks."
    has_several_pairs = len({row.groups for row, _ in drawn}) > 1
    chart_rows = [
        _first_figure_row(row, check, note=row.groups if has_several_pairs else "")
        for row, check in drawn
    ]
    subject = "τ-b" if is_tau else f"{worst_row.measure}, {worst_row.groups}"
    yield interval_chart(
        f"{subject}: measured and allowed",
        f"Line: 95 % interval. Shaded: what is allowed.{left_out}",
        chart_rows,
        scale_titles=["τ-b" if is_tau else f"{worst_row.measure}, as gated"],
        sides=_tilt_sides([check for _, check in drawn]),
    )


def _tilt_sides(checks: Sequence[LimitCheck]) -> tuple[str, str]:
    """Name the groups that values left and right of neutral favour; empty unless all are tilts."""
    tilts = [check.checked_tilt for check in checks if check.checked_tilt is not None]
    if len(tilts) < len(checks) or not all(tilt.estimand.sided for tilt in tilts):
        return ("", "")
    left, right = side_names(tilts)
    return (f"◀ {left}", f"{right} ▶")


def _kind(gate: Gate) -> str:
    """Return the title of the document, which names the gated runs."""
    runs = list(dict.fromkeys(row.run for row in gate.rows))
    if not runs or len(runs) > MOST_NAMED:
        return f"Gate on {len(runs)} runs" if runs else "Gate on an audit"
    return f"Gate on {join_words(runs)}"


def _first_figure_row(row: GateRow, check: LimitCheck, *, note: str) -> IntervalRow:
    """Return a check as a row of the chart; neutral is the middle between its two limits."""
    limits = (check.floor, check.ceiling)
    neutral = sum(limits) / 2 if all(map(math.isfinite, limits)) else math.nan
    value = signed(check.value, _digits(row))
    interval = _interval_text(row, check).replace(" … ", ", ")
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
    """Return the sentence on a comparison: its outcome, and the reason for it."""
    return Sentence(
        f"{row.run}, {row.measure}, {row.groups}: {row_word(row)}: {row_reason(row)}",
        VERDICT_TONES[row.outcome],
    )


def _interval_text(row: GateRow, check: LimitCheck) -> str:
    """Print both ends of a check's interval; a dash where it has none."""
    if math.isnan(check.low) or math.isnan(check.high):
        return DASH
    limits = [limit for limit in (check.floor, check.ceiling) if math.isfinite(limit)]
    digits = digits_apart([check.low, check.high], limits, _digits(row))
    return " … ".join(ends(check.low, check.high, digits))


def _digits(row: GateRow) -> int:
    """Return the number of decimals of a comparison's values: one for points, two otherwise."""
    check_names = {check.name for check in row.checks}
    is_coefficient_or_grade = row.measure.startswith("GradeGap") or not check_names.isdisjoint(
        _TWO_DECIMAL_CHECKS
    )
    return 2 if is_coefficient_or_grade else 1


def _allowed_text(check: LimitCheck) -> str:
    """Print the values that a check's limit allows."""
    # A limit that is missing is infinite, or NaN once it was read from a file.
    if not math.isfinite(check.floor):
        return f"≤ {check.ceiling:g}"
    if not math.isfinite(check.ceiling):
        return f"≥ {check.floor:g}"
    digits = _limit_digits((check.ceiling - check.floor) / 2)
    return f"{signed(check.floor, digits)} … {signed(check.ceiling, digits)}"


def _limit_digits(half_width: float) -> int:
    """Return the decimals of a limit as it was asked for, such as two for .05; one at least."""
    exact = (
        digits
        for digits in range(1, _MOST_LIMIT_DIGITS + 1)
        if math.isclose(float(rounded(half_width, digits)), half_width, abs_tol=1e-9)
    )
    return next(exact, 1)
