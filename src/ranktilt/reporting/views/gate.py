"""A gate: a row a check, the reasons, and the outcome."""

from __future__ import annotations

import math

from ranktilt.auditing.answer.gate import Gate, GateRow, LimitCheck
from ranktilt.reporting.document import Cell, Column, Document, Row, Sentence, Table, printed
from ranktilt.reporting.numbers import ends, signed
from ranktilt.reporting.tones import VERDICT_TONES


def view(gate: Gate) -> Document:
    """Return what is said of a gate."""
    columns = (
        Column("measure", number=False, header=True),
        Column("groups", number=False),
        Column("check", number=False),
        Column("value"),
        Column("95 % interval"),
        Column("allowed", spare=1),
        Column("queries", spare=1),
        Column("outcome", number=False),
    )
    rows = tuple(_row(row, check) for row in gate.rows for check in row.checks)
    return Document(
        title="Gate",
        kind="Gate on a bench" if "budget" in gate.spec else "Gate on an audit",
        headline=gate.headline,
        sections=printed([Table("Checks", columns, rows, groups=("ranker",))]),
        sentences=tuple(map(_sentence, gate.rows)),
        notes=gate.notes,
        outcome=VERDICT_TONES[gate.outcome],
        commands=tuple(str(gate.spec[key]) for key in ("audit", "command") if gate.spec.get(key)),
    )


def _sentence(row: GateRow) -> Sentence:
    return Sentence(f"{row.run}, {row.measure}, {row.groups}: {row.word}: {row.reason}", VERDICT_TONES[row.outcome])


def _row(row: GateRow, check: LimitCheck) -> Row:
    cells = (
        Cell(row.measure),
        Cell(row.groups),
        Cell(check.name),
        Cell(signed(check.value), check.value),
        Cell(" … ".join(ends(check.low, check.high))),
        Cell(_allowed(check)),
        Cell(str(row.queries), row.queries),
        Cell(check.word, None, VERDICT_TONES[check.outcome]),
    )
    return Row(cells, (row.run,))


def _allowed(check: LimitCheck) -> str:
    if not math.isfinite(check.floor):  # a file holds no infinity
        return f"≤ {check.ceiling:g}"
    if not math.isfinite(check.ceiling):
        return f"≥ {signed(check.floor)}"
    return f"{signed(check.floor)} … {signed(check.ceiling)}"
